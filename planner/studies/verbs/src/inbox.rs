// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls that have arrived at a place, and the tasks that receive them. It holds as many as the
//! connections permit.

use crate::verbs::Call;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Calls of a place.
#[derive(Default)]
pub struct Inbox {
    calls: RefCell<VecDeque<Call>>,
    receivers: RefCell<Vec<Waker>>,
}

impl Inbox {
    /// Adds a call.
    pub fn deliver(&self, call: Call) {
        self.calls.borrow_mut().push_back(call);
        self.receivers.borrow_mut().drain(..).for_each(Waker::wake);
    }

    /// Returns the next call.
    pub async fn receive(&self) -> Call {
        poll_fn(|context| {
            if let Some(call) = self.calls.borrow_mut().pop_front() {
                return Poll::Ready(call);
            }
            self.receivers.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Drops all calls.
    pub fn clear(&self) {
        self.calls.take();
        self.receivers.take();
    }
}
