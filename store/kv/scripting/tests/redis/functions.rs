// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Libraries and functions, compared with a Redis server.

use super::forward::Forward;
use super::server::Server;
use super::{KEYS, VERSIONS, settings, shown};
use freeport_kv_protocol::resp::{Value, ValueLimits, ValueProgress, ValueReader, Version, Writer};
use freeport_kv_scripting::{Libraries, RestorePolicy, Run};
use freeport_testbed::skip;

/// Bodies of libraries, after the line `#!lua name=x`.
const BODIES: [&str; 44] = [
    "",
    "x x",
    "x=1",
    "return x",
    "return pairs",
    "redis.call('ping')",
    "redis.nothing()",
    "error('a')",
    "error({err='b c'})",
    "error()",
    "redis.log(1)",
    "redis.log(redis.LOG_NOTICE,'a')",
    "redis.x=1",
    "redis=1",
    "redis.register_function()",
    "redis.register_function('f')",
    "redis.register_function(nil)",
    "redis.register_function({})",
    "redis.register_function('f',1)",
    "redis.register_function({},function() end)",
    "redis.register_function(12,function() end)",
    "redis.register_function('f',function() end,1)",
    "redis.register_function('f g',function() end)",
    "redis.register_function('',function() end)",
    "redis.register_function('f',function() end) redis.register_function('f',function() end)",
    "redis.register_function{function_name='f'}",
    "redis.register_function{callback=function() end}",
    "redis.register_function{function_name=1,callback=function() end}",
    "redis.register_function{function_name={},callback=function() end}",
    "redis.register_function{function_name='f',callback=1}",
    "redis.register_function{function_name='f',callback=function() end,x=1}",
    "redis.register_function{1,2}",
    "redis.register_function{function_name='f',callback=function() end,flags=1}",
    "redis.register_function{function_name='f',callback=function() end,flags={1}}",
    "redis.register_function{function_name='f',callback=function() end,flags={'no'}}",
    "redis.register_function{function_name='f',callback=function() end,description={}}",
    "redis.register_function{function_name='f',callback=function() end,description='text'}",
    "redis.register_function{function_name='f',callback=function() end,\
     flags={'allow-stale','no-writes'}}",
    "redis.register_function{FUNCTION_NAME='f',callback=function() end}",
    "redis.register_function('f',function(k,a) return {k,a} end) local y=_G",
    "local v=redis.REDIS_VERSION redis.register_function('f',function() return v end)",
    "redis.setresp(3)",
    "redis.register_function(redis.LOG_DEBUG,function() end)",
    "local r=redis r.register_function('f',function() return 1 end)",
];

/// First lines of libraries.
const HEADERS: [&str; 14] = [
    "",
    "return 1",
    "#!lua",
    "#!lua\n",
    "#!lua name=\n",
    "#!lua name=x-\n",
    "#!lua name=x name=y\n",
    "#!lua nam=x\n",
    "#!lua flags=no-writes name=x\n",
    "#!js name=x\n",
    "#!js\n",
    "#!LUA name=x\n",
    "#!lua NAME=x\n",
    "#!\n",
];

/// Bodies of functions.
const FUNCTIONS: [&str; 34] = [
    "",
    "return 1",
    "return {k,a}",
    "return {#k,#a,k[2],a[1]}",
    "return KEYS",
    "return ARGV",
    "x=1",
    "return x",
    "_G.x=1",
    "redis.x=1",
    "string.x=1",
    "return redis.call('nothing')",
    "return redis.pcall('nothing')",
    "return redis.call('set',k[1],'v')",
    "redis.call('set',k[1],'v') return redis.call('get',k[1])",
    "redis.call('set',k[1],'v') return redis.call('incr',k[1])",
    "return redis.register_function('g',function() end)",
    "return r.register_function('g',function() end)",
    "return r.register_function()",
    "error('a')",
    "error({err='A b'})",
    "return {pcall(error,'a')}",
    "return redis.replicate_commands",
    "return redis.breakpoint",
    "return redis.debug",
    "return redis.setresp(3)",
    "redis.setresp(3) return {true,false,{double=1.5}}",
    "return {err='A b'}",
    "return cjson.encode({1})",
    "return math.random(1,5)",
    "return __redis__err__handler",
    "counter = (counter or 0) + 1",
    "n=0",
    "state.n=state.n+1 return state.n",
];

fn pair() -> Option<(Server, Server)> {
    let servers = (Server::start()?, Server::start()?);
    Some(servers)
}

fn ours_loaded(ours: &mut Libraries, code: &[u8], replace: bool, forward: &mut Forward) -> Vec<u8> {
    let mut reply = vec![];
    let mut writer = Writer::new(&mut reply, Version::Two);
    match ours.load(code, replace, forward) {
        Ok(name) => writer.bulk(name.as_bytes()),
        Err(error) => writer.error(&error),
    }
    reply
}

