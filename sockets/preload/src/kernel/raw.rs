// SPDX-License-Identifier: Apache-2.0 OR MIT
//! System calls of the library itself. They bypass the C library, whose functions the library
//! replaces, do not touch `errno`, and are no cancellation points.

use core::arch::asm;
use core::ffi::CStr;
use core::ptr;

/// The result of a system call: a value, or an `errno` that is not zero.
pub type Result<T = usize> = core::result::Result<T, i32>;

/// Calls the system.
///
/// # Safety
/// The arguments are valid for the system call.
#[inline]
#[cfg(target_arch = "x86_64")]
pub unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result;
    // SAFETY: the caller upholds it; the kernel changes no other registers.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Calls the system.
///
/// # Safety
/// The arguments are valid for the system call.
#[inline]
#[cfg(target_arch = "aarch64")]
pub unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result;
    // SAFETY: the caller upholds it; the kernel changes no other registers.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a as isize => result,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            in("x5") f,
            options(nostack),
        );
    }
    result
}

/// The value or the `errno` that a result of the kernel encodes.
#[inline]
pub fn checked(result: isize) -> Result {
    if result < 0 { Err(-result as i32) } else { Ok(result.cast_unsigned()) }
}

#[inline]
pub(super) unsafe fn checked_call(number: libc::c_long, arguments: [usize; 6]) -> Result {
    // SAFETY: the caller upholds it.
    checked(unsafe { call(number, arguments) })
}

/// A number as an argument, with its sign extended.
#[inline]
pub(super) const fn argument(number: i32) -> usize {
    number as isize as usize
}

/// New memory: zeroed, private or shared with children of forks, or of a file.
pub fn map(bytes: usize, shared: bool, descriptor: Option<i32>) -> Result<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = if shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE } | libc::MAP_NORESERVE;
    let kind = kind | if descriptor.is_none() { libc::MAP_ANONYMOUS } else { 0 };
    let from = descriptor.unwrap_or(-1);
    let arguments = [0, bytes, argument(access), argument(kind), argument(from), 0];
    // SAFETY: a new mapping at an address that the kernel chooses.
    unsafe { checked_call(libc::SYS_mmap, arguments) }.map(|at| at as *mut u8)
}

/// Limit of the process's address space in bytes.
pub fn address_limit() -> u64 {
    limit(libc::RLIMIT_AS as usize)
}

/// Limit of the process's number of descriptors.
pub fn descriptor_limit() -> u64 {
    limit(libc::RLIMIT_NOFILE as usize)
}

fn limit(kind: usize) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: u64::MAX, rlim_max: u64::MAX };
    // SAFETY: a place that lives as long as the call.
    _ = unsafe {
        let place = ptr::from_mut(&mut limit) as usize;
        checked_call(libc::SYS_prlimit64, [0, kind, 0, place, 0, 0])
    };
    limit.rlim_cur
}

/// Makes memory zero in the child of a fork.
///
/// # Safety
/// The memory is a private mapping of this process.
pub unsafe fn wipe_on_fork(start: *mut u8, bytes: usize) -> Result {
    let arguments = [start as usize, bytes, argument(libc::MADV_WIPEONFORK), 0, 0, 0];
    // SAFETY: the caller upholds it.
    unsafe { checked_call(libc::SYS_madvise, arguments) }
}

/// Unmaps memory.
pub fn unmap(start: *mut u8, bytes: usize) {
    // SAFETY: callers no longer use the memory.
    unsafe { call(libc::SYS_munmap, [start as usize, bytes, 0, 0, 0, 0]) };
}

/// Copies bytes of this process, if they can be read; returns their number.
pub fn copy_of_own(from: *const u8, into: &mut [u8]) -> Result {
    let from = libc::iovec { iov_base: from.cast_mut().cast(), iov_len: into.len() };
    let into = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let (from, into) = (ptr::from_ref(&from) as usize, ptr::from_ref(&into) as usize);
    // SAFETY: room that lives as long as the call; the kernel checks what is read.
    unsafe { checked_call(libc::SYS_process_vm_readv, [argument(process()), into, 1, from, 1, 0]) }
}

/// Closes a descriptor.
pub fn close(descriptor: i32) -> Result {
    // SAFETY: no memory is passed.
    unsafe { checked_call(libc::SYS_close, [argument(descriptor), 0, 0, 0, 0, 0]) }
}

