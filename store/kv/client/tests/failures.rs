// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers that vanish, say nothing, refuse, or answer nonsense.

use super::model::Model;
use super::server::{self, Answer, Server, patient, truthful};
use fastrand::Rng;
use freeport_kv_client::{Address, Batch, Client, Error, Options};
use freeport_kv_protocol::batch::{Header, ReplyLimits, ReplyWriter, Status, write_error};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// Servers over both kinds of streams that answer the packets after hello, of all connections
/// together, by `answer`; its number begins with 0. `None` closes the connection.
fn servers(
    answer: impl Fn(usize, &Header, Vec<u8>) -> Option<Vec<u8>> + Clone + Send + Sync + 'static,
) -> [Server; 2] {
    let with = || -> Answer {
        let (model, packets, answer) = (Model::new(1), AtomicUsize::new(0), answer.clone());
        Arc::new(move |header, payload, worker| {
            let reply = model.execute(header, payload, worker);
            let is_hello = payload.first().is_some_and(|first| first & 15 == 14);
            if is_hello {
                return Some(reply);
            }
            answer(packets.fetch_add(1, Ordering::Relaxed), header, reply)
        })
    };
    [server::tcp(with()), server::fabric(with())]
}

/// Makes a wrong reply of the right one to a batch.
type Wrong = Arc<dyn Fn(u32, Vec<u8>) -> Vec<u8> + Send + Sync>;

fn connect(server: &Server, options: Options) -> Client {
    Client::connect_to(server.address.clone(), options).expect("it listens")
}

#[test]
fn a_lost_connection_is_an_error_and_the_next_call_connects_again() {
    for server in servers(|packet, _, reply| (packet != 1).then_some(reply)) {
        let mut client = connect(&server, patient());
        client.put(b"key", b"value").expect("the first packet is answered");
        let error = client.put(b"key", b"other").expect_err("the second one is not");
        assert!(matches!(error, Error::Lost { .. }), "{error:?}");
        assert!(error.may_have_executed() && error.to_string().contains("may have executed"));
        assert_eq!(client.connections(), 0);
        assert_eq!(client.get(b"key").expect("connected again"), Some(b"other".to_vec()));
        assert_eq!(client.connections(), 1);
    }
}

#[test]
fn a_silent_server_is_an_error() {
    for server in servers(|packet, _, reply| Some(if packet == 0 { vec![] } else { reply })) {
        let timeout = Duration::from_millis(50);
        let options = Options { timeout, ..patient() };
        let mut client = server::connect_at_last(&server, &options);
        let error = client.put(b"key", b"value").expect_err("there is no reply");
        assert!(matches!(error, Error::TimedOut { after, .. } if after == timeout), "{error:?}");
        assert!(error.may_have_executed());
    }
}

#[test]
fn what_is_no_reply_is_an_error() {
    let other = |batch: u32, first: u16, replies: u16| {
        let mut packet = Vec::new();
        let mut writer = ReplyWriter::begin(&mut packet, batch, first, ReplyLimits::default());
        (0..replies).for_each(|_| writer.done(&mut packet));
        writer.finish(&mut packet);
        packet
    };
    let answers: [(&str, Wrong); 8] = [
        ("another protocol", Arc::new(|_, _| b"-ERR unknown command\r\n".to_vec())),
        (
            "a request",
            Arc::new(|_, mut reply| {
                reply[3] = 0;
                reply
            }),
        ),
        ("another batch", Arc::new(move |batch, _| other(batch + 1, 0, 2))),
        ("another first", Arc::new(move |batch, _| other(batch, 1, 2))),
        ("too few", Arc::new(move |batch, _| other(batch, 0, 1))),
        ("too many", Arc::new(move |batch, _| other(batch, 0, 3))),
        ("twice", Arc::new(|_, reply| [&reply[..], &reply[..]].concat())),
        (
            "bad status",
            Arc::new(|_, mut reply| {
                *reply.last_mut().expect("it has replies") = 15;
                reply
            }),
        ),
    ];
    for (name, answer) in answers {
        let wrong = move |packet: usize, header: &Header, reply: Vec<u8>| {
            Some(if packet == 0 { answer(header.batch, reply) } else { reply })
        };
        for server in servers(wrong) {
            let mut client = connect(&server, patient());
            let mut batch = Batch::new();
            batch.put(b"key", b"value").put(b"other", b"value");
            // A second reply may come after its client has returned.
            let result = client.run(&batch).and_then(|_| client.run(&batch));
            let error = result.expect_err(name);
            assert!(matches!(error, Error::Protocol { .. }), "{name}: {error:?}");
            assert!(error.may_have_executed(), "{name}");
            assert_eq!(client.get(b"key").expect(name), Some(b"value".to_vec()), "{name}");
        }
    }
}

#[test]
fn the_error_of_a_whole_packet_fails_the_batch() {
    let refuse = |packet: usize, header: &Header, reply: Vec<u8>| {
        let mut error = Vec::new();
        write_error(&mut error, header.batch, "the data are still being read");
        Some(if packet == 0 { error } else { reply })
    };
    for server in servers(refuse) {
        let mut client = connect(&server, patient());
        let error = client.put(b"key", b"value").expect_err("it is refused");
        assert!(matches!(error, Error::Packet { .. }), "{error:?}");
        assert!(error.to_string().contains("the data are still being read"), "{error}");
        client.put(b"key", b"value").expect("later it is not");
    }
}

