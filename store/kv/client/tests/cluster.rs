// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Batches to nodes that have some of the slots each. All nodes of a test have the same keys, so
//! that slots can be given to another node at any moment.

use super::known::Known;
use super::model::Model;
use super::server::{self, Answer, patient};
use fastrand::Rng;
use freeport_kv_client::{Address, Batch, ClusterClient, Error, Opcode, Options, Status};
use freeport_kv_protocol::batch::{Header, Operation, Operations, ReplyLimits, ReplyWriter};
use freeport_kv_protocol::slots::{SLOTS, slot_of};
use freeport_testbed::wait::PATIENCE;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Patience that ends in a test, after some questions also on a machine that is busy.
const SHORT: Duration = Duration::from_secs(2);

/// The nodes' knowledge of each other.
struct Map {
    /// The number of the node that serves each slot; `None` if none does at the moment.
    owners: Vec<Option<usize>>,
    addresses: Vec<String>,
    /// Nodes that close every connection.
    dead: Vec<bool>,
    /// The refusal of nodes that execute nothing, though they may have slots.
    refusals: Vec<Option<&'static str>>,
    /// After each packet, some slots change their node.
    restless: Option<Rng>,
}

impl Map {
    fn after_packet(&mut self) {
        let nodes = self.dead.len();
        if let Some(rng) = &mut self.restless {
            let from = rng.usize(..self.owners.len() - 300);
            self.owners[from..from + 300].fill(Some(rng.usize(..nodes)));
        }
    }
}

struct Cluster {
    map: Arc<Mutex<Map>>,
    model: Model,
    /// Operations that a node did not execute.
    elsewhere: Arc<AtomicUsize>,
}

impl Cluster {
    /// Nodes with equal ranges of slots.
    fn start(nodes: usize) -> Self {
        let owner = |slot| Some(slot * nodes / usize::from(SLOTS));
        let map = Map {
            owners: (0..usize::from(SLOTS)).map(owner).collect(),
            addresses: vec![],
            dead: vec![false; nodes],
            refusals: vec![None; nodes],
            restless: None,
        };
        let (map, model) = (Arc::new(Mutex::new(map)), Model::new(1));
        let cluster = Self { map, model, elsewhere: Arc::default() };
        for number in 0..nodes {
            let node = server::tcp(cluster.answer(number));
            let Address::Tcp(host) = node.address else { panic!("it listens over TCP") };
            cluster.change(|map| map.addresses.push(host));
        }
        cluster
    }

    fn change(&self, change: impl FnOnce(&mut Map)) {
        change(&mut self.map.lock().expect("no thread panics"));
    }

    fn answer(&self, node: usize) -> Answer {
        let (map, model, elsewhere) =
            (self.map.clone(), self.model.clone(), self.elsewhere.clone());
        Arc::new(move |header, payload, worker| {
            // Held for the packet, as a node executes a packet by one map.
            let mut map = map.lock().expect("no thread panics");
            if map.dead[node] {
                return None;
            }
            let packet = reply(header, payload, |operation| match place(&map, node, operation) {
                None => model.operation(operation, worker),
                Some(other) => {
                    elsewhere.fetch_add(1, Ordering::Relaxed);
                    other
                }
            });
            map.after_packet();
            Some(packet)
        })
    }

    fn seeds(&self) -> Vec<String> {
        let map = self.map.lock().expect("no thread panics");
        map.addresses.iter().map(|host| format!("tcp://{host}")).collect()
    }

    fn client(&self, options: Options) -> ClusterClient {
        ClusterClient::connect(&self.seeds()[..1], options).expect("the first node listens")
    }

    fn elsewhere(&self) -> usize {
        self.elsewhere.load(Ordering::Relaxed)
    }
}

/// The reply of a node that does not serve the operation's key.
fn place(map: &Map, node: usize, operation: &Operation<'_>) -> Option<(Status, Option<Vec<u8>>)> {
    if matches!(operation.opcode, Opcode::Hello | Opcode::Functions) {
        return None;
    }
    if let Some(text) = map.refusals[node] {
        return Some((Status::Unavailable, Some(text.into())));
    }
    let slot = slot_of(operation.key);
    match map.owners[usize::from(slot)] {
        Some(owner) if owner == node => None,
        Some(owner) => {
            let text = format!("{slot} {}", map.addresses[owner]);
            Some((Status::Moved, Some(text.into_bytes())))
        }
        None => {
            let text = b"CLUSTERDOWN Hash slot not served".to_vec();
            Some((Status::Unavailable, Some(text)))
        }
    }
}

