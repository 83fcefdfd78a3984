// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams that are lost, doubled, divided, or overtake each other.

use super::model::{Model, TOKEN};
use super::server::{self, Server, patient};
use fastrand::Rng;
use freeport_kv_client::{Batch, Client, Error, Opcode, Operation, Options, Pipeline};
use freeport_kv_protocol::batch::{
    HEADER_BYTES, Header, HelloReply, ReplyLimits, ReplyReader, ReplyWriter,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A server whose replies to others than hello are changed by `fate`.
fn lossy(
    model: Model,
    mut fate: impl FnMut(&Header, Vec<u8>) -> Vec<Vec<u8>> + Send + 'static,
) -> Server {
    server::udp(move |header, payload, worker| {
        let reply = model.execute(header, payload, worker);
        let is_hello = payload[0] & 15 == Opcode::Hello as u8;
        if is_hello { vec![reply] } else { fate(header, reply) }
    })
}

fn options() -> Options {
    Options {
        datagram_bytes: 200,
        retry_after: Duration::from_millis(5),
        retries: 100,
        timeout: Duration::from_secs(60),
        ..patient()
    }
}

/// Divides a packet of replies into parts with one reply each.
fn divided(header: &Header, reply: &[u8]) -> Vec<Vec<u8>> {
    let replies = ReplyReader::new(&reply[HEADER_BYTES..], header.count);
    let part = |(first, reply)| {
        let mut part = Vec::new();
        let mut writer = ReplyWriter::begin(&mut part, header.batch, first, ReplyLimits::default());
        writer.reply(&mut part, &reply);
        writer.finish(&mut part);
        part
    };
    (0..).zip(replies.map(|reply| reply.expect("it is well formed"))).map(part).collect()
}

/// Puts numbered values; replies to puts are never lost in these tests.
fn filled(client: &mut Client, count: u64) -> Batch {
    let mut batch = Batch::new();
    for number in 0..count {
        batch.put(&number.to_le_bytes(), &number.to_be_bytes());
    }
    client.run(&batch).expect("puts are answered");
    batch.clear();
    for number in 0..count {
        batch.get(&number.to_le_bytes());
    }
    batch
}

fn is_put(header: &Header, reply: &[u8]) -> bool {
    // Puts have replies of one byte.
    reply.len() == HEADER_BYTES + usize::from(header.count)
}

#[test]
fn reads_survive_every_accident() {
    let mut rng = Rng::with_seed(1);
    let mut held = Vec::new();
    let server = lossy(Model::new(1), move |header, reply| {
        if is_put(header, &reply) {
            return vec![reply];
        }
        let mut parts = if rng.bool() { divided(header, &reply) } else { vec![reply] };
        rng.shuffle(&mut parts);
        parts.retain(|_| rng.u8(..20) > 0);
        if rng.u8(..4) == 0 {
            parts.extend(parts.clone());
        }
        // Some come only with the next datagram.
        if rng.u8(..4) == 0 {
            held.append(&mut parts);
            return vec![];
        }
        parts.append(&mut held);
        // And somebody else's, or nonsense.
        parts.push(b"nonsense".to_vec());
        parts
    });
    let mut client = Client::connect_to(server.address, options()).expect("it listens");
    let gets = filled(&mut client, 500);
    for _ in 0..3 {
        let replies = client.run(&gets).expect("gets are sent again");
        for (number, reply) in (0_u64..).zip(replies.iter()) {
            assert_eq!(reply, Ok(Some(&number.to_be_bytes()[..])), "{number}");
        }
    }
}

/// As if the system had room for only a few datagrams.
#[test]
fn replies_without_room_are_asked_for_in_smaller_requests() {
    let server = lossy(Model::new(1), |header, reply| {
        if is_put(header, &reply) {
            return vec![reply];
        }
        let mut parts = divided(header, &reply);
        parts.truncate(3);
        parts
    });
    let mut client = Client::connect_to(server.address, options()).expect("it listens");
    let gets = filled(&mut client, 100);
    let replies = client.run(&gets).expect("gets are sent again");
    for (number, reply) in (0_u64..).zip(replies.iter()) {
        assert_eq!(reply, Ok(Some(&number.to_be_bytes()[..])), "{number}");
    }
}

#[test]
fn a_hello_is_sent_again() {
    let model = Model::new(1);
    let mut hellos = 0;
    let server = server::udp(move |header, payload, worker| {
        hellos += 1;
        let reply = model.execute(header, payload, worker);
        if hellos < 4 { vec![] } else { vec![reply] }
    });
    let options = Options { retries: 0, ..options() };
    let mut client = Client::connect_to(server.address, options).expect("the fourth hello arrives");
    client.put(b"key", b"value").expect("nothing is lost now");
}

#[test]
fn a_change_is_never_sent_again() {
    let executed = Arc::new(AtomicUsize::new(0));
    let counted = executed.clone();
    let server = lossy(Model::new(1), move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        vec![]
    });
    let timeout = Duration::from_millis(60);
    let options = Options { timeout, retry_after: Duration::from_millis(1), ..options() };
    let mut client = server::connect_at_last(&server, &options);
    let mut batch = Batch::new();
    batch.get(b"key").put(b"key", b"value");
    let error = client.run(&batch).expect_err("no reply comes");
    assert!(matches!(error, Error::TimedOut { .. }) && error.may_have_executed(), "{error:?}");
    // The server answers another hello after all that was sent before it.
    server::connect_at_last(&server, &options);
    assert_eq!(executed.load(Ordering::Relaxed), 1);
}

