// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's error numbers, as maps and helpers return them.

use std::fmt;

/// An error number of the kernel; programs see its negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorNumber(pub i32);

/// The table of numbers with their names.
macro_rules! error_numbers {
    ($($name:ident = $number:literal, $meaning:literal;)*) => {
        impl ErrorNumber {
            $(#[doc = $meaning] pub const $name: Self = Self($number);)*

            /// Returns its name and meaning.
            fn described(self) -> Option<(&'static str, &'static str)> {
                match self.0 {
                    $($number => Some((stringify!($name), $meaning)),)*
                    _ => None,
                }
            }
        }
    };
}

error_numbers! {
    EPERM = 1, "not permitted";
    ENOENT = 2, "no such element";
    E2BIG = 7, "too many elements, or an index that is too large";
    EAGAIN = 11, "no room at the moment";
    EACCES = 13, "not allowed";
    EFAULT = 14, "beyond the data";
    EBUSY = 16, "busy";
    EEXIST = 17, "exists already";
    ENODEV = 19, "no such device";
    EINVAL = 22, "invalid argument";
    ENOSPC = 28, "no space left";
    ERANGE = 34, "out of range";
    EOVERFLOW = 75, "too large a value";
    EOPNOTSUPP = 95, "not supported for this kind of map";
    EAFNOSUPPORT = 97, "unknown address family";
}

impl ErrorNumber {
    /// Returns the result of a helper for this error.
    pub fn returned(self) -> u64 {
        i64::from(-self.0) as u64
    }
}

impl fmt::Display for ErrorNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self.described() {
            Some((name, meaning)) => write!(formatter, "{name}: {meaning}"),
            None => write!(formatter, "error {}", self.0),
        }
    }
}

impl std::error::Error for ErrorNumber {}