fn reply(
    header: &Header,
    payload: &[u8],
    mut execute: impl FnMut(&Operation<'_>) -> (Status, Option<Vec<u8>>),
) -> Vec<u8> {
    let mut operations = Operations::default();
    operations.decode(payload, header.count).expect("the client writes packets as it should");
    let mut packet = Vec::new();
    let mut writer = ReplyWriter::begin(&mut packet, header.batch, 0, ReplyLimits::default());
    for operation in operations.iter(payload) {
        match execute(&operation) {
            (status, Some(value)) => writer.status_with(&mut packet, status, &value),
            (status, None) => writer.status(&mut packet, status),
        }
    }
    writer.finish(&mut packet);
    packet
}

/// Keys of one slot by their tag.
fn key(tag: usize, number: usize) -> Vec<u8> {
    format!("{{{tag}}}:{number}").into_bytes()
}

#[test]
fn a_batch_is_divided_among_the_nodes_of_its_keys() {
    let cluster = Cluster::start(3);
    let mut client = cluster.client(Options { packet_bytes: 2_000, ..patient() });
    let mut rng = Rng::with_seed(1);
    let mut known = Known::default();
    for round in 0..6 {
        let mut batch = Batch::new();
        for _ in 0..3_000 {
            let key = key(rng.usize(..300), rng.usize(..3));
            known.add(&mut batch, key, &mut rng);
        }
        let before = cluster.elsewhere();
        let replies = client.run(&batch).expect("the nodes answer");
        known.check(&replies, round);
        match round {
            0 => assert!(cluster.elsewhere() > before, "the client knew one node only"),
            3 => assert!(cluster.elsewhere() > before, "slots have other nodes"),
            _ => assert_eq!(cluster.elsewhere(), before, "the client knows all slots"),
        }
        if round == 2 {
            cluster.change(|map| map.owners.reverse());
        }
    }
    assert_eq!(client.nodes().count(), 3);
}

#[test]
fn slots_change_their_node_while_batches_run() {
    let cluster = Cluster::start(3);
    cluster.change(|map| map.restless = Some(Rng::with_seed(2)));
    let mut client = cluster.client(Options { packet_bytes: 500, ..patient() });
    let mut batch = Batch::new();
    for round in 0_usize..8 {
        batch.clear();
        // Each key once, so that their order does not matter.
        for number in 0..1_000 {
            batch.put(&key(number, 0), &[number.to_le_bytes(), round.to_le_bytes()].concat());
        }
        assert_eq!(client.run(&batch).expect("the nodes answer").first_error(), None);
        batch.clear();
        (0..1_000).for_each(|number| _ = batch.get(&key(number, 0)));
        let replies = client.run(&batch).expect("the nodes answer");
        for number in 0_usize..1_000 {
            let value = [number.to_le_bytes(), round.to_le_bytes()].concat();
            assert_eq!(replies.get(number), Ok(Some(&value[..])));
        }
    }
    assert!(cluster.elsewhere() > 0);
}

#[test]
fn a_dead_node_is_replaced_by_another() {
    let cluster = Cluster::start(2);
    let mut client = cluster.client(patient());
    let mut reads = Batch::new();
    for number in 0..100 {
        client.put(&key(number, 0), b"value").expect("it is stored");
        reads.get(&key(number, 0));
    }
    // The first node dies. Its slots have the other one after some questions.
    cluster.change(|map| map.dead[0] = true);
    let (map, elsewhere) = (cluster.map.clone(), cluster.elsewhere.clone());
    let asked = elsewhere.load(Ordering::Relaxed);
    let heir = std::thread::spawn(move || {
        freeport_testbed::wait_until("the client asks the other node", || {
            elsewhere.load(Ordering::Relaxed) > asked
        });
        map.lock().expect("no thread panics").owners.fill(Some(1));
    });
    let replies = client.run(&reads).expect("reads are sent again");
    assert!((0..100).all(|number| replies.get(number) == Ok(Some(b"value"))));
    heir.join().expect("it does not panic");

    // A write that may have been executed is not repeated; the next call finds the other node.
    cluster.change(|map| {
        map.dead = vec![false, true];
        map.owners.fill(Some(0));
    });
    let error = client.put(b"key", b"value").expect_err("the node closes the connection");
    assert!(error.may_have_executed(), "{error:?}");
    client.put(b"key", b"other").expect("the first node has the slot");
    assert_eq!(client.get(b"key").expect("it is there"), Some(b"other".to_vec()));
}

#[test]
fn a_slot_without_a_node_is_waited_for() {
    let cluster = Cluster::start(2);
    let mut client = cluster.client(patient());
    cluster.change(|map| map.owners.fill(None));
    let (map, elsewhere) = (cluster.map.clone(), cluster.elsewhere.clone());
    let heir = std::thread::spawn(move || {
        freeport_testbed::wait_until("the client asks again", || {
            elsewhere.load(Ordering::Relaxed) > 3
        });
        map.lock().expect("no thread panics").owners.fill(Some(1));
    });
    client.put(b"key", b"value").expect("a node serves it at last");
    heir.join().expect("it does not panic");
}

#[test]
fn a_node_that_refuses_for_ever_is_left() {
    for refusal in ["CLUSTERDOWN The lease has ended", "LOADING the dataset"] {
        let cluster = Cluster::start(2);
        let options = Options { patience: PATIENCE, ..patient() };
        let mut client = ClusterClient::connect(&cluster.seeds(), options).expect("both listen");
        let mut batch = Batch::new();
        (0..100).for_each(|number| _ = batch.put(&key(number, 0), b"value"));
        assert_eq!(client.run(&batch).expect("both serve").first_error(), None);
        // The first node does not know that the other one has taken its place.
        cluster.change(|map| {
            map.refusals[0] = Some(refusal);
            map.owners.fill(Some(1));
        });
        assert_eq!(client.run(&batch).expect("the other serves").first_error(), None);
        let before = cluster.elsewhere();
        assert_eq!(client.run(&batch).expect("the other serves").first_error(), None);
        assert_eq!(cluster.elsewhere(), before, "the client asks the other node at once");
    }
}

#[test]
fn patience_ends() {
    let cluster = Cluster::start(1);
    let options = Options { patience: SHORT, ..patient() };
    let mut client = cluster.client(options.clone());
    cluster.change(|map| map.owners.fill(None));
    let error = client.put(b"key", b"value").expect_err("no node serves it");
    assert!(
        matches!(&error, Error::NotServed { slot, reason, .. }
                     if *slot == slot_of(b"key") && reason.contains("CLUSTERDOWN")),
        "{error:?}"
    );

    // A node that names itself.
    let cluster = Cluster::start(2);
    let mut client = cluster.client(options);
    cluster.change(|map| {
        map.addresses = vec![map.addresses[0].clone(); 2];
        map.owners.fill(Some(1));
    });
    let error = client.put(b"key", b"value").expect_err("no node serves it");
    assert!(matches!(&error, Error::NotServed { reason, .. } if reason.contains("names itself")));
}

#[test]
fn nodes_that_cannot_be_used_are_errors() {
    let cluster = Cluster::start(2);
    for (address, text) in [("", "no listener"), ("nowhere", "cannot connect")] {
        cluster.change(|map| {
            map.addresses[1] = address.to_owned();
            map.owners.fill(Some(1));
        });
        let options = Options { patience: SHORT, ..patient() };
        let mut client = cluster.client(options);
        let error = client.get(b"key").expect_err("there is no such node").to_string();
        assert!(error.contains(text), "{error}");
    }
    let none: [&str; 0] = [];
    let error = ClusterClient::connect(&none, patient()).expect_err("there is no node");
    assert!(matches!(error, Error::NoNodes), "{error:?}");
    assert!(ClusterClient::connect(&["7000"], patient()).is_err());
}
