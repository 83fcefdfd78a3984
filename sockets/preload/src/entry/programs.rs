// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `exec` and `_exit`. The new program finds inherited sockets in the kernel, since it may run
//! without this library.

use super::variadic::{Arguments, variadic};
use crate::handing::leaving;
use crate::kernel::next::next;
use crate::kernel::{errno, raw};
use crate::{handing, process};
use core::ffi::{c_char, c_int};
use core::ptr;

/// An array of strings that ends with null.
type Texts = *const *const c_char;

/// Becomes another program by `run`, which returns only on failure. The child of a `vfork` becomes
/// one beside the process whose memory it uses: for that process, another program inherits its
/// sockets.
pub(super) fn become_another<T>(run: impl FnOnce() -> T) -> T {
    process::check();
    if process::is_guest() {
        handing::is_inherited();
        return run();
    }
    handing::becomes_another();
    leaving::gives_up_closed();
    let result = run();
    leaving::takes_back();
    handing::continues();
    result
}

/// `execve(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn execve(
    path: *const c_char,
    arguments: Texts,
    environment: Texts,
) -> c_int {
    become_another(
        || next!(execve(path: *const c_char, arguments: Texts, environment: Texts) -> c_int),
    )
}

/// `execv(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn execv(path: *const c_char, arguments: Texts) -> c_int {
    become_another(|| next!(execv(path: *const c_char, arguments: Texts) -> c_int))
}

/// `execvp(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn execvp(file: *const c_char, arguments: Texts) -> c_int {
    become_another(|| next!(execvp(file: *const c_char, arguments: Texts) -> c_int))
}

/// `execvpe(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn execvpe(
    file: *const c_char,
    arguments: Texts,
    environment: Texts,
) -> c_int {
    become_another(
        || next!(execvpe(file: *const c_char, arguments: Texts, environment: Texts) -> c_int),
    )
}

/// `fexecve(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fexecve(fd: c_int, arguments: Texts, environment: Texts) -> c_int {
    become_another(|| next!(fexecve(fd: c_int, arguments: Texts, environment: Texts) -> c_int))
}

/// `execveat(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn execveat(
    folder: c_int,
    path: *const c_char,
    arguments: Texts,
    environment: Texts,
    flags: c_int,
) -> c_int {
    become_another(|| {
        next!(execveat(folder: c_int, path: *const c_char, arguments: Texts, environment: Texts,
        flags: c_int) -> c_int)
    })
}

/// Number of arguments, with the null, for which no memory is mapped. In the child of a `vfork` the
/// memory would stay with its parent.
const SHORT: usize = 256;

/// Calls `run` with the arguments of a list as an array, up to their null, and with the rest of the
/// list.
///
/// # Safety
/// It is a list of strings that ends with null.
unsafe fn with_array(list: Arguments, run: impl FnOnce(Texts, Arguments) -> c_int) -> c_int {
    // SAFETY: the caller gives a list. The copy is used up first.
    let (mut copy, mut count) = (unsafe { *list }, 1);
    // SAFETY: the null that ends the strings was not taken yet.
    while !unsafe { copy.next::<c_char>() }.is_null() {
        count += 1;
    }
    let mut short: [*const c_char; SHORT] = [ptr::null(); SHORT];
    let bytes = count * size_of::<*const c_char>();
    let is_short = count <= SHORT;
    let array = if is_short {
        short.as_mut_ptr()
    } else {
        match raw::map(bytes, false, None) {
            Ok(memory) => memory.cast(),
            Err(error) => return errno::fail(error) as c_int,
        }
    };
    for place in 0..count {
        // SAFETY: the caller's list, to which there is no other reference.
        let arguments = unsafe { &mut *list };
        // SAFETY: the copy had `count` arguments with the null, and so has the list.
        let text = unsafe { arguments.next() };
        // SAFETY: the array has room for `count` strings.
        let at = unsafe { array.add(place) };
        // SAFETY: as above; the array is aligned, and used only here.
        unsafe { at.write(text) };
    }
    let result = run(array.cast_const(), list);
    if !is_short {
        raw::unmap(array.cast(), bytes);
    }
    result
}

unsafe extern "C-unwind" fn execl_list(path: *const c_char, list: Arguments) -> c_int {
    // SAFETY: the caller upholds the contract of `execl`: a path, and strings that end with null,
    // of which `with_array` makes an array.
    let execute = |texts: Texts, _: Arguments| unsafe { execv(path, texts) };
    // SAFETY: as above.
    unsafe { with_array(list, execute) }
}

unsafe extern "C-unwind" fn execlp_list(file: *const c_char, list: Arguments) -> c_int {
    // SAFETY: the caller upholds the contract of `execlp`: a file name, and strings that end with
    // null.
    let execute = |texts: Texts, _: Arguments| unsafe { execvp(file, texts) };
    // SAFETY: as above.
    unsafe { with_array(list, execute) }
}

unsafe extern "C-unwind" fn execle_list(path: *const c_char, list: Arguments) -> c_int {
    let execute = |texts: Texts, rest: Arguments| {
        // SAFETY: the caller's list, to which there is no other reference.
        let rest = unsafe { &mut *rest };
        // SAFETY: the caller upholds the contract of `execle`: the environment follows the null.
        let environment = unsafe { rest.next() };
        // SAFETY: as above; `with_array` makes an array of the strings.
        unsafe { execve(path, texts, environment) }
    };
    // SAFETY: the caller upholds the contract of `execle`: strings that end with null.
    unsafe { with_array(list, execute) }
}

variadic!(
    /// `execl(3)`.
    execl, "rsi", "8", execl_list
);
variadic!(
    /// `execlp(3)`.
    execlp, "rsi", "8", execlp_list
);
variadic!(
    /// `execle(3)`.
    execle, "rsi", "8", execle_list
);

/// `_exit(2)`. A process that ends otherwise runs the library's destructor.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn _exit(status: c_int) -> ! {
    leaving::is_over();
    next!(_exit(status: c_int) -> c_int);
    raw::exit(status)
}

/// `_Exit(3)`: another name of [`_exit`].
#[cfg_attr(test, expect(non_snake_case, reason = "it is called so"))]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn _Exit(status: c_int) -> ! {
    // SAFETY: ends the process.
    unsafe { _exit(status) }
}
