// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv serve` and `freeport kv cli`: where the server listens, how it ends, what it
//! refuses; commands as arguments and as lines.

use crate::kv_server::{KvServer, output_of};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Output;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Its complaint; it must end with status 1.
fn complaint(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    text(&output.stderr)
}

#[test]
fn it_says_where_clients_connect() {
    let server = KvServer::with(&["--port", "0"]);
    let port = server.ready.strip_prefix("ready: RESP at 127.0.0.1:").expect(&server.ready);
    let (port, rest) = port.split_once(';').expect(&server.ready);
    assert_eq!(rest, " workers: 1; memory: 1073741824 bytes\n");
    let pong = output_of(&["kv", "cli", "--server", port, "PING"], "");
    assert_eq!(text(&pong.stdout), "PONG\n");

    let server = KvServer::start(&["--memory", "64MiB", "--workers", "2"]);
    let said: serde_json::Value = serde_json::from_str(&server.ready).expect("JSON");
    assert_eq!((&said["workers"], &said["memory_bytes"]), (&2.into(), &(64 << 20).into()));
    assert_eq!(server.reply(&["PING"]), "PONG");
    TcpStream::connect(server.address("memcached")).expect("it listens");
}

#[test]
fn commands_are_arguments_or_lines() {
    let server = KvServer::start(&[]);
    assert_eq!(server.reply(&["SET", "key", "two words"]), "OK");
    assert_eq!(server.reply(&["GET", "key"]), "\"two words\"");
    assert_eq!(server.reply(&["--raw", "GET", "key"]), "two words");
    assert_eq!(server.reply(&["GET", "-key"]), "(nil)");
    assert_eq!(server.reply(&["HSET", "hash", "field", "value"]), "(integer) 1");
    let [two, three] = [&["HGETALL", "hash"][..], &["-3", "HGETALL", "hash"]];
    assert_eq!(server.reply(two), "1) \"field\"\n2) \"value\"");
    assert_ne!(server.reply(three), server.reply(two));

    let lines = "INCR count\r\n\n  incr count\nMULTI\nGET count\nEXEC\nSET text 'a b'\nGET text";
    let output = server.cli(&[], lines);
    assert!(output.status.success(), "{output:?}");
    let printed = text(&output.stdout);
    let expected = ["(integer) 1", "(integer) 2", "OK", "QUEUED", "1) \"2\"", "OK", "\"a b\""];
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn errors_make_the_exit_status() {
    let server = KvServer::start(&[]);
    let output = server.cli(&["NOTHING"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("ERR unknown command 'NOTHING'"), "{output:?}");
    // Later lines are sent all the same.
    let output = server.cli(&[], "SET key text\nINCR key\nGET key\n");
    assert_eq!(output.status.code(), Some(1));
    let printed = text(&output.stdout);
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[2]), (3, "OK", "\"text\""), "{printed}");
    assert!(lines[1].contains("not an integer"), "{printed}");

    let port = server.port("resp");
    drop(server);
    let gone = output_of(&["kv", "cli", "--server", &port, "PING"], "");
    assert!(complaint(&gone).contains("freeport kv serve"), "{gone:?}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("none.sock");
    let gone = output_of(&["kv", "cli", "--socket", path.to_str().expect("text"), "PING"], "");
    assert!(complaint(&gone).contains("none.sock"), "{gone:?}");
}

#[test]
fn signals_and_clients_end_it_well() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let server = KvServer::start(&["--workers", "2"]);
        let _idle = TcpStream::connect(server.address("resp")).expect("it listens");
        server.signal(signal);
        assert_eq!(server.ended().code(), Some(0), "signal {signal}");
    }
    for workers in ["1", "3"] {
        let server = KvServer::start(&["--workers", workers]);
        let mut client = TcpStream::connect(server.address("resp")).expect("it listens");
        client.write_all(b"SHUTDOWN NOSAVE\r\n").expect("it reads");
        assert_eq!(server.ended().code(), Some(0), "{workers} workers");
    }
}

