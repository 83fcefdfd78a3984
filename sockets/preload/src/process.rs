// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The process that the library is in, and how the library notices that it is a child of a fork.
//!
//! A word in memory that is zero in the child of a fork tells parent from child, however the child
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

/// A page that is zero in the child of a fork; its first word is the number of the process.
static MARK: AtomicPtr<AtomicI32> = AtomicPtr::new(core::ptr::null_mut());
static NUMBER: AtomicI32 = AtomicI32::new(0);
/// Number of forks between this process and the one that loaded the library.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Identifies the namespace of process numbers; 0: not read yet.
static NAMESPACE: AtomicU32 = AtomicU32::new(0);
static HAS_MEMBARRIER: AtomicBool = AtomicBool::new(false);
/// The C library's variable for having one thread; null if it has none.
static ONE_THREAD: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

/// Functions of the room `life`, which lies above this one.
pub struct Hooks {
    /// The library begins to track sockets of the process.
    pub process_is_tracked: fn(),
    /// This is the child of a fork. Calls [`settle_child`] when the library's state is adapted to
    /// the child.
    pub is_child: fn(),
}

/// The hooks, set when the library is loaded.
static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// Sets the hooks, once.
pub fn set_hooks(hooks: Hooks) {
    _ = HOOKS.set(hooks);
}

const PAGE_BYTES: usize = 4096;

/// Least limit of the address space. With less, the process has no room for a slab.
const LEAST_ADDRESSES: u64 = 2 * freeport_sockets_proto::slab::SLAB_BYTES as u64;

/// Looks up functions and variables of the C library at load time, while no other thread can hold
/// the loader's lock. Later, a thread that loads a library holds it until the library's
/// constructors return, which may wait for another thread. And a child of `vfork` that holds it
/// when its parent is killed never releases it: the kernel clears the parent's thread number in the
/// memory of both, which names the owner of the lock.
pub fn look_up() {
    next::find_all();
    // SAFETY: names that end with zero.
    let word = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
    ONE_THREAD.store(word.cast(), Ordering::Relaxed);
}

/// Begins to track sockets. False: there is too little memory or address space.
#[cold]
pub fn begin() -> bool {
    if !MARK.load(Ordering::Acquire).is_null() {
        return true;
    }
    if raw::address_limit() < LEAST_ADDRESSES {
        return false;
    }
    let Ok(page) = raw::map(PAGE_BYTES, false, None) else { return false };
    // SAFETY: just mapped. If the kernel refuses, the hook of fork has to suffice.
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
    // A process that has given up system calls does not use it.
    let can = !confined::is_confined() && raw::membarrier(register).is_ok() && pass_everywhere();
    HAS_MEMBARRIER.store(can, Ordering::Relaxed);
    // SAFETY: the page of `begin`.
    unsafe { &*mark }.store(number, Ordering::Release);
}

/// Checks whether this is a child of a fork, and adapts to it.
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

/// In the child of a fork, when the library's state is adapted.
pub fn settle_child() {
    NAMESPACE.store(0, Ordering::Relaxed);
    let mark = MARK.load(Ordering::Relaxed);
    if !mark.is_null() {
        settle(mark);
    }
}

/// Whether the library tracks sockets of the process yet.
pub fn is_tracked() -> bool {
    !MARK.load(Ordering::Acquire).is_null()
}

/// The core on which this thread runs, counted from 1; 0: unknown.
pub fn core() -> u64 {
    // SAFETY: returns a plain number; below 0: unknown.
    u64::try_from(unsafe { libc::sched_getcpu() } + 1).unwrap_or_default()
}

/// The number of this process.
#[inline]
pub fn number() -> i32 {
    NUMBER.load(Ordering::Relaxed)
}

/// Identifies the namespace of its number; 0: unknown.
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

/// Whether a program that is started now inherits a tracked descriptor.
pub fn hands_on(descriptor: i32) -> bool {
    let flags = raw::fcntl(descriptor, libc::F_GETFD, 0);
    flags.is_ok_and(|flags| flags & libc::FD_CLOEXEC == 0) && has(descriptor)
}

/// Whether the process has one thread, and has never had more.
#[inline]
pub fn has_one_thread() -> bool {
    let word = ONE_THREAD.load(Ordering::Relaxed);
    // SAFETY: the C library's variable, which only it changes, before it makes a thread.
    !word.is_null() && unsafe { word.read_volatile() } != 0
}

/// Whether the process can make others pass a barrier, and can be made to.
pub fn has_membarrier() -> bool {
    HAS_MEMBARRIER.load(Ordering::Relaxed)
}

/// Makes all processes with this library pass a barrier, wherever they are. False: refused.
pub fn pass_everywhere() -> bool {
    raw::membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED).is_ok()
}