/// Opens a file for reading.
pub fn open(path: &CStr) -> Result<i32> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    let arguments = [argument(libc::AT_FDCWD), path.as_ptr() as usize, argument(flags), 0, 0, 0];
    // SAFETY: a path that lives as long as the call.
    unsafe { checked_call(libc::SYS_openat, arguments) }.map(|descriptor| descriptor as i32)
}

/// Whether a descriptor is the same in two processes.
pub fn is_same(process: i32, other: i32, descriptor: i32) -> Result<bool> {
    const FILE: usize = 0;
    let number = argument(descriptor);
    let arguments = [argument(process), argument(other), FILE, number, number, 0];
    // SAFETY: no memory is passed.
    unsafe { checked_call(libc::SYS_kcmp, arguments) }.map(|order| order == 0)
}

/// The kernel's unique name of a socket (`SO_COOKIE`); `None`: it is no socket.
pub fn cookie(descriptor: i32) -> Option<u64> {
    let mut cookie = 0_u64;
    get_option(descriptor, libc::SOL_SOCKET, libc::SO_COOKIE, &mut cookie).ok()?;
    Some(cookie)
}

/// The inode of a descriptor's file.
pub fn inode(descriptor: i32) -> Result<u64> {
    // SAFETY: all zero is a value of this structure.
    let mut about: libc::stat = unsafe { core::mem::zeroed() };
    let place = ptr::from_mut(&mut about) as usize;
    let arguments = [argument(descriptor), place, 0, 0, 0, 0];
    // SAFETY: the place has room for the answer, and lives as long as the call.
    unsafe { checked_call(libc::SYS_fstat, arguments) }.map(|_| about.st_ino)
}

/// The kind of a descriptor's file, of `S_IFMT`.
pub fn kind_of_file(descriptor: i32) -> Result<libc::mode_t> {
    // SAFETY: all zero is a value of this structure.
    let mut about: libc::stat = unsafe { core::mem::zeroed() };
    let place = ptr::from_mut(&mut about) as usize;
    let arguments = [argument(descriptor), place, 0, 0, 0, 0];
    // SAFETY: the place has room for the answer, and lives as long as the call.
    unsafe { checked_call(libc::SYS_fstat, arguments) }.map(|_| about.st_mode & libc::S_IFMT)
}

/// The inode of a path's file.
pub fn inode_at(path: &CStr) -> Result<u64> {
    // SAFETY: all zero is a value of this structure.
    let mut about: libc::stat = unsafe { core::mem::zeroed() };
    let place = ptr::from_mut(&mut about) as usize;
    let arguments = [argument(libc::AT_FDCWD), path.as_ptr() as usize, place, 0, 0, 0];
    // SAFETY: the path ends with zero; the place is as above.
    unsafe { checked_call(libc::SYS_newfstatat, arguments) }.map(|_| about.st_ino)
}

/// A new socket.
pub fn socket(family: i32, kind: i32) -> Result<i32> {
    socket_of(family, kind, 0)
}

/// A new socket of one of the protocols of a family.
pub fn socket_of(family: i32, kind: i32, protocol: i32) -> Result<i32> {
    let arguments = [argument(family), argument(kind), argument(protocol), 0, 0, 0];
    // SAFETY: no memory is passed.
    unsafe { checked_call(libc::SYS_socket, arguments) }.map(|descriptor| descriptor as i32)
}

/// Connects a socket to an address of `bytes` bytes.
pub fn connect(descriptor: i32, address: &libc::sockaddr_un, bytes: usize) -> Result {
    let address = ptr::from_ref(address) as usize;
    // SAFETY: an address that lives as long as the call.
    unsafe { checked_call(libc::SYS_connect, [argument(descriptor), address, bytes, 0, 0, 0]) }
}

/// Resets a connection, as closing it with unread bytes does.
pub fn disconnect(descriptor: i32) {
    let nobody = libc::sockaddr_un { sun_family: libc::AF_UNSPEC as u16, sun_path: [0; 108] };
    _ = connect(descriptor, &nobody, size_of::<libc::sockaddr>());
}

