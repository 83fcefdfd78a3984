// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results of the libraries of scripts, which were compared with those of a Redis server.

use freeport_kv_protocol::resp::Version;
use freeport_kv_scripting::{Caller, LogLevel, Run, Scripts, Settings};

struct NoCommands(Vec<(LogLevel, String)>);

impl Caller for NoCommands {
    fn call(&mut self, _: &[&[u8]], _: Version, reply: &mut Vec<u8>) {
        reply.extend_from_slice(b"-ERR no\r\n");
    }

    fn log(&mut self, level: LogLevel, text: &[u8]) {
        self.0.push((level, String::from_utf8_lossy(text).into_owned()));
    }
}

fn eval(script: &str, caller: &mut NoCommands) -> String {
    let mut scripts = Scripts::new(Settings::default()).expect("memory suffices");
    let run = Run { keys: &[b"k"], arguments: &[b"a"], version: Version::Two, read_only: false };
    let mut reply = vec![];
    scripts.eval(script.as_bytes(), &run, caller, &mut reply);
    reply.escape_ascii().to_string().replace(r"\r\n", " ")
}

#[track_caller]
fn check(script: &str, expected: &str) {
    assert_eq!(eval(&format!("return {script}"), &mut NoCommands(vec![])), expected, "{script}");
}

#[test]
fn json_is_that_of_the_reference() {
    check(r#"cjson.encode({1, 'a/"', {b = cjson.null}, 1.5, 1e20})"#, {
        r#"$32 [1,\"a\\/\\\"\",{\"b\":null},1.5,1e+20] "#
    });
    check("cjson.encode({})", "$2 {} ");
    check("cjson.encode({[1] = 1, [4] = 4})", "$15 [1,null,null,4] ");
    check("cjson.decode('[1,[2,{\"a\":3}]]')[2][2].a", ":3 ");
    check(r#"cjson.decode('"\\u00e9"')"#, r"$2 \xc3\xa9 ");
    check("cjson.decode('null') == cjson.null", ":1 ");
    check("{pcall(cjson.decode, '[1')}", {
        "*2 $-1 $58 Expected comma or array end but found T_END at character 3 "
    });
    check("{pcall(cjson.encode, {type})}", {
        "*2 $-1 $45 Cannot serialise function: type not supported "
    });
}

#[test]
fn binary_layouts_are_those_of_the_reference() {
    check("struct.pack('>I2<i4s', 258, -2, 'x')", r"$8 \x01\x02\xfe\xff\xff\xffx\x00 ");
    check("{struct.unpack('>I2c2', '\\1\\2xyz')}", "*3 :258 $2 xy :5 ");
    check("struct.size('!4 b i4')", ":8 ");
    check("cmsgpack.pack({1, 2}, 'a', -1, 300)", r"$9 \x92\x01\x02\xa1a\xff\xcd\x01, ");
    check("{cmsgpack.unpack('\\129\\161a\\5\\195')}", "*2 *0 :1 ");
    check("{cmsgpack.unpack_one('\\1\\2\\3', 1)}", "*2 :2 :2 ");
    check("bit.bxor(bit.lshift(1, 31), 1)", ":-2147483647 ");
    check("bit.tohex(255, -4)", "$4 00FF ");
}

#[test]
fn the_environment_is_that_of_the_reference() {
    check("{KEYS[1], ARGV[1]}", "*2 $1 k $1 a ");
    check("type(os.clock())", "$6 number ");
    check("redis.sha1hex('')", "$40 da39a3ee5e6b4b0d3255bfef95601890afd80709 ");
    check("redis.REDIS_VERSION", "$5 7.2.4 ");
    check("redis.pcall('x')", "-ERR no ");
    check("{math.random(100), math.random(100)}", "*2 :40 :85 ");
    let mut caller = NoCommands(vec![]);
    eval("redis.log(redis.LOG_NOTICE, 'a', 1)", &mut caller);
    assert_eq!(caller.0, [(LogLevel::Notice, "a 1".into())]);
    let found = eval("redis.call('x')", &mut caller);
    let hash = "7e38f2e30ae3a5e6ea0ff2b1ff0aa1ba4a5e3a3a";
    assert_eq!(found.len(), format!("-ERR no script: {hash}, on @user_script:1. ").len());
    assert!(found.starts_with("-ERR no script: "), "{found}");
    assert!(found.ends_with(", on @user_script:1. "), "{found}");
}
