// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Batches to the server itself.

use super::known::Known;
use super::server::patient;
use fastrand::Rng;
use freeport_kv_client::{Address, Batch, Client, Error, FunctionKind, Options, Replies, Status};
use freeport_kv_server::{Bind, Options as ServerOptions, Server};
use freeport_testbed::wait::PATIENCE;
use std::io::{Read, Write};
use std::net::TcpStream;
use tempfile::TempDir;

struct Served {
    server: Server,
    folder: TempDir,
}

fn served(workers: usize) -> Served {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let any = || Bind::Tcp("127.0.0.1:0".parse().expect("it is an address"));
    let options = ServerOptions {
        workers,
        resp: vec![any()],
        batch: vec![any(), Bind::Fabric(folder.path().join("fabric"))],
        batch_udp: vec!["127.0.0.1:0".parse().expect("it is an address")],
        ..ServerOptions::default()
    };
    Served { server: Server::start(options).expect("free ports are listened on"), folder }
}

impl Served {
    fn addresses(&self) -> [Address; 3] {
        let tcp = self.server.addresses()[1].to_string();
        let udp = self.server.udp_addresses()[0].to_string();
        let fabric = self.folder.path().join("fabric");
        [Address::Tcp(tcp), Address::Fabric(fabric), Address::Udp(udp)]
    }

    /// Executes a command of Redis, whose reply is one line.
    fn command(&self, words: &[&str]) -> String {
        let mut stream = TcpStream::connect(self.server.addresses()[0]).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("it is a socket");
        stream.write_all((words.join(" ") + "\r\n").as_bytes()).expect("it is sent");
        let mut reply = Vec::new();
        let mut byte = [0];
        while byte != *b"\n" {
            stream.read_exact(&mut byte).expect("a line comes");
            reply.extend(byte);
        }
        String::from_utf8(reply).expect("it is a text").trim_end().to_owned()
    }
}

/// The lines of `docs/guide/kv-client.md`.
#[test]
fn the_example_of_the_page_works() -> Result<(), Box<dyn std::error::Error>> {
    let served = served(2);
    for address in served.addresses() {
        let mut client = Client::connect(&address.to_string(), patient())?;
        client.put(b"stock", &7_u32.to_le_bytes())?;
        assert_eq!(client.fetch_add(b"stock", 5_u32)?, Some(7));

        let maximum = client.function(FunctionKind::Update, "maximum")?;
        let mut batch = Batch::new();
        batch.get(b"stock").put(b"pixels", &[1, 2, 240]);
        batch.update(b"stock", &maximum, &[100_u32]).without_return();
        batch.filter(b"pixels", 68, &[100_u8]);
        let replies = client.run(&batch)?;
        assert_eq!(replies.get(0)?, Some(&12_u32.to_le_bytes()[..]));
        assert_eq!(replies.get(3)?, Some(&[240][..]));
    }
    Ok(())
}

#[test]
fn functions_are_found_by_name_and_applied() {
    let served = served(1);
    for address in served.addresses() {
        let mut client = Client::connect_to(address, patient()).expect("it listens");
        assert!(client.functions().expect("the server has some").len() >= 39);
        let maximum = client.function(FunctionKind::Update, "maximum").expect("there is one");
        let other = client.function(FunctionKind::Reduce, "maximum").expect("there is one");
        assert_ne!(maximum.id, other.id);
        let mut batch = Batch::new();
        batch.put(b"one", &7_i32.to_le_bytes()).update(b"one", &maximum, &[9_i32]).get(b"one");
        batch.put(b"vector", &[1, 200, 3]).update_same(b"vector", 3, &[1_u8]).without_return();
        batch.update_vector(b"vector", 6, &[1_u8, 100, 2]);
        batch.reduce::<u8>(b"vector", &other, 0).filter(b"vector", 68, &[5_u8]);
        batch.update(b"vector", 3, &[1_u32]).update(b"missing", 3, &[1_u32]);
        let replies = client.run(&batch).expect("the server answers");
        assert_eq!(replies.get(1), Ok(Some(&7_i32.to_le_bytes()[..])));
        assert_eq!(replies.get(2), Ok(Some(&9_i32.to_le_bytes()[..])));
        assert_eq!(replies.get(4), Ok(None));
        assert_eq!(replies.get(5), Ok(Some(&[2, 201, 4][..])));
        assert_eq!(replies.get(6), Ok(Some(&255_u64.to_le_bytes()[..])));
        assert_eq!(replies.get(7), Ok(Some(&[255, 6][..])));
        let error = replies.get(8).expect_err("the vector is no u32");
        assert_eq!(error.status, Status::Refused, "{error}");
        assert_eq!(replies.was_found(9), Ok(false));
        assert_eq!(client.fetch_add(b"one", -4_i32).expect("it is an i32"), Some(9));
        assert_eq!(client.get(b"one").expect("no error"), Some(5_i32.to_le_bytes().to_vec()));
        assert!(client.delete(b"one").expect("no error"));
    }
}

