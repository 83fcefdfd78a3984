// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faster sockets for unmodified programs: a library that is loaded into them (`LD_PRELOAD`) and
//! stands between them and the C library.
//!
//! A connection (TCP or Unix) between two processes that both have the library leaves the kernel
//! after some operations. From then on its bytes move through rings in memory that both have
//! mapped; `freeport-sockets-proto` describes how. Descriptors, ports, waiting, and the notice of a
//! peer's death stay the kernel's.
//!
//! Modules, from the ground up; each imports only modules above it in this table, as
//! `tests/rooms.txt` lists:
//!
//! | module | contents |
//! |---|---|
//! | `kernel` | system calls, the functions of the C library, `errno`, memory |
//! | `process` | facts about the process and its threads, locks, the barrier |
//! | `state` | the state of connections: types, tables and locks |
//! | `family` | which processes hold a socket |
//! | `underlay` | the kernel's connection under the rings: doorbells, the end of the peer |
//! | `waiting` | how a thread sleeps on a connection, and which sets hold it |
//! | `upgrade` | leaving the kernel: claims, the monitor, slots |
//! | `returning` | coming back into the kernel |
//! | `data` | sending and receiving |
//! | `reuse` | connecting over a kept stream of the kernel |
//! | `multiplexing` | `poll`, `select`, `epoll_wait` and `epoll_ctl` |
//! | `socket` | opening, copying, shutting and closing sockets |
//! | `handing` | passing sockets to other programs and processes, and receiving them |
//! | `life` | start, end and forks of the process |
//! | `entry` | the functions that programs call |
//!
//! The library is a guest: it allocates nothing on the heap, makes its own system calls, starts no
//! thread, and keeps `errno`. Its only descriptors are the one to the monitor, once there is
//! something to claim, and those of kept streams.

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
