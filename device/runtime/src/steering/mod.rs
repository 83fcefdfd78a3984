// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Control of a device by the names of the source (ClickNP 3.1): variables, signals, methods,
//! tables, initial values, counters.
//!
//! - [`Manager`] has the device, and resolves names.
//! - [`Call`] is a call of a method or of a table's method, as text.
//! - [`Initial`] is a file of initial values and calls, applied in pieces while packets flow.

mod call;
mod error;
mod initial;
mod manager;
mod methods;
mod place;
mod tables;

pub use call::{Call, CallError};
pub use error::ManagerError;
pub use initial::Initial;
pub use manager::Manager;
