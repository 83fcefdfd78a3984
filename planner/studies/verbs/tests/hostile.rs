// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes that are no places, or break the protocol: a place refuses them, names the reason, and
//! serves the others.

use freeport_fabric::channel::{Channel, EndsOf, Prepared};
use freeport_fabric::shm::{Options as ShmOptions, ShmEndpoint};
use freeport_fabric::{Endpoint, Key};
use freeport_ring::messages::MessageSender;
use freeport_study_verbs::fabric::{Node, Options, Refusal};
use freeport_study_verbs::{Fault, Place, Verbs, Way};
use freeport_testbed::wait::{PATIENCE, wait_until};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

/// Time after which a silent process is refused.
const SHORT: Duration = Duration::from_millis(100);
/// Capacities in bytes of the rings that places agree on.
const DATA_BYTES: usize = 1024;
const RING_BYTES: usize = 256 << 10;

/// Returns the hello of a place; kind 0 is a client and 1 the host.
fn hello(kind: u8, number: u8, memory_bytes: u64) -> Vec<u8> {
    let memory_bytes = memory_bytes.to_le_bytes();
    [b"FPPLACES".as_slice(), &[1, 0, 0, 0, kind, 0, number, 0], &memory_bytes].concat()
}

/// Returns options of an endpoint that is as patient as the tests.
fn shm_options(data_bytes: usize) -> ShmOptions {
    ShmOptions { patience: PATIENCE, ..ShmOptions::with_capacity(data_bytes) }
}

/// Returns a frame of a message.
fn frame(number: u64, length: u32, kind: u8, piece: &[u8]) -> Vec<u8> {
    [&number.to_le_bytes(), length.to_le_bytes().as_slice(), &[kind, 0, 0, 0], piece].concat()
}

/// Begins a place that waits for a handshake as long as this.
fn begin(folder: &Path, place: Place, patience: Duration) -> Node {
    let options = Options { patience, ..Options::default() };
    Node::begin_with(folder, place, 64, options).expect("a place")
}

/// Calls the host as another place does. A host that is not patient may need several calls.
fn call_from(folder: &Path, number: u16) {
    let mut node = begin(folder, Place::Client(number), PATIENCE);
    let answer: Rc<RefCell<Option<_>>> = Rc::default();
    let (here, into) = (node.verbs(), Rc::clone(&answer));
    here.clone().spawn(async move {
        let answer = loop {
            match here.call(Place::Host, vec![1]).await {
                Err(Fault::Gone(Place::Host)) => {}
                other => break other,
            }
        };
        *into.borrow_mut() = Some(answer);
    });
    node.run_until(|| answer.borrow().is_some()).expect("it runs");
    assert_eq!(answer.take(), Some(Ok(vec![1, 2])));
}

/// Runs a process that connects to the host, and returns the reason why it is refused. Then another
/// place is served.
fn refused(act: impl FnOnce(UnixStream) + Send + 'static) -> String {
    refused_within(PATIENCE, act)
}

fn refused_within(patience: Duration, act: impl FnOnce(UnixStream) + Send + 'static) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let mut node = begin(folder.path(), Place::Host, patience);
    let here = node.verbs();
    here.clone().spawn(async move {
        loop {
            let call = here.receive().await;
            // The hostile one has no answers.
            if call.from == Place::Client(2) {
                let answer = [call.message.clone(), vec![2]].concat();
                call.answer(answer);
            } else {
                std::mem::forget(call);
            }
        }
    });
    let path = folder.path().join("host.sock");
    let hostile = thread::spawn(move || act(UnixStream::connect(path).expect("it listens")));
    node.run_until(|| hostile.is_finished()).expect("it runs");
    hostile.join().expect("it ends well");
    let path = folder.path().to_owned();
    let good = thread::spawn(move || call_from(&path, 2));
    node.run_until(|| good.is_finished()).expect("it runs");
    good.join().expect("it ends well");
    // The hostile one was accepted before the good one, and each look at the sockets serves both.
    let refusals = node.refusals();
    // A host that is not patient may have refused the good one as well, and for the same reason.
    assert!(refusals.count <= 1 || patience == SHORT, "{refusals:?}");
    refusals.last.map(|refusal| refusal.to_string()).unwrap_or_default()
}

