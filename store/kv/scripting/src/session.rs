// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Native functions know this of the running script: the caller, the version of replies, the state
//! of the random numbers. A session belongs to one state of Lua, whose functions share it.

use crate::caller::{Caller, StopReason};
use crate::random::Random;
use crate::registration::Registration;
use freeport_kv_protocol::resp::Version;
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

/// State of the running script.
#[derive(Default)]
pub(crate) struct Session {
    /// Present only during [`run`](Self::run), and not while it is in use.
    caller: Cell<Option<NonNull<dyn Caller>>>,
    stop: Cell<Option<StopReason>>,
    /// Version of replies to the script.
    pub(crate) version: Cell<Version>,
    /// Random numbers of `math.random`. A script continues the sequence of the one before.
    pub(crate) random: Cell<Random>,
    /// Functions of the library that is being loaded.
    pub(crate) registration: RefCell<Option<Registration>>,
}

impl Session {
    /// Calls `body`, in which [`with_caller`](Self::with_caller) has `caller`.
    pub(crate) fn run<R>(&self, caller: &mut dyn Caller, body: impl FnOnce() -> R) -> R {
        /// Forgets the caller, also if `body` panics.
        struct Forget<'a>(&'a Session);
        impl Drop for Forget<'_> {
            fn drop(&mut self) {
                self.0.caller.set(None);
            }
        }
        self.version.set(Version::Two);
        self.stop.set(None);
        let caller: NonNull<dyn Caller + '_> = NonNull::from(caller);
        // SAFETY: only the lifetime changes. The pointer is forgotten before this call returns.
        let caller = unsafe {
            std::mem::transmute::<NonNull<dyn Caller + '_>, NonNull<dyn Caller + 'static>>(caller)
        };
        self.caller.set(Some(caller));
        let _forget = Forget(self);
        body()
    }

    /// Calls `body` with the caller; `None` if no script runs, or the caller is in use.
    pub(crate) fn with_caller<R>(&self, body: impl FnOnce(&mut dyn Caller) -> R) -> Option<R> {
        let mut pointer = self.caller.take()?;
        // SAFETY: `run` has a unique reference to the caller for the time in which the pointer is
        // set, and nobody else has the pointer, since it was taken.
        let result = body(unsafe { pointer.as_mut() });
        self.caller.set(Some(pointer));
        Some(result)
    }

    /// The reason for which the script has to stop, if there is one.
    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        if self.stop.get().is_none() {
            self.stop.set(self.with_caller(|caller| caller.interrupt()).flatten());
        }
        self.stop.get()
    }
}
