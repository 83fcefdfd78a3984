// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads that measure at the same time: all begin when the last one is prepared, and keep their
//! load up until the last one is done.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A measurement by several threads.
#[derive(Debug)]
pub struct Meeting {
    /// Threads that are not prepared yet.
    preparing: AtomicUsize,
    /// Threads that have not measured yet.
    measuring: AtomicUsize,
    /// Whether a thread failed, so that nobody may wait for it.
    is_off: AtomicBool,
}

/// A thread's place in a meeting. Dropping it before [`done`](Place::done) calls the meeting off.
#[derive(Debug)]
pub struct Place<'a> {
    meeting: &'a Meeting,
    is_done: bool,
}

impl Meeting {
    /// Makes a meeting of this number of threads.
    pub fn new(threads: usize) -> Self {
        let count = || AtomicUsize::new(threads);
        Self { preparing: count(), measuring: count(), is_off: AtomicBool::new(false) }
    }

    /// Takes the place of one thread.
    pub fn join(&self) -> Place<'_> {
        Place { meeting: self, is_done: false }
    }

    /// Calls the meeting off: no thread waits for others any more.
    pub fn call_off(&self) {
        self.is_off.store(true, Ordering::SeqCst);
    }
}

impl Place<'_> {
    /// Returns whether the meeting was called off.
    pub fn is_off(&self) -> bool {
        self.meeting.is_off.load(Ordering::SeqCst)
    }

    /// Returns whether no thread has to prepare itself any more, or the meeting is off.
    pub fn may_begin(&self) -> bool {
        self.meeting.preparing.load(Ordering::SeqCst) == 0 || self.is_off()
    }

    /// Returns whether no thread measures any more, or the meeting is off.
    pub fn may_end(&self) -> bool {
        self.meeting.measuring.load(Ordering::SeqCst) == 0 || self.is_off()
    }

    /// Says that this thread is prepared.
    pub fn prepared(&mut self) {
        self.meeting.preparing.fetch_sub(1, Ordering::SeqCst);
    }

    /// Says that this thread has measured.
    pub fn done(&mut self) {
        self.is_done = true;
        self.meeting.measuring.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.meeting.call_off();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_begin_with_the_last_one_and_end_with_the_last_one() {
        let meeting = Meeting::new(2);
        let (mut one, mut two) = (meeting.join(), meeting.join());
        one.prepared();
        assert!(!one.may_begin() && !two.may_begin());
        two.prepared();
        assert!(one.may_begin() && two.may_begin() && !one.may_end());
        one.done();
        drop(one);
        assert!(!two.may_end() && !two.is_off());
        two.done();
        assert!(two.may_end() && !two.is_off());
    }

    #[test]
    fn a_thread_that_fails_calls_the_meeting_off() {
        let meeting = Meeting::new(3);
        let mut one = meeting.join();
        one.prepared();
        assert!(!one.may_begin() && !one.may_end());
        drop(meeting.join());
        assert!(one.is_off() && one.may_begin() && one.may_end());
    }
}