/// Sends bytes, and waits until the other side hangs up.
fn says(parts: &[Vec<u8>]) -> String {
    says_within(PATIENCE, parts)
}

fn says_within(patience: Duration, parts: &[Vec<u8>]) -> String {
    let parts = parts.to_vec();
    refused_within(patience, move |mut stream| {
        for (number, part) in parts.iter().enumerate() {
            if number > 0 {
                stream.read_exact(&mut [0; 24]).expect("its hello");
            }
            stream.write_all(part).expect("it listens");
        }
        // A reset is an end as well.
        let _ = stream.read_to_end(&mut vec![]);
    })
}

#[test]
fn processes_that_are_no_places_are_refused() {
    assert_eq!(says(&[vec![b'x'; 24]]), "the first message is not a hello of a place");
    assert_eq!(says(&[vec![b'F'; 10]]), "a hello of 10 B where 24 B were expected");
    let long = [hello(0, 1, 64), vec![0; 1000]].concat();
    assert_eq!(says(&[long]), "a hello of 25 B where 24 B were expected");
    let mut other = hello(0, 1, 64);
    other[8] = 9;
    assert!(says(&[other]).starts_with("version 9, and this is version 1: "));
    assert_eq!(says(&[hello(7, 1, 64)]), "no place has kind 7 and number 1");
    assert!(says(&[hello(0, 1, u64::MAX), vec![b'x'; 48]]).contains("not a hello of Freeport"));
    assert!(says(&[hello(0, 1, 64), vec![b'x'; 7]]).contains("7 bytes where 48 were expected"));
    assert_eq!(says_within(SHORT, &[]), "the other side was silent during the handshake");
    // A place that leaves is not refused.
    assert_eq!(refused(drop), "");
    assert_eq!(refused(|mut stream| stream.write_all(&hello(0, 1, 64)).expect("it listens")), "");
}

/// Performs the handshake as far as the offer of an endpoint.
fn offer(mut stream: &UnixStream, data_bytes: usize) -> Result<ShmEndpoint, String> {
    stream.write_all(&hello(0, 1, 64)).expect("it listens");
    stream.read_exact(&mut [0; 24]).expect("its hello");
    let stream = stream.try_clone().expect("a descriptor");
    let endpoint = ShmEndpoint::connect(stream, &shm_options(data_bytes));
    endpoint.map_err(|error| error.to_string())
}

/// Performs the whole handshake.
fn open(stream: &UnixStream, ring_bytes: usize) -> (ShmEndpoint, Channel<ShmEndpoint>, Ends) {
    let endpoint = offer(stream, DATA_BYTES).expect("an endpoint");
    Key::receive(stream).expect("the key of its memory");
    let theirs = Key::receive(stream).expect("the key of its ring");
    let (ring, key) = Prepared::new(&endpoint, ring_bytes).expect("a ring");
    key.send(stream).expect("it listens");
    let (channel, ends) = ring.open(&endpoint, theirs, 0).expect("a channel");
    (endpoint, channel, ends)
}

type Ends = EndsOf<ShmEndpoint>;

/// Sends frames after the handshake, and waits until the other side ends the connection.
fn sends(frames: Vec<Vec<u8>>) -> String {
    refused(move |stream| {
        let (endpoint, channel, (sender, _receiver)) = open(&stream, RING_BYTES);
        drop(stream);
        let mut sender = MessageSender::new(sender);
        for frame in &frames {
            let wake = sender.send(&[frame]).expect("the ring has room");
            channel.wake(wake).expect("its doorbell works");
        }
        wait_until("it is refused", || !endpoint.peer_is_alive().expect("a look"));
    })
}

