// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the library knows of the process that it is in, and how it notices that this is another
//! one now.
//!
//! A word in memory that the child of a fork finds zero tells parent from child, however the child
//! was made. The child of a `vfork` runs in its parent's memory: see [`guests`].

pub mod confined;
pub mod guests;
pub mod identity;
pub mod lock;
pub mod straying;
pub mod uring;

use crate::handing::{family, inherited, leaving, lent};
use crate::kernel::{errno, next, raw};
use crate::reuse;
use crate::reuse::entries;
use crate::socket::opening;
use crate::upgrade::monitor;
use crate::waiting::epoll::boards;
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
pub use guests::{has, is_guest};

/// A page that is zero after a fork; its first word is the number of the process.
static MARK: AtomicPtr<AtomicI32> = AtomicPtr::new(core::ptr::null_mut());
static NUMBER: AtomicI32 = AtomicI32::new(0);
/// How many forks lie between this process and the one that loaded the library.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Forks that are under way and share what they have to.
static PREPARED: AtomicU32 = AtomicU32::new(0);
/// The thread whose child is expected, from before its fork until it is known here, as its
/// [place](errno::place): one at a time, so that parent and child mean the same fork. 0: none.
static EXPECTS: AtomicUsize = AtomicUsize::new(0);
/// Tells the namespace of process numbers from others; 0: not looked at.
static NAMESPACE: AtomicU32 = AtomicU32::new(0);
static HAS_MEMBARRIER: AtomicBool = AtomicBool::new(false);
/// The C library's own word for having one thread; null if it has none.
static ONE_THREAD: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

const PAGE_BYTES: usize = 4096;

/// Who may have fewer bytes of addresses has no room for a slab, and needs the rest for himself.
const LEAST_ADDRESSES: u64 = 2 * freeport_sockets_proto::slab::SLAB_BYTES as u64;

/// When the library is loaded.
extern "C" fn constructor() {
    look_up();
    if monitor::begin() {
        reuse::begin();
        inherited::adopt_all();
    }
}

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
static CONSTRUCTOR: extern "C" fn() = constructor;

/// When the program has come to its end.
extern "C" fn destructor() {
    leaving::is_over();
}

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".fini_array"))]
static DESTRUCTOR: extern "C" fn() = destructor;

/// Looks up what is the C library's, while there is nobody who could be waited for: that takes a
/// lock of the loader. Whoever loads a library has it until that has begun, which may be until
/// another thread has done something. And a child of `vfork` that has it when its parent is killed
/// never gives it back: the kernel takes the parent's number out of the memory of both, by which
/// the owner of a lock is known, since somebody may wait for that thread's end.
fn look_up() {
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
    // SAFETY: functions that stay, as the library does.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
    MARK.store(mark, Ordering::Release);
    true
}

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
        is_child(mark);
    }
}

/// Before all forks that the C library makes.
extern "C" fn before_fork() {
    prepare_fork();
}

/// Behind those, in parent and child.
extern "C" fn after_fork() {
    has_forked();
}

/// Before a fork: what counts descriptors counts one more for each.
pub fn prepare_fork() {
    check();
    entries::let_go();
    boards::give_up(None);
    opening::share_all(expects());
    monitor::forks();
    PREPARED.fetch_add(1, Ordering::SeqCst);
}

/// Whether the child of this thread is the one that is expected.
fn expects() -> bool {
    EXPECTS.load(Ordering::Relaxed) == errno::place()
}

/// A fork that is about to be made by the C library.
pub struct Fork {
    is_expected: bool,
}

impl Fork {
    /// Before anything is prepared. Where there is no socket yet, nobody prepares anything, and the
    /// child would not take back that it is expected.
    pub fn new() -> Self {
        let (order, own) = (Ordering::SeqCst, errno::place());
        let is_prepared = !MARK.load(Ordering::Acquire).is_null();
        let claim = || EXPECTS.compare_exchange(0, own, order, order).is_ok();
        Self { is_expected: is_prepared && claim() }
    }

    /// In the parent, with what the C library gave: which child this process has, so that the
    /// others can see when it is dead, whatever it has come to until then.
    pub fn has_made(self, result: libc::pid_t) {
        if result < 0 {
            opening::has_no_child();
        }
        if self.is_expected {
            let is_near = || namespace() == namespace_at(c"/proc/self/ns/pid_for_children");
            opening::knows_child(|| (result > 0 && is_near()).then_some(result));
            EXPECTS.store(0, Ordering::SeqCst);
        }
    }
}

/// Behind a fork, in parent and child.
pub fn has_forked() {
    check();
    let less = |forks: u32| forks.checked_sub(1);
    _ = PREPARED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

/// Makes a child with memory of its own by `make`, which gives what the kernel does: below zero, it
/// was not made.
pub fn fork_by(make: impl FnOnce() -> isize) -> isize {
    if MARK.load(Ordering::Acquire).is_null() {
        return make();
    }
    // Nobody is expected: it may be in another namespace, where it has another number.
    prepare_fork();
    let result = make();
    if result < 0 {
        opening::has_no_child();
    }
    has_forked();
    result
}

/// In the child of a fork, before it does anything else.
#[cold]
fn is_child(mark: *mut AtomicI32) {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let forks = PREPARED.swap(0, Ordering::SeqCst);
    if forks == 0 {
        // Made by an instruction of its own.
        opening::has_strayed();
    }
    boards::forget_all();
    lent::forget_beginning();
    let is_expected = EXPECTS.swap(0, Ordering::Relaxed) == errno::place();
    let parent = if is_expected && forks > 0 { family::parent() } else { None };
    monitor::leave_to_parent();
    entries::leave_to_parent();
    NAMESPACE.store(0, Ordering::Relaxed);
    settle(mark);
    opening::note_in_child(parent);
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

fn namespace_at(path: &CStr) -> u32 {
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
