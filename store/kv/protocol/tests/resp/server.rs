// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The same bytes for a Redis server and for the reader: the server has to answer what it answers
//! to the requests that were read, written plainly, then the same error, and has to close the
//! connection exactly after an error. Its own replies have to be those that the writer writes.

use super::requests::read_all;
use fastrand::Rng;
use freeport_kv_protocol::resp::{
    Read as RequestRead, RequestLimits, RequestReader, Value, ValueLimits, ValueProgress,
    ValueReader, Version, Writer,
};
use freeport_testbed::redis::RedisServer;
use freeport_testbed::{seed, skip, usual_or_long};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;

/// Bytes that the server reads from a connection before it looks at others.
const SERVER_READS: usize = 16 * 1024;

/// A Redis server on a free port, which ends with this value.
struct Server {
    server: RedisServer,
    control: TcpStream,
}

impl Server {
    /// Starts a server with further options; `None` if none is installed.
    fn start(options: &[&str]) -> Option<Self> {
        let server = RedisServer::start(options)?;
        let control = server.connect();
        Some(Self { server, control })
    }

    /// Waits until the server has read and answered `bytes` bytes of another connection. It has one
    /// thread: each time it answers here, it has looked at every connection.
    fn settle(&mut self, bytes: usize) {
        for _ in 0..4 + bytes / SERVER_READS {
            self.control.write_all(b"PING\r\n").expect("the server reads");
            let (mut reply, mut line) = ([0], vec![]);
            while !line.ends_with(b"\r\n") {
                self.control.read_exact(&mut reply).expect("the server answers");
                line.push(reply[0]);
            }
        }
    }

