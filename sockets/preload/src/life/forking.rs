// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Forks: what the library does before one, and afterwards in the parent and in the child.

use super::inheriting;
use crate::family::lent;
use crate::kernel::errno;
use crate::process::{self, guests};
use crate::reuse::entries;
use crate::state::holders;
use crate::upgrade::monitor;
use crate::waiting::epoll::boards;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Forks that are under way and share what they have to.
static PREPARED: AtomicU32 = AtomicU32::new(0);
/// The thread whose child is expected, from before its fork until it is known here, as its
/// [place](errno::place): one at a time, so that parent and child mean the same fork. 0: none.
static EXPECTS: AtomicUsize = AtomicUsize::new(0);

/// Has the C library report its forks.
pub fn watch() {
    // SAFETY: functions that stay, as the library does.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
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
    /// Before anything is prepared. Where there is no socket yet, nobody prepares anything, and the
    /// child would not take back that it is expected.
    pub fn new() -> Self {
        let (order, own) = (Ordering::SeqCst, errno::place());
        let is_prepared = process::is_tracked();
        let claim = || EXPECTS.compare_exchange(0, own, order, order).is_ok();
        Self { is_expected: is_prepared && claim() }
    }

    /// In the parent, with what the C library gave: which child this process has, so that the
    /// others can see when it is dead, whatever it has come to until then.
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

/// Behind a fork, in parent and child.
pub fn has_forked() {
    process::check();
    let less = |forks: u32| forks.checked_sub(1);
    _ = PREPARED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

/// Makes a child with memory of its own by `make`, which gives what the kernel does: below zero, it
/// was not made.
pub fn fork_by(make: impl FnOnce() -> isize) -> isize {
    if !process::is_tracked() {
        return make();
    }
    // Nobody is expected: it may be in another namespace, where it has another number.
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
        // Made by an instruction of its own.
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
