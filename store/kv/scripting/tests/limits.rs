// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts cannot end the process, run for ever, or change what other scripts find.

use freeport_kv_protocol::resp::{Version, Writer};
use freeport_kv_scripting::{
    Caller, Flags, Libraries, LogLevel, Run, Scripts, Settings, StopReason,
};

/// A caller that allows a number of checks.
#[derive(Default)]
struct Patient {
    checks: u32,
    begun: Vec<Flags>,
    refusal: Option<&'static str>,
}

impl Caller for Patient {
    fn begin(&mut self, flags: Flags) -> Result<(), String> {
        self.begun.push(flags);
        self.refusal.map_or(Ok(()), |error| Err(error.into()))
    }

    fn call(&mut self, _: &[&[u8]], version: Version, reply: &mut Vec<u8>) {
        Writer::new(reply, version).integer(1);
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn interrupt(&mut self) -> Option<StopReason> {
        self.checks += 1;
        (self.checks > 20).then_some(StopReason::Killed)
    }
}

const RUN: Run = Run { keys: &[], arguments: &[], version: Version::Two, read_only: false };

fn settings() -> Settings {
    Settings { memory_bytes: 16 << 20, instructions_between_checks: 10_000, ..Settings::default() }
}

fn scripts() -> Scripts {
    Scripts::new(settings()).expect("memory suffices")
}

fn eval(scripts: &mut Scripts, script: &str) -> String {
    let mut reply = vec![];
    scripts.eval(script.as_bytes(), &RUN, &mut Patient::default(), &mut reply);
    String::from_utf8_lossy(&reply).into_owned()
}

/// A healthy state answers as ever.
#[track_caller]
fn is_healthy(scripts: &mut Scripts) {
    let script = "return {#string.rep('x', 100000), redis.call('x'), cjson.encode({1})}";
    assert_eq!(eval(scripts, script), "*3\r\n:100000\r\n:1\r\n$3\r\n[1]\r\n");
}

#[test]
fn no_script_takes_all_memory() {
    let mut scripts = scripts();
    for script in [
        "return string.rep('x', 2^31)",
        "local t = {} for i = 1, 1e9 do t[i] = tostring(i) end",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} while true do t = {t} end",
        "local t = {} for i = 1, 1e6 do t[i] = {} end return cjson.encode(t)",
        "collectgarbage('stop') for i = 1, 1e9 do local t = {i} end",
        "return #cmsgpack.pack(string.rep('x', 10e6))",
        "return {pcall(string.rep, 'x', 2^30)}",
        "return {pcall(cjson.decode, string.rep('[1,2,3],', 1e6))}",
        "return table.concat({string.rep('x', 6e6), string.rep('y', 6e6)})",
        "local c = {} for i = 1, 1e6 do c[i] = coroutine.create(print or type) end",
    ] {
        eval(&mut scripts, script);
        is_healthy(&mut scripts);
        assert!(scripts.memory_bytes() <= 16 << 20);
    }
    let reply = eval(&mut scripts, "return string.rep('x', 2^30)");
    assert!(reply.ends_with("not enough memory\r\n"), "{reply}");
}

