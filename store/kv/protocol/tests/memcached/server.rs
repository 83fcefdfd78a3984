// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Comparisons with an installed memcached 1.6.18: the examples, limits of lines and items, and
//! random pipelines, most of them malformed.

use super::examples::examples;
use super::model::Model;
use fastrand::Rng;
use freeport_testbed::wait::PATIENCE;
use freeport_testbed::{port, seed, skip, usual_or_long, wait_until};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};

/// The version whose replies the crate gives.
const VERSION: &str = "memcached 1.6.18";

/// A running server, which ends with this value.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts the installed server, if it has the right version.
    fn start() -> Option<Self> {
        let version = Command::new("memcached").arg("-V").output();
        let text = version.map_or(String::new(), |it| String::from_utf8_lossy(&it.stdout).into());
        if text.trim() != VERSION {
            skip(format_args!("{VERSION} is not installed"));
            return None;
        }
        let port = port::free_port();
        let mut command = Command::new("memcached");
        // Text only: what a first byte of 0x80 starts is not compared.
        command.args(["-l", "127.0.0.1", "-U", "0", "-B", "ascii", "-t", "1", "-u", "nobody"]);
        command.args(["-p", &port.to_string()]).stdin(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("it is installed");
        let server = Self { process, port };
        wait_until("memcached listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        // Uses up the CAS numbers that random pipelines have.
        (0..20).for_each(|_| _ = server.connect());
        Some(server)
    }

    /// Connects, and removes all keys.
    fn connect(&self) -> TcpStream {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a valid time");
        stream.write_all(b"flush_all\r\n").expect("it is open");
        let mut reply = [0; 4];
        stream.read_exact(&mut reply).expect("it replies");
        assert_eq!(&reply, b"OK\r\n");
        stream
    }

    /// Returns the replies to a pipeline. If the server is not expected to close the connection, it
    /// is told that nothing follows.
    fn ask(&self, pipeline: &[u8], closes: bool) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(pipeline).expect("it is open");
        if !closes {
            // The server may have closed the connection, which the replies will show.
            let _ = stream.shutdown(Shutdown::Write);
        }
        let mut replies = vec![];
        match stream.read_to_end(&mut replies) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => replies,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().expect("it was started");
        self.process.wait().expect("it was started");
    }
}

#[test]
#[ignore = "long: needs memcached 1.6.18"]
fn examples_are_those_of_the_original() {
    let Some(server) = Server::start() else { return };
    for example in examples() {
        let replies = server.ask(&example.requests, example.is_closed);
        let shown = String::from_utf8_lossy(&example.requests);
        let expected = String::from_utf8_lossy(&example.replies);
        assert_eq!(String::from_utf8_lossy(&replies), expected, "{shown:?}");
    }
}

#[test]
#[ignore = "long: needs memcached 1.6.18"]
fn limits_are_those_of_the_original() {
    let Some(server) = Server::start() else { return };
    let mut pipelines = vec![];
    // Lines without an end, and with one that comes late.
    for length in [2_047, 2_048] {
        pipelines.push("delete ".to_owned() + &"k".repeat(length - 7));
        pipelines.push("delete ".to_owned() + &"k".repeat(length - 7) + "\n");
    }
    for begin in ["delete ", "getx ", &(" ".repeat(101) + "get ")] {
        pipelines.push(begin.to_owned() + &"k".repeat(2_049 - begin.len()));
    }
    for keys in [3_000, 30_000] {
        pipelines.push("get ".to_owned() + &"key ".repeat(keys) + "\r\n");
        pipelines.push(" ".repeat(100) + "gets " + &"key ".repeat(keys) + "\r\n");
    }
    // Items of the maximum size, and one byte more.
    let longest = (1 << 20) - 59;
    for (line, key_bytes, client_flags_bytes) in [
        ("set k 0 0 ", 1, 0),
        ("set k 1 0 ", 1, 4),
        ("add kkk 0 0 ", 3, 0),
        ("ms k ", 1, 0),
        ("ms Zm9vYmE= ", 5, 0),
    ] {
        for more in [0, 1] {
            let length = longest - key_bytes - client_flags_bytes + more;
            let key = line.split(' ').nth(1).expect("a key");
            let flags = if key.ends_with('=') { " b" } else { "" };
            let value = "v".repeat(length);
            let old = format!("set {key} 0 0 1 noreply\r\nv\r\n");
            let after = format!("mg {key} s{flags}\r\n");
            pipelines.push(format!("{old}{line}{length}{flags}\r\n{value}\r\n{after}"));
        }
    }
    for pipeline in pipelines {
        let mut model = Model::default();
        model.receive(pipeline.as_bytes());
        let replies = server.ask(pipeline.as_bytes(), model.is_closed);
        let shown = &pipeline[..pipeline.len().min(100)];
        let (got, expected) =
            (String::from_utf8_lossy(&model.replies), String::from_utf8_lossy(&replies));
        assert_eq!(got, expected, "{shown:?} of {} bytes", pipeline.len());
    }
}