#[test]
fn a_pipeline_continues_after_a_lost_packet() {
    let mut packets = 0;
    let server = lossy(Model::new(1), move |_, reply| {
        packets += 1;
        if packets == 2 { vec![] } else { vec![reply] }
    });
    let timeout = Duration::from_secs(10);
    let options = Options { timeout, retries: 0, ..options() };
    let mut pipeline = Pipeline::connect(&server.address, &options).expect("it listens");
    let mut submitted = Vec::new();
    for number in 0..4 {
        pipeline.push(&Operation::get(&[number])).expect("there is room");
        submitted.extend(pipeline.submit().expect("it is sent"));
    }
    let mut received = Vec::new();
    let mut lost = 0;
    loop {
        match pipeline.receive() {
            Ok(Some(packet)) => received.push(packet.batch),
            Ok(None) => break,
            Err(Error::TimedOut { .. }) => lost += 1,
            Err(other) => panic!("{other}"),
        }
    }
    submitted.remove(1);
    assert_eq!((received, lost), (submitted, 1));
}

/// Over UDP a client cannot choose its worker, so it tries other ports.
#[test]
fn every_worker_is_reached_by_some_port() {
    let model = Model::new(3);
    let (strangers, mut hellos) = (model.strangers.clone(), 0);
    let server = server::udp(move |header, payload, worker| {
        let mut reply = model.execute(header, payload, worker);
        if payload[0] & 15 == Opcode::Hello as u8 {
            *worker = [2, 2, 0, 2, 0, 1][hellos % 6];
            hellos += 1;
            let (workers, payload_limit, token) = (3, 1_400, TOKEN);
            let hello = HelloReply { worker: *worker, workers, payload_limit, token };
            reply.clear();
            let mut writer =
                ReplyWriter::begin(&mut reply, header.batch, 0, ReplyLimits::default());
            writer.value(&mut reply, &hello.value());
            writer.finish(&mut reply);
        }
        vec![reply]
    });
    let mut client = Client::connect_to(server.address, options()).expect("it listens");
    assert_eq!(client.connections(), 3);
    let gets = filled(&mut client, 100);
    let replies = client.run(&gets).expect("the server answers");
    assert!(replies.iter().all(|reply| reply.is_ok_and(|value| value.is_some())));
    assert_eq!(strangers.load(Ordering::Relaxed), 0, "keys go to their worker");
}
