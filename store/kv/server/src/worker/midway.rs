// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of requests that come in the middle of a turn, when other workers have replied to changes
//! since the turn began, and of requests that wait for other routes. The worker has no thread, so a
//! test decides about each of its steps.

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use freeport_kv_cluster::{NodeId, SlotSet};
use freeport_kv_commands::{Reader, Shard, ShardOptions};
use freeport_kv_protocol::batch::{
    Header, Hello, HelloReply, Operation, PacketLimits, PacketWriter, Reply, ReplyReader, Status,
};
use freeport_testbed::wait::wait_until;
use mio::{Poll, Waker};

use super::{WAKER, Worker};
use crate::channels::{Content, Kind};
use crate::cluster::testing::routes_of_replica;
use crate::cluster::{Routes, StoppedSlots, Stopper, View};
use crate::datagrams::Datagrams;
use crate::listener::{Protocol, Stream};
use crate::mail::{Mailbox, Message};
use crate::options::Options;
use crate::shared::{Pause, Shared};
use crate::tracking::Invalidated;

/// Longest time that a reply may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of another worker.
const OTHER: Reader = Reader { client: 1 << 40, worker: 1 };

/// Ways of a write to the worker of its key.
const WAYS: [Way; 3] = [Way::Resp, Way::Batch, Way::Datagram];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Resp,
    Batch,
    Datagram,
}

/// The first of two workers, and the mail of the other one.
struct Bench {
    worker: Worker,
    mail: Receiver<Message>,
    peer: Peer,
    /// A key of the worker.
    key: Vec<u8>,
}

/// A client of the worker.
enum Peer {
    Stream(UnixStream, Protocol, u64),
    Datagrams(UdpSocket, u64),
}

impl Bench {
    fn new(way: Way) -> Self {
        let mut parts = vec![];
        for _ in 0..2 {
            let poll = Poll::new().expect("the system has a poll");
            let waker = Waker::new(poll.registry(), WAKER).expect("it has a waker");
            parts.push((poll, Mailbox::new(waker)));
        }
        let (poll, mailboxes): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let (mailboxes, mail): (Vec<_>, Vec<_>) = mailboxes.into_iter().unzip();
        let options = Options { workers: 2, ..Options::default() };
        let keyspace = freeport_kv_keyspace::Options::default();
        let shard = Shard::new(ShardOptions { databases: options.databases, keyspace });
        let shared = Arc::new(Shared::new(options, mailboxes, None, None));
        let mut address: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let datagrams = Datagrams::open((0, &mut address), 1).expect("a port is free");
        let (poll, mut mail) = (poll.into_iter().next().expect("two"), mail.into_iter());
        let own_mail = mail.next().expect("two");
        let own = (0, Box::new(shard));
        let mut worker = Worker::new(own, shared, poll, own_mail, (vec![], datagrams));
        let peer = match way {
            Way::Resp => connect(&mut worker, Protocol::Resp),
            Way::Batch => connect(&mut worker, Protocol::Batch),
            Way::Datagram => greet(&mut worker, address),
        };
        let keys = (0..).map(|number: u32| format!("key{number}").into_bytes());
        let mut own_keys = keys.filter(|key| worker.core.store.shard_of(key) == 0);
        let key = own_keys.next().expect("a worker has keys");
        drop(own_keys);
        Self { worker, mail: mail.next().expect("two"), peer, key }
    }

    fn shared(&self) -> Arc<Shared> {
        self.worker.core.shared.clone()
    }

