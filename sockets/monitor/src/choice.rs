// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which monitor the programs of a user get. Two ends are accelerated only if both have the same
//! one, so what root has begun for the machine comes before a user's own.
//!
//! A program shows its sockets to the monitor that it is told of. That is root's or its user's: of
//! whoever listens the kernel says the user, and a path alone is not believed.

use crate::control::Control;
use crate::location::Location;
use crate::private::user;
use std::env;
use std::path::Path;

impl Location {
    /// Where root's monitor listens for all users of the machine.
    pub fn of_host() -> Self {
        Self::at(Self::HOST)
    }

    /// The monitor that programs of this user are told of: `$FREEPORT_MONITOR`; else the host's, if
    /// root listens there, with this release, and its rules let this user have accelerated
    /// connections at all; else that of the user, be there one or not.
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

    /// Whether it is the host's.
    pub fn is_of_host(&self) -> bool {
        self.path() == Path::new(Self::HOST)
    }
}
