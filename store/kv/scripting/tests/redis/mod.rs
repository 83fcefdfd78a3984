// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts, given to a Redis server and to this crate, whose commands go to a second server. All
//! bytes of the replies are the same. The reference is version 7.0 on x86-64.
//!
//! Samples are texts: scripts are divided by lines of `--`.

mod forward;
mod functions;
mod server;

use forward::Forward;
use freeport_kv_protocol::resp::Version;
use freeport_kv_scripting::{Run, Scripts, Settings};
use freeport_testbed::skip;
use server::Server;

const VERSIONS: [Version; 2] = [Version::Two, Version::Three];
const KEYS: [&[u8]; 2] = [b"{k}1", b"{k}2"];
const ARGUMENTS: [&[u8]; 3] = [b"10", b"text", b"\xff\r\n"];

fn settings() -> Settings {
    Settings { redis_version: [7, 0, 15], ..Settings::default() }
}

fn scripts(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n--\n").map(str::trim).filter(|script| !script.is_empty())
}

fn shown(reply: &[u8]) -> String {
    reply.escape_ascii().to_string()
}

#[track_caller]
fn compare(samples: &str, least: usize) {
    let (Some(reference), Some(back)) = (Server::start(), Server::start()) else {
        return skip("redis-server is not installed");
    };
    let mut forward = Forward::new(&back);
    let mut ours = Scripts::new(settings()).expect("memory suffices");
    let (mut count, mut differences) = (0, vec![]);
    for script in scripts(samples) {
        count += 1;
        for version in VERSIONS {
            for command in [&b"EVAL"[..], b"EVAL_RO"] {
                let mut parts = vec![command, script.as_bytes(), b"2"];
                parts.extend(KEYS);
                parts.extend(ARGUMENTS);
                reference.connect(version).call(&[b"FLUSHALL"]);
                let expected = reference.connect(version).call(&parts);
                forward.connection(version).call(&[b"FLUSHALL"]);
                forward.read_only = command == b"EVAL_RO";
                let run = Run {
                    keys: &KEYS,
                    arguments: &ARGUMENTS,
                    version,
                    read_only: forward.read_only,
                };
                let mut reply = vec![];
                ours.eval(script.as_bytes(), &run, &mut forward, &mut reply);
                if reply != expected {
                    differences.push(format!(
                        "{}\n{version:?}\n  expected {}\n  found    {}\n",
                        script,
                        shown(&expected),
                        shown(&reply)
                    ));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}: {}", differences.len(), differences.join("\n"));
    assert!(count >= least, "there are only {count} samples");
}

#[test]
#[ignore = "long: needs a Redis server"]
fn conversions() {
    compare(include_str!("samples/conversions.lua"), 40);
}

#[test]
#[ignore = "long: needs a Redis server"]
fn errors_and_sandbox() {
    compare(include_str!("samples/errors.lua"), 60);
}

#[test]
#[ignore = "long: needs a Redis server"]
fn redis_table() {
    compare(include_str!("samples/redis.lua"), 40);
}

#[test]
#[ignore = "long: needs a Redis server"]
fn json() {
    compare(include_str!("samples/json.lua"), 60);
}

#[test]
#[ignore = "long: needs a Redis server"]
fn binary() {
    compare(include_str!("samples/binary.lua"), 60);
}

#[test]
#[ignore = "long: needs a Redis server"]
fn script_commands() {
    let (Some(reference), Some(back)) = (Server::start(), Server::start()) else {
        return skip("redis-server is not installed");
    };
    let mut forward = Forward::new(&back);
    let mut ours = Scripts::new(settings()).expect("memory suffices");
    let mut reference = reference.connect(Version::Two);
    let mut reply = vec![];
    let run = Run { keys: &[], arguments: &[], version: Version::Two, read_only: false };

    let hash = ours.load(b"return 7").expect("the script is right");
    assert_eq!(
        reference.call(&[b"SCRIPT", b"LOAD", b"return 7"]),
        format!("$40\r\n{hash}\r\n").as_bytes()
    );
    for asked in [hash.to_uppercase(), hash, "abc".into(), "0".repeat(40)] {
        let expected = reference.call(&[b"EVALSHA", asked.as_bytes(), b"0"]);
        reply.clear();
        ours.eval_sha(asked.as_bytes(), &run, &mut forward, &mut reply);
        assert_eq!(shown(&reply), shown(&expected));
        let expected = reference.call(&[b"SCRIPT", b"EXISTS", asked.as_bytes()]);
        assert_eq!(expected == b"*1\r\n:1\r\n", ours.exists(asked.as_bytes()), "{asked}");
    }
    let error = ours.load(b"x x").expect_err("this is no script");
    let expected = reference.call(&[b"SCRIPT", b"LOAD", b"x x"]);
    assert_eq!(format!("-{error}\r\n").as_bytes(), expected);
}