#[test]
fn a_login_that_is_refused_says_why() {
    let model = Model::new(1);
    let servers = [
        server::tcp(truthful(&model)),
        server::udp(move |header, payload, worker| vec![model.execute(header, payload, worker)]),
    ];
    for server in servers {
        let options = Options { user: "ann".into(), password: "wrong".into(), ..patient() };
        assert!(!format!("{options:?}").contains("wrong"));
        let error = Client::connect_to(server.address, options).expect_err("it is refused");
        let text = error.to_string();
        assert!(matches!(error, Error::Login { .. }), "{text}");
        assert!(text.contains("`ann`: wrong user or password"), "{text}");
    }
}

#[test]
fn a_server_that_is_not_there_is_an_error_of_the_connection() {
    // The port is taken, and nobody listens.
    let bound = std::net::UdpSocket::bind(("127.0.0.1", 0)).expect("the system chooses a port");
    let silent = bound.local_addr().expect("it is bound");
    let options = Options { timeout: Duration::from_millis(50), ..patient() };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let missing = Address::Fabric(folder.path().join("socket"));
    for address in [missing, Address::Udp(silent.to_string()), Address::Tcp("127.0.0.1:1".into())] {
        let error = Client::connect_to(address, options.clone()).expect_err("there is no server");
        assert!(matches!(error, Error::Connect { .. }), "{error:?}");
        assert!(!error.may_have_executed());
    }
    for text in ["127.0.0.1:1", "tcp:127.0.0.1:1", "fabric:", "udp://host"] {
        let error = Client::connect(text, options.clone()).expect_err("it is no address");
        assert!(error.to_string().contains("tcp://HOST:PORT"), "{error}");
    }
}

/// A server whose first packet of replies is long: a client that does not stop at its packet would
/// read over the end.
#[test]
fn a_text_of_an_error_reaches_the_program() {
    let fail = |_: usize, header: &Header, _: Vec<u8>| {
        let mut packet = Vec::new();
        let limits = ReplyLimits::default();
        let mut writer = ReplyWriter::begin(&mut packet, header.batch, 0, limits);
        writer.error(&mut packet, Status::OutOfMemory, &"no memory ".repeat(10_000));
        writer.status(&mut packet, Status::Failed);
        writer.finish(&mut packet);
        Some(packet)
    };
    for server in servers(fail) {
        let mut client = connect(&server, patient());
        let mut batch = Batch::new();
        batch.put(b"key", b"value").get(b"key");
        let replies = client.run(&batch).expect("the server answers");
        let error = replies.get(0).expect_err("there is no memory");
        assert_eq!((error.status, error.text.len()), (Status::OutOfMemory, 100_000));
        let error = replies.was_found(1).expect_err("it failed");
        assert!(error.text.contains("no reason"), "{error}");
    }
}

/// A client can be passed to another thread.
#[test]
fn a_client_moves_between_threads() {
    for server in servers(|_, _, reply| Some(reply)) {
        let mut client = connect(&server, patient());
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            client.put(b"key", b"value").expect("the server answers");
            sender.send(client).expect("the test waits");
        });
        let mut client = receiver.recv().expect("the thread sends it");
        assert_eq!(client.get(b"key").expect("no error"), Some(b"value".to_vec()));
    }
}

/// Changes some bytes of a reply, or its length.
fn changed(rng: &mut Rng, mut reply: Vec<u8>) -> Vec<u8> {
    for _ in 0..rng.usize(..4) {
        let at = rng.usize(..reply.len());
        reply[at] = if rng.bool() { rng.u8(..) } else { reply[at] ^ 1 << rng.u8(..8) };
    }
    match rng.u8(..4) {
        0 => reply.truncate(rng.usize(..reply.len())),
        1 => reply.extend([0; 40]),
        _ => {}
    }
    reply
}

/// Every reply gives a result, or an error.
#[test]
fn no_reply_makes_a_client_panic() {
    let (model, rng) = (Model::new(1), Mutex::new(Rng::with_seed(1)));
    let lie = move |header: &Header, payload: &[u8], worker: &mut u16| {
        let reply = model.execute(header, payload, worker);
        changed(&mut rng.lock().expect("no thread panics"), reply)
    };
    let lie = Arc::new(lie);
    let (first, second) = (lie.clone(), lie.clone());
    let truth = Model::new(1);
    let datagrams = truth.clone();
    // A client that waits for the rest of a reply finds the connection closed.
    let lies: Answer =
        Arc::new(move |header, payload, worker| Some(first(header, payload, worker)));
    let lies_later: Answer = Arc::new(move |header, payload, worker| {
        let is_hello = payload.first().is_some_and(|first| first & 15 == 14);
        Some(match is_hello {
            true => truth.execute(header, payload, worker),
            false => second(header, payload, worker),
        })
    });
    let servers = [
        server::tcp_for(lies, 1),
        server::tcp_for(lies_later, 2),
        server::udp(move |header, payload, worker| {
            vec![lie(header, payload, worker), datagrams.execute(header, payload, worker)]
        }),
    ];
    let mut batch = Batch::new();
    batch.put(b"key", b"value").get(b"key").get(b"missing").get(b"key");
    batch.update(b"key", 3, &[1_u32]).delete(b"key");
    let options = Options { connections: 1, ..patient() };
    for server in &servers[..2] {
        let mut results = [0, 0];
        for _ in 0..500 {
            let client = Client::connect_to(server.address.clone(), options.clone());
            let result = client.and_then(|mut client| client.run(&batch));
            results[usize::from(result.is_ok())] += 1;
        }
        assert!(results[0] > 100, "{results:?}");
    }
    // A reply that is accepted in part may leave the rest without any.
    let timeout = Duration::from_millis(50);
    for _ in 0..200 {
        let options = Options { timeout, ..options.clone() };
        let client = Client::connect_to(servers[2].address.clone(), options);
        _ = client.and_then(|mut client| client.run(&batch));
    }
}
