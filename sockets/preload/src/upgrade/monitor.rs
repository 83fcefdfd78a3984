// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The connection to the monitor: claims are sent there, slots come from there. No call waits for
//! it.

use crate::kernel::{identity, raw};
use crate::process::lock::Lock;
use crate::state::kept::Given;
use crate::state::slabs;
use crate::upgrade::kept;
use crate::{process, upgrade};
use core::ffi::CStr;
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use freeport_sockets_proto::message::{self, CLAIMS_MAX, Reply, Request};
use freeport_sockets_proto::{MONITOR_VARIABLE, Reason, VERSION};

/// The descriptor; -1: there is none.
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
/// When connecting was tried last, in ticks.
static TRIED: AtomicU64 = AtomicU64::new(0);
/// Number of claims without an answer, and its limit: the monitor must have room for that many
/// unread answers.
static OUTSTANDING: AtomicU32 = AtomicU32::new(0);
const OUTSTANDING_MAX: u32 = CLAIMS_MAX as u32 / 4;
/// Number of monitors so far. Names of slabs belong to one of them.
static EPOCH: AtomicU32 = AtomicU32::new(0);
static LOCK: Lock = Lock::new();

/// Ticks between two attempts to reach the monitor: about a second.
const AGAIN_TICKS: u64 = 2_000_000_000;
/// When its mail was read last, and the ticks between two times: about 20 microseconds.
static READ: AtomicU64 = AtomicU64::new(0);
const READ_TICKS: u64 = 50_000;
/// The same if only the retirement of slabs is awaited: about a tenth of a second. Until then the
/// pages that former peers have written take memory.
const IDLE_TICKS: u64 = 200_000_000;
/// Until when no call waits for the monitor, in ticks, and how long one waits otherwise.
static SLOW_UNTIL: AtomicU64 = AtomicU64::new(0);
const ROOM_MILLISECONDS: u32 = 2;
/// The library's descriptor is moved to at least this number, if possible, out of the program's
/// way.
const HIGH: i32 = 1000;
/// The same in a process with several threads: for the first number beyond the 64 that each process
/// has room for, the kernel waits until no thread uses the old table, 20 milliseconds and more.
const HIGH_BESIDE_THREADS: i32 = 48;

const CONTROL_BYTES: usize = 64;

/// The path of the monitor's socket, up to the first zero.
static PATH: [AtomicU8; 108] = [const { AtomicU8::new(0) }; 108];

/// Room for a descriptor that comes with a message.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Saves the path of the monitor's socket, since programs may change their environment later.
/// False: there is none.
pub fn begin() -> bool {
    let mut name = [0_u8; MONITOR_VARIABLE.len() + 1];
    for (place, byte) in name.iter_mut().zip(MONITOR_VARIABLE.bytes()) {
        *place = byte;
    }
    // SAFETY: a name that ends with zero.
    let path = unsafe { libc::getenv(name.as_ptr().cast()) };
    if path.is_null() {
        return false;
    }
    // SAFETY: a string of the environment, which ends with zero.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if path.len() < PATH.len() {
        for (place, byte) in PATH.iter().zip(path) {
            place.store(*byte, Ordering::Relaxed);
        }
    }
    !path.is_empty()
}

/// Whether a descriptor is the library's own.
#[inline]
pub fn is_ours(descriptor: i32) -> bool {
    descriptor >= 0 && DESCRIPTOR.load(Ordering::Relaxed) == descriptor
}

/// The library's own descriptor.
pub fn descriptor() -> Option<u32> {
    u32::try_from(DESCRIPTOR.load(Ordering::Relaxed)).ok()
}

/// In the child of a fork: the connection is its parent's. It stays open, since the child holds the
/// parent's sockets as well, and the monitor takes slots back when the connection is closed by all.
pub fn leave_to_parent() {
    TRIED.store(0, Ordering::Relaxed);
    DESCRIPTOR.store(-1, Ordering::Relaxed);
    kept::leave_to_parent();
    lose();
}

/// When the program has closed the descriptor: there is no connection.
pub fn forget() {
    TRIED.store(0, Ordering::Relaxed);
    lose();
}

/// The result of a request to the monitor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// The monitor will answer.
    Yes,
    /// Too many requests wait for answers.
    Busy,
    /// No monitor can be reached.
    No,
}

/// Whether too many requests wait for answers to send another one.
pub fn is_busy() -> bool {
    if OUTSTANDING.load(Ordering::Relaxed) >= OUTSTANDING_MAX {
        read_mail_at_times();
    }
    OUTSTANDING.load(Ordering::Relaxed) >= OUTSTANDING_MAX
}