#[test]
fn places_that_break_the_protocol_are_refused() {
    let large = refused(|stream| {
        offer(&stream, 1 << 20).expect_err("it is too large");
    });
    assert!(large.contains("a ring of 1048576 bytes"), "{large}");
    let small = refused(|stream| {
        let (endpoint, ..) = open(&stream, 4096);
        drop(stream);
        wait_until("it is refused", || !endpoint.peer_is_alive().expect("a look"));
    });
    assert_eq!(small, "a ring of another size");
    assert_eq!(sends(vec![vec![1; 9]]), "a frame is shorter than its first part");
    assert_eq!(sends(vec![frame(0, 2, 1, &[1])]), "a piece has a wrong length");
    assert_eq!(
        sends(vec![frame(0, u32::MAX, 1, &[1; 32 << 10])]),
        "a message is longer than the maximum of 64 MiB"
    );
    assert_eq!(sends(vec![vec![0; 40_000]]), "a frame is too long");
    assert_eq!(sends(vec![frame(0, 1, 2, &[1])]), "a place that calls sends an answer");
    let calls = (0..1025).map(|number| frame(number, 0, 1, &[])).collect();
    assert_eq!(sends(calls), "more calls than may wait for their answers");
}

#[test]
fn connections_are_limited() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut node = begin(folder.path(), Place::Host, PATIENCE);
    let path = folder.path().join("host.sock");
    let mut many = vec![];
    while node.refusals().count == 0 {
        // Fewer than the system lets wait for a process.
        many.extend((0..20).map(|_| UnixStream::connect(&path).expect("it listens")));
        let mut turns = 0..100;
        node.run_until(|| turns.next().is_none()).expect("it runs");
    }
    assert_eq!(node.refusals().last, Some(Refusal::Connections(256)));
    assert!(many.len() > 256);
}

/// Operations on a process that says it is the host fail with this fault.
fn fails(patience: Duration, act: impl FnOnce(UnixStream) + Send + 'static) -> Fault {
    let folder = tempfile::tempdir().expect("a folder");
    let mut node = begin(folder.path(), Place::Client(1), patience);
    let listener = UnixListener::bind(folder.path().join("host.sock")).expect("a socket");
    let hostile = thread::spawn(move || act(listener.accept().expect("a client").0));
    let fault: Rc<RefCell<Option<Fault>>> = Rc::default();
    let (here, into) = (node.verbs(), Rc::clone(&fault));
    here.clone().spawn(async move {
        let read = here.read(Place::Host.at(0), 8, Way::Nic).await;
        *into.borrow_mut() = read.err();
    });
    node.run_until(|| fault.borrow().is_some()).expect("it runs");
    drop(node);
    hostile.join().expect("it ends well");
    fault.take().expect("a fault")
}

/// Answers with bytes, and waits until the other side hangs up.
fn answers(patience: Duration, bytes: Vec<u8>) -> String {
    let fault = fails(patience, move |mut stream| {
        stream.read_exact(&mut [0; 24]).expect("its hello");
        stream.write_all(&bytes).expect("it listens");
        // A reset is an end as well.
        let _ = stream.read_to_end(&mut vec![]);
    });
    fault.to_string()
}

#[test]
fn processes_that_answer_for_a_place_are_not_believed() {
    let gone = Fault::Gone(Place::Host);
    let garbage = answers(PATIENCE, vec![b'x'; 24]);
    assert_eq!(garbage, "host: the first message is not a hello of a place");
    let other = "host: client-3 answers where host was asked: remove its socket file";
    assert_eq!(answers(PATIENCE, hello(0, 3, 64)), other);
    // Silence before and after the hello, and a process that hangs up.
    assert_eq!(answers(SHORT, vec![]), gone.to_string());
    assert_eq!(answers(SHORT, hello(1, 0, 64)), gone.to_string());
    assert_eq!(fails(PATIENCE, drop), gone);
    let size = |memory_bytes| {
        fails(PATIENCE, move |mut stream| {
            stream.read_exact(&mut [0; 24]).expect("its hello");
            stream.write_all(&hello(1, 0, memory_bytes)).expect("it listens");
            let options = shm_options(DATA_BYTES);
            let socket = stream.try_clone().expect("a descriptor");
            let endpoint = ShmEndpoint::accept(socket, &options).expect("an offer");
            let memory = endpoint.register(4096).expect("memory");
            endpoint.export(&memory).expect("a key").send(&stream).expect("it listens");
            drop(stream);
            wait_until("it is refused", || !endpoint.peer_is_alive().expect("a look"));
        })
    };
    for memory_bytes in [8192, 0, u64::MAX] {
        let reason = format!("memory of 4096 B where the hello says {memory_bytes} B");
        assert_eq!(size(memory_bytes), Fault::Broken { place: Place::Host, reason });
    }
}
