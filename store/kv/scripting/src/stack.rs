// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stack of Lua as its C interface shows it, for the few functions that the safe interface
//! cannot express: those that raise any value, and those that look at their own frame.
//!
//! A call that raises an error leaves by a jump, which runs no destructors. Functions that use this
//! module therefore hold nothing that has one.

use mlua::ffi;
use std::ffi::{CStr, c_int, c_void};

/// A stack, valid while the function runs that was given it.
#[derive(Clone, Copy)]
pub(crate) struct Stack(*mut ffi::lua_State);

/// A frame of the call stack.
pub(crate) struct Frame {
    /// The function is not written in Lua.
    pub(crate) is_native: bool,
    /// The current line; -1 without one.
    pub(crate) line: c_int,
}

impl Stack {
    /// The stack of `state`.
    ///
    /// # Safety
    /// `state` is the one that Lua, or its safe interface, has passed to the running function.
    pub(crate) unsafe fn new(state: *mut ffi::lua_State) -> Self {
        Self(state)
    }

    /// Number of values in the frame.
    pub(crate) fn top(self) -> c_int {
        // SAFETY: the state is valid, by `new`; this holds for all calls below.
        unsafe { ffi::lua_gettop(self.0) }
    }

    /// Sets the number of values.
    pub(crate) fn set_top(self, count: c_int) {
        // SAFETY: callers only lower the number, or raise it within the free slots of a frame.
        unsafe { ffi::lua_settop(self.0, count) }
    }

    /// Pushes a copy of the value at `index`.
    pub(crate) fn push(self, index: c_int) {
        // SAFETY: each frame has twenty free slots, of which these functions use a few.
        unsafe { ffi::lua_pushvalue(self.0, index) }
    }

    /// Pushes an upvalue of the running function.
    pub(crate) fn push_upvalue(self, number: c_int) {
        self.push(ffi::lua_upvalueindex(number));
    }

    /// Pushes nil.
    pub(crate) fn push_nil(self) {
        // SAFETY: a slot is free.
        unsafe { ffi::lua_pushnil(self.0) }
    }

    /// Pushes a boolean.
    pub(crate) fn push_boolean(self, value: bool) {
        // SAFETY: a slot is free.
        unsafe { ffi::lua_pushboolean(self.0, c_int::from(value)) }
    }

    /// Pushes a number.
    pub(crate) fn push_number(self, value: f64) {
        // SAFETY: a slot is free.
        unsafe { ffi::lua_pushnumber(self.0, value) }
    }

    /// Pushes a string.
    pub(crate) fn push_text(self, text: &CStr) {
        // SAFETY: the text ends with a null, and Lua copies it.
        unsafe { ffi::lua_pushstring_(self.0, text.as_ptr()) }
    }

    /// Pushes a string of any bytes.
    pub(crate) fn push_bytes(self, bytes: &[u8]) {
        // SAFETY: the range is valid, and Lua copies it.
        unsafe { ffi::lua_pushlstring_(self.0, bytes.as_ptr().cast(), bytes.len()) }
    }

    /// Pushes a new table.
    pub(crate) fn push_table(self) {
        // SAFETY: a slot is free.
        unsafe { ffi::lua_createtable(self.0, 0, 4) }
    }

    /// Pushes a pointer as a value.
    pub(crate) fn push_pointer(self, pointer: *const c_void) {
        // SAFETY: Lua does nothing with the address.
        unsafe { ffi::lua_pushlightuserdata(self.0, pointer.cast_mut()) }
    }

    /// Moves the last value to `index`.
    pub(crate) fn insert(self, index: c_int) {
        // SAFETY: callers name an index of the frame.
        unsafe { ffi::lua_insert(self.0, index) }
    }

    /// Removes the value at `index`.
    pub(crate) fn remove(self, index: c_int) {
        // SAFETY: callers name an index of the frame.
        unsafe { ffi::lua_remove(self.0, index) }
    }

    /// Puts the last value in the place of that at `index`.
    pub(crate) fn replace(self, index: c_int) {
        // SAFETY: callers name an index of the frame.
        unsafe { ffi::lua_replace(self.0, index) }
    }

    /// The type of the value, as `LUA_T...`.
    pub(crate) fn kind(self, index: c_int) -> c_int {
        // SAFETY: any index may be asked for.
        unsafe { ffi::lua_type(self.0, index) }
    }

    /// The value is neither nil nor false.
    pub(crate) fn is_true(self, index: c_int) -> bool {
        // SAFETY: any index may be asked for.
        let value = unsafe { ffi::lua_toboolean(self.0, index) };
        value != 0
    }

    /// The bytes of a string, which stay where they are while it is on the stack. Empty for other
    /// values.
    pub(crate) fn text<'a>(self, index: c_int) -> &'a [u8] {
        if self.kind(index) != ffi::LUA_TSTRING {
            return b"";
        }
        let mut length = 0;
        // SAFETY: the value is a string, which the call does not change.
        let start = unsafe { ffi::lua_tolstring(self.0, index, &mut length) };
        // SAFETY: the string has these bytes, by the call above.
        unsafe { std::slice::from_raw_parts(start.cast(), length) }
    }

    /// The address of a userdata, or null.
    pub(crate) fn pointer(self, index: c_int) -> *mut c_void {
        // SAFETY: any index may be asked for.
        unsafe { ffi::lua_touserdata(self.0, index) }
    }