/// Requests a slot from the monitor.
pub fn claim(token: u64, descriptor: i32, inherited: bool) -> Asked {
    let Some(_held) = LOCK.take(false) else { return Asked::Busy };
    let Some(monitor) = reach() else { return Asked::No };
    slabs::sweep();
    give_back_owed();
    let claim = Request::Claim { token, descriptor, inherited };
    if !send(monitor, &claim, Some(descriptor)) {
        return Asked::No;
    }
    OUTSTANDING.fetch_add(1, Ordering::Relaxed);
    Asked::Yes
}

/// Withdraws a claim without an answer, because the socket is closed, so that the peer sees the end
/// at once.
pub fn withdraw(token: u64) {
    let Some(_held) = LOCK.take(false) else { return };
    let monitor = DESCRIPTOR.load(Ordering::Relaxed);
    if monitor >= 0 {
        send(monitor, &Request::Withdraw { token }, None);
    }
}

/// Reports that other processes may hold a socket from now on. `alone`: no other process holds it
/// by a fork; `inherited`: it came from another process itself. False: the report was not sent.
pub fn pass(token: u64, descriptor: i32, alone: bool, inherited: bool) -> bool {
    let Some(_held) = LOCK.take(false) else { return false };
    let request = Request::Pass { token, alone, inherited };
    // A guest of its parent must not use the parent's connection to the monitor.
    !process::is_guest() && reach().is_some_and(|monitor| send(monitor, &request, Some(descriptor)))
}

/// Reports why a socket stays in the kernel, or, with inode 0, all sockets of this process. False:
/// the report was not sent.
pub fn keep(inode: u64, reason: Reason) -> bool {
    let Some(_held) = LOCK.take(false) else { return false };
    let request = Request::Keep { inode, reason };
    !process::is_guest() && reach().is_some_and(|monitor| send(monitor, &request, None))
}

/// Before a fork: the monitor must not assign further slots in slabs that the child will have as
/// well.
pub fn forks() {
    if !slabs::fork() {
        return;
    }
    let Some(_held) = LOCK.take(false) else { return };
    let monitor = DESCRIPTOR.load(Ordering::Relaxed);
    if monitor >= 0 {
        // If it cannot be sent, slots assigned there are given back.
        send(monitor, &Request::Fork, None);
    }
}

/// Unmaps all slabs without a connection of this process, while no slot is assigned there.
pub fn leaves_unused_slabs() {
    let _held = LOCK.take(false);
    slabs::sweep_all();
}

/// Reports that this process no longer has a descriptor of a socket that it has passed.
pub fn part(token: u64) {
    let Some(_held) = LOCK.take(false) else { return };
    let monitor = DESCRIPTOR.load(Ordering::Relaxed);
    if monitor >= 0 {
        send(monitor, &Request::Part { token }, None);
    }
}

/// The number of the current monitor.
pub fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

/// Gives back a slot that came from the monitor of that number.
pub fn release(from: u32, slab: u32, slot: u32) {
    let Some(_held) = LOCK.take(false) else { return };
    let monitor = DESCRIPTOR.load(Ordering::Relaxed);
    if monitor >= 0 && from == epoch() && slabs::owe(slab, slot) {
        give_back_owed();
    }
}

/// Gives back all slots that are due. Those that cannot be sent now stay for the next time.
fn give_back_owed() {
    while let Some((slab, slot)) = slabs::owed() {
        let monitor = DESCRIPTOR.load(Ordering::Relaxed);
        if monitor < 0 {
            return;
        }
        if send(monitor, &Request::Release { slab, slot }, None) {
            slabs::is_paid(slab, slot);
        } else if !has_room_soon(monitor) {
            return;
        }
    }
}

/// Whether there is room for more messages now or within moments: a program that closes many
/// connections is quicker than the monitor. After a slow answer no call waits for a while.
#[cold]
fn has_room_soon(monitor: i32) -> bool {
    let (now, until) = (raw::ticks(), SLOW_UNTIL.load(Ordering::Relaxed));
    if DESCRIPTOR.load(Ordering::Relaxed) != monitor || now < until {
        return false;
    }
    let has_room = raw::wait(monitor, libc::POLLOUT, ROOM_MILLISECONDS).is_ok();
    if !has_room {
        SLOW_UNTIL.store(now.wrapping_add(AGAIN_TICKS), Ordering::Relaxed);
    }
    has_room
}

