// SPDX-License-Identifier: Apache-2.0 OR MIT
//! memcached: threads with an epoll instance each, and a listener that passes connections to them.

use crate::harness::{Mode, Node, content, find, free_port, is_long, wait_until};
use crate::roles;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread;

/// Number of clients, each in its own thread.
const CLIENTS: usize = 50;

#[test]
fn fifty_clients_get_what_they_put_from_one_thread_and_from_four() {
    for threads in ["1", "4"] {
        let (node, _monitor) = Node::new();
        let port = free_port();
        let memcached = find("memcached").expect("memcached is installed: scripts/install.sh");
        let mut command = node.command(Mode::Accelerated, &memcached);
        command.args(["-l", "127.0.0.1", "-U", "0", "-t", threads, "-I", "2m"]);
        // It refuses to run as root.
        command.args(["-u", "root", "-p", &port.to_string()]);
        let mut server = node.serve("memcached", command, port);
        node.role(Mode::Accelerated, "memcached client", &port.to_string()).finish();
        node.assert_moved(CLIENTS as u64, 10 << 20);
        server.signal(libc::SIGTERM);
        server.wait();
    }
}

/// Role: many concurrent connections that check each answer.
pub fn client(port: &str) {
    let port: u16 = port.parse().expect("a port");
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            scope.spawn(move || {
                let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
                put_and_get(stream.expect("it can be connected"), number as u64);
            });
        }
    });
}

/// Role: the same over a Unix socket.
pub fn unix_client(path: &str) {
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            scope.spawn(move || {
                let stream = UnixStream::connect(path).expect("it can be connected");
                put_and_get(stream, number as u64);
            });
        }
    });
}

fn put_and_get(stream: impl Read + Write + AsRawFd, number: u64) {
    let mut reader = BufReader::new(stream);
    let sizes = [1, 2, 100, 4000, 9000, 65_536, 300_000];
    for round in 0..if is_long() { 100 } else { 2 } {
        for (at, size) in sizes.into_iter().enumerate() {
            let value = content(number + round, size);
            let key = format!("{number}-{at}");
            put(&mut reader, &key, &value);
            assert!(get(&mut reader, &key).as_ref() == Some(&value), "{size} bytes have changed");
        }
        assert_eq!(get(&mut reader, &format!("{number}-none")), None);
    }
    wait_until("it leaves the kernel", || {
        get(&mut reader, "none");
        roles::is_accelerated(reader.get_ref())
    });
    // Many requests in one write.
    let keys: Vec<_> = (0..200).map(|at| format!("{number}-many-{at}")).collect();
    for key in &keys {
        put(&mut reader, key, key.as_bytes());
    }
    let questions: String = keys.iter().map(|key| format!("get {key}\r\n")).collect();
    reader.get_mut().write_all(questions.as_bytes()).expect("it can be sent");
    for key in &keys {
        assert_eq!(value(&mut reader).as_deref(), Some(key.as_bytes()));
    }
}

fn put(reader: &mut BufReader<impl Read + Write>, key: &str, value: &[u8]) {
    let head = format!("set {key} 0 0 {}\r\n", value.len());
    let all = [head.as_bytes(), value, b"\r\n"].concat();
    reader.get_mut().write_all(&all).expect("it can be sent");
    assert_eq!(line(reader), "STORED");
}

fn get(reader: &mut BufReader<impl Read + Write>, key: &str) -> Option<Vec<u8>> {
    let question = format!("get {key}\r\n");
    reader.get_mut().write_all(question.as_bytes()).expect("it can be sent");
    value(reader)
}

fn value(reader: &mut BufReader<impl Read>) -> Option<Vec<u8>> {
    let head = line(reader);
    if head == "END" {
        return None;
    }
    let length = head.rsplit(' ').next().and_then(|word| word.parse().ok());
    let length: usize = length.unwrap_or_else(|| panic!("{head}"));
    let mut value = vec![0; length + 2];
    reader.read_exact(&mut value).expect("the value comes");
    assert_eq!(value.split_off(length), b"\r\n");
    assert_eq!(line(reader), "END");
    Some(value)
}

fn line(reader: &mut BufReader<impl Read>) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("it is answered");
    line.trim_end().to_owned()
}
