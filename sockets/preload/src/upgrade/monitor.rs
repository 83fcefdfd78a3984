// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The connection to the monitor: claims go there, slots come from there. Nobody ever waits for it.

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
/// When it was tried last to have one, in ticks.
static TRIED: AtomicU64 = AtomicU64::new(0);
/// Claims that have no answer yet, and how many there may be: no more than the monitor has room for
/// answers that nobody reads.
static OUTSTANDING: AtomicU32 = AtomicU32::new(0);
const OUTSTANDING_MAX: u32 = CLAIMS_MAX as u32 / 4;
/// How many monitors there have been: names of slabs are those of one of them.
static EPOCH: AtomicU32 = AtomicU32::new(0);
static LOCK: Lock = Lock::new();

/// Ticks between two attempts to reach the monitor: about a second.
const AGAIN_TICKS: u64 = 2_000_000_000;
/// When its mail was read last, in ticks, and how many have to be between two times: about 20
/// microseconds.
static READ: AtomicU64 = AtomicU64::new(0);
const READ_TICKS: u64 = 50_000;
/// The same where nothing is waited for but that slabs are over: about a tenth of a second. What
/// peers that are gone have written there takes memory until then.
const IDLE_TICKS: u64 = 200_000_000;
/// Until when the monitor is not waited for, in ticks, and for how long it is otherwise.
static SLOW_UNTIL: AtomicU64 = AtomicU64::new(0);
const ROOM_MILLISECONDS: u32 = 2;
/// Our descriptor is moved to at least this number where it can be, so that it is in nobody's way.
const HIGH: i32 = 1000;
/// The same where there are several threads: the first number behind the 64 that each process has
/// room for makes the kernel wait until no thread uses the old table, 20 milliseconds and more.
const HIGH_BESIDE_THREADS: i32 = 48;

const CONTROL_BYTES: usize = 64;

/// The path of the monitor's socket, up to the first zero.
static PATH: [AtomicU8; 108] = [const { AtomicU8::new(0) }; 108];

/// Room for a descriptor that comes with a message.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Keeps where the monitor listens: programs may change their environment later. False: nowhere.
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
    // SAFETY: a text of the environment.
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

/// In the child of a fork: the connection is its parent's. It stays open, since what the parent has
/// is the child's as well, and the monitor takes it back when nobody has the connection any more.
pub fn leave_to_parent() {
    TRIED.store(0, Ordering::Relaxed);
    DESCRIPTOR.store(-1, Ordering::Relaxed);
    kept::leave_to_parent();
    lose();
}

/// When the descriptor is taken away: the connection is its parent's.
pub fn forget() {
    TRIED.store(0, Ordering::Relaxed);
    lose();
}

/// What comes of asking the monitor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// It will answer.
    Yes,
    /// It has too much to answer now.
    Busy,
    /// There is none that can be asked.
    No,
}

/// Whether so much waits for answers that nothing more can be asked.
pub fn is_busy() -> bool {
    if OUTSTANDING.load(Ordering::Relaxed) >= OUTSTANDING_MAX {
        read_mail_at_times();
    }
    OUTSTANDING.load(Ordering::Relaxed) >= OUTSTANDING_MAX
}

/// Asks the monitor for a slot.
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

/// Takes a claim back whose answer has not come, because the socket is closed: its peer shall know
/// at once.
pub fn withdraw(token: u64) {
    let Some(_held) = LOCK.take(false) else { return };
    let monitor = DESCRIPTOR.load(Ordering::Relaxed);
    if monitor >= 0 {
        send(monitor, &Request::Withdraw { token }, None);
    }
}

/// Says that others may have a socket from now on. `alone`: nobody else has it by a fork;
/// `inherited`: it came from elsewhere itself. False: nobody was told.
pub fn pass(token: u64, descriptor: i32, alone: bool, inherited: bool) -> bool {
    let Some(_held) = LOCK.take(false) else { return false };
    let request = Request::Pass { token, alone, inherited };
    // Who is the guest of its parent has nothing to do with that one's monitor.
    !process::is_guest() && reach().is_some_and(|monitor| send(monitor, &request, Some(descriptor)))
}

/// Says why a socket stays in the kernel, or with 0 for its inode all that this process has. False:
/// nobody was told.
pub fn keep(inode: u64, reason: Reason) -> bool {
    let Some(_held) = LOCK.take(false) else { return false };
    let request = Request::Keep { inode, reason };
    !process::is_guest() && reach().is_some_and(|monitor| send(monitor, &request, None))
}

/// Before a fork: no further slots are to come in slabs that the child will have as well.
pub fn forks() {
    if !slabs::fork() {
        return;
    }
    let Some(_held) = LOCK.take(false) else { return };
    let monitor = DESCRIPTOR.load(Ordering::Relaxed);
    if monitor >= 0 {
        // If there is no room for it, slots that come there are given back.
        send(monitor, &Request::Fork, None);
    }
}

/// Takes all slabs away that no connection of this process is in, while none gets a slot there.
pub fn leaves_unused_slabs() {
    let _held = LOCK.take(false);
    slabs::sweep_all();
}

/// Says that this process has no descriptor any more of a socket that it has passed.
pub fn part(token: u64) {
    let Some(_held) = LOCK.take(false) else { return };
    let monitor = DESCRIPTOR.load(Ordering::Relaxed);
    if monitor >= 0 {
        send(monitor, &Request::Part { token }, None);
    }
}

/// Which of the monitors this is.
pub fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

/// Gives a slot back that came from one of the monitors.
pub fn release(from: u32, slab: u32, slot: u32) {
    let Some(_held) = LOCK.take(false) else { return };
    let monitor = DESCRIPTOR.load(Ordering::Relaxed);
    if monitor >= 0 && from == epoch() && slabs::owe(slab, slot) {
        give_back_owed();
    }
}

/// Gives all slots back that are to be. What there is no room for is kept for the next time.
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

/// Whether there is room for more messages, or is within moments: who closes many connections is
/// quicker than the monitor. One that takes longer is not waited for again for a while.
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

/// [`read_mail`], if there can be any and it was not read just now.
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

/// Does what the monitor has said since it was asked last.
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

/// The connection, made now if there is none and it is time to try again.
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

/// Whether who listens there is of this process's user, or root.
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
            // Who may have so few needs each of them.
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

/// Where the monitor listens; `None` if the environment did not say.
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
    // SAFETY: a message of zeroes is one of nothing.
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

/// Has no monitor any more. What was claimed stays in the kernel until it is claimed again.
fn lose() {
    let descriptor = DESCRIPTOR.swap(-1, Ordering::Relaxed);
    if descriptor >= 0 {
        _ = raw::close(descriptor);
    }
    OUTSTANDING.store(0, Ordering::Relaxed);
    EPOCH.fetch_add(1, Ordering::Relaxed);
    slabs::forget_names();
}