/// Makes one socket listen at a free port of the loopback interface, connects another one to it,
/// and returns the accepted socket. Both are of IPv4.
pub fn connect_through(listener: i32, connecting: i32) -> Result<i32> {
    let loopback = libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) };
    let family = libc::AF_INET as libc::sa_family_t;
    let mut address =
        libc::sockaddr_in { sin_family: family, sin_port: 0, sin_addr: loopback, sin_zero: [0; 8] };
    let mut bytes = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    let (at, length) = (ptr::from_mut(&mut address) as usize, bytes as usize);
    // SAFETY: an address of that length, which lives as long as the call.
    unsafe { checked_call(libc::SYS_bind, [argument(listener), at, length, 0, 0, 0]) }?;
    // SAFETY: no memory is passed.
    unsafe { checked_call(libc::SYS_listen, [argument(listener), 1, 0, 0, 0, 0]) }?;
    let place = ptr::from_mut(&mut bytes) as usize;
    // SAFETY: room for an address and its length, which live as long as the call.
    unsafe { checked_call(libc::SYS_getsockname, [argument(listener), at, place, 0, 0, 0]) }?;
    // SAFETY: an address of that length, which lives as long as the call.
    unsafe { checked_call(libc::SYS_connect, [argument(connecting), at, length, 0, 0, 0]) }?;
    let arguments = [argument(listener), 0, 0, argument(libc::SOCK_CLOEXEC), 0, 0];
    // SAFETY: null asks for no address, so nothing is written.
    unsafe { checked_call(libc::SYS_accept4, arguments) }.map(|accepted| accepted as i32)
}

/// Makes a descriptor another one of the same file.
pub fn duplicate(from: i32, to: i32, closed_on_exec: bool) -> Result {
    let flags = if closed_on_exec { argument(libc::O_CLOEXEC) } else { 0 };
    // SAFETY: no memory is passed.
    unsafe { checked_call(libc::SYS_dup3, [argument(from), argument(to), flags, 0, 0, 0]) }
}

/// Sends bytes.
pub fn send(descriptor: i32, bytes: &[u8], flags: i32) -> Result {
    let (at, count) = (bytes.as_ptr() as usize, bytes.len());
    let arguments = [argument(descriptor), at, count, argument(flags), 0, 0];
    // SAFETY: bytes that live as long as the call.
    unsafe { checked_call(libc::SYS_sendto, arguments) }
}

/// Receives bytes.
pub fn receive(descriptor: i32, bytes: &mut [u8], flags: i32) -> Result {
    let (at, count) = (bytes.as_mut_ptr() as usize, bytes.len());
    let arguments = [argument(descriptor), at, count, argument(flags), 0, 0];
    // SAFETY: room that lives as long as the call.
    unsafe { checked_call(libc::SYS_recvfrom, arguments) }
}

/// Receives bytes, as [`receive`] does, at a place.
pub fn receive_at(descriptor: i32, at: *mut u8, bytes: usize, flags: i32) -> Result {
    let arguments = [argument(descriptor), at as usize, bytes, argument(flags), 0, 0];
    // SAFETY: callers give room for that many bytes.
    unsafe { checked_call(libc::SYS_recvfrom, arguments) }
}

/// Reads from a descriptor.
pub fn read(descriptor: i32, at: *mut u8, bytes: usize) -> Result {
    // SAFETY: callers give room for that many bytes.
    unsafe { checked_call(libc::SYS_read, [argument(descriptor), at as usize, bytes, 0, 0, 0]) }
}

/// Reads from a place in a file.
pub fn read_at(descriptor: i32, at: *mut u8, bytes: usize, offset: i64) -> Result {
    let arguments = [argument(descriptor), at as usize, bytes, offset as usize, 0, 0];
    // SAFETY: callers give room for that many bytes.
    unsafe { checked_call(libc::SYS_pread64, arguments) }
}

/// Writes to a descriptor.
pub fn write(descriptor: i32, at: *const u8, bytes: usize) -> Result {
    // SAFETY: callers give that many bytes.
    unsafe { checked_call(libc::SYS_write, [argument(descriptor), at as usize, bytes, 0, 0, 0]) }
}

/// Sends bytes, as [`send`] does, from a place.
pub fn send_from(descriptor: i32, at: *const u8, bytes: usize) -> Result {
    let arguments = [argument(descriptor), at as usize, bytes, 0, 0, 0];
    // SAFETY: callers give that many bytes.
    unsafe { checked_call(libc::SYS_sendto, arguments) }
}

