// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The life of a process with the library: its start and end, its forks, and what it does to all of
//! its connections.

pub mod confined;
pub mod forking;
pub mod identity;
mod inheriting;
pub mod uring;

use crate::handing::{inherited, leaving};
use crate::process;
use crate::reuse;
use crate::socket::inside::close_own;
use crate::state::inside;
use crate::upgrade::monitor;

/// Connects what notices forks with what has to be done then.
pub fn set_hooks() {
    process::set_hooks(process::Hooks {
        process_is_tracked: forking::watch,
        is_child: forking::is_child,
    });
    inside::set_close(close_own);
}

/// When the library is loaded.
extern "C" fn constructor() {
    set_hooks();
    process::look_up();
    if monitor::begin() {
        reuse::begin();
        inherited::adopt_all();
    }
}

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
static CONSTRUCTOR: extern "C" fn() = constructor;

/// When the program has come to its end.
extern "C" fn destructor() {
    leaving::is_over();
}

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".fini_array"))]
static DESTRUCTOR: extern "C" fn() = destructor;