#[test]
fn clients_of_redis_see_the_same_keys() {
    let served = served(3);
    for address in served.addresses() {
        let options = Options { database: 2, ..patient() };
        let mut client = Client::connect_to(address.clone(), options).expect("it listens");
        if !matches!(address, Address::Udp(_)) {
            assert_eq!(client.connections(), 3, "one for each worker");
        }
        client.put(b"key", b"other").expect("it is stored");
        let mut client = Client::connect_to(address, patient()).expect("it listens");
        client.put(b"key", b"value").expect("it is stored");
        assert_eq!(served.command(&["STRLEN", "key"]), ":5");
        assert_eq!(served.command(&["APPEND", "key", "s"]), ":6");
        assert_eq!(client.get(b"key").expect("no error"), Some(b"values".to_vec()));
        served.command(&["DEL", "list"]);
        served.command(&["LPUSH", "list", "a"]);
        let error = client.get(b"list").expect_err("it is a list");
        let Error::Operation(error) = error else { panic!("{error:?}") };
        assert_eq!(error.status, Status::WrongType, "{error}");
    }
}

/// Batches of small packets, with keys of every worker, against a map.
#[test]
fn large_batches_agree_with_a_map() {
    for workers in [1, 3] {
        let served = served(workers);
        for address in served.addresses() {
            // Only one datagram at a time has the order of the batch.
            let window = if matches!(address, Address::Udp(_)) { 1 } else { 4 };
            let options = Options { packet_bytes: 2_000, window, ..patient() };
            let mut client = Client::connect_to(address, options).expect("it listens");
            let mut rng = Rng::with_seed(workers as u64);
            let mut known = Known::default();
            let (mut batch, mut replies) = (Batch::new(), Replies::new());
            for round in 0..4 {
                batch.clear();
                for _ in 0..5_000 {
                    let key = format!("{}:{}", round % 2, rng.u16(..500)).into_bytes();
                    known.add(&mut batch, key, &mut rng);
                }
                client.run_into(&batch, &mut replies).expect("the server answers");
                known.check(&replies, round);
            }
            batch.clear();
            known.keys().for_each(|key| _ = batch.delete(key));
            client.run(&batch).expect("the server answers");
        }
    }
}

#[test]
fn large_values_pass_both_ways() {
    let served = served(2);
    for address in served.addresses().into_iter().take(2) {
        let options = Options { packet_bytes: 3 << 20, window: 50, ..patient() };
        let mut client = Client::connect_to(address, options).expect("it listens");
        let value: Vec<u8> = (0..1 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
        let mut batch = Batch::new();
        for number in 0_u8..30 {
            batch.put(&[number], &value).get(&[number]);
        }
        let replies = client.run(&batch).expect("the server answers");
        for number in 0..30 {
            assert_eq!(replies.get(2 * number + 1), Ok(Some(&value[..])));
        }
    }
}

/// Replies that are much longer than their requests may not all have room in the system.
#[test]
fn many_values_are_read_by_datagrams() {
    let served = served(1);
    let [_, _, address] = served.addresses();
    let options = Options { retries: 100, ..patient() };
    let mut client = Client::connect_to(address, options).expect("it listens");
    let value = [7; 1_200];
    let mut batch = Batch::new();
    for number in 0_u32..4_000 {
        batch.put(&number.to_le_bytes(), &value);
    }
    let replies = client.run(&batch).expect("the server answers");
    assert_eq!(replies.first_error(), None);
    batch.clear();
    for number in 0_u32..4_000 {
        batch.get(&number.to_le_bytes());
    }
    let replies = client.run(&batch).expect("what was lost is read again");
    assert!(replies.iter().all(|reply| reply == Ok(Some(&value[..]))));
}

#[test]
fn users_log_in_and_have_their_rights() {
    let served = served(2);
    let rules = ["ACL", "SETUSER", "ann", "on", ">secret", "~mine:*", "+@read"];
    assert_eq!(served.command(&rules), "+OK");
    for address in served.addresses() {
        let login = |password: &str| {
            let options = Options { user: "ann".into(), password: password.into(), ..patient() };
            Client::connect_to(address.clone(), options)
        };
        let error = login("wrong").expect_err("it is another password");
        assert!(matches!(error, Error::Login { .. }), "{error:?}");
        let mut client = login("secret").expect("it is the password");
        let mut batch = Batch::new();
        batch.get(b"mine:1").put(b"mine:1", b"value").get(b"other");
        let replies = client.run(&batch).expect("the server answers");
        assert_eq!(replies.get(0), Ok(None));
        for number in [1, 2] {
            let error = replies.get(number).expect_err("ann may only read her own keys");
            assert_eq!(error.status, Status::Denied, "{error}");
        }
    }
}

#[test]
fn a_server_that_ends_and_begins_again_is_found_again() {
    let first = served(1);
    let path = first.folder.path().join("fabric");
    let address = Address::Fabric(path.clone());
    let mut client = Client::connect_to(address, patient()).expect("it listens");
    client.put(b"key", b"value").expect("it is stored");
    let Served { server, folder } = first;
    server.stopper().stop();
    server.join().expect("it ends");
    let error = client.get(b"key").expect_err("the server has ended");
    assert!(matches!(error, Error::Lost { .. }), "{error:?}");
    let options = ServerOptions { batch: vec![Bind::Fabric(path)], ..ServerOptions::default() };
    let server = Server::start(options).expect("the path is free");
    assert_eq!(client.get(b"key").expect("connected again"), None, "its keys were in memory");
    drop((server, folder));
}