#[test]
fn no_script_recurses_too_deeply() {
    let mut scripts = scripts();
    for script in [
        "local function f() return f() + 1 end return f()",
        "local function f() return pcall(f) end return f()",
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) return t[k] end \
         return t.x",
        "local f f = function() return ('x'):gsub('x', f) end return f()",
        "local function f() return coroutine.wrap(f)() end return f()",
        "local function f() return load(f) end return f()",
        "local function f() return xpcall(f, f) end return f()",
        "local function f() error({}) end return xpcall(f, f)",
        "local function f() return pcall(pcall, pcall, f) end return f()",
        "local function f() redis.call('x') return cjson.encode(f()) end return f()",
        "return tostring(setmetatable({}, {__tostring = tostring}))",
        "local t = {} setmetatable(t, {__index = t}) return t.x",
        "local t = {} setmetatable(t, {__eq = function(a, b) return a == b end}) \
         return t == setmetatable({}, getmetatable(t))",
        "return (string.rep('x', 100):gsub('.', function() return coroutine.yield(1) end))",
        "return table.sort({3, 1, 2, 5, 4}, function() return true end)",
        "return loadstring(string.rep('(', 1e5))",
        "return loadstring(string.rep('{', 1e5))",
        "return loadstring('return ' .. string.rep('a.', 1e5) .. 'a')",
        "return loadstring(string.rep('do ', 1e4))",
        "return string.find(string.rep('a', 1e5), string.rep('a?', 1e5))",
        "return string.find(string.rep('a', 2e3), '.-b')",
        "return string.find(string.rep('(', 1e3), string.rep('%b()', 1e3))",
        "return cjson.decode(string.rep('[', 1e5))",
        "cjson.decode_max_depth(1e9) return cjson.decode(string.rep('[', 1e5))",
        "cjson.encode_max_depth(1e9) local t = {} t[1] = t return cjson.encode(t)",
        "local t = {} t[1] = t return cmsgpack.pack(t)",
        "return cmsgpack.unpack(string.rep('\\145', 1e5))",
        "local t = {} t[1] = t return t",
        "return {unpack({}, 1, 1e6)}",
        "return select('#', unpack({}, 1, 7000))",
        "return string.format('%99999d', 1)",
        "return string.format('%' .. string.rep('0', 1000) .. 'd', 1)",
        "return string.char(unpack({}, 1, 8000))",
        "return struct.unpack(string.rep('b', 1e4), string.rep('x', 1e4))",
        "return struct.pack('i99999999999', 1)",
        "return cmsgpack.unpack(string.rep('\\1', 1e4))",
        "return redis.call(unpack({}, 1, 7000))",
        "error(setmetatable({}, {__index = error, __tostring = error}))",
        "error({})",
        "error({err = {}})",
        "return {err = {}}",
        "return {double = 0/0}",
        "return cjson.encode(1/0)",
        "return struct.unpack('c0', 'x', 2^63)",
        "return struct.unpack('>!8i8', string.rep('x', 16), -2^63)",
        "return bit.tohex(1, -2^31)",
        "return math.random(-2^31, 2^31 - 1)",
        "return math.random(2^60)",
        "return string.dump(redis.call)",
        "return loadstring(string.dump(function() end))",
        "return loadstring('\\27Lua')",
    ] {
        eval(&mut scripts, script);
        is_healthy(&mut scripts);
    }
}

#[test]
fn tables_inside_each_other_are_no_large_reply() {
    let mut scripts = scripts();
    let tree = "local t = {1} for i = 1, 60 do t = {t, t} end ";
    let reply = eval(&mut scripts, &format!("{tree} return #cmsgpack.pack(t)"));
    assert!(reply.starts_with(':'), "{reply}");
}

#[test]
fn a_script_that_runs_too_long_is_stopped() {
    let mut scripts = scripts();
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local function f() while true do pcall(f) end end f()",
        "coroutine.wrap(function() while true do end end)()",
        "local c = coroutine.wrap(function() while true do pcall(coroutine.yield) end end) \
         while true do c() end",
        "while true do local x = redis.call('x') end",
        "load(function() while true do end end)",
    ] {
        let reply = eval(&mut scripts, script);
        let expected = "-ERR Script killed by user with SCRIPT KILL... script: ";
        assert!(reply.starts_with(expected), "{script}: {reply}");
        is_healthy(&mut scripts);
    }
    let mut libraries = Libraries::new(settings()).expect("memory suffices");
    let error = libraries
        .load(b"#!lua name=x\nlocal a = 1 while true do a = a end", false, &mut Patient::default())
        .expect_err("the library does not end");
    assert!(error.starts_with("ERR Error registering functions: ERR Script killed"), "{error}");
}