/// Moves a file's position back, after more was read than was used.
pub fn seek_back(descriptor: i32, bytes: usize) {
    if bytes > 0 {
        let back = (bytes as isize).wrapping_neg() as usize;
        let arguments = [argument(descriptor), back, argument(libc::SEEK_CUR), 0, 0, 0];
        // SAFETY: no memory is passed.
        unsafe { call(libc::SYS_lseek, arguments) };
    }
}

/// A descriptor for a process.
pub fn process_handle(process: i32) -> Result<i32> {
    let arguments = [argument(process), 0, 0, 0, 0, 0];
    // SAFETY: no memory is passed.
    unsafe { checked_call(libc::SYS_pidfd_open, arguments) }.map(|handle| handle as i32)
}

/// A copy of a descriptor of another process.
pub fn descriptor_of(process: i32, descriptor: i32) -> Result<i32> {
    let arguments = [argument(process), argument(descriptor), 0, 0, 0, 0];
    // SAFETY: no memory is passed.
    unsafe { checked_call(libc::SYS_pidfd_getfd, arguments) }.map(|copy| copy as i32)
}

/// Waits until a descriptor can be written, or only looks.
pub fn wait_writable(descriptor: i32, waits: bool) -> Result {
    wait_for(descriptor, libc::POLLOUT, waits)
}

/// Waits until a descriptor can be read, or only looks.
pub fn wait_readable(descriptor: i32, waits: bool) -> Result {
    wait_for(descriptor, libc::POLLIN, waits)
}

/// Whether the kernel reports a hang-up or an error of a descriptor, in the bits of `poll`.
pub fn errors(descriptor: i32) -> u32 {
    events(descriptor, 0) & (libc::POLLHUP | libc::POLLERR) as u32
}

/// The events of a descriptor, out of these and those that are always reported.
pub fn events(descriptor: i32, wanted: i16) -> u32 {
    let mut asked = libc::pollfd { fd: descriptor, events: wanted, revents: 0 };
    _ = poll(&mut asked, Some(0));
    u32::from(asked.revents.cast_unsigned())
}

/// Waits for events of a descriptor for at most that many milliseconds.
pub fn wait(descriptor: i32, events: i16, milliseconds: u32) -> Result {
    poll(&mut libc::pollfd { fd: descriptor, events, revents: 0 }, Some(milliseconds))
}

/// Sleeps for that many milliseconds.
pub fn sleep_milliseconds(milliseconds: u32) {
    _ = wait(-1, 0, milliseconds);
}

/// Polls several descriptors without waiting; returns the number of ready ones.
pub fn poll_at_once(asked: &mut [libc::pollfd]) -> Result {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let (at, count) = (asked.as_mut_ptr() as usize, asked.len());
    // SAFETY: places that live as long as the call.
    unsafe { checked_call(libc::SYS_ppoll, [at, count, ptr::from_ref(&time) as usize, 0, 0, 0]) }
}

fn wait_for(descriptor: i32, events: i16, waits: bool) -> Result {
    let mut waited = libc::pollfd { fd: descriptor, events, revents: 0 };
    poll(&mut waited, if waits { None } else { Some(0) })
}

/// `EAGAIN` if nothing has happened in the time.
fn poll(asked: &mut libc::pollfd, milliseconds: Option<u32>) -> Result {
    let milliseconds_or_none = milliseconds.unwrap_or(0);
    let (seconds, rest) = (milliseconds_or_none / 1000, milliseconds_or_none % 1000);
    let time = libc::timespec { tv_sec: seconds.into(), tv_nsec: i64::from(rest) * 1_000_000 };
    let time = if milliseconds.is_some() { ptr::from_ref(&time) as usize } else { 0 };
    // SAFETY: places that live as long as the call.
    match unsafe {
        checked_call(libc::SYS_ppoll, [ptr::from_mut(asked) as usize, 1, time, 0, 0, 0])
    } {
        Ok(0) => Err(libc::EAGAIN),
        other => other,
    }
}

/// Sends a message.
pub fn send_message(descriptor: i32, message: &libc::msghdr, flags: i32) -> Result {
    let message = ptr::from_ref(message) as usize;
    let arguments = [argument(descriptor), message, argument(flags), 0, 0, 0];
    // SAFETY: a message that the caller made.
    unsafe { checked_call(libc::SYS_sendmsg, arguments) }
}