/// [`read_mail`], if there may be any and it was not read a moment ago.
#[inline]
pub fn read_mail_at_times() {
    if OUTSTANDING.load(Ordering::Relaxed) > 0 {
        read_mail_after(READ_TICKS);
    } else if slabs::may_be_unused() {
        read_mail_after(IDLE_TICKS);
    }
}

#[cold]
fn read_mail_after(ticks: u64) {
    let (now, read) = (raw::ticks(), READ.load(Ordering::Relaxed));
    if now.wrapping_sub(read) >= ticks {
        READ.store(now, Ordering::Relaxed);
        read_mail();
        slabs::sweep_behind_mail();
    }
}

/// Handles all messages of the monitor that have arrived.
pub fn read_mail() {
    let Some(_held) = LOCK.take(false) else { return };
    loop {
        let monitor = DESCRIPTOR.load(Ordering::Relaxed);
        if monitor < 0 {
            return;
        }
        let Some((reply, memory)) = receive(monitor) else { return };
        if matches!(reply, Reply::Paired { .. } | Reply::Refused { .. }) {
            let left = OUTSTANDING.load(Ordering::Relaxed).saturating_sub(1);
            OUTSTANDING.store(left, Ordering::Relaxed);
        }
        match reply {
            Reply::Welcome { version } if version != VERSION => lose(),
            Reply::Welcome { .. } => {}
            Reply::Refused { token, reason } => upgrade::is_refused(token, reason),
            Reply::Over { slab } => slabs::is_over(slab),
            Reply::Paired { token, slab, slot, side, fenced, peer, cookie } => {
                let found = slabs::find(slab, memory.both());
                let (start, place) = found.map_or((ptr::null_mut(), 0), |it| (it.start, it.place));
                let given = Given {
                    start,
                    place,
                    slab,
                    slot,
                    side,
                    fenced,
                    peer,
                    cookie,
                    monitor: epoch(),
                };
                if found.is_none() || !upgrade::is_paired(token, given) {
                    send(monitor, &Request::Release { slab, slot }, None);
                }
            }
        }
    }
}

/// The connection; made now if there is none and the next attempt is due.
fn reach() -> Option<i32> {
    let descriptor = DESCRIPTOR.load(Ordering::Relaxed);
    if descriptor >= 0 {
        return Some(descriptor);
    }
    let (now, tried) = (raw::ticks(), TRIED.load(Ordering::Relaxed));
    if tried != 0 && now.wrapping_sub(tried) < AGAIN_TICKS {
        return None;
    }
    TRIED.store(now.max(1), Ordering::Relaxed);
    let descriptor = connect().ok()?;
    DESCRIPTOR.store(descriptor, Ordering::Relaxed);
    let hello = Request::Hello { version: VERSION, membarrier: process::has_membarrier() };
    send(descriptor, &hello, None).then_some(descriptor)
}

/// Whether the listener there runs as this process's user, or as root.
fn is_trusted(descriptor: i32) -> bool {
    let mut who = libc::ucred { pid: 0, uid: u32::MAX, gid: 0 };
    let known = raw::get_option(descriptor, libc::SOL_SOCKET, libc::SO_PEERCRED, &mut who);
    known.is_ok() && (who.uid == 0 || who.uid == identity::user())
}

fn connect() -> raw::Result<i32> {
    let (address, bytes) = address().ok_or(libc::ENOENT)?;
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let descriptor = raw::socket(libc::AF_UNIX, kind)?;
    let connected = raw::connect(descriptor, &address, bytes)
        .and_then(|_| if is_trusted(descriptor) { Ok(()) } else { Err(libc::EPERM) });
    // Not among the numbers that a program expects.
    let copy = |least| raw::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, least);
    let high = match process::has_one_thread() {
        true => copy(HIGH).or_else(|_| copy(HIGH_BESIDE_THREADS)),
        false => copy(HIGH_BESIDE_THREADS),
    };
    match (connected, high) {
        (Ok(_), Ok(high)) => {
            _ = raw::close(descriptor);
            Ok(high)
        }
        (Ok(_), Err(error)) => {
            // A process with so few descriptors needs each of them.
            _ = raw::close(descriptor);
            Err(error)
        }
        (Err(error), high) => {
            _ = raw::close(descriptor);
            if let Ok(high) = high {
                _ = raw::close(high);
            }
            Err(error)
        }
    }
}

