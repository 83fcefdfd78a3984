// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions that ours stand in front of: those that the program would have called without
//! this library.

use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A function behind ours of the same name.
pub struct Next {
    name: &'static CStr,
    found: AtomicPtr<libc::c_void>,
}

impl Next {
    /// The one of that name, looked up when it is called first.
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

/// Calls the function behind ours: `next!(close(descriptor: i32) -> i32)`.
///
/// Where there is none, as with functions that only newer C libraries have, it fails with `ENOSYS`.
macro_rules! next {
    ($name:ident($($argument:ident: $kind:ty),*) -> $result:ty) => {{
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
            // SAFETY: the function of that name has this type.
            let function: unsafe extern "C-unwind" fn($($kind),*) -> $result =
                unsafe { core::mem::transmute(function) };
            // SAFETY: the caller's arguments, as the program gave them.
            unsafe { function($($argument),*) }
        }
    }};
}
pub(crate) use next;
