// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ground of the library: system calls, the C library functions that it interposes, `errno`,
//! and memory of the application and of the library.

pub mod confined;
pub mod errno;
pub mod folder;
pub mod identity;
pub mod memory;
pub mod next;
pub mod parts;
pub mod processes;
pub mod raw;
pub mod scratch;
pub mod signals;
pub mod switches;