#[test]
#[ignore = "long: needs memcached 1.6.18"]
fn random_pipelines_have_the_replies_of_the_original() {
    let Some(server) = Server::start() else { return };
    let (first, mut compared) = (seed(), 0);
    let last = first + usual_or_long(3_000, 60_000);
    for seed in first..last {
        let mut rng = Rng::with_seed(seed);
        let mut pipeline = pipeline(&mut rng);
        // A server that closes the connection too early does not reply to these.
        pipeline.extend_from_slice(b"\r\nmn\r\nmn\r\n");
        let mut model = Model::default();
        model.receive(&pipeline);
        if model.refusals.iter().any(|line| is_other_by_intent(line)) {
            continue;
        }
        compared += 1;
        let replies = server.ask(&pipeline, model.is_closed);
        // The original drops replies that it has not sent when a connection is closed, by itself
        // or by the client amid a value.
        let is_whole = !model.is_closed && model.replies.ends_with(b"MN\r\nMN\r\n");
        let same =
            if is_whole { model.replies == replies } else { model.replies.starts_with(&replies) };
        let [sent, replies, expected] =
            [&pipeline, &model.replies, &replies].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(same, "FREEPORT_SEED={seed}: {sent:?}\n has {replies:?}\n not {expected:?}");
    }
    assert!(compared > (last - first) / 2, "only {compared} pipelines could be compared");
}

/// Returns whether the refusal of a line differs from the original: its base64 may be refused only
/// here, and there a retrieval with a long key removes replies to earlier requests.
fn is_other_by_intent(line: &str) -> bool {
    let is_long_get = || line.split(' ').any(|word| word.len() > 250) && line.contains("ga");
    line.contains(" b") || line.trim_start().starts_with("get") || is_long_get()
}

/// Makes a pipeline of requests, some of them malformed.
fn pipeline(rng: &mut Rng) -> Vec<u8> {
    let mut pipeline = vec![];
    for _ in 0..rng.usize(1..8) {
        request(&mut pipeline, rng);
    }
    // Otherwise there may be no byte to change.
    pipeline.extend_from_slice(b"mn\r\n");
    for _ in 0..rng.usize(..4).saturating_sub(1) {
        let (place, alphabet) = (rng.usize(..pipeline.len()), b"\0\r\n\t  019-kqvOMTN\xff");
        let byte = alphabet[rng.usize(..alphabet.len())];
        match rng.u8(..3) {
            0 => pipeline[place] = byte,
            1 => pipeline.insert(place, byte),
            _ => _ = pipeline.remove(place),
        }
    }
    pipeline
}

