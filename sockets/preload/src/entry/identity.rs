// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changing the user and the group of the process.

use crate::kernel::next::next;
use crate::life::identity;
use core::ffi::c_int;

/// Defines the replacement of a function that changes users or groups.
macro_rules! identity {
    ($($(#[$about:meta])* $name:ident($($number:ident),*);)*) => {
        $(
            $(#[$about])*
            #[cfg_attr(not(test), unsafe(no_mangle))]
            pub unsafe extern "C-unwind" fn $name($($number: u32),*) -> c_int {
                let change = || next!($name($($number: u32),*) -> c_int) as isize;
                identity::changes(change) as c_int
            }
        )*
    };
}

identity! {
    /// `setuid(2)`.
    setuid(user);
    /// `seteuid(2)`.
    seteuid(user);
    /// `setreuid(2)`.
    setreuid(real, effective);
    /// `setresuid(2)`.
    setresuid(real, effective, saved);
    /// `setgid(2)`.
    setgid(group);
    /// `setegid(2)`.
    setegid(group);
    /// `setregid(2)`.
    setregid(real, effective);
    /// `setresgid(2)`.
    setresgid(real, effective, saved);
}
