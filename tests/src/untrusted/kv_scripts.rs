// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts, libraries of functions and dumps of them, from clients. A script that does not end is
//! stopped.

use freeport_kv_protocol::resp::{Version, Writer};
use freeport_kv_scripting::{
    Caller, Libraries, LogLevel, RestorePolicy, Run, Scripts, Settings, StopReason,
};

use super::resp::is_one_value;

/// Checks before a script is stopped.
const CHECKS: usize = 20;

/// A server that knows one command, which replies with its arguments.
struct Echo {
    checks: usize,
}

impl Caller for Echo {
    fn call(&mut self, arguments: &[&[u8]], version: Version, reply: &mut Vec<u8>) {
        let mut reply = Writer::new(reply, version);
        reply.array(arguments.len());
        arguments.iter().for_each(|argument| reply.bulk(argument));
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn interrupt(&mut self) -> Option<StopReason> {
        self.checks += 1;
        (self.checks > CHECKS).then_some(StopReason::Killed)
    }
}

/// Takes the bytes as the script, the library or the dump that the first byte says.
pub fn kv_scripts(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let settings = Settings {
        memory_bytes: 8 << 20,
        instructions_between_checks: 1_000,
        ..Settings::default()
    };
    let version = if first & 4 == 0 { Version::Two } else { Version::Three };
    let (keys, arguments): (&[&[u8]], &[&[u8]]) = (&[b"key"], &[b"1", b"two"]);
    let run = Run { keys, arguments, version, read_only: first & 8 != 0 };
    let mut caller = Echo { checks: 0 };
    if first % 3 == 0 {
        let mut scripts = Scripts::new(settings).expect("the limit suffices for an empty state");
        let mut reply = vec![];
        scripts.eval(bytes, &run, &mut caller, &mut reply);
        assert!(is_one_value(&reply), "{}", String::from_utf8_lossy(&reply));
        return;
    }
    let mut libraries = Libraries::new(settings).expect("the limit suffices for an empty state");
    let loaded = match first % 3 {
        1 => libraries.load(bytes, true, &mut caller).map(|_| ()),
        _ => libraries.restore(bytes, RestorePolicy::Replace, &mut caller),
    };
    if loaded.is_ok() {
        let mut reply = vec![];
        libraries.call(b"f", &run, &mut caller, &mut reply);
        assert!(is_one_value(&reply), "{}", String::from_utf8_lossy(&reply));
        let dump = libraries.dump();
        let again = libraries.restore(&dump, RestorePolicy::Flush, &mut Echo { checks: 0 });
        // Code that looks at its surroundings may refuse the second time.
        assert!(again.is_err() || libraries.dump() == dump);
    }
}

/// A script, a library, and the dump of one.
pub fn samples() -> Vec<Vec<u8>> {
    let scripts = [
        "\0return {redis.call('ECHO', KEYS[1], ARGV[2]), 1, 'x', {ok='OK'}, false}",
        "\x0clocal t = cjson.decode('{\"a\":[1,2.5,null]}') redis.setresp(3)
            return {cjson.encode(t), cmsgpack.unpack(cmsgpack.pack(t)), struct.pack('>I2', 7)}",
        "\0local s = string.rep('ab', 100) while true do s = s:gsub('(a)(b)', '%2%1') end",
        "\x06return {map={a=1}, set={b=true}, double=1.5}, pcall(redis.pcall, bit.bor(1, 2))",
        "\x01#!lua name=one\nredis.register_function('f', function(keys, args)
            return redis.call('ECHO', keys[1], args[1]) end)",
        "\x0d#!lua name=two\nredis.register_function{function_name='f', description='x',
            callback=function() return redis.status_reply('OK') end, flags={'no-writes'}}",
    ];
    let mut samples: Vec<Vec<u8>> = scripts.iter().map(|text| text.as_bytes().to_vec()).collect();
    let mut libraries = Libraries::new(Settings::default()).expect("the usual limit suffices");
    let library = &samples[4][1..];
    libraries.load(library, false, &mut Echo { checks: 0 }).expect("the library is right");
    samples.push([&[2], &libraries.dump()[..]].concat());
    samples
}