fn request(pipeline: &mut Vec<u8>, rng: &mut Rng) {
    let mut choose = |of: &[&'static str]| of[rng.usize(..of.len())];
    let long = "k".repeat(251);
    let keys = ["a", "b", "key", "k\t", "\u{1}", &long[..250]];
    let key = |at: &str| keys[usize::from(at.as_bytes()[0] - b'0')];
    let some_key = key(choose(&["0", "1", "2", "3", "4", "5"]));
    let number = choose(&[
        "0",
        "0",
        "1",
        "1",
        "2",
        "7",
        "10",
        "-1",
        "+3",
        "x",
        "",
        "4294967297",
        "99999999999999999999",
        "18446744073709551615",
        "-18446744073709551615",
        "2147483646",
        "3\t5",
        "1x",
    ]);
    let expiry = choose(&["0", "0", "0", "-1", "1000", "2592001", "x", "2592000"]);
    let end = choose(&["\r\n", "\r\n", "\r\n", "\n", " \r\n", "\r\r\n"]);
    let noreply = choose(&["", "", "", " noreply", " 0", " x", " 0 noreply", " noreply x"]);
    let mut flags = String::new();
    for _ in 0..choose(&["", "1", "12", "123", "1234", "12345678901234567890"]).len() {
        flags += " ";
        flags += choose(&[
            "v",
            "k",
            "q",
            "s",
            "f",
            "O1",
            "Oabcdef",
            "I",
            "u",
            "L",
            "P1",
            "T0",
            "T-1",
            "T",
            "N0",
            "N-1",
            "Nx",
            "R0",
            "R-1",
            "R30",
            "C0",
            "C9999999999",
            "Cx",
            "F5",
            "Fx",
            "F",
            "D2",
            "D",
            "J5",
            "Jx",
            "MS",
            "MA",
            "ME",
            "MP",
            "MR",
            "MI",
            "MD",
            "M+",
            "M-",
            "M",
            "MX",
            "MXX",
            "x",
            "z",
            "5",
            "\u{7f}",
            "O1234567890123456789012345678901",
        ]);
    }
    let length = choose(&["0", "1", "2", "3", "5"]);
    let shown = choose(&["0", "1", "2", "3", "5", "5", "x", "-1", "5\t1"]);
    // Usually the value has the given length.
    let shown = if choose(&["1", "1", "1", "0"]) == "1" { length } else { shown };
    let value = &"12\r\n3"[..length.parse().expect("it is a number")];
    let value_end = choose(&["\r\n", "\r\n", "\r\n", "\r\n", "\n", ""]);
    let line = match choose(&["s", "s", "g", "i", "d", "t", "m", "S", "S", "D", "A", "o", "c", "G"])
    {
        "s" => {
            let name = choose(&["set", "add", "replace", "append", "prepend", "set"]);
            format!("{name} {some_key} {number} {expiry} {shown}{noreply}{end}{value}{value_end}")
        }
        "c" => {
            let rest = format!("{shown} {number}{noreply}{end}{value}{value_end}");
            format!("cas {some_key} 0 {expiry} {rest}")
        }
        "g" => format!("get {some_key} a b  key{end}"),
        "G" => format!("gat {expiry} {some_key} a{end}"),
        "i" => format!("{} {some_key} {number}{noreply}{end}", choose(&["incr", "decr"])),
        "d" => format!("delete {some_key}{noreply}{end}"),
        "t" => format!("touch {some_key} {expiry}{noreply}{end}"),
        "m" => format!("mg {some_key}{flags}{end}"),
        "S" => format!("ms {some_key} {shown}{flags}{end}{value}{value_end}"),
        "D" => format!("md {some_key}{flags}{end}"),
        "A" => format!("ma {some_key}{flags}{end}"),
        _ => {
            let line = choose(&[
                "flush_all",
                "flush_all noreply",
                "flush_all x",
                "flush_all 0 noreply",
                "verbosity 0",
                "verbosity",
                "verbosity x noreply",
                "",
                " ",
                "m",
                "mx",
                "mn",
                "mn x",
                "unknown",
                "ge",
                "delete",
                "set",
                "shutdown",
                "cache_memlimit x",
                "slabs",
                "lru",
                "quit",
                "a HTTP/1",
                "HTTP/",
                "gets",
                "extstore",
                "get",
                "gat",
                "gat 0",
                "incr a",
                "mg",
                "ms",
                "ms a",
            ]);
            format!("{line}{end}")
        }
    };
    pipeline.extend_from_slice(line.as_bytes());
}
