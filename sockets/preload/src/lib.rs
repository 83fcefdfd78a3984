// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faster sockets for unmodified programs: a library that is loaded into them (`LD_PRELOAD`) and
//! stands between them and the C library.
//!
//! A connection between two processes that both have it, of TCP or of Unix sockets, leaves the
//! kernel after some operations, and goes on through rings in memory that both have mapped; how is
//! said in `freeport-sockets-proto`. Descriptors, ports, waiting and death stay the kernel's.
//!
//! | module | what it is |
//! |---|---|
//! | `entry` | the functions that programs call |
//! | `socket` | what is behind a descriptor, and how that begins and ends |
//! | `upgrade` | leaving the kernel: claims, the monitor, memory that is shared |
//! | `returning` | coming back into it |
//! | `reuse` | connecting over a stream of the kernel that is there already |
//! | `data` | what goes through a connection, and its end |
//! | `waiting` | for one connection, or for several: `poll`, `select`, `epoll` |
//! | `handing` | going to other programs and processes, coming from them, leaving them |
//! | `life` | start, end and forks of a process, and what it does to all of its connections |
//! | `process` | what is known of the process and its threads |
//! | `kernel` | the kernel, and the C library |
//!
//! The library is a guest: it allocates nothing, calls the kernel itself, has no thread, keeps
//! `errno`, and has no descriptor but the one to the monitor, once there is something to claim, and
//! those of streams that it keeps.

mod data;
pub mod entry;
mod family;
mod handing;
mod kernel;
mod life;
mod multiplexing;
mod process;
mod returning;
mod reuse;
mod socket;
mod state;
mod underlay;
mod upgrade;
mod waiting;