#[test]
fn a_port_in_use_is_an_error() {
    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = other.local_addr().expect("it listens").port().to_string();
    for option in ["--port", "--memcached-port"] {
        let options = if option == "--port" { vec![] } else { vec!["--port", "0"] };
        let output = output_of(&[&["kv", "serve", option, &port], &options[..]].concat(), "");
        let said = complaint(&output);
        assert!(said.contains(&port) && said.contains("in use"), "{said}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let bad = [
        ("--memory", "4GB"),
        ("--memory", "0"),
        ("--memory", "99999999TiB"),
        ("--memcached-memory", "x"),
        ("--workers", "0"),
        ("--workers", "65"),
        ("--databases", "0"),
        ("--clients", "0"),
        ("--port", "65536"),
    ];
    for (option, value) in bad {
        let port = if option == "--port" { vec![] } else { vec!["--port", "0"] };
        let listening = ["--memcached-port", "0", option, value];
        let output = output_of(&[&["kv", "serve"], &listening[..], &port].concat(), "");
        assert!(!output.status.success() && output.stdout.is_empty(), "{option} {value}");
        let said = text(&output.stderr);
        assert!(said.contains(&option[2..]) && !said.contains("panicked"), "{option}: {said}");
    }
}

#[test]
fn memcached_clients_are_served() {
    let server = KvServer::start(&["--workers", "2"]);
    let mut stream = TcpStream::connect(server.address("memcached")).expect("it listens");
    let requests = "set key 5 0 3\r\nabc\r\nget key\r\nmg key v\r\nincr key 1\r\nquit\r\n";
    stream.write_all(requests.as_bytes()).expect("it reads");
    let lines: Vec<_> = BufReader::new(stream).lines().map(|line| line.expect("text")).collect();
    let number = "CLIENT_ERROR cannot increment or decrement non-numeric value";
    assert_eq!(lines, ["STORED", "VALUE key 5 3", "abc", "END", "VA 3", "abc", number]);
    // Both protocols have keys of their own.
    assert_eq!(server.reply(&["GET", "key"]), "(nil)");
}

#[test]
fn a_killed_server_leaves_nothing_that_blocks_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let (resp, memcached) = (path("resp.sock"), path("memcached.sock"));
    let sockets = ["--socket", &resp, "--memcached-socket", &memcached];
    let first = KvServer::start(&sockets);
    let port = first.port("resp");
    let set = output_of(&["kv", "cli", "--socket", &resp, "SET", "key", "value"], "");
    assert_eq!(text(&set.stdout), "OK\n", "{set:?}");
    first.signal(libc::SIGKILL);
    assert!(!first.ended().success());

    let second = KvServer::with(&[&["--port", &port, "--json"], &sockets[..]].concat());
    let got = output_of(&["kv", "cli", "--socket", &resp, "GET", "key"], "");
    assert_eq!(text(&got.stdout), "(nil)\n", "{got:?}");
    assert_eq!(second.port("resp"), port);
}

#[test]
fn several_workers_serve_one_set_of_keys() {
    let server = KvServer::start(&["--workers", "4"]);
    let keys = 200;
    let sets = (0..keys).map(|key| format!("SET key:{key} {key}\n")).collect::<String>();
    assert!(server.cli(&[], &sets).status.success());
    assert_eq!(server.reply(&["DBSIZE"]), format!("(integer) {keys}"));
    let gets = (0..keys).map(|key| format!("GET key:{key}\n")).collect::<String>();
    let expected = (0..keys).map(|key| format!("{key}\n")).collect::<String>();
    assert_eq!(text(&server.cli(&["--raw"], &gets).stdout), expected);
    let names: Vec<_> = (0..keys).map(|key| format!("key:{key}")).collect();
    let all: Vec<_> = ["DEL"].into_iter().chain(names.iter().map(String::as_str)).collect();
    assert_eq!(server.reply(&all), format!("(integer) {keys}"));
    assert_eq!(server.reply(&["DBSIZE"]), "(integer) 0");
}
