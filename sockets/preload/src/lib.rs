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
//! | [`entry`] | the functions that programs call |
//! | [`table`], [`connections`], [`connection`] | what is behind a descriptor |
//! | [`opening`] | how sockets begin and end |
//! | [`upgrade`], [`monitor`], [`slabs`], [`slot`], [`ends`] | leaving the kernel |
//! | [`returning`], [`resending`], [`standing_in`], [`substitute`] | coming back |
//! | [`sending`], [`receiving`], [`files`], [`resets`] | data, and its end |
//! | [`handing`], [`control`], [`file_actions`] | going to others |
//! | [`inherited`], [`leaving`] | coming from others, and leaving them |
//! | [`confined`] | programs that give up system calls |
//! | [`epoll`], [`polling`], [`select`] | waiting for several |
//! | [`waiting`], [`sleep`], [`patience`] | waiting for one |
//! | [`unix`], [`diagnosis`] | what is particular to Unix sockets |
//! | [`underlay`] | whether the peer is gone |
//! | [`process`], [`lock`], [`straying`] | threads, forks |
//! | [`uring`] | what is not accelerated at all |
//! | [`next`], [`raw`], [`errno`], [`scratch`] | the C library and the kernel |
//!
//! The library is a guest: it allocates nothing, calls the kernel itself, has no thread, keeps
//! `errno`, and has no descriptor but the one to the monitor, once there is something to claim.

mod confined;
mod connection;
mod connections;
mod control;
mod diagnosis;
mod doorbells;
mod ends;
pub mod entry;
mod epoll;
mod errno;
mod family;
mod file_actions;
mod files;
mod handing;
mod inherited;
mod leaving;
mod lock;
mod monitor;
mod next;
mod opening;
mod parts;
mod patience;
mod peeking;
mod polling;
mod process;
mod raw;
mod receiving;
mod resending;
mod resets;
mod returning;
mod scratch;
mod select;
mod sending;
mod slabs;
mod sleep;
mod slot;
mod standing_in;
mod straying;
mod substitute;
mod table;
mod underlay;
mod unix;
mod upgrade;
mod uring;
mod waiting;
