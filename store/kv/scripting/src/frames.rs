// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions that run in frames of Lua without the safe interface: calls whose errors are caught
//! or raised as Redis does, and the check whether a script has to stop.
//!
//! The safe interface wraps each error of a native function in an object of its own, and adds a
//! trace to texts. Scripts of Redis see tables with a field `err`, so a native function here
//! returns its error as a value, and [`raising`] raises that.

use crate::session::Session;
use crate::stack::Stack;
use mlua::{Function, Lua, ffi};
use std::ffi::c_int;
use std::rc::Rc;

/// Instructions between two checks of a script that is being stopped.
const STOPPING: c_int = 1;
/// The address of this is the key of the session in the registry.
static SESSION: u8 = 0;

fn session_key() -> *const std::ffi::c_void {
    (&raw const SESSION).cast()
}

/// A function as `inner`, whose first result says whether it succeeded. If not, the second one is
/// raised as an error.
pub(crate) fn raising(lua: &Lua, inner: Function) -> mlua::Result<Function> {
    wrap(lua, (inner,), call_and_raise)
}

/// A function of a function and its arguments: calls it, and returns a number and the result. The
/// number is 0, or the result is an error that went through [`describe_error`].
pub(crate) fn runner(lua: &Lua) -> mlua::Result<Function> {
    let handler = native(lua, describe_error)?;
    wrap(lua, (handler,), run)
}

/// `pcall` of scripts: an error that is a table with a text `err` is that text.
pub(crate) fn protected_call(lua: &Lua) -> mlua::Result<Function> {
    native(lua, call_protected)
}

/// `xpcall` of scripts. That of Lua writes beyond its frame if there are many results.
pub(crate) fn handled_call(lua: &Lua) -> mlua::Result<Function> {
    native(lua, call_handled)
}

/// The function through which errors of scripts go: adds source and line to their table.
pub(crate) fn error_handler(lua: &Lua) -> mlua::Result<Function> {
    native(lua, describe_error)
}

/// A native function without upvalues.
pub(crate) fn native(lua: &Lua, function: ffi::lua_CFunction) -> mlua::Result<Function> {
    wrap(lua, (), function)
}

/// A native function with the given values as its upvalues.
pub(crate) fn wrap(
    lua: &Lua,
    upvalues: impl mlua::IntoLuaMulti,
    function: ffi::lua_CFunction,
) -> mlua::Result<Function> {
    let push = |state| {
        // SAFETY: the state comes from the safe interface, which catches errors here.
        let stack = unsafe { Stack::new(state) };
        stack.push_function(function, stack.top());
    };
    // SAFETY: the closure replaces all values by one function, and has no destructors.
    unsafe { lua.exec_raw(upvalues, push) }
}

/// Makes `session` known to [`watch`]. It has to live as long as `lua`.
pub(crate) fn register_session(lua: &Lua, session: &Rc<Session>) -> mlua::Result<()> {
    let pointer = Rc::as_ptr(session);
    let register = |state| {
        // SAFETY: the state comes from the safe interface, which catches errors here.
        let stack = unsafe { Stack::new(state) };
        stack.push_pointer(pointer.cast());
        stack.register(session_key());
        stack.set_top(0);
    };
    // SAFETY: the closure leaves no values, and has no destructors.
    unsafe { lua.exec_raw((), register) }
}

/// Has a script checked each `instructions`.
pub(crate) fn watch(lua: &Lua, instructions: u32) -> mlua::Result<()> {
    let count = c_int::try_from(instructions).unwrap_or(c_int::MAX).max(1);
    // SAFETY: the state comes from the safe interface.
    let set = |state| unsafe { Stack::new(state) }.set_hook(check, count);
    // SAFETY: the closure changes no values, and has no destructors.
    unsafe { lua.exec_raw((), set) }
}

extern "C-unwind" fn call_and_raise(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is that of this call.
    let stack = unsafe { Stack::new(state) };
    let arguments = stack.top();
    stack.push_upvalue(1);
    stack.insert(1);
    stack.call(arguments);
    if stack.is_true(1) {
        return stack.top() - 1;
    }
    stack.set_top(2);
    stack.raise()
}