    /// Sends a write, which the worker takes up in its present turn.
    fn write(&mut self) {
        let put = [Operation::put(&self.key, b"value")];
        match &mut self.peer {
            Peer::Stream(stream, protocol, id) => {
                let bytes = match protocol {
                    Protocol::Batch => packet(&put, None),
                    _ => {
                        let key = String::from_utf8_lossy(&self.key);
                        format!("SET {key} value\r\n").into_bytes()
                    }
                };
                stream.write_all(&bytes).expect("the worker has the other end");
                let connections = &mut self.worker.core.network.connections;
                connections.get_mut(id).expect("it is connected").is_readable = true;
                self.worker.serve(*id);
            }
            Peer::Datagrams(socket, token) => {
                socket.send(&packet(&put, Some(*token))).expect("the worker has the other end");
                serve_datagrams(&mut self.worker);
            }
        }
    }

    /// Whether the write was executed.
    fn has_written(&self) -> bool {
        self.worker.core.store.shard(0).keys() == 1
    }

    /// The worker has these routes from now on.
    fn follow(&mut self, routes: Routes) {
        self.worker.core.routes = Some(Arc::new(routes));
        self.worker.core.is_watchful = true;
        self.worker.follow_routes();
    }

    /// Whether the reply to a write sends the client elsewhere.
    fn is_redirected(&mut self) -> bool {
        let Peer::Stream(stream, protocol, _) = &mut self.peer else { panic!("it has no stream") };
        let mut reply = [0; 1 << 10];
        let bytes = stream.read(&mut reply).expect("the worker has replied");
        if *protocol == Protocol::Resp {
            return reply.starts_with(b"-MOVED ");
        }
        let reply = first_reply(&reply[..bytes]);
        reply.status == Status::Moved
    }

    /// The messages for the other worker.
    fn sent(&self) -> Vec<Message> {
        self.mail.try_iter().collect()
    }
}

/// A client that has connected.
fn connect(worker: &mut Worker, protocol: Protocol) -> Peer {
    let (ours, theirs) = UnixStream::pair().expect("the system has sockets");
    theirs.set_nonblocking(true).expect("a socket");
    ours.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let stream = Stream::Unix(mio::net::UnixStream::from_std(theirs));
    let id = worker.core.take_in(stream, protocol, String::new()).expect("it is registered");
    Peer::Stream(ours, protocol, id)
}

/// A client that has said hello.
fn greet(worker: &mut Worker, address: SocketAddr) -> Peer {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    socket.connect(address).expect("the address can be reached");
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let value = Hello::default().value();
    let hello = Operation::hello(b"", &value);
    socket.send(&packet(&[hello], None)).expect("the worker has the other end");
    serve_datagrams(worker);
    let mut reply = [0; 1 << 10];
    let bytes = socket.recv(&mut reply).expect("the worker has replied");
    let reply = first_reply(&reply[..bytes]);
    let reply = HelloReply::decode(reply.value.expect("it has one")).expect("16 bytes");
    Peer::Datagrams(socket, reply.token)
}

/// The first reply of a packet.
fn first_reply(packet: &[u8]) -> Reply<'_> {
    let header = Header::parse_reply(packet, 1 << 10).expect("a packet").expect("whole");
    let payload = &packet[header.bytes()..];
    ReplyReader::new(payload, header.count).next().expect("one").expect("well formed")
}

/// A datagram was sent, and an event reports it as soon as it has come.
fn serve_datagrams(worker: &mut Worker) {
    let received = |worker: &Worker| worker.core.statistics.datagrams.received.get();
    let before = received(worker);
    wait_until("the datagram has come", || {
        worker.core.network.datagrams[0].port.is_readable = true;
        worker.serve_datagrams();
        received(worker) > before
    });
}