/// Receives a message.
pub fn receive_message(descriptor: i32, message: &mut libc::msghdr, flags: i32) -> Result {
    let message = ptr::from_mut(message) as usize;
    let arguments = [argument(descriptor), message, argument(flags), 0, 0, 0];
    // SAFETY: a message that the caller made.
    unsafe { checked_call(libc::SYS_recvmsg, arguments) }
}

/// `fcntl(2)`.
pub fn fcntl(descriptor: i32, command: i32, value: i32) -> Result<i32> {
    let arguments = [argument(descriptor), argument(command), argument(value), 0, 0, 0];
    // SAFETY: the library uses no command that takes memory.
    unsafe { checked_call(libc::SYS_fcntl, arguments) }.map(|value| value as i32)
}

/// The number that an `ioctl` returns.
pub fn ioctl_number(descriptor: i32, request: libc::c_ulong) -> Result<i32> {
    let mut number = 0;
    let place = ptr::from_mut(&mut number) as usize;
    let arguments = [argument(descriptor), request as usize, place, 0, 0, 0];
    // SAFETY: the requests that the library uses write one number.
    unsafe { checked_call(libc::SYS_ioctl, arguments) }.map(|_| number)
}

/// Reads a socket option; returns its size in bytes.
pub fn get_option<T>(descriptor: i32, level: i32, name: i32, value: &mut T) -> Result<usize> {
    let mut bytes = size_of::<T>() as libc::socklen_t;
    let (value, length) = (ptr::from_mut(value) as usize, ptr::from_mut(&mut bytes) as usize);
    let arguments = [argument(descriptor), argument(level), argument(name), value, length, 0];
    // SAFETY: no more is written than there is room for; callers give plain numbers.
    unsafe { checked_call(libc::SYS_getsockopt, arguments) }.map(|_| bytes as usize)
}

/// Sets a socket option.
pub fn set_option<T>(descriptor: i32, level: i32, name: i32, value: &T) -> Result {
    let (value, bytes) = (ptr::from_ref(value) as usize, size_of::<T>());
    let arguments = [argument(descriptor), argument(level), argument(name), value, bytes, 0];
    // SAFETY: a value that lives as long as the call.
    unsafe { checked_call(libc::SYS_setsockopt, arguments) }
}

/// Shuts one direction of a socket, or both.
pub fn shutdown(descriptor: i32, how: usize) {
    // SAFETY: no memory is passed.
    unsafe { call(libc::SYS_shutdown, [argument(descriptor), how, 0, 0, 0, 0]) };
}

/// The address of a socket or of its peer; returns its size in bytes.
pub fn address(descriptor: i32, of_peer: bool, into: &mut libc::sockaddr_storage) -> Result {
    let number = if of_peer { libc::SYS_getpeername } else { libc::SYS_getsockname };
    let mut bytes = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    let (into, length) = (ptr::from_mut(into) as usize, ptr::from_mut(&mut bytes) as usize);
    // SAFETY: no more is written than there is room for.
    unsafe { checked_call(number, [argument(descriptor), into, length, 0, 0, 0]) }
        .map(|_| bytes as usize)
}

/// The address of a socket's peer, written to the program's memory.
pub fn address_into(
    descriptor: i32,
    into: *mut libc::sockaddr,
    bytes: *mut libc::socklen_t,
) -> Result {
    let arguments = [argument(descriptor), into as usize, bytes as usize, 0, 0, 0];
    // SAFETY: the kernel checks the places that the program gives.
    unsafe { checked_call(libc::SYS_getpeername, arguments) }
}

/// Whether a descriptor is a socket that has a peer.
pub fn is_connected(descriptor: i32) -> bool {
    // SAFETY: an address of zeroes is valid.
    let mut peer = unsafe { core::mem::zeroed() };
    address(descriptor, true, &mut peer).is_ok()
}

/// Yields the processor.
pub fn yield_now() {
    // SAFETY: no memory is passed.
    unsafe { call(libc::SYS_sched_yield, [0; 6]) };
}

/// The number of this process, asked from the kernel: right in the child of a `vfork` as well.
pub fn process() -> i32 {
    // SAFETY: no memory is passed.
    unsafe { call(libc::SYS_getpid, [0; 6]) as i32 }
}

/// Ends the process.
pub fn exit(status: i32) -> ! {
    loop {
        // SAFETY: no memory is passed.
        unsafe { call(libc::SYS_exit_group, [argument(status), 0, 0, 0, 0, 0]) };
    }
}

