// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Users of a server and their rights, as access control lists of Redis 7.2.
//!
//! A client has a shared user value. Whether that may do everything is one bit of the client, which
//! the worker compares before each command; only other users are checked call by call. A change
//! makes new values and a new version. Clients follow it before their next request, and workers
//! look at all clients then: those whose user is gone are disconnected, as are those that listen to
//! channels which they may not use any more.

mod catalog;
mod file;
mod log;
mod login;
mod rules;
mod selector;
mod user;
mod users;

pub use catalog::{Catalog, KeyUses};
pub use log::{Entry as LogEntry, Place, Reason};
pub use login::Login;
pub use rules::check_name;
pub use selector::{Denial, Selector};
pub use user::{DEFAULT, User, hex};
pub use users::Users;
