// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log has results of functions, so a server recovers with other functions or none.

use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;
use freeport_kv_functions::Registry;
use freeport_kv_journal::faulty::FaultyDisk;
use freeport_kv_protocol::resp::Value;
use freeport_kv_server::inspection::{Record, read};
use freeport_kv_server::{Options, PersistenceOptions, Server};
use freeport_testbed::{seed, usual_or_long};

use super::{registry, set, step};
use crate::client::{Client, script, server_with};
use crate::crash::process::{Launch, Program};

fn start(folder: &Path, workers: usize, functions: Registry) -> Server {
    let persistence = Some(PersistenceOptions::new(folder.into()));
    server_with(Options { workers, persistence, functions, ..Options::default() })
}

fn digest(server: &Server) -> String {
    Client::new(server).call("DEBUG DIGEST")
}

/// Ends a server, and starts it again with these functions: the keys are the same.
fn restart(server: Server, folder: &Path, workers: usize, functions: Registry) -> Server {
    let before = digest(&server);
    server.stopper().stop();
    server.join().expect("no worker fails");
    let server = start(folder, workers, functions);
    assert_eq!(digest(&server), before);
    server
}

/// The commands in the log.
fn commands(folder: &Path) -> Vec<String> {
    let mut commands = vec![];
    let inspection = read(folder, &mut |unit| {
        for record in &unit.records {
            if let Record::Command { arguments, .. } = record {
                let words = arguments.iter().map(|word| word.escape_ascii().to_string());
                commands.push(words.collect::<Vec<_>>().join(" "));
            }
        }
    });
    assert_eq!(inspection.expect("it can be read").contents.bad_place, None);
    commands
}

#[test]
fn results_are_logged_and_not_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start(folder.path(), 2, registry());
    let mut client = Client::new(&server);
    client.call("SET v abc PXAT 99999999999999");
    client.call("KV.UPDATEV v mix u8 DELTA 1");
    client.call("KV.UPDATEV v mix u8 DELTAS xyz RETURN");
    client.call("KV.UPDATEV v add u8 DELTA 1");
    client.call("KV.UPDATEV none mix u8 DELTA 1");
    client.call("KV.UPDATEV v mix u16 DELTA 1");
    client.call("SET one x");
    client.call("KV.UPDATE one mix u8 7");
    client.call("SET nothing _");
    client.call("KV.UPDATEV nothing mix u8 DELTA 1");
    let server = restart(server, folder.path(), 1, Registry::built_in());
    let mix = |text: &[u8], by: &[u8]| -> String {
        let each = text.iter().zip(by).map(|(value, by)| super::mix(*value, *by));
        each.map(char::from).collect()
    };
    let first = mix(b"abc", &[1; 3]);
    let second = mix(first.as_bytes(), b"xyz");
    let expected = [
        "SET v abc PXAT 99999999999999".to_owned(),
        format!("SETRANGE v 0 {first}"),
        format!("SETRANGE v 0 {second}"),
        "KV.UPDATEV v add u8 DELTA 1".to_owned(),
        "SET one x".to_owned(),
        format!("SETRANGE one 0 {}", mix(b"x", &[7])),
        "SET nothing ".to_owned(),
        "SETRANGE nothing 0 ".to_owned(),
    ];
    assert_eq!(commands(folder.path()), expected);
    let mut client = Client::new(&server);
    assert_eq!(client.call("PEXPIRETIME v"), "(integer) 99999999999999");
    assert!(client.call("KV.UPDATEV v mix u8 DELTA 1").contains("no update is named 'mix'"));
}

/// Random updates of a few keys, alone, in transactions and in scripts, with snapshots between.
#[test]
fn a_log_gives_the_same_data_without_the_functions() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = seed();
    for seed in first..first + usual_or_long(3, 60) {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let mut server = start(folder.path(), random.usize(1..4), registry());
        let mut client = Client::new(&server);
        for key in 0..4 {
            let numbers: Vec<u64> = (0..random.usize(0..400)).map(|_| random.u64(..)).collect();
            set(&mut client, &format!("k{key}"), &numbers);
        }
        for _ in 0..3 {
            (0..60).for_each(|_| change(&mut client, &mut random));
            let functions = if random.bool() { registry() } else { Registry::built_in() };
            server = restart(server, folder.path(), random.usize(1..4), functions);
            server = restart(server, folder.path(), random.usize(1..4), registry());
            client = Client::new(&server);
        }
    }
}