extern "C-unwind" fn run(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is that of this call.
    let stack = unsafe { Stack::new(state) };
    stack.push_upvalue(1);
    stack.insert(1);
    let status = stack.call_protected(stack.top() - 2, 1, 1);
    stack.push_number(f64::from(status));
    stack.replace(1);
    2
}

extern "C-unwind" fn call_protected(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is that of this call.
    let stack = unsafe { Stack::new(state) };
    // The place of the first result is taken before the call, as results can fill the frame.
    // Without a function, this value is called.
    stack.push_boolean(true);
    if stack.top() > 1 {
        stack.insert(1);
    } else {
        stack.push(1);
    }
    let status = stack.call_protected(stack.top() - 2, ffi::LUA_MULTRET, 0);
    if status == 0 {
        return stack.top();
    }
    if stack.kind(-1) == ffi::LUA_TTABLE {
        stack.push_field(-1, c"err");
        match stack.kind(-1) {
            ffi::LUA_TSTRING | ffi::LUA_TNUMBER => stack.replace(-2),
            _ => stack.set_top(-2),
        }
    }
    stack.push_boolean(false);
    stack.replace(1);
    2
}

extern "C-unwind" fn call_handled(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is that of this call.
    let stack = unsafe { Stack::new(state) };
    stack.require(2);
    stack.set_top(2);
    stack.insert(1);
    stack.push_boolean(true);
    stack.insert(1);
    let status = stack.call_protected(0, ffi::LUA_MULTRET, 2);
    stack.remove(2);
    if status != 0 {
        stack.push_boolean(false);
        stack.replace(1);
    }
    stack.top()
}

/// Makes a table of an error that is none, and adds where it was raised: the place of the function
/// that raised it, or of its caller if that is native.
extern "C-unwind" fn describe_error(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is that of this call.
    let stack = unsafe { Stack::new(state) };
    stack.set_top(1);
    if stack.kind(1) != ffi::LUA_TTABLE {
        make_table(stack);
    }
    let mut frame = stack.push_frame(1);
    if frame.as_ref().is_some_and(|frame| frame.is_native) {
        stack.set_top(1);
        frame = stack.push_frame(2);
    }
    if let Some(frame) = frame {
        stack.set_field(c"source");
        stack.push_number(f64::from(frame.line));
        stack.set_field(c"line");
    }
    1
}

/// Replaces the only value by a table with its text.
fn make_table(stack: Stack) {
    stack.push_table();
    stack.push_text(c"ERR ");
    match stack.kind(1) {
        ffi::LUA_TSTRING | ffi::LUA_TNUMBER => stack.push(1),
        ffi::LUA_TNIL => stack.push_text(c"nil"),
        ffi::LUA_TBOOLEAN if stack.is_true(1) => stack.push_text(c"true"),
        ffi::LUA_TBOOLEAN => stack.push_text(c"false"),
        ffi::LUA_TFUNCTION => stack.push_text(c"function"),
        ffi::LUA_TTHREAD => stack.push_text(c"thread"),
        _ => stack.push_text(c"userdata"),
    }
    stack.join(2);
    stack.set_field(c"err");
    stack.replace(1);
}

/// Asks whether the script has to stop. If so, it is asked at each further instruction, so that no
/// `pcall` of the script can keep it running.
extern "C-unwind" fn check(state: *mut ffi::lua_State, _: *mut ffi::lua_Debug) {
    // SAFETY: the state is that of this call.
    let stack = unsafe { Stack::new(state) };
    stack.push_registered(session_key());
    let session = stack.pointer(-1).cast::<Session>();
    stack.set_top(-2);
    // SAFETY: the session was registered, and lives as long as the state.
    let Some(session) = (unsafe { session.as_ref() }) else { return };
    let Some(reason) = session.stop_reason() else { return };
    stack.set_hook(check, STOPPING);
    stack.push_table();
    stack.push_bytes(reason.text().as_bytes());
    stack.set_field(c"err");
    stack.raise();
}
