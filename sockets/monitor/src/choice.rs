// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selects the monitor for a user's programs. Two ends are accelerated only if both use the same
//! monitor, so root's monitor for the machine takes precedence over the user's own.
//!
//! A program sends its sockets to this monitor. It must belong to root or to the program's user:
//! the kernel reports the user of the listener, and a path alone is not trusted.

use crate::control::Control;
use crate::location::Location;
use crate::private::user;
use std::env;
use std::path::Path;

impl Location {
    /// Location of root's monitor for all users of the machine.
    pub fn of_host() -> Self {
        Self::at(Self::HOST)
    }

    /// Location of the monitor for programs of this user: `$FREEPORT_MONITOR`; otherwise the
    /// host's, if root listens there with this release and its rules allow this user any
    /// accelerated connection; otherwise the user's own, whether or not one runs.
    pub fn of_programs() -> Self {
        let host = Self::of_host();
        let is_set = env::var_os(freeport_sockets_proto::MONITOR_VARIABLE)
            .is_some_and(|value| !value.is_empty());
        if !is_set
            && user() != 0
            && host.owner() == Some(0)
            && Control::at(host.clone()).may().is_ok()
        {
            return host;
        }
        Self::of_environment()
    }

    /// Whether this is the location of the host's monitor.
    pub fn is_of_host(&self) -> bool {
        self.path() == Path::new(Self::HOST)
    }
}
