// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables that scripts cannot change, on an unmodified Lua.
//!
//! A script has an empty table, the *front*, whose metatable reads from the *target* and refuses
//! assignments. As the front is always empty, each assignment comes to its metatable. The native
//! functions that read or write a table without its metatable, such as `next` and `rawset`, look
//! through fronts, or refuse them. The target itself is never given to a script.

use crate::stack::Stack;
use crate::{frames, native};
use mlua::{Lua, Table, Value, ffi};
use std::ffi::{CStr, c_int};

/// Field of a front's metatable with its target.
const TARGET: &CStr = c"__target";
/// Field of a front's metatable with what `getmetatable` returns.
const SHOWN: &CStr = c"__shown";
/// The address of this marks metatables of fronts. Scripts cannot make such a value, so that no
/// metatable of a script passes for one of a front.
static MARK: u8 = 0;

/// Maximum number of repetitions and brackets in a pattern.
const PATTERN_ITEMS: usize = 1_000;

const READONLY: &CStr = c"Attempt to modify a readonly table";

/// A front of `target`. Its fields are read from `lookup`. `getmetatable` returns `shown`.
pub(crate) fn front(
    lua: &Lua,
    target: &Table,
    lookup: Value,
    shown: Option<Table>,
) -> mlua::Result<Table> {
    let metatable = lua.create_table()?;
    metatable.raw_set("__index", lookup)?;
    metatable.raw_set("__newindex", frames::native(lua, refuse_assignment)?)?;
    metatable.raw_set(lua.create_string(TARGET.to_bytes())?, target)?;
    metatable.raw_set(lua.create_string(SHOWN.to_bytes())?, shown)?;
    metatable.raw_set(mark(), true)?;
    let front = lua.create_table()?;
    front.set_metatable(Some(metatable))?;
    Ok(front)
}

/// A front from which all fields of `target` are read.
pub(crate) fn readonly(lua: &Lua, target: &Table) -> mlua::Result<Table> {
    front(lua, target, Value::Table(target.clone()), None)
}

/// The front of globals, for which a name that `target` lacks is an error, and its metatable.
pub(crate) fn globals(lua: &Lua, target: &Table) -> mlua::Result<(Table, Table)> {
    let missing = native::function(lua, |arguments| -> native::Outcome<()> {
        let name = arguments.text(2).map(|name| name.to_string_lossy());
        let name = name.unwrap_or_else(|_| "(null)".into());
        let text = format!("Script attempted to access nonexistent global variable '{name}'");
        Err(native::Failure::Text(text))
    })?;
    let fallback = lua.create_table()?;
    fallback.raw_set("__index", missing)?;
    target.set_metatable(Some(fallback.clone()))?;
    let shown = readonly(lua, &fallback)?;
    let front = front(lua, target, Value::Table(target.clone()), Some(shown))?;
    let metatable = front.metatable().expect("each front has a metatable");
    Ok((front, metatable))
}

/// Has strings find their methods in `strings`, whose front is `shown`.
pub(crate) fn protect_strings(lua: &Lua, strings: &Table, shown: &Table) -> mlua::Result<()> {
    let visible = lua.create_table()?;
    visible.raw_set("__index", shown)?;
    let metatable = lua.create_table()?;
    metatable.raw_set("__index", strings)?;
    metatable.raw_set("__metatable", readonly(lua, &visible)?)?;
    lua.set_type_metatable::<mlua::LuaString>(Some(metatable));
    Ok(())
}

/// Replaces the functions of `globals` that do not respect metatables, and those that match
/// patterns.
pub(crate) fn guard(lua: &Lua, globals: &Table) -> mlua::Result<()> {
    let replace = |table: &Table, name: &str, function| -> mlua::Result<()> {
        let original: Value = table.raw_get(name)?;
        table.raw_set(name, frames::wrap(lua, (original,), function)?)
    };
    replace(globals, "next", look_through)?;
    replace(globals, "rawget", look_through)?;
    replace(globals, "rawset", refuse_front)?;
    replace(globals, "setmetatable", refuse_front)?;
    replace(globals, "getmetatable", show_metatable)?;
    let next: Value = globals.raw_get("next")?;
    globals.raw_set("pairs", frames::wrap(lua, (next,), pairs)?)?;
    let tables: Table = globals.raw_get("table")?;
    replace(&tables, "insert", refuse_front)?;
    let strings: Table = globals.raw_get("string")?;
    for name in ["find", "match", "gmatch", "gfind", "gsub"] {
        replace(&strings, name, limit_pattern)?;
    }
    Ok(())
}

fn mark() -> mlua::LightUserData {
    mlua::LightUserData((&raw const MARK).cast_mut().cast())
}

/// Whether the value at `index` is a front. If so, pushes its metatable.
fn push_front(stack: Stack, index: c_int) -> bool {
    if !stack.push_metatable(index) {
        return false;
    }
    stack.push_pointer(mark().0);
    stack.get(-2);
    let is_front = stack.is_true(-1);
    stack.set_top(if is_front { -2 } else { -3 });
    is_front
}

/// Runs the upvalue, with the target in the place of a front.
extern "C-unwind" fn look_through(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is that of this call.
    let stack = unsafe { Stack::new(state) };
    substitute(stack);
    stack.run_upvalue(1)
}

fn substitute(stack: Stack) {
    if stack.kind(1) == ffi::LUA_TTABLE && push_front(stack, 1) {
        stack.push_field(-1, TARGET);
        stack.replace(1);
        stack.set_top(-2);
    }
}

/// Iterates with the upvalue, which looks through fronts: a target is not given away.
extern "C-unwind" fn pairs(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is that of this call.
    let stack = unsafe { Stack::new(state) };
    stack.require_table(1);
    stack.push_upvalue(1);
    stack.push(1);
    stack.push_nil();
    3
}

/// Runs the upvalue, unless the first argument is a front.
extern "C-unwind" fn refuse_front(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is that of this call.
    let stack = unsafe { Stack::new(state) };
    if stack.kind(1) == ffi::LUA_TTABLE && push_front(stack, 1) {
        stack.push_text(READONLY);
        return stack.raise();
    }
    stack.run_upvalue(1)
}

/// Runs the upvalue, unless the second argument is a pattern with too many items. Each item takes
/// some of the program's stack.
extern "C-unwind" fn limit_pattern(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is that of this call.
    let stack = unsafe { Stack::new(state) };
    let is_item = |byte: &&u8| matches!(byte, b'(' | b')' | b'?' | b'*' | b'+' | b'-');
    let pattern = stack.text(2);
    if pattern.len() > PATTERN_ITEMS && pattern.iter().filter(is_item).count() > PATTERN_ITEMS {
        stack.push_place(1);
        stack.push_text(c"pattern too complex");
        stack.join(2);
        return stack.raise();
    }
    stack.run_upvalue(1)
}

extern "C-unwind" fn refuse_assignment(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is that of this call.
    let stack = unsafe { Stack::new(state) };
    stack.push_place(1);
    stack.push_text(READONLY);
    stack.join(2);
    stack.raise()
}

/// Runs the upvalue, unless the first argument is a front, whose own metatable is hidden.
extern "C-unwind" fn show_metatable(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is that of this call.
    let stack = unsafe { Stack::new(state) };
    if stack.kind(1) == ffi::LUA_TTABLE && push_front(stack, 1) {
        stack.push_field(-1, SHOWN);
        return 1;
    }
    stack.run_upvalue(1)
}
