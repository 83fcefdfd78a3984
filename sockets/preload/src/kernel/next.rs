// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions that the library replaces: those that the program would have called without it.

use core::ffi::CStr;
use core::slice;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The replaced function of a name.
pub struct Next {
    name: &'static CStr,
    found: AtomicPtr<libc::c_void>,
}

impl Next {
    /// The function of that name, looked up when the library is loaded, or at an earlier call.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Its address; null if there is none.
    #[inline]
    pub fn get(&self) -> *mut libc::c_void {
        let found = self.found.load(Ordering::Relaxed);
        if found.is_null() { self.find() } else { found }
    }

    #[cold]
    fn find(&self) -> *mut libc::c_void {
        // SAFETY: a name that ends with zero.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// All functions that are called by [`next!`], which lie behind each other in a section.
fn all() -> &'static [Next] {
    unsafe extern "C" {
        #[link_name = "__start_freeport_next"]
        static FIRST: usize;
        #[link_name = "__stop_freeport_next"]
        static END: usize;
    }
    let [first, end] = [&raw const FIRST, &raw const END].map(|at| at.cast::<Next>());
    // SAFETY: they are the start and the end of the section in which the linker has put all of
    // them, all of one type.
    let count = unsafe { end.offset_from_unsigned(first) };
    // SAFETY: that many lie between the two, and they are statics.
    unsafe { slice::from_raw_parts(first, count) }
}

/// Looks all of them up, so that no later call has to.
#[cold]
pub fn find_all() {
    for one in all() {
        one.get();
    }
    // The program must not see errors of lookups that it has not made.
    // SAFETY: takes nothing.
    unsafe { libc::dlerror() };
}

/// Calls the replaced function: `next!(close(descriptor: i32) -> i32)`.
///
/// If there is none, as with functions that only newer C libraries have, it fails with `ENOSYS`.
macro_rules! next {
    ($name:ident($($argument:ident: $kind:ty),*) -> $result:ty) => {{
        #[used]
        #[unsafe(link_section = "freeport_next")]
        static NEXT: $crate::kernel::next::Next = $crate::kernel::next::Next::new(
            // SAFETY: ends with zero, and has none before.
            unsafe {
                core::ffi::CStr::from_bytes_with_nul_unchecked(
                    concat!(stringify!($name), "\0").as_bytes(),
                )
            },
        );
        let function = NEXT.get();
        if function.is_null() {
            $crate::kernel::errno::fail(libc::ENOSYS) as $result
        } else {
            let function: unsafe extern "C-unwind" fn($($kind),*) -> $result =
                // SAFETY: the function of that name has this type, and it is not null.
                unsafe { core::mem::transmute(function) };
            // SAFETY: the caller upholds the contract of the function of that name.
            unsafe { function($($argument),*) }
        }
    }};
}
pub(crate) use next;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_can_be_looked_up_before_they_are_called() {
        assert!(all().len() > 50, "{}", all().len());
        find_all();
        let of_guests = [c"close", c"close_range", c"dup2", c"dup3", c"fcntl", c"execve", c"_exit"];
        for name in of_guests {
            let of_it = all().iter().filter(|one| one.name == name);
            let found: Vec<_> = of_it.map(|one| one.found.load(Ordering::Relaxed)).collect();
            assert!(!found.is_empty() && !found.contains(&core::ptr::null_mut()), "{name:?}");
        }
    }
}