    /// Pushes the field `name` of the table at `index`, without its metatable.
    pub(crate) fn push_field(self, index: c_int, name: &CStr) {
        self.push_text(name);
        // SAFETY: callers have seen that the value is a table.
        unsafe { ffi::lua_rawget_(self.0, if index < 0 { index - 1 } else { index }) }
    }

    /// Takes the last value as the field `name` of the table below it.
    pub(crate) fn set_field(self, name: &CStr) {
        self.push_text(name);
        self.insert(-2);
        // SAFETY: callers have the table below the value.
        unsafe { ffi::lua_rawset(self.0, -3) }
    }

    /// Pushes the value of the registry for an address.
    pub(crate) fn push_registered(self, key: *const c_void) {
        self.push_pointer(key);
        // SAFETY: the registry is a table.
        unsafe { ffi::lua_rawget_(self.0, ffi::LUA_REGISTRYINDEX) }
    }

    /// Sets the value of the registry for an address to the last value, which stays.
    pub(crate) fn register(self, key: *const c_void) {
        self.push_pointer(key);
        self.push(-2);
        // SAFETY: the registry is a table.
        unsafe { ffi::lua_rawset(self.0, ffi::LUA_REGISTRYINDEX) }
    }

    /// Pushes the metatable of the value, if it has one.
    pub(crate) fn push_metatable(self, index: c_int) -> bool {
        // SAFETY: any index may be asked for.
        let found = unsafe { ffi::lua_getmetatable(self.0, index) };
        found != 0
    }

    /// Pushes a function with the last `upvalues` values, which are removed.
    pub(crate) fn push_function(self, function: ffi::lua_CFunction, upvalues: c_int) {
        // SAFETY: callers have pushed the upvalues.
        unsafe { ffi::lua_pushcclosure(self.0, function, upvalues) }
    }

    /// Calls the function below the last `arguments` values, for all its results.
    pub(crate) fn call(self, arguments: c_int) {
        // SAFETY: the function is below the arguments, and the caller has no destructors.
        unsafe { ffi::lua_call(self.0, arguments, ffi::LUA_MULTRET) }
    }

    /// As `call`, but an error is the only result, and gives a number other than 0. An error passes
    /// through the function at `handler`, if that is not 0.
    pub(crate) fn call_protected(self, arguments: c_int, results: c_int, handler: c_int) -> c_int {
        // SAFETY: the function is below the arguments.
        unsafe { ffi::lua_pcall(self.0, arguments, results, handler) }
    }

    /// Runs the native function that is the given upvalue in the frame of the running one.
    pub(crate) fn run_upvalue(self, number: c_int) -> c_int {
        // SAFETY: any index may be asked for.
        let function = unsafe { ffi::lua_tocfunction(self.0, ffi::lua_upvalueindex(number)) };
        match function {
            // SAFETY: a native function takes any frame.
            Some(function) => unsafe { function(self.0) },
            None => 0,
        }
    }

    /// Raises the last value as an error.
    pub(crate) fn raise(self) -> c_int {
        // SAFETY: the functions on the way have no destructors.
        unsafe { ffi::lua_error(self.0) }
    }

    /// Pushes `source:line: ` of the caller at `level`.
    pub(crate) fn push_place(self, level: c_int) {
        // SAFETY: any level may be asked for.
        unsafe { ffi::luaL_where(self.0, level) }
    }

    /// Joins the last values to one string.
    pub(crate) fn join(self, count: c_int) {
        // SAFETY: callers have pushed this number of strings.
        unsafe { ffi::lua_concat(self.0, count) }
    }

    /// Replaces the last value, a key, by what the table at `index` has for it.
    pub(crate) fn get(self, index: c_int) {
        // SAFETY: callers have seen that the value is a table.
        unsafe { ffi::lua_rawget_(self.0, index) }
    }

    /// Requires any value at `index`, or raises the usual error.
    pub(crate) fn require(self, index: c_int) {
        // SAFETY: any index may be asked for.
        unsafe { ffi::luaL_checkany(self.0, index) }
    }

    /// Requires a table at `index`, or raises the usual error.
    pub(crate) fn require_table(self, index: c_int) {
        // SAFETY: any index may be asked for.
        unsafe { ffi::luaL_checktype(self.0, index, ffi::LUA_TTABLE) }
    }

    /// The frame at `level` above the running function, and pushes its source.
    pub(crate) fn push_frame(self, level: c_int) -> Option<Frame> {
        // SAFETY: a record of numbers and pointers, for which zeros are valid.
        let mut record: ffi::lua_Debug = unsafe { std::mem::zeroed() };
        // SAFETY: the record is writable.
        let exists = unsafe { ffi::lua_getstack(self.0, level, &mut record) };
        if exists == 0 {
            return None;
        }
        // SAFETY: the record was filled by the call above.
        unsafe { ffi::lua_getinfo(self.0, c"Sl".as_ptr(), &mut record) };
        // SAFETY: the field is a text, of static storage.
        let what = unsafe { CStr::from_ptr(record.what) };
        // SAFETY: the field is a text, which the function keeps.
        unsafe { ffi::lua_pushstring_(self.0, record.source) };
        Some(Frame { is_native: what == c"C", line: record.currentline })
    }

    /// Has `hook` called each `count` instructions.
    pub(crate) fn set_hook(self, hook: ffi::lua_Hook, count: c_int) {
        // SAFETY: the hook is a function of the program.
        unsafe { ffi::lua_sethook(self.0, Some(hook), ffi::LUA_MASKCOUNT, count) };
    }
}
