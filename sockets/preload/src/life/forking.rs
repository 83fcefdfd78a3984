// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Forks: the steps of the library before one, and after it in the parent and in the child.

use super::inheriting;
use crate::family::lent;
use crate::kernel::errno;
use crate::process::{self, guests};
use crate::reuse::entries;
use crate::state::holders;
use crate::upgrade::monitor;
use crate::waiting::epoll::boards;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Number of forks that are under way and prepared.
static PREPARED: AtomicU32 = AtomicU32::new(0);
/// The thread whose child is expected, as its [place](errno::place), from before its fork until the
/// child is known. Only one at a time, so that parent and child mean the same fork. 0: none.
static EXPECTS: AtomicUsize = AtomicUsize::new(0);

/// Makes the C library report its forks.
pub fn watch() {
    // SAFETY: functions that stay, as the library does.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
}

/// Before all forks that the C library makes.
extern "C" fn before_fork() {
    prepare_fork();
}

/// After those, in parent and child.
extern "C" fn after_fork() {
    has_forked();
}

/// Before a fork: counts each descriptor once more, and shares the rings.
pub fn prepare_fork() {
    process::check();
    entries::let_go();
    boards::give_up(None);
    inheriting::share_all(expects());
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
    /// Before anything is prepared. Without sockets nothing is prepared, and the child would not
    /// take back that it is expected.
    pub fn new() -> Self {
        let (order, own) = (Ordering::SeqCst, errno::place());
        let is_prepared = process::is_tracked();
        let claim = || EXPECTS.compare_exchange(0, own, order, order).is_ok();
        Self { is_expected: is_prepared && claim() }
    }

    /// In the parent, with the C library's result: notes the child's process, so that the others
    /// can see when it has exited, however far it came.
    pub fn has_made(self, result: libc::pid_t) {
        if result < 0 {
            inheriting::has_no_child();
        }
        if self.is_expected {
            let is_near =
                || process::namespace() == process::namespace_at(c"/proc/self/ns/pid_for_children");
            inheriting::knows_child(|| (result > 0 && is_near()).then_some(result));
            EXPECTS.store(0, Ordering::SeqCst);
        }
    }
}

/// After a fork, in parent and child.
pub fn has_forked() {
    process::check();
    let less = |forks: u32| forks.checked_sub(1);
    _ = PREPARED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

/// Makes a child with memory of its own by `make`, which returns the kernel's result: below zero on
/// failure.
pub fn fork_by(make: impl FnOnce() -> isize) -> isize {
    if !process::is_tracked() {
        return make();
    }
    // No child is expected: it may be in another namespace, where it has another number.
    prepare_fork();
    let result = make();
    if result < 0 {
        inheriting::has_no_child();
    }
    has_forked();
    result
}

/// In the child of a fork, before it does anything else.
pub fn is_child() {
    let forks = PREPARED.swap(0, Ordering::SeqCst);
    if forks == 0 {
        // The program has made it by an instruction of its own.
        inheriting::has_strayed();
    }
    boards::forget_all();
    lent::forget_beginning();
    let is_expected = EXPECTS.swap(0, Ordering::Relaxed) == errno::place();
    let parent = if is_expected && forks > 0 { holders::parent() } else { None };
    monitor::leave_to_parent();
    entries::leave_to_parent();
    process::settle_child();
    inheriting::note_in_child(parent);
}

/// Makes a child by `make`, of the kind that these flags of `clone` ask for. `make` returns what
/// the kernel returns.
pub fn child_by(flags: u64, make: impl FnOnce() -> isize) -> isize {
    if flags & guests::WITH_MEMORY == 0 {
        return fork_by(make);
    }
    if flags & guests::AS_THREAD == 0 {
        guests::may_come();
    }
    make()
}
