// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs with low limits, and monitors that do not respond: programs work as without
//! acceleration.

use crate::harness::{Mode, Node, wait_until};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread;

/// Number of round trips: an end is claimed at the 8th operation.
const ROUNDS: usize = 50;

/// Serves one connection in this process, without the library, until its end.
fn serve_one() -> (u16, thread::JoinHandle<usize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("it has one").port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody connects");
        let (mut buffer, mut bytes) = ([0; 64], 0);
        loop {
            match stream.read(&mut buffer).expect("no reset") {
                0 => return bytes,
                count => {
                    stream.write_all(&buffer[..count]).expect("it is there");
                    bytes += count;
                }
            }
        }
    });
    (port, server)
}

/// Role: a client that talks to a port, and then acts as the argument says.
pub fn visit(argument: &str) {
    let (how, rest) = argument.split_once(' ').expect("how");
    let (port, file) = rest.split_once(' ').expect("where");
    let port: u16 = port.parse().expect("a port");
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a server");
    if how == "few" {
        let most = (stream.as_raw_fd() + 2) as libc::rlim_t;
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: the limit lives as long as the call, which reads it.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    }
    for _ in 0..ROUNDS {
        let mut answer = [0; 4];
        stream.write_all(b"ping").expect("it is there");
        stream.read_exact(&mut answer).expect("it answers");
    }
    match how {
        "few" => drop(File::open("/dev/null").expect("one more descriptor")),
        "close" => {
            drop(stream);
            wait_until("the end was seen", || Path::new(file).exists());
        }
        // The process ends with it.
        _ => std::mem::forget(stream),
    }
}

#[test]
fn connections_end_although_the_monitor_is_stopped() {
    let (node, monitor) = Node::new();
    let file = node.path().join("seen");
    monitor.signal(libc::SIGSTOP);
    for how in ["close", "exit"] {
        let (port, server) = serve_one();
        let argument = format!("{how} {port} {}", file.display());
        let client = node.role(Mode::Accelerated, "visitor", &argument);
        wait_until("the end comes", || server.is_finished());
        assert_eq!(server.join().expect("it was served"), 4 * ROUNDS);
        File::create(&file).expect("it can be made");
        client.finish();
    }
    monitor.signal(libc::SIGCONT);
}

#[test]
fn the_last_descriptor_is_the_programs() {
    let (node, _monitor) = Node::new();
    let (port, server) = serve_one();
    node.role(Mode::Accelerated, "visitor", &format!("few {port} -")).finish();
    assert_eq!(server.join().expect("it was served"), 4 * ROUNDS);
}
