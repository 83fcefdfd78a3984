// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Batches over every transport.

use super::model::{Model, TOKEN};
use super::server::{self, Server, patient, truthful};
use fastrand::Rng;
use freeport_kv_client::{
    Batch, Client, Error, FunctionKind, Operation, Options, Pipeline, Replies, Status,
};
use freeport_kv_protocol::batch::Refused;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// Servers of every transport, with their models.
fn servers(workers: u16) -> Vec<(Server, Model)> {
    let models = [(); 3].map(|()| Model::new(workers));
    let [first, second, third] = models.clone();
    let datagrams = server::udp(move |header, payload, worker| {
        let is_hello = header.token.is_none();
        assert!(is_hello || header.token == Some(TOKEN), "a request has its token");
        vec![third.execute(header, payload, worker)]
    });
    let servers = [server::tcp(truthful(&first)), server::fabric(truthful(&second)), datagrams];
    servers.into_iter().zip(models).collect()
}

fn small() -> Options {
    Options { packet_bytes: 300, datagram_bytes: 300, window: 3, ..patient() }
}

#[test]
fn every_operation_returns_what_its_page_says() {
    for (server, _) in servers(1) {
        let mut client = Client::connect_to(server.address.clone(), patient()).expect("it listens");
        let sum = client.function(FunctionKind::Reduce, "sum").expect("there is one");
        let mut batch = Batch::new();
        batch.put(b"vector", &[1, 2, 250]).get(b"vector").get(b"missing").delete(b"missing");
        batch.update_same(b"vector", 3, &[1_u8]).update_vector(b"vector", 3, &[10_u8, 20, 30]);
        batch.reduce::<u8>(b"vector", &sum, 1_000).filter(b"vector", 68, &[12_u8]);
        batch.update(b"vector", 3, &[1_u32]).get(b"vector").without_return();
        batch.put(b"one", &7_u32.to_le_bytes()).update(b"one", 3, &[5_u32]).get(b"one");
        batch.delete(b"one");
        let replies = client.run(&batch).expect("the server answers");
        let some = |number: usize| replies.get(number).expect("it succeeds").map(<[u8]>::to_vec);
        assert_eq!(some(0), None);
        assert_eq!(some(1), Some(vec![1, 2, 250]));
        assert_eq!((some(2), replies.was_found(2)), (None, Ok(false)));
        assert_eq!((some(3), replies.was_found(3)), (None, Ok(false)));
        assert_eq!(some(4), Some(vec![1, 2, 250]));
        assert_eq!(some(5), Some(vec![2, 3, 251]));
        assert_eq!(some(6), Some((1_000_u64 + 12 + 23 + 25).to_le_bytes().to_vec()));
        assert_eq!(some(7), Some(vec![23, 25]));
        let error = replies.get(8).expect_err("three bytes are no u32");
        assert_eq!((error.status, error.to_string()), (Status::Refused, "wrong size".to_owned()));
        assert_eq!(replies.first_error(), Some((8, error)));
        assert_eq!((some(9), replies.was_found(9)), (None, Ok(true)));
        assert_eq!(some(11), Some(7_u32.to_le_bytes().to_vec()));
        assert_eq!(some(12), Some(12_u32.to_le_bytes().to_vec()));
        assert_eq!(replies.was_found(13), Ok(true));
        assert_eq!((replies.len(), batch.len()), (14, 14));
        assert_eq!(replies.iter().filter(Result::is_err).count(), 1);
    }
}

#[test]
fn single_operations_need_no_batch() {
    for (server, _) in servers(2) {
        let options = Options { user: "ann".into(), password: "secret".into(), ..small() };
        let mut client = Client::connect_to(server.address.clone(), options).expect("it listens");
        assert_eq!(client.address(), &server.address);
        client.put(b"stock", &7_u32.to_le_bytes()).expect("it is stored");
        assert_eq!(client.fetch_add(b"stock", 5_u32).expect("it is a u32"), Some(7));
        assert_eq!(client.fetch_add(b"missing", 5_u32).expect("no error"), None);
        assert_eq!(client.get(b"stock").expect("no error"), Some(12_u32.to_le_bytes().to_vec()));
        let error = client.fetch_add(b"stock", 5_u64).expect_err("it is no u64");
        assert!(matches!(error, Error::Operation(ref error) if error.status == Status::Refused));
        assert!(!error.may_have_executed());
        assert!(client.delete(b"stock").expect("no error"));
        assert!(!client.delete(b"stock").expect("no error"));
        let error = client.function(FunctionKind::Filter, "add").expect_err("it is an update");
        assert!(error.to_string().contains("`add`"), "{error}");
        assert_eq!(client.functions().expect("no error").len(), 3);
    }
}

