// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Beginning other programs, as children. The C library makes these by functions of its own, which
//! nobody sees: what they inherit is in the kernel before they are made.

use crate::family::lent::Beginning;
use crate::handing::file_actions;
use crate::kernel::next::next;
use crate::kernel::raw;
use crate::state::table::{self, What};
use crate::{handing, process};
use core::ffi::{c_char, c_int, c_void};

/// Texts, up to a null.
type Texts = *const *const c_char;

/// Before a program is begun that has what is not closed by that, and besides what the actions
/// give it.
fn begins(actions: *const c_void) -> Beginning {
    process::check();
    let beginning = Beginning::new();
    handing::is_inherited();
    file_actions::each_copied(actions, |descriptor| {
        if matches!(table::get(descriptor), Some(What::Stream(_))) {
            handing::is_passed(descriptor);
        }
    });
    beginning
}

/// What a program is begun with.
#[derive(Clone, Copy)]
struct Program {
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: Texts,
    environment: Texts,
}

/// Calls the C library's function of that name: `begin!(posix_spawn, child: libc::pid_t, program)`.
macro_rules! begin {
    ($name:ident, $child:ident: $kind:ty, $program:expr) => {{
        let Program { path, actions, attributes, arguments, environment } = $program;
        next!($name($child: *mut $kind, path: *const c_char, actions: *const c_void,
            attributes: *const c_void, arguments: Texts, environment: Texts) -> c_int)
    }};
}

/// Defines one of the functions that begin a program, which says where its child is found.
macro_rules! spawner {
    ($(#[$about:meta])* $name:ident, $kind:ty, |$child:ident, $program:ident| $run:expr) => {
        $(#[$about])*
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            $child: *mut $kind,
            path: *const c_char,
            actions: *const c_void,
            attributes: *const c_void,
            arguments: Texts,
            environment: Texts,
        ) -> c_int {
            let _beginning = begins(actions);
            let $program = Program { path, actions, attributes, arguments, environment };
            $run
        }
    };
}

spawner!(
    /// `posix_spawn(3)`.
    posix_spawn,
    libc::pid_t,
    |child, program| begin!(posix_spawn, child: libc::pid_t, program)
);
spawner!(
    /// `posix_spawnp(3)`.
    posix_spawnp,
    libc::pid_t,
    |child, program| begin!(posix_spawnp, child: libc::pid_t, program)
);
spawner!(
    /// `pidfd_spawn(3)`, which newer C libraries have.
    pidfd_spawn,
    c_int,
    |child, program| {
        let begun = begin!(pidfd_spawn, child: c_int, program);
        let older = |child| begin!(posix_spawn, child: libc::pid_t, program);
        // SAFETY: as of the function that this stands for; so it is below.
        if begun >= 0 { begun } else { unsafe { without_pidfd(child, older) } }
    }
);
spawner!(
    /// `pidfd_spawnp(3)`, which newer C libraries have.
    pidfd_spawnp,
    c_int,
    |child, program| {
        let begun = begin!(pidfd_spawnp, child: c_int, program);
        let older = |child| begin!(posix_spawnp, child: libc::pid_t, program);
        // SAFETY: see above.
        if begun >= 0 { begun } else { unsafe { without_pidfd(child, older) } }
    }
);

/// What the C library does in the two above, where it is older: programs that ask whether it has
/// them find ours.
unsafe fn without_pidfd(child: *mut c_int, spawn: impl FnOnce(*mut libc::pid_t) -> c_int) -> c_int {
    let mut number = 0;
    let result = spawn(&mut number);
    if result != 0 {
        return result;
    }
    match raw::process_descriptor(number) {
        Ok(descriptor) => {
            // SAFETY: as the caller says.
            unsafe { child.write(descriptor) };
            0
        }
        Err(error) => error,
    }
}

/// `posix_spawn_file_actions_init(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn posix_spawn_file_actions_init(actions: *mut c_void) -> c_int {
    file_actions::forget(actions);
    next!(posix_spawn_file_actions_init(actions: *mut c_void) -> c_int)
}

/// `posix_spawn_file_actions_destroy(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn posix_spawn_file_actions_destroy(actions: *mut c_void) -> c_int {
    file_actions::forget(actions);
    next!(posix_spawn_file_actions_destroy(actions: *mut c_void) -> c_int)
}

/// `posix_spawn_file_actions_adddup2(3)`. The program has the descriptor under the other number
/// even if it is closed on exec.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn posix_spawn_file_actions_adddup2(
    actions: *mut c_void,
    fd: c_int,
    to: c_int,
) -> c_int {
    let result = next!(posix_spawn_file_actions_adddup2(actions: *mut c_void, fd: c_int, to: c_int)
        -> c_int);
    if result == 0 && !file_actions::note_copied(actions, fd) {
        handing::is_passed(fd);
    }
    result
}

/// `system(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn system(command: *const c_char) -> c_int {
    let _beginning = (!command.is_null()).then(|| begins(core::ptr::null()));
    next!(system(command: *const c_char) -> c_int)
}

/// `popen(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn popen(
    command: *const c_char,
    mode: *const c_char,
) -> *mut libc::FILE {
    let _beginning = begins(core::ptr::null());
    next!(popen(command: *const c_char, mode: *const c_char) -> *mut libc::FILE)
}