#[test]
#[ignore = "long: needs a Redis server"]
fn libraries_are_loaded_and_listed() {
    let Some((reference, back)) = pair() else { return skip("redis-server is not installed") };
    let mut forward = Forward::new(&back);
    let mut two = reference.connect(Version::Two);
    let codes = BODIES.iter().map(|body| format!("#!lua name=x\n{body}"));
    let body = "redis.register_function('f',function() end)";
    let headers = HEADERS.iter().map(|header| format!("{header}{body}"));
    let mut differences = vec![];
    let mut compare = |code: &str, found: &[u8], expected: &[u8]| {
        if found != expected {
            let (expected, found) = (shown(expected), shown(found));
            differences.push(format!("{code}\n  expected {expected}\n  found    {found}\n"));
        }
    };
    for code in codes.chain(headers) {
        two.call(&[b"FUNCTION", b"FLUSH"]);
        let mut ours = Libraries::new(settings()).expect("memory suffices");
        for replace in [false, false, true] {
            let mut command = vec![&b"FUNCTION"[..], b"LOAD"];
            command.extend(replace.then_some(&b"REPLACE"[..]));
            command.push(code.as_bytes());
            let expected = two.call(&command);
            let found = ours_loaded(&mut ours, code.as_bytes(), replace, &mut forward);
            compare(&code, &found, &expected);
        }
        for version in VERSIONS {
            let mut list = vec![];
            ours.list(|_| true, true, version, &mut list);
            let mut connection = reference.connect(version);
            let expected = connection.call(&[b"FUNCTION", b"LIST", b"WITHCODE"]);
            compare(&code, &list, &expected);
        }
    }
    assert!(differences.is_empty(), "{}: {}", differences.len(), differences.join("\n"));
}

#[test]
#[ignore = "long: needs a Redis server"]
fn functions_are_called() {
    let Some((reference, back)) = pair() else { return skip("redis-server is not installed") };
    let mut forward = Forward::new(&back);
    let mut ours = Libraries::new(settings()).expect("memory suffices");
    let mut differences = vec![];
    for flags in ["", "'no-writes'"] {
        for body in FUNCTIONS {
            let code = format!(
                "#!lua name=x\nlocal r=redis local state={{n=0}}\n\
                 redis.register_function{{function_name='f',flags={{{flags}}},\n\
                 callback=function(k,a)\n{body}\nend}}"
            );
            let command = [&b"FUNCTION"[..], b"LOAD", b"REPLACE", code.as_bytes()];
            let expected = reference.connect(Version::Two).call(&command);
            let found = ours_loaded(&mut ours, code.as_bytes(), true, &mut forward);
            assert_eq!(shown(&found), shown(&expected), "{code}");
            for (version, command) in
                VERSIONS.into_iter().flat_map(|it| [(it, &b"FCALL"[..]), (it, b"FCALL_RO")])
            {
                reference.connect(version).call(&[b"FLUSHALL"]);
                forward.connection(version).call(&[b"FLUSHALL"]);
                let expected =
                    reference.connect(version).call(&[command, b"f", b"2", KEYS[0], KEYS[1], b"5"]);
                let read_only = command == b"FCALL_RO";
                let run = Run { keys: &KEYS, arguments: &[b"5"], version, read_only };
                let mut reply = vec![];
                ours.call(b"f", &run, &mut forward, &mut reply);
                if reply != expected {
                    let (expected, reply) = (shown(&expected), shown(&reply));
                    differences
                        .push(format!("{body}\n  expected {expected}\n  found    {reply}\n"));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}: {}", differences.len(), differences.join("\n"));
}

#[test]
#[ignore = "long: needs a Redis server"]
fn dumps_are_exchanged() {
    let Some((reference, back)) = pair() else { return skip("redis-server is not installed") };
    let mut forward = Forward::new(&back);
    let mut two = reference.connect(Version::Two);
    let mut ours = Libraries::new(settings()).expect("memory suffices");
    for name in ["a", "b"] {
        let code = format!(
            "#!lua name={name}\n{}redis.register_function('{name}',function() return 1 end)",
            "-- A comment that is compressed.\n".repeat(40)
        );
        two.call(&[b"FUNCTION", b"LOAD", code.as_bytes()]);
        ours.load(code.as_bytes(), false, &mut forward).expect("the library is right");
    }
    let mut list = vec![];
    ours.list(|_| true, true, Version::Two, &mut list);

    let dump = ours.dump();
    assert_eq!(two.call(&[b"FUNCTION", b"RESTORE", &dump, b"REPLACE"]), b"+OK\r\n");
    assert_eq!(two.call(&[b"FUNCTION", b"RESTORE", &dump, b"FLUSH"]), b"+OK\r\n");
    let expected = two.call(&[b"FUNCTION", b"RESTORE", &dump, b"APPEND"]);
    let error = ours.restore(&dump, RestorePolicy::Append, &mut forward).expect_err("they exist");
    assert!([b"a", b"b"].iter().any(|name| {
        let name = name.escape_ascii();
        error == format!("ERR Library {name} already exists")
    }));
    assert!(shown(&expected).starts_with("-ERR Library "), "{}", shown(&expected));

    let reply = two.call(&[b"FUNCTION", b"DUMP"]);
    let Ok(ValueProgress::Complete { value: Value::Bulk(dump), .. }) =
        ValueReader::new(ValueLimits::default()).read(&reply)
    else {
        panic!("no dump: {}", shown(&reply));
    };
    for policy in [RestorePolicy::Replace, RestorePolicy::Flush] {
        ours.restore(&dump, policy, &mut forward).expect("the dump is right");
        let mut restored = vec![];
        ours.list(|_| true, true, Version::Two, &mut restored);
        assert_eq!(shown(&restored), shown(&list));
    }
    let error = ours.restore(b"x", RestorePolicy::Flush, &mut forward).expect_err("it is no dump");
    let expected = two.call(&[b"FUNCTION", b"RESTORE", b"x"]);
    assert_eq!(format!("-{error}\r\n").as_bytes(), expected);
    assert_eq!((ours.len(), ours.function_count()), (2, 2));
}