/// Keys at random, so that those of a packet are mixed; each is written again and again.
#[test]
fn replies_have_the_order_of_the_batch() {
    for workers in [1, 3] {
        for (server, model) in servers(workers) {
            let address = server.address.clone();
            let mut client = Client::connect_to(address, small()).expect("it listens");
            assert_eq!(client.connections(), usize::from(workers));
            let mut rng = Rng::with_seed(workers.into());
            let (mut expected, mut known) = (Vec::new(), HashMap::new());
            let (mut batch, mut replies) = (Batch::new(), Replies::new());
            for round in 0..3 {
                batch.clear();
                expected.clear();
                for _ in 0..4_000 {
                    let key = format!("key {}", rng.u8(..)).into_bytes();
                    if rng.bool() {
                        let value = vec![rng.u8(..); rng.usize(..30)];
                        batch.put(&key, &value);
                        known.insert(key, value);
                        expected.push(None);
                    } else {
                        batch.get(&key);
                        expected.push(known.get(&key).cloned());
                    }
                }
                client.run_into(&batch, &mut replies).expect("the server answers");
                let replies = replies.iter().map(|reply| reply.expect("it succeeds"));
                assert!(replies.eq(expected.iter().map(Option::as_deref)), "round {round}");
            }
            assert_eq!(model.strangers.load(Ordering::Relaxed), 0, "keys go to their worker");
            assert!(model.packets.load(Ordering::Relaxed) > 300, "packets have 300 bytes");
        }
    }
}

#[test]
fn a_server_with_many_workers_gets_one_connection() {
    let model = Model::new(u16::MAX);
    let server = server::tcp(truthful(&model));
    let mut client = Client::connect_to(server.address, small()).expect("it listens");
    assert_eq!(client.connections(), 1);
    client.put(b"key", b"value").expect("it is stored");
}

/// The server does not read while its replies are not taken, and neither side has room for all.
#[test]
fn neither_side_waits_for_the_other_forever() {
    for (server, _) in servers(1).into_iter().take(2) {
        let options = Options { packet_bytes: 2 << 20, window: 100, ..patient() };
        let mut client = Client::connect_to(server.address, options).expect("it listens");
        let value = vec![7; 1 << 20];
        let mut batch = Batch::new();
        for number in 0_u8..40 {
            batch.put(&[number], &value).get(&[number]);
        }
        let replies = client.run(&batch).expect("the server answers");
        for number in 0..40 {
            assert_eq!(replies.get(2 * number + 1), Ok(Some(&value[..])));
        }
    }
}

#[test]
fn an_operation_that_fits_into_no_packet_is_refused_before_anything_is_sent() {
    for (server, model) in servers(1) {
        let mut client = Client::connect_to(server.address.clone(), small()).expect("it listens");
        let packets = model.packets.load(Ordering::Relaxed);
        let mut batch = Batch::new();
        batch.get(b"key").put(b"key", &[0; 400]);
        let error = client.run(&batch).expect_err("300 bytes are allowed");
        assert!(matches!(error, Error::TooLarge { operation: 1, limit: 300, .. }), "{error}");
        assert!(!error.may_have_executed());
        assert_eq!(model.packets.load(Ordering::Relaxed), packets);
        assert_eq!(client.run(&Batch::new()).expect("nothing is sent").len(), 0);
        client.put(b"key", &[0; 200]).expect("the connection is still there");
    }
}

#[test]
fn the_servers_limit_holds() {
    let server = server::tcp(truthful(&Model::new(1)));
    let options = Options { packet_bytes: 1 << 30, ..patient() };
    let mut client = Client::connect_to(server.address, options).expect("it listens");
    let error = client.put(b"key", &vec![0; 5 << 20]).expect_err("4 MiB are allowed");
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    client.put(b"key", &vec![0; 3 << 20]).expect("this fits");
}

#[test]
fn a_pipeline_receives_packet_by_packet() {
    for (server, _) in servers(2) {
        let options = Options { packet_operations: 10, ..patient() };
        let mut pipeline =
            Pipeline::connect_to_worker(&server.address, &options, 1).expect("it listens");
        assert_eq!((pipeline.worker(), pipeline.workers()), (1, 2));
        assert!(pipeline.receive().expect("no error").is_none(), "nothing is in flight");
        assert_eq!(pipeline.submit().expect("no error"), None);
        let mut submitted = Vec::new();
        for packet in 0..5_u8 {
            for number in 0..10_u8 {
                pipeline.push(&Operation::put(&[number], &[packet])).expect("there is room");
            }
            assert_eq!(pipeline.push(&Operation::get(b"key")), Err(Refused::Full));
            assert_eq!(pipeline.pushed(), 10);
            submitted.extend(pipeline.submit().expect("no error"));
            assert_eq!(pipeline.pushed(), 0);
        }
        assert_eq!(pipeline.in_flight(), 5);
        let mut received = Vec::new();
        while let Some(packet) = pipeline.receive().expect("no error") {
            assert_eq!((packet.first, packet.count, packet.is_last), (0, 10, true));
            assert_eq!(packet.replies.filter(Result::is_ok).count(), 10);
            received.push(packet.batch);
        }
        assert_eq!(received, submitted);
    }
}