fn change(client: &mut Client, random: &mut Rng) {
    let count = random.usize(1..4);
    let updates: Vec<Vec<String>> = (0..count).map(|_| any_update(random)).collect();
    let send = |client: &mut Client, words: &[String]| {
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        client.send_arguments(&words);
    };
    let replies = match random.u32(..10) {
        0 => {
            client.send("BGREWRITEAOF");
            1
        }
        1..4 => {
            client.send("MULTI");
            updates.iter().for_each(|words| send(client, words));
            client.send("EXEC");
            count + 2
        }
        4..6 => {
            send(client, &script(&[], updates.into_iter()));
            1
        }
        _ => {
            updates.iter().for_each(|words| send(client, words));
            count
        }
    };
    (0..replies).for_each(|_| drop(client.reply()));
}

/// An update of a key that may be refused: that is no change either.
fn any_update(random: &mut Rng) -> Vec<String> {
    let (key, by) = (random.u32(..5), random.u32(..4));
    let line = match random.u32(..8) {
        0 => format!("KV.UPDATEV k{key} mix u8 DELTA {by}"),
        1 => format!("KV.UPDATEV k{key} mix u8 DELTA {by} RETURN"),
        2 => format!("KV.UPDATEV k{key} scale u64 DELTA 3 {by}"),
        3 => format!("KV.UPDATEV k{key} next u64 DELTA"),
        4 => format!("KV.UPDATEV k{key} step u32 DELTA {by}"),
        5 => format!("KV.UPDATEV k{key} add u64 DELTA {by}"),
        6 => format!("PEXPIRE k{key} 100000000"),
        _ => format!("APPEND k{key} {}", "x".repeat(8)),
    };
    line.split(' ').map(str::to_owned).collect()
}

/// The log needs the bytes of the value, and not only those of the call.
#[test]
fn a_full_disk_refuses_an_update_before_it_changes_anything() {
    for way in ["alone", "in a transaction", "in a script"] {
        let (folder, disk) = (tempfile::tempdir().expect("a folder"), FaultyDisk::default());
        let faults = Arc::clone(disk.faults());
        let persistence = PersistenceOptions {
            disk: Arc::new(disk),
            ..PersistenceOptions::new(folder.path().into())
        };
        let persistence = Some(persistence);
        let server =
            server_with(Options { persistence, functions: registry(), ..Options::default() });
        let mut client = Client::new(&server);
        client.send_arguments(&[b"SET", b"v", &[b'x'; 1 << 20]]);
        assert_eq!(client.text(), "OK");
        faults.set_room(Some(0));
        let update = "KV.UPDATEV v mix u8 DELTA 1";
        let mut before;
        loop {
            before = digest(&server);
            let reply = match way {
                "alone" => client.call(update),
                "in a transaction" => {
                    client.call("MULTI");
                    client.call(update);
                    client.call("EXEC")
                }
                _ => {
                    let script = "return redis.call('KV.UPDATEV','v','mix','u8','DELTA','1')";
                    client.send_arguments(&[b"EVAL", script.as_bytes(), b"0"]);
                    client.text()
                }
            };
            if !reply.ends_with("OK") {
                assert!(reply.contains("MISCONF"), "{way}: {reply}");
                break;
            }
        }
        assert_eq!(digest(&server), before, "{way}");
        assert!(client.ask("INFO persistence").contains("aof_last_write_status:ok"), "{way}");
        faults.set_room(None);
        server.stopper().stop();
        server.join().expect("no worker fails");
        let server = start(folder.path(), 1, Registry::built_in());
        assert_eq!(digest(&server), before, "{way}");
    }
}

/// A server is killed while a client updates a vector. Every acknowledged update is there, and one
/// without a reply is there as a whole or not at all.
#[test]
fn a_killed_server_has_whole_updates() {
    const ELEMENTS: usize = 2000;
    for workers in [1, 3] {
        let folder = tempfile::tempdir().expect("a folder");
        let program = Program::Freeport { workers };
        let launch =
            Launch { program, policy: Some("no"), folder: folder.path().into(), follows: None };
        let mut random = Rng::with_seed(seed());
        let (mut value, mut is_set) = (1, false);
        for _ in 0..usual_or_long(3, 60) {
            let mut process = launch.begin();
            let mut client = Client::connect(process.ready().expect("it starts"));
            if !std::mem::replace(&mut is_set, true) {
                set(&mut client, "v", &[value; ELEMENTS]);
            }
            client.send("GET v");
            let Value::Bulk(bytes) = client.reply() else { panic!("the vector is there") };
            let found = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
            assert!(bytes.len() == 8 * ELEMENTS && bytes.chunks(8).all(|it| it == &bytes[..8]));
            // The last update before the kill had no reply.
            assert!(found == value || found == step(value, 5), "{found} after {value}");
            value = found;
            for _ in 0..random.u32(..100) {
                client.send("KV.UPDATEV v step u64 DELTA 5");
                assert_eq!(client.text(), "OK");
                value = step(value, 5);
            }
            client.send("KV.UPDATEV v step u64 DELTA 5");
            drop(process);
        }
    }
}