    /// Replies to bytes on a new connection, and whether the server has closed it.
    fn answer(&mut self, portions: &[&[u8]]) -> (Vec<u8>, bool) {
        let mut connection = self.server.connect();
        for portion in portions {
            // The server may have closed it.
            let _ = connection.write_all(portion);
            self.settle(portion.len());
        }
        connection.set_nonblocking(true).expect("it is a socket");
        let mut replies = vec![];
        match connection.read_to_end(&mut replies) {
            Ok(_) => (replies, true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => (replies, false),
            // Unread bytes were left when it was closed.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => (replies, true),
            Err(error) => panic!("{error}"),
        }
    }

    /// Compares what happens to `bytes`.
    fn compare(&mut self, portions: &[&[u8]], limits: RequestLimits, context: &str) {
        let (requests, error) = read_all(portions.iter().copied(), limits);
        let mut plain = vec![];
        for request in requests.iter().filter(|request| !request.is_empty()) {
            let mut writer = Writer::new(&mut plain, Version::Two);
            writer.array(request.len());
            request.iter().for_each(|argument| writer.bulk(argument));
        }
        let (mut expected, is_closed) = self.answer(&[&plain]);
        assert!(!is_closed, "{context}: plain requests close nothing");
        if let Some(error) = error {
            error.write_reply(&mut expected);
        }
        let (found, is_closed) = self.answer(portions);
        let bytes = portions.concat();
        let shown = bytes[..bytes.len().min(2_000)].escape_ascii();
        assert_eq!(
            found.escape_ascii().to_string(),
            expected.escape_ascii().to_string(),
            "{context}: {shown}"
        );
        assert_eq!(is_closed, error.is_some(), "{context}: {shown}");
    }
}

/// Limits of a server without configuration. Since version 7.0 it limits the number of arguments
/// only by the type that holds it.
fn limits(is_authenticated: bool) -> RequestLimits {
    RequestLimits { is_authenticated, arguments: i32::MAX as usize, ..RequestLimits::default() }
}

/// Whether clients are authenticated, with a server for them.
fn with_both(mut run: impl FnMut(&mut Server, RequestLimits)) {
    for is_authenticated in [true, false] {
        let options: &[&str] = if is_authenticated { &[] } else { &["--requirepass", "secret"] };
        let Some(mut server) = Server::start(options) else {
            return skip("redis-server is not installed");
        };
        run(&mut server, limits(is_authenticated));
    }
}

#[test]
#[ignore = "long: needs a Redis server"]
fn malformed_requests_have_the_errors_of_redis() {
    let mut samples: Vec<Vec<u8>> = vec![];
    for number in [
        "",
        "a",
        "1a",
        "+1",
        " 1",
        "1 ",
        "01",
        "00",
        "-",
        "-0",
        "-1",
        "-01",
        "0",
        "1",
        "2",
        "10",
        "11",
        "16384",
        "16385",
        "1048576",
        "1048577",
        "2147483647",
        "2147483648",
        "536870912",
        "536870913",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999",
        "1\n",
        "1\0",
        "\0",
    ] {
        for end in ["\r\n", "\rx", "\r", "\n", ""] {
            samples.push(format!("*{number}{end}").into());
            samples.push(format!("*1\r\n${number}{end}").into());
            samples.push(format!("ECHO a\r\n*2\r\n$4\r\nECHO\r\n${number}{end}ab\r\n").into());
        }
    }
    for byte in 0..=255 {
        samples.push(vec![byte]);
        samples.push(vec![byte, b'\r', b'\n']);
        samples.push([&b"*1\r\n"[..], &[byte], b"4\r\nPING\r\n"].concat());
        samples.push([&b"ECHO \"a\\"[..], &[byte], b"4\"\r\nPING\r\n"].concat());
        samples.push([&b"ECHO 'a'"[..], &[byte], b"\r\nPING\r\n"].concat());
        samples.push([&b"ECHO a"[..], &[byte], b"b\r\nPING\r\n"].concat());
        samples.push([&b"ECHO "[..], &[byte], b"b\r\nPING\r\n"].concat());
        samples.push([&b"ECHO "[..], &[byte], b"b\rPING\r\nPING\n"].concat());
    }
    with_both(|server, limits| {
        for sample in &samples {
            server.compare(&[sample], limits, "a sample");
        }
        let whole = &samples[..40];
        for sample in whole.iter().filter(|sample| !sample.is_empty()) {
            let bytes: Vec<&[u8]> = sample.chunks(1).collect();
            server.compare(&bytes, limits, "byte by byte");
        }
    });
}

#[test]
#[ignore = "long: needs a Redis server"]
fn long_lines_have_the_errors_of_redis() {
    let Some(mut server) = Server::start(&[]) else {
        return skip("redis-server is not installed");
    };
    for begin in ["a", "*", "*1\r\n$", "*1\r\nx", "ECHO "] {
        for length in [65_535, 65_536, 65_537] {
            let mut line = begin.as_bytes().to_vec();
            let begin = line.len() - 1;
            line.resize(begin + length, b'1');
            // The server looks at what has arrived after each portion. It accepts a longer line if
            // its end is in the portion that makes it too long.
            server.compare(&[&line], limits(true), "without an end");
            server.compare(&[&line, b"\r", b"\n"], limits(true), "with a late end");
        }
    }
}

#[test]
#[ignore = "long: needs a Redis server"]
fn changed_pipelines_are_answered_as_redis_does() {
    let first = seed();
    let mut errors = 0;
    with_both(|server, limits| {
        for seed in first..first + usual_or_long(2_000, 20_000) {
            let mut random = Rng::with_seed(seed);
            let bytes = changed_pipeline(&mut random);
            errors += u64::from(read_all([&bytes[..]], limits).1.is_some());
            let split = random.usize(..=bytes.len());
            let (begin, end) = bytes.split_at(split);
            server.compare(&[begin, end], limits, &format!("FREEPORT_SEED={seed}"));
        }
    });
    assert!(errors > 100 || !is_installed(), "{errors} errors were compared");
}

fn is_installed() -> bool {
    Command::new("redis-server").arg("--version").output().is_ok()
}

fn changed_pipeline(random: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![];
    for _ in 0..random.usize(1..4) {
        let length = random.usize(..20);
        let argument: Vec<u8> = (0..length)
            .map(|_| *random.choice(b"ab \t\x0b\"'\\xn41\r\n\xff").expect("bytes"))
            .collect();
        if random.bool() {
            let writer = &mut Writer::new(&mut bytes, Version::Two);
            writer.array(2);
            writer.bulk(b"ECHO");
            writer.bulk(&argument);
        } else {
            bytes.extend_from_slice(b"ECHO ");
            bytes.extend_from_slice(&argument);
            bytes.extend_from_slice(b"\r\n");
        }
    }
    for _ in 0..random.usize(0..4) {
        let at = random.usize(..bytes.len());
        let byte = *random.choice(b"\r\n*$0129-+\"'\\\0 x").expect("bytes");
        match random.u8(..3) {
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            _ => _ = bytes.remove(at),
        }
    }
    bytes
}

#[test]
#[ignore = "long: needs a Redis server"]
fn replies_are_those_that_redis_writes() {
    let Some(mut server) = Server::start(&[]) else {
        return skip("redis-server is not installed");
    };
    for version in [Version::Two, Version::Three] {
        for kind in [
            "string", "integer", "double", "null", "array", "set", "map", "push", "verbatim",
            "true", "false", "bignum", "attrib",
        ] {
            if version == Version::Two && matches!(kind, "push" | "attrib") {
                // Redis refuses to show these in version 2.
                continue;
            }
            let number = if version == Version::Two { 2 } else { 3 };
            let request = format!("HELLO {number}\r\nDEBUG PROTOCOL {kind}\r\n");
            let (found, _) = server.answer(&[request.as_bytes()]);
            let mut reader = reader();
            let hello = match reader.read(&found).expect("it is a reply") {
                ValueProgress::Complete { value: Value::Map(_) | Value::Array(_), bytes } => bytes,
                other => panic!("{other:?}"),
            };
            let mut expected = vec![];
            write_sample(kind, &mut Writer::new(&mut expected, version));
            let found = found[hello..].escape_ascii().to_string();
            assert_eq!(found, expected.escape_ascii().to_string(), "{kind} in {version:?}");
            let read = reader.read(&expected).expect("it is a reply");
            let (ValueProgress::Complete { bytes, .. }, true) = (read, reader.is_at_start()) else {
                panic!("{kind} is complete");
            };
            assert!(bytes == expected.len() || kind == "push", "a push precedes the reply");
        }
    }
}

/// Values that a script returns.
const SCRIPTED: [&str; 11] = [
    "'a b\\n\\\\\\0\\255'",
    "{1, {2, {3, 'x'}}, {err = 'ERR x'}, {ok = 'fine'}, {double = 1.5}, {}, {map = {}}, false}",
    "{{set = {}}, {set = {q = true}}, {}, {}, {}, {}, {}, {}, {}, {1, {2, 3}}}",
    "{map = {a = {}}}",
    "{map = {a = {1}}}",
    "{map = {a = {1, 2}}}",
    "{map = {a = {{1, 2}}}}",
    "{map = {a = {map = {q = true}}}}",
    "{map = {a = {map = {q = {1, {2, 3}}}}}}",
    "{{{{1}}}, {map = {a = {{1, 2}, 3}}}}",
    "{err = 'ERR no'}",
];

#[test]
#[ignore = "long: needs a Redis server and redis-cli"]
fn values_are_shown_as_by_redis_cli() {
    let Some(mut server) = Server::start(&[]) else {
        return skip("redis-server is not installed");
    };
    for script in SCRIPTED {
        let script = format!("redis.setresp(3); return {script}");
        let port = server.server.address().port().to_string();
        let shown = Command::new("redis-cli")
            .args(["-3", "-p", &port, "--no-raw", "EVAL", &script, "0"])
            .output();
        let Ok(shown) = shown else { return skip("redis-cli is not installed") };
        let mut request = b"HELLO 3\r\n".to_vec();
        let mut writer = Writer::new(&mut request, Version::Three);
        writer.array(3);
        [&b"EVAL"[..], script.as_bytes(), b"0"].iter().for_each(|argument| writer.bulk(argument));
        let (replies, _) = server.answer(&[&request]);
        let (mut reader, mut start, mut values) = (reader(), 0, vec![]);
        while let Ok(ValueProgress::Complete { value, bytes }) = reader.read(&replies[start..]) {
            start += bytes;
            values.push(value);
        }
        assert_eq!((values.len(), start), (2, replies.len()), "HELLO and EVAL are answered");
        let shown = String::from_utf8(shown.stdout).expect("it has escapes");
        assert_eq!(values[1].to_string(), shown.trim_end_matches('\n'), "{script}");
    }
}

fn reader() -> ValueReader {
    ValueReader::new(ValueLimits::default())
}

/// The samples of `DEBUG PROTOCOL`.
fn write_sample(kind: &str, writer: &mut Writer) {
    let integers = |writer: &mut Writer| (0..3).for_each(|number| writer.integer(number));
    match kind {
        "string" => writer.bulk(b"Hello World"),
        "integer" => writer.integer(12_345),
        "double" => writer.double(3_141.0 / 1_000.0),
        "null" => writer.null(),
        "array" => {
            writer.array(3);
            integers(writer);
        }
        "set" => {
            writer.set(3);
            integers(writer);
        }
        "map" => {
            writer.map(3);
            for number in 0..3 {
                writer.integer(number);
                writer.boolean(number == 1);
            }
        }
        "push" => {
            writer.push(2);
            writer.bulk(b"server-cpu-usage");
            writer.integer(42);
            writer.bulk(b"Some real reply following the push reply");
        }
        "attrib" => {
            if writer.attribute(1) {
                writer.bulk(b"key-popularity");
                writer.array(2);
                writer.bulk(b"key:123");
                writer.integer(90);
            }
            writer.bulk(b"Some real reply following the attribute");
        }
        "verbatim" => writer.verbatim(*b"txt", b"This is a verbatim\nstring"),
        "bignum" => writer.big_number("1234567999999999999999999999999999999"),
        _ => writer.boolean(kind == "true"),
    }
}

/// A request of every kind of length that the reader has a short way for, against the server.
#[test]
#[ignore = "long: needs a Redis server"]
fn large_arguments_arrive_whole() {
    let Some(mut server) = Server::start(&[]) else {
        return skip("redis-server is not installed");
    };
    for length in [9, 99, 999, 32_768, 100_000, 1_000_000] {
        let text = vec![b'\r'; length];
        let mut bytes = vec![];
        let writer = &mut Writer::new(&mut bytes, Version::Two);
        writer.array(2);
        writer.bulk(b"ECHO");
        writer.bulk(&text);
        let mut reader = RequestReader::new(RequestLimits::default());
        match reader.read(&bytes) {
            Ok(RequestRead::Complete(request)) => assert_eq!(request[1], text),
            other => panic!("{:?}", other.is_ok()),
        }
        server.compare(&[&bytes], limits(true), "a large argument");
    }
}