/// The address of the monitor; `None`: the environment did not name it.
fn address() -> Option<(libc::sockaddr_un, usize)> {
    let mut address = libc::sockaddr_un { sun_family: libc::AF_UNIX as u16, sun_path: [0; 108] };
    let mut length = 0;
    for (place, byte) in address.sun_path.iter_mut().zip(&PATH) {
        *place = byte.load(Ordering::Relaxed).cast_signed();
        if *place == 0 {
            break;
        }
        length += 1;
    }
    let bytes = mem::offset_of!(libc::sockaddr_un, sun_path) + length + 1;
    (length > 0).then_some((address, bytes))
}

/// Sends a message, with a descriptor if there is one. False: it was not sent.
fn send(monitor: i32, request: &Request, descriptor: Option<i32>) -> bool {
    let mut bytes = request.encode();
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = Control([0; CONTROL_BYTES]);
    // SAFETY: a message of zeroes is valid, and empty.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    if let Some(descriptor) = descriptor {
        message.msg_control = ptr::from_mut(&mut control).cast();
        // SAFETY: only computes a size.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<i32>() as u32) } as usize;
        // SAFETY: the message names `control`, which has room for a descriptor.
        let at = unsafe { libc::CMSG_FIRSTHDR(&message) };
        // SAFETY: the start of `control`, which is aligned and all zero.
        let header = unsafe { &mut *at };
        header.cmsg_level = libc::SOL_SOCKET;
        header.cmsg_type = libc::SCM_RIGHTS;
        // SAFETY: only computes a size.
        header.cmsg_len = unsafe { libc::CMSG_LEN(size_of::<i32>() as u32) } as usize;
        // SAFETY: `at` is the header of a message, and its data begin behind it.
        let data = unsafe { libc::CMSG_DATA(at) };
        // SAFETY: `control` has room for a descriptor there.
        unsafe { data.cast::<i32>().write_unaligned(descriptor) };
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    match raw::send_message(monitor, &message, flags) {
        Ok(_) => true,
        Err(libc::EAGAIN | libc::ENOMEM | libc::ENOBUFS | libc::ETOOMANYREFS) => false,
        Err(_) => {
            lose();
            false
        }
    }
}

/// Descriptors that came with a message; closed when this is dropped.
struct Came([Option<i32>; 2]);

impl Came {
    /// The slab's and its notices', if both came.
    fn both(&self) -> Option<[i32; 2]> {
        let [slab, notices] = self.0;
        Some([slab?, notices?])
    }
}

impl Drop for Came {
    fn drop(&mut self) {
        for descriptor in self.0.into_iter().flatten() {
            _ = raw::close(descriptor);
        }
    }
}

/// A message and the descriptors that came with it; `None` if there is none now.
fn receive(monitor: i32) -> Option<(Reply, Came)> {
    let mut bytes = [0; message::BYTES];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = Control([0; CONTROL_BYTES]);
    // SAFETY: a message of zeroes is one of nothing.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = ptr::from_mut(&mut control).cast();
    message.msg_controllen = CONTROL_BYTES;
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    let count = match raw::receive_message(monitor, &mut message, flags) {
        Err(libc::EAGAIN | libc::EINTR) => return None,
        Err(_) | Ok(0) => {
            lose();
            return None;
        }
        Ok(count) => count,
    };
    // SAFETY: the message names `control`, as far as the kernel has filled it.
    let at = unsafe { libc::CMSG_FIRSTHDR(&message) };
    // SAFETY: null, or a header in `control`, which is aligned.
    let header = unsafe { at.as_ref() }.filter(|header| {
        header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_RIGHTS
    });
    let data_bytes = header.map_or(0, |header| {
        // SAFETY: only computes a size.
        header.cmsg_len.saturating_sub(unsafe { libc::CMSG_LEN(0) } as usize)
    });
    let came = Came([0, 1].map(|number| {
        (number < data_bytes / size_of::<i32>()).then(|| {
            // SAFETY: `at` is the header of a message, and its data begin behind it.
            let data = unsafe { libc::CMSG_DATA(at) }.cast::<i32>();
            // SAFETY: the kernel has written more descriptors there than `number`.
            let place = unsafe { data.add(number) };
            // SAFETY: as above.
            unsafe { place.read_unaligned() }
        })
    }));
    let reply = bytes.get(..count).and_then(Reply::decode);
    if reply.is_none() {
        lose();
    }
    Some((reply?, came))
}

/// Drops the connection. Claimed sockets stay in the kernel until they are claimed again.
fn lose() {
    let descriptor = DESCRIPTOR.swap(-1, Ordering::Relaxed);
    if descriptor >= 0 {
        _ = raw::close(descriptor);
    }
    OUTSTANDING.store(0, Ordering::Relaxed);
    EPOCH.fetch_add(1, Ordering::Relaxed);
    slabs::forget_names();
}
