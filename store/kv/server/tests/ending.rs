// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server ends when it is told to, whatever its clients are doing; and Unix sockets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use freeport_kv_server::{Bind, Options, Server};
use freeport_testbed::wait_until;

use crate::client::{Client, request, server};

/// Returns when all threads have ended.
fn stop(server: Server) {
    server.stopper().stop();
    server.join().expect("no worker fails");
}

#[test]
fn a_busy_server_ends() {
    for workers in [1, 4] {
        let server = server(workers);
        let mut waiting = Client::new(&server);
        waiting.send("BLPOP a b c d 0");
        wait_until("it waits", || server.census().blocked == 1);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let mut stream = TcpStream::connect(server.addresses()[0]).expect("it listens");
                scope.spawn(move || {
                    let words = [
                        format!("MSET a{number} 1 b{number} 2 c{number} 3 d{number} 4"),
                        format!("GET a{number}"),
                        "EVAL return{redis.call('GET','a1'),redis.call('GET','b1')} 0".into(),
                    ];
                    let requests: Vec<u8> = words
                        .iter()
                        .flat_map(|line| {
                            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
                            request(&words)
                        })
                        .collect();
                    // Until the server has gone.
                    while stream.write_all(&requests).is_ok()
                        && stream.read(&mut [0; 4096]).is_ok_and(|bytes| bytes > 0)
                    {
                    }
                });
            }
            let mut client = Client::new(&server);
            (0..20).for_each(|_| assert_eq!(client.call("MSET a 1 b 2 c 3 d 4"), "OK"));
            stop(server);
        });
    }
}

/// A script that never ends is stopped. It has written, so a client could not stop it.
#[test]
fn a_server_ends_in_the_midst_of_a_script() {
    for workers in [1, 2] {
        let server = server(workers);
        let (mut client, mut listener) = (Client::new(&server), Client::new(&server));
        listener.call("SUBSCRIBE news");
        let script = b"redis.call('SET','a',1) redis.call('PUBLISH','news','x') while true do end";
        client.send_arguments(&[b"EVAL", script, b"0"]);
        if workers == 2 {
            // The script runs in one worker, and the listener is the other's.
            assert_eq!(listener.text(), "1) \"message\" 2) \"news\" 3) \"x\"");
        }
        stop(server);
    }
}

#[test]
fn a_unix_socket_is_served_and_removed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("socket");
    let options =
        || Options { resp: vec![Bind::Unix(path.clone())], workers: 2, ..Options::default() };
    let server = Server::start(options()).expect("the path is free");
    assert!(Server::start(options()).is_err(), "somebody listens there");
    let mut streams: Vec<UnixStream> =
        (0..4).map(|_| UnixStream::connect(&path).expect("it listens")).collect();
    for (number, stream) in streams.iter_mut().enumerate() {
        stream
            .write_all(format!("SET key{number} 1\r\nGET key0\r\n").as_bytes())
            .expect("it reads");
        let mut replies = [0; 12];
        stream.read_exact(&mut replies).expect("it replies");
        assert_eq!(&replies, b"+OK\r\n$1\r\n1\r\n");
    }
    streams.truncate(1);
    wait_until("the others have gone", || server.census().connections == 1);
    stop(server);
    assert!(!path.exists(), "the socket is removed");
    // One that a server left which was killed is replaced.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("the path is free"));
    assert!(path.exists());
    stop(Server::start(options()).expect("nobody listens there"));
}

/// The listeners' worker executes a script meanwhile, and sees no message.
#[test]
fn messages_for_a_worker_that_is_busy_have_a_limit() {
    const MESSAGE_BYTES: usize = 1 << 20;
    let server = server(1);
    let mut listener = Client::new(&server);
    let mut client = Client::new(&server);
    assert_eq!(listener.call("SUBSCRIBE news"), "1) \"subscribe\" 2) \"news\" 3) (integer) 1");
    let script = "local text = string.rep('x', ARGV[1])
        for at = 1, 200 do redis.call('PUBLISH', 'news', text) end
        return 'done'";
    let bytes = MESSAGE_BYTES.to_string();
    client.send_arguments(&[b"EVAL", script.as_bytes(), b"0", bytes.as_bytes()]);
    assert_eq!(client.text(), "\"done\"");
    wait_until("the listener is disconnected, and its messages are gone", || {
        let census = server.census();
        census.connections == 1 && census.message_bytes == 0
    });
    let census = server.census();
    assert!((100..200).contains(&census.lost_messages), "{census:?}");
    assert_eq!(client.call("PUBSUB NUMSUB news"), "1) \"news\" 2) (integer) 0");
}
