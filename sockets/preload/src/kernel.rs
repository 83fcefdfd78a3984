// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the library stands on: calls of the kernel, the functions of the C library that it
//! stands before, and `errno`.

pub mod errno;
pub mod folder;
pub mod identity;
pub mod memory;
pub mod next;
pub mod processes;
pub mod raw;
pub mod signals;
pub mod switches;