#[test]
fn no_script_changes_what_others_find() {
    let mut scripts = scripts();
    let find = "local names = {} \
                for name, value in pairs(_G) do \
                  names[#names + 1] = name \
                  if type(value) == 'table' and name ~= '_G' then \
                    for field in pairs(value) do names[#names + 1] = name .. '.' .. field end \
                  end \
                end \
                table.sort(names) return names";
    let before = eval(&mut scripts, find);
    for script in [
        "x = 1",
        "_G.x = 1",
        "rawset(_G, 'x', 1)",
        "rawset(getmetatable(_G), '__index', nil)",
        "getmetatable(_G).__index = function() return 1 end",
        "setmetatable(_G, {})",
        "local _, t = pairs(redis) t.call = nil",
        "local _, t = pairs(_G) t.redis = nil",
        "for _, t in pairs(_G) do if type(t) == 'table' then t.x = 1 end end",
        "for _, t in pairs(_G) do if type(t) == 'table' then table.insert(t, 1) end end",
        "table.insert(string, 1)",
        "string.rep = nil",
        "getmetatable('').__index = nil",
        "getmetatable('').__index.rep = nil",
        "rawset(getmetatable('').__index, 'rep', nil)",
        "rawset(getmetatable(''), '__index', nil)",
        "table.sort(redis)",
        "table.remove(redis)",
        "table.foreach(redis, function() end)",
        "loadstring('x = 1')()",
        "coroutine.wrap(function() x = 1 end)()",
        "KEYS.x = 1 ARGV.x = 1",
    ] {
        eval(&mut scripts, script);
        assert_eq!(eval(&mut scripts, find), before, "{script}");
        is_healthy(&mut scripts);
    }
}

#[test]
fn the_caller_sees_flags_and_may_refuse() {
    let (mut scripts, mut caller) = (scripts(), Patient::default());
    let mut reply = vec![];
    scripts.eval(b"#!lua flags=no-writes\nreturn 1", &RUN, &mut caller, &mut reply);
    scripts.eval(b"return 1", &RUN, &mut caller, &mut reply);
    let read_only = Run { read_only: true, ..RUN };
    scripts.eval(b"#!lua\nreturn 1", &read_only, &mut caller, &mut reply);
    caller.refusal = Some("OOM no");
    scripts.eval(b"return 1", &RUN, &mut caller, &mut reply);
    let expected = ":1\r\n:1\r\n-ERR Can not execute a script with write flag using *_ro \
                    command.\r\n-OOM no\r\n";
    assert_eq!(String::from_utf8_lossy(&reply), expected);
    assert_eq!(caller.begun, [Flags::NO_WRITES, Flags::UNDECLARED, Flags::UNDECLARED]);
}

#[test]
fn scripts_are_known_until_they_are_flushed() {
    let mut scripts = scripts();
    let hash = scripts.load(b"return 1").expect("the script is right");
    eval(&mut scripts, "return 2");
    assert_eq!(scripts.len(), 2);
    assert!(scripts.exists(hash.as_bytes()));
    scripts.flush().expect("memory suffices");
    assert!(scripts.is_empty() && !scripts.exists(hash.as_bytes()));
    is_healthy(&mut scripts);
}

#[test]
fn scripts_of_eval_make_room_for_new_ones() {
    let mut scripts = scripts();
    let hash = scripts.load(b"return 1").expect("the script is right");
    let text = "x".repeat(200_000);
    for number in 0..200 {
        let reply = eval(&mut scripts, &format!("local a = '{text}' return {number}"));
        assert_eq!(reply, format!(":{number}\r\n"));
    }
    assert!(scripts.exists(hash.as_bytes()));
}

#[test]
fn too_little_memory_is_an_error() {
    let settings = Settings { memory_bytes: 1_000, ..Settings::default() };
    assert!(Scripts::new(settings).is_err());
    assert!(Libraries::new(settings).is_err());
}