fn packet(operations: &[Operation<'_>], token: Option<u64>) -> Vec<u8> {
    let mut packet = vec![];
    let mut writer = PacketWriter::begin(&mut packet, PacketLimits::default(), 1, token);
    for operation in operations {
        writer.push(&mut packet, operation).expect("it fits");
    }
    writer.finish(&mut packet);
    packet
}

#[test]
fn a_write_is_told_to_a_client_that_tracks_since_the_turn_began() {
    for way in WAYS {
        let mut bench = Bench::new(way);
        bench.worker.look_around();
        bench.shared().trackers.add(OTHER, [&b"key"[..]].into_iter());
        bench.write();
        bench.worker.end_notices();
        let sent = bench.sent();
        let [Message::Deliver { delivery }] = &sent[..] else { panic!("{way:?}: {sent:?}") };
        let Content::Invalidated(notice) = &delivery.content else { panic!("{way:?}: {sent:?}") };
        let Invalidated::Keys(keys) = &*notice.invalidated else { panic!("{way:?}: {sent:?}") };
        assert_eq!((&*keys[0].0, keys.len()), (&bench.key[..], 1));
        assert_eq!(delivery.clients, [OTHER.client]);
    }
}

#[test]
fn a_write_is_shown_to_a_monitor_and_published_since_the_turn_began() {
    for way in WAYS {
        let mut bench = Bench::new(way);
        bench.worker.look_around();
        let shared = bench.shared();
        shared.set_monitor(1, OTHER.client, true);
        shared.channels.subscribe(Kind::Pattern, b"*", 1, OTHER.client);
        let changed = [(&b"notify-keyspace-events"[..], &b"EA"[..])];
        shared.configuration.set(&changed).expect("a right value");
        shared.has_changed();
        bench.write();
        let sent = bench.sent();
        let is_shown = |it: &Message| matches!(it, Message::Show { .. });
        let is_published = |it: &Message| matches!(it, Message::Deliver { .. });
        assert!(sent.iter().any(is_shown) && sent.iter().any(is_published), "{way:?}: {sent:?}");
    }
}

#[test]
fn a_write_finds_a_pause_since_the_turn_began() {
    for way in WAYS {
        let mut bench = Bench::new(way);
        bench.worker.look_around();
        let pause = Pause { end_ms: u64::MAX, is_for_all: false };
        bench.shared().set_pause(Some(pause));
        bench.write();
        assert!(!bench.has_written(), "{way:?}");
        bench.shared().set_pause(None);
        bench.worker.look_around();
        // A datagram does not wait: it is lost, and its client sends it again.
        if way == Way::Datagram {
            bench.write();
        }
        assert!(bench.has_written(), "{way:?}");
    }
}

#[test]
fn a_write_to_a_replica_waits_until_its_next_primary_leads() {
    for way in [Way::Resp, Way::Batch] {
        let mut bench = Bench::new(way);
        bench.worker.look_around();
        bench.follow(routes_of_replica(0));
        bench.write();
        assert_eq!(bench.worker.stopped.len(), 1, "{way:?}");
        bench.follow(routes_of_replica(1));
        assert!(bench.worker.stopped.is_empty(), "{way:?}");
        assert!(bench.is_redirected(), "{way:?}");
        // A node without a lease does not know when that is.
        bench.follow(routes_of_replica(0));
        bench.worker.core.is_fenced = true;
        bench.write();
        assert!(bench.is_redirected(), "{way:?}");
    }
}

#[test]
fn nothing_is_evicted_while_the_primary_is_replaced() {
    let mut bench = Bench::new(Way::Resp);
    bench.worker.look_around();
    bench.write();
    assert!(bench.has_written());
    let shared = bench.shared();
    let changed = [(&b"maxmemory"[..], &b"1"[..]), (b"maxmemory-policy", b"allkeys-lru")];
    shared.configuration.set(&changed).expect("right values");
    shared.has_changed();
    bench.worker.look_around();
    let mut stopped = StoppedSlots::default();
    *stopped.by(Stopper::HandOver) = SlotSet::all();
    bench.follow(Routes::new(Arc::new(View::empty(NodeId::random())), stopped));
    bench.worker.core.is_evicting = true;
    bench.worker.keep_time();
    assert!(bench.has_written(), "another node becomes the primary");
    bench.worker.core.routes = None;
    wait_until("it continues", || {
        bench.worker.core.is_evicting = true;
        bench.worker.keep_time();
        !bench.has_written()
    });
}
