// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places that are too slow for others: nothing waits for them in a system call, and nothing grows
//! without a limit.

use freeport_study_verbs::fabric::{Node, Options};
use freeport_study_verbs::{Fault, Place, Verbs, Way};
use freeport_testbed::wait::PATIENCE;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

type Answer = Result<Vec<u8>, Fault>;

fn begin(folder: &Path, place: Place, patience: Duration) -> Node {
    let options = Options { patience, ..Options::default() };
    Node::begin_with(folder, place, 64, options).expect("a place")
}

/// Lets a place run for a few turns, too few to sleep.
fn run(node: &mut Node) {
    let mut turns = 0..10;
    node.run_until(|| turns.next().is_none()).expect("it runs");
}

fn socket(flags: SocketFlags) -> OwnedFd {
    let flags = flags | SocketFlags::CLOEXEC;
    net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("a socket")
}

/// Listens as the host, with as many connections as may wait there.
fn full_host(folder: &Path) -> (UnixListener, Vec<OwnedFd>) {
    let address = SocketAddrUnix::new(folder.join("host.sock")).expect("a short name");
    let listener = socket(SocketFlags::empty());
    net::bind(&listener, &address).expect("a new file");
    net::listen(&listener, 0).expect("it listens");
    let mut waiting = vec![];
    loop {
        let stream = socket(SocketFlags::NONBLOCK);
        match net::connect(&stream, &address) {
            Ok(()) => waiting.push(stream),
            Err(error) => {
                assert_eq!(error, Errno::AGAIN);
                return (listener.into(), waiting);
            }
        }
    }
}

/// Begins to read from the host.
fn read_host(node: &Node) -> Rc<RefCell<Option<Fault>>> {
    let fault: Rc<RefCell<Option<Fault>>> = Rc::default();
    let (here, into) = (node.verbs(), Rc::clone(&fault));
    node.verbs().spawn(async move {
        *into.borrow_mut() = here.read(Place::Host.at(0), 8, Way::Nic).await.err();
    });
    fault
}

#[test]
fn a_place_that_does_not_accept_is_gone_after_the_patience() {
    let folder = tempfile::tempdir().expect("a folder");
    let _host = full_host(folder.path());
    let mut node = begin(folder.path(), Place::Client(1), Duration::from_millis(50));
    let fault = read_host(&node);
    node.run_until(|| fault.borrow().is_some()).expect("it runs");
    assert_eq!(fault.take(), Some(Fault::Gone(Place::Host)));
}

#[test]
fn a_place_that_accepts_later_is_reached() {
    let folder = tempfile::tempdir().expect("a folder");
    let (listener, waiting) = full_host(folder.path());
    let mut node = begin(folder.path(), Place::Client(1), PATIENCE);
    let fault = read_host(&node);
    run(&mut node);
    assert_eq!(*fault.borrow(), None, "it tries again");
    let host = thread::spawn(move || {
        waiting.iter().for_each(|_| drop(listener.accept().expect("one that waits")));
        let mut stream = listener.accept().expect("the client").0;
        stream.read_exact(&mut [0; 24]).expect("its hello");
        stream.write_all(&[b'x'; 24]).expect("it listens");
        // A reset is an end as well.
        let _ = stream.read_to_end(&mut vec![]);
    });
    node.run_until(|| fault.borrow().is_some()).expect("it runs");
    let fault = fault.take().expect("the answer is no hello");
    assert_eq!(fault.to_string(), "host: the first message is not a hello of a place");
    drop(node);
    host.join().expect("it ends well");
}

/// The caller does not run while the host answers, so the first answer cannot leave.
#[test]
fn answers_that_cannot_leave_are_limited() {
    const LONG_BYTES: usize = 40 << 20;
    let folder = tempfile::tempdir().expect("a folder");
    let mut host = begin(folder.path(), Place::Host, PATIENCE);
    let mut client = begin(folder.path(), Place::Client(0), PATIENCE);
    let server = host.verbs();
    host.verbs().spawn(async move {
        let mut calls = vec![];
        for _ in 0..3 {
            calls.push(server.receive().await);
        }
        calls.into_iter().for_each(|call| call.answer(vec![1; LONG_BYTES]));
        server.receive().await.answer(vec![2]);
    });
    let answers: Rc<RefCell<Vec<Answer>>> = Rc::default();
    let call = |node: &Node| {
        let (here, into) = (node.verbs(), Rc::clone(&answers));
        node.verbs().spawn(async move {
            let answer = here.call(Place::Host, vec![]).await;
            into.borrow_mut().push(answer);
        });
    };
    let mut wait_for = |client: &mut Node, count: usize| {
        while answers.borrow().len() < count {
            run(client);
            run(&mut host);
        }
    };
    (0..3).for_each(|_| call(&client));
    wait_for(&mut client, 3);
    let reason = "the answer has no room behind others of 67108864 B together: make fewer calls at \
                  the same time";
    let refused = Err(Fault::Broken { place: Place::Host, reason: reason.to_owned() });
    let mut first = answers.take();
    assert_eq!(first.remove(0).map(|answer| answer.len()), Ok(LONG_BYTES));
    assert_eq!(first, [refused.clone(), refused]);
    call(&client);
    wait_for(&mut client, 1);
    assert_eq!(answers.take(), [Ok(vec![2])]);
}

#[test]
fn times_may_be_endless() {
    let folder = tempfile::tempdir().expect("a folder");
    let (patience, longest_sleep) = (Duration::MAX, Duration::MAX);
    let options = Options { patience, longest_sleep, ..Options::default() };
    let place = Place::Client(0);
    let mut node = Node::begin_with(folder.path(), place, 64, options).expect("a place");
    let here = node.verbs();
    node.verbs().spawn(async move { here.sleep(Duration::MAX).await });
    let (here, ended) = (node.verbs(), Rc::new(RefCell::new(None)));
    let into = Rc::clone(&ended);
    node.verbs().spawn(async move {
        *into.borrow_mut() = Some(here.read(Place::Client(0).at(0), 8, Way::Nic).await);
    });
    node.run_until(|| ended.borrow().is_some()).expect("it runs");
    assert_eq!(ended.take(), Some(Ok(vec![0; 8])));
    // Its operations may outlive it: tasks are not run any more.
    let here = node.verbs();
    drop(node);
    here.spawn(async { panic!("the place is gone") });
}
