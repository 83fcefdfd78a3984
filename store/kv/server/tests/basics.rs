// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests and replies of one client.

use std::io::{Read, Write};
use std::net::TcpStream;

use freeport_kv_server::{Bind, Options, Server};

fn server(workers: usize) -> Server {
    let address = "127.0.0.1:0".parse().expect("it is an address");
    let options = Options { resp: vec![Bind::Tcp(address)], workers, ..Options::default() };
    Server::start(options).expect("a free port is listened on")
}

/// Sends bytes, and reads as many as the expected reply has.
#[track_caller]
fn check(stream: &mut TcpStream, request: &str, expected: &str) {
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut reply = vec![0; expected.len()];
    stream.read_exact(&mut reply).expect("the server replies");
    assert_eq!(String::from_utf8_lossy(&reply), expected);
}

#[test]
fn requests_are_answered_in_their_order() {
    for workers in [1, 3] {
        let server = server(workers);
        let mut stream = TcpStream::connect(server.addresses()[0]).expect("it listens");
        check(&mut stream, "PING\r\n", "+PONG\r\n");
        check(
            &mut stream,
            "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\nSET b 2\r\n\
             *2\r\n$3\r\nGET\r\n$1\r\na\r\nGET b\r\n",
            "+OK\r\n+OK\r\n$1\r\n1\r\n$1\r\n2\r\n",
        );
        for key in 0..100 {
            check(&mut stream, &format!("SET {key} {key}\r\n"), "+OK\r\n");
        }
        check(&mut stream, "MULTI\r\nGET 1\r\nGET 2\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n");
        check(&mut stream, "EXEC\r\nPING\r\n", "*2\r\n$1\r\n1\r\n$1\r\n2\r\n+PONG\r\n");
    }
}

#[test]
fn a_pipeline_over_several_workers_is_answered_in_its_order() {
    let server = server(4);
    let mut stream = TcpStream::connect(server.addresses()[0]).expect("it listens");
    let (mut request, mut expected) = (String::new(), String::new());
    for number in 0..1_000 {
        request +=
            &format!("*3\r\n$3\r\nSET\r\n$4\r\nk{:03}\r\n$4\r\n{number:04}\r\n", number % 100);
        expected += "+OK\r\n";
        request += &format!("*2\r\n$3\r\nGET\r\n$4\r\nk{:03}\r\n", number % 100);
        expected += &format!("$4\r\n{number:04}\r\n");
        if number % 50 == 0 {
            request += "*1\r\n$4\r\nPING\r\nMULTI\r\nGET k000\r\nGET none\r\nEXEC\r\n";
            let last = number / 100 * 100;
            expected += "+PONG\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n";
            expected += &format!("*2\r\n$4\r\n{last:04}\r\n$-1\r\n");
        }
    }
    check(&mut stream, &request, &expected);
}