/// A descriptor of a child.
pub fn process_descriptor(process: i32) -> Result<i32> {
    // SAFETY: no memory is passed.
    unsafe { checked_call(libc::SYS_pidfd_open, [argument(process), 0, 0, 0, 0, 0]) }
        .map(|descriptor| descriptor as i32)
}

/// Whether a process runs, and is not a zombie: the caller may be the parent that has to reap it.
pub fn is_alive(process: i32) -> bool {
    match process_handle(process) {
        Ok(handle) => {
            let is_over = wait_readable(handle, false).is_ok();
            _ = close(handle);
            !is_over
        }
        // Without a descriptor for it that is unknown.
        Err(error) => error != libc::ESRCH,
    }
}

/// `membarrier(2)`.
pub fn membarrier(command: i32) -> Result {
    // SAFETY: no memory is passed.
    unsafe { checked_call(libc::SYS_membarrier, [argument(command), 0, 0, 0, 0, 0]) }
}

/// `epoll_ctl(2)`.
pub fn epoll_ctl(set: i32, operation: i32, descriptor: i32, event: libc::epoll_event) -> Result {
    let event = ptr::from_ref(&event) as usize;
    let arguments = [argument(set), argument(operation), argument(descriptor), event, 0, 0];
    // SAFETY: an event that lives as long as the call.
    unsafe { checked_call(libc::SYS_epoll_ctl, arguments) }
}

/// The path of the entry of a descriptor's number in a folder, which ends with zero.
fn path_of(folder: &[u8], descriptor: i32) -> [u8; 32] {
    let mut path = [0_u8; 32];
    for (place, byte) in path.iter_mut().zip(folder) {
        *place = *byte;
    }
    let mut left = descriptor.unsigned_abs();
    let digits = left.checked_ilog10().unwrap_or(0) as usize + 1;
    for place in path.iter_mut().skip(folder.len()).take(digits).rev() {
        *place = b'0' + (left % 10) as u8;
        left /= 10;
    }
    path
}

/// Opens the `fdinfo` of a descriptor in `/proc`.
pub fn open_information(descriptor: i32) -> Result<i32> {
    let path = path_of(b"/proc/self/fdinfo/", descriptor);
    let flags = argument(libc::O_RDONLY | libc::O_CLOEXEC);
    let arguments = [argument(libc::AT_FDCWD), path.as_ptr() as usize, flags, 0, 0, 0];
    // SAFETY: a path that ends with zero.
    unsafe { checked_call(libc::SYS_openat, arguments) }.map(|opened| opened as i32)
}

/// Whether a descriptor is an epoll set, as `/proc` shows.
pub fn is_set(descriptor: i32) -> bool {
    const NAME: &[u8] = b"anon_inode:[eventpoll]";
    let path = path_of(b"/proc/self/fd/", descriptor);
    let mut target = [0_u8; NAME.len()];
    let (at, bytes) = (target.as_mut_ptr() as usize, target.len());
    let folder = argument(libc::AT_FDCWD);
    let arguments = [folder, path.as_ptr() as usize, at, bytes, 0, 0];
    // SAFETY: a path that ends with zero, and room that lives as long as the call.
    let read = unsafe { checked_call(libc::SYS_readlinkat, arguments) };
    read == Ok(NAME.len()) && target == *NAME
}

/// The ready events of an epoll set, without waiting.
pub fn epoll_ready(set: i32, events: &mut [libc::epoll_event]) -> Result {
    let (at, count) = (events.as_mut_ptr() as usize, events.len());
    // SAFETY: room that lives as long as the call.
    unsafe { checked_call(libc::SYS_epoll_pwait, [argument(set), at, count, 0, 0, 0]) }
}

/// Sends a signal to this thread.
pub fn raise(signal: i32) {
    // SAFETY: no memory is passed.
    let thread = unsafe { call(libc::SYS_gettid, [0; 6]) }.cast_unsigned();
    // SAFETY: no memory is passed; what the signal does is the application's business.
    unsafe { call(libc::SYS_tkill, [thread, argument(signal), 0, 0, 0, 0]) };
}

/// A counter that runs at a steady pace of a few nanoseconds or less.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a register.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
    {
        let ticks;
        // SAFETY: reads a register.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
}
