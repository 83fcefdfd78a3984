// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the library knows of the process that it is in, and how it notices that this is another
//! one now.
//!
//! A word in memory that the child of a fork finds zero tells parent from child, however the child
//! was made. The child of a `vfork` runs in its parent's memory: see [`guests`].

pub mod barrier;
pub mod guests;
pub mod lock;
pub mod uring;

use crate::kernel::{confined, next, raw};
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};
pub use guests::{has, is_guest};
use std::sync::OnceLock;

/// A page that is zero after a fork; its first word is the number of the process.
static MARK: AtomicPtr<AtomicI32> = AtomicPtr::new(core::ptr::null_mut());
static NUMBER: AtomicI32 = AtomicI32::new(0);
/// How many forks lie between this process and the one that loaded the library.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Tells the namespace of process numbers from others; 0: not looked at.
static NAMESPACE: AtomicU32 = AtomicU32::new(0);
static HAS_MEMBARRIER: AtomicBool = AtomicBool::new(false);
/// The C library's own word for having one thread; null if it has none.
static ONE_THREAD: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

/// What the room that leads a process through its life does, which lies above this one.
pub struct Hooks {
    /// The library begins to know something of the process.
    pub process_is_tracked: fn(),
    /// This is the child of a fork. It ends with [`settle_child`] when what the library knows from
    /// the parent is put right.
    pub is_child: fn(),
}

/// The hooks, from when the library is loaded.
static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// Sets the hooks, once.
pub fn set_hooks(hooks: Hooks) {
    _ = HOOKS.set(hooks);
}

const PAGE_BYTES: usize = 4096;

/// Who may have fewer bytes of addresses has no room for a slab, and needs the rest for himself.
const LEAST_ADDRESSES: u64 = 2 * freeport_sockets_proto::slab::SLAB_BYTES as u64;

/// Looks up what is the C library's, while there is nobody who could be waited for: that takes a
/// lock of the loader. Whoever loads a library has it until that has begun, which may be until
/// another thread has done something. And a child of `vfork` that has it when its parent is killed
/// never gives it back: the kernel takes the parent's number out of the memory of both, by which
/// the owner of a lock is known, since somebody may wait for that thread's end.
pub fn look_up() {
    next::find_all();
    // SAFETY: names that end with zero.
    let word = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
    ONE_THREAD.store(word.cast(), Ordering::Relaxed);
}

/// Begins to know. False: there is no memory for that, or so little that nothing comes of it.
#[cold]
pub fn begin() -> bool {
    if !MARK.load(Ordering::Acquire).is_null() {
        return true;
    }
    if raw::address_limit() < LEAST_ADDRESSES {
        return false;
    }
    let Ok(page) = raw::map(PAGE_BYTES, false, None) else { return false };
    // SAFETY: just mapped. Where it is refused, the hook of fork has to do.
    _ = unsafe { raw::wipe_on_fork(page, PAGE_BYTES) };
    let mark: *mut AtomicI32 = page.cast();
    settle(mark);
    if let Some(hooks) = HOOKS.get() {
        (hooks.process_is_tracked)();
    }
    MARK.store(mark, Ordering::Release);
    true
}

/// Records that the process is the one that runs now.
fn settle(mark: *mut AtomicI32) {
    let number = raw::process();
    NUMBER.store(number, Ordering::Relaxed);
    let register = libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
    // Who has given up system calls has no use for it.
    let can = !confined::is_confined() && raw::membarrier(register).is_ok() && pass_everywhere();
    HAS_MEMBARRIER.store(can, Ordering::Relaxed);
    // SAFETY: the page of `begin`.
    unsafe { &*mark }.store(number, Ordering::Release);
}

/// Sees whether this is the process that it was before.
#[inline]
pub fn check() {
    let mark = MARK.load(Ordering::Relaxed);
    // SAFETY: the page of `begin`, which stays.
    if !mark.is_null() && unsafe { &*mark }.load(Ordering::Relaxed) == 0 {
        is_child();
    }
}

/// In the child of a fork, before it does anything else.
#[cold]
fn is_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    match HOOKS.get() {
        Some(hooks) => (hooks.is_child)(),
        None => settle_child(),
    }
}

/// In the child of a fork, when all that the library knows from its parent is put right.
pub fn settle_child() {
    NAMESPACE.store(0, Ordering::Relaxed);
    let mark = MARK.load(Ordering::Relaxed);
    if !mark.is_null() {
        settle(mark);
    }
}

/// Whether the library has anything to know of the process yet.
pub fn is_tracked() -> bool {
    !MARK.load(Ordering::Acquire).is_null()
}

/// The core on which this runs, counted from 1; 0: that is not known.
pub fn core() -> u64 {
    // SAFETY: a plain number; where there is none, it is below 0.
    u64::try_from(unsafe { libc::sched_getcpu() } + 1).unwrap_or_default()
}

/// The number of this process.
#[inline]
pub fn number() -> i32 {
    NUMBER.load(Ordering::Relaxed)
}

/// What tells the namespace in which it has that number from others; 0: that cannot be known.
pub fn namespace() -> u32 {
    let known = NAMESPACE.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let found = namespace_at(c"/proc/self/ns/pid");
    NAMESPACE.store(found, Ordering::Relaxed);
    found
}

/// The namespace that a link in `/proc` names; 0: unknown.
pub fn namespace_at(path: &CStr) -> u32 {
    raw::inode_at(path).ok().and_then(|it| u32::try_from(it).ok()).unwrap_or(0)
}

/// Changes with each fork on the way to this process.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Whether a program that is begun now has a descriptor of which this process knows something.
pub fn hands_on(descriptor: i32) -> bool {
    let flags = raw::fcntl(descriptor, libc::F_GETFD, 0);
    flags.is_ok_and(|flags| flags & libc::FD_CLOEXEC == 0) && has(descriptor)
}

/// Whether the process has one thread, and has always had.
#[inline]
pub fn has_one_thread() -> bool {
    let word = ONE_THREAD.load(Ordering::Relaxed);
    // SAFETY: the C library's variable, which only it changes, before it makes a thread.
    !word.is_null() && unsafe { word.read_volatile() } != 0
}

/// Whether it can make others pass a barrier, and be made to.
pub fn has_membarrier() -> bool {
    HAS_MEMBARRIER.load(Ordering::Relaxed)
}

/// Makes all processes with this library pass a barrier, wherever they are. False: refused.
pub fn pass_everywhere() -> bool {
    raw::membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED).is_ok()
}
