// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server with a folder has all its data again when it is started again.

mod faults;
mod full;
mod loading;
pub mod random;
mod reloading;
mod snapshots;
mod torn;

use std::path::Path;

use freeport_kv_server::{Options, PersistenceOptions, Policy, Server};
use freeport_testbed::wait_until;
use tempfile::TempDir;

use crate::client::{Client, server_with};

/// A folder for a server.
fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Options for a server with a folder.
fn options(folder: &Path, workers: usize, policy: Policy) -> Options {
    let persistence = PersistenceOptions { policy, ..PersistenceOptions::new(folder.into()) };
    Options { workers, persistence: Some(persistence), ..Options::default() }
}

/// Starts a server on a folder.
fn start(folder: &Path, workers: usize) -> Server {
    server_with(options(folder, workers, Policy::EverySecond))
}

/// Ends a server as a signal does.
fn stop(server: Server) {
    server.stopper().stop();
    server.join().expect("no worker fails");
}

/// The digest of all keys.
fn digest(server: &Server) -> String {
    Client::new(server).call("DEBUG DIGEST")
}

/// A field of `INFO persistence`.
fn info(client: &mut Client, field: &str) -> String {
    let text = client.ask("INFO persistence");
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{field} is in {text}")).to_owned()
}

/// Ends a server, and starts it again with another number of workers: the keys are the same.
#[track_caller]
fn restart(server: Server, folder: &Path, workers: usize) -> Server {
    restart_with(server, options(folder, workers, Policy::EverySecond))
}

/// Ends a server, and starts it again with these options: the keys are the same.
#[track_caller]
fn restart_with(server: Server, options: Options) -> Server {
    let before = digest(&server);
    stop(server);
    let server = server_with(options);
    assert_eq!(digest(&server), before);
    server
}

#[test]
fn keys_are_there_after_a_restart() {
    let folder = folder();
    let mut server = start(folder.path(), 1);
    let mut client = Client::new(&server);
    assert_eq!(client.call("SET a 1"), "OK");
    assert_eq!(client.call("RPUSH list x y z"), "(integer) 3");
    assert_eq!(client.call("SELECT 3"), "OK");
    assert_eq!(client.call("HSET hash field value"), "(integer) 1");
    for workers in [3, 2, 1] {
        server = restart(server, folder.path(), workers);
        assert_eq!(server.recovery().map(|recovery| recovery.keys), Some(3));
        let mut client = Client::new(&server);
        assert_eq!(
            client.call("LMOVE list list LEFT RIGHT"),
            ["\"z\"", "\"y\"", "\"x\""][workers - 1]
        );
        client.call("SELECT 3");
        assert_eq!(client.call("HGET hash field"), "\"value\"");
    }
}

#[test]
fn every_policy_keeps_what_was_acknowledged() {
    for policy in [Policy::Always, Policy::EverySecond, Policy::Never] {
        for workers in [1, 2] {
            let folder = folder();
            let server = server_with(options(folder.path(), workers, policy));
            let mut client = Client::new(&server);
            for number in 0..50 {
                assert_eq!(client.call(&format!("SET key{number} {number}")), "OK");
                assert_eq!(client.call(&format!("GET key{number}")), format!("\"{number}\""));
            }
            // Requests of several keys, sent at once.
            (0..50).for_each(|number| client.send(&format!("INCR key{number}")));
            (0..50).for_each(|number| {
                assert_eq!(client.text(), format!("(integer) {}", number + 1));
            });
            restart(server, folder.path(), 3 - workers);
        }
    }
}

/// The policy is changed while clients write.
#[test]
fn the_policy_is_changed_at_run_time() {
    let folder = folder();
    let server = start(folder.path(), 2);
    let mut client = Client::new(&server);
    assert_eq!(client.call("CONFIG GET appendfsync"), "1) \"appendfsync\" 2) \"everysec\"");
    for policy in ["always", "no", "everysec", "always"] {
        assert_eq!(client.call(&format!("CONFIG SET appendfsync {policy}")), "OK");
        for number in 0..20 {
            assert_eq!(client.call(&format!("SET {policy}{number} 1")), "OK");
        }
    }
    restart(server, folder.path(), 1);
}

/// `BLPOP` that `LPUSH` has served, and the other commands that wait.
#[test]
fn waits_are_replayed_as_they_ended() {
    let folder = folder();
    for workers in [1, 3] {
        let server = start(folder.path(), workers);
        let mut clients: Vec<Client> = (0..3).map(|_| Client::new(&server)).collect();
        let lines = ["BLPOP a b 0", "BLMOVE c d LEFT RIGHT 0", "BZPOPMIN e 0"];
        for (client, line) in clients.iter_mut().zip(lines) {
            client.send(line);
        }
        wait_until("they wait", || server.census().blocked == 3);
        let mut writer = Client::new(&server);
        writer.call("RPUSH b 1 2 3");
        writer.call("RPUSH c 4 5");
        writer.call("ZADD e 1 x 2 y");
        clients.iter_mut().for_each(|client| drop(client.text()));
        let server = restart(server, folder.path(), 2);
        Client::new(&server).call("FLUSHALL");
        stop(server);
    }
}

#[test]
fn functions_are_there_after_a_restart() {
    let folder = folder();
    let library = |name: &str| {
        format!(
            "#!lua name={name}\nredis.register_function('{name}_f', function(keys, arguments) \
             return redis.call('INCRBY', keys[1], 5) end)"
        )
    };
    let mut server = start(folder.path(), 2);
    let mut client = Client::new(&server);
    for name in ["one", "two"] {
        client.send_arguments(&[b"FUNCTION", b"LOAD", library(name).as_bytes()]);
        assert_eq!(client.text(), format!("\"{name}\""));
    }
    assert_eq!(client.call("FUNCTION DELETE one"), "OK");
    assert_eq!(client.call("FCALL two_f 1 key"), "(integer) 5");
    for turn in 2..5 {
        if turn == 3 {
            let mut client = Client::new(&server);
            assert_eq!(client.call("SAVE"), "OK");
        }
        server = restart(server, folder.path(), turn - 1);
        let mut client = Client::new(&server);
        let stats = client.call("FUNCTION STATS");
        let count = stats.split("libraries_count").nth(1).unwrap_or_default();
        assert!(
            count.trim_start_matches("\" ").trim_start().starts_with("2) (integer) 1"),
            "{stats}"
        );
        assert_eq!(client.call("FCALL one_f 1 key"), "(error) ERR Function not found");
        assert_eq!(client.call("FCALL two_f 1 key"), format!("(integer) {}", 5 * turn));
    }
    assert_eq!(Client::new(&server).call("FUNCTION FLUSH"), "OK");
    let server = restart(server, folder.path(), 1);
    let reply = Client::new(&server).call("FCALL two_f 1 key");
    assert_eq!(reply, "(error) ERR Function not found");
}

#[test]
fn times_of_expiry_are_kept() {
    let folder = folder();
    let mut server = start(folder.path(), 1);
    let mut client = Client::new(&server);
    client.call("SET long 1 EX 1000");
    client.call("SET short 1 PX 20");
    client.call("SET other 1 PX 20");
    wait_until("a key has expired", || client.call("EXISTS short") == "(integer) 0");
    wait_until("both are removed", || client.call("DBSIZE") == "(integer) 1");
    let time = client.call("PEXPIRETIME long");
    for saves in [false, true] {
        if saves {
            assert_eq!(Client::new(&server).call("SAVE"), "OK");
        }
        server = restart(server, folder.path(), 2);
        let mut client = Client::new(&server);
        assert_eq!(client.call("PEXPIRETIME long"), time);
        assert_eq!(client.call("EXISTS short other"), "(integer) 0");
    }
}

#[test]
fn a_folder_belongs_to_one_server() {
    let folder = folder();
    let server = start(folder.path(), 1);
    let error = Server::start(options(folder.path(), 1, Policy::Never)).expect_err("it is in use");
    let expected = format!("in use by process {}", std::process::id());
    assert!(error.to_string().contains(&expected), "{error}");
    drop(server);
    stop(start(folder.path(), 1));
}

#[test]
fn keys_that_do_not_fit_are_an_error() {
    let folder = folder();
    let server = start(folder.path(), 1);
    let mut client = Client::new(&server);
    client.call("DEBUG POPULATE 200 key 100000");
    stop(server);
    let small = Options { memory_bytes: 4 << 20, ..options(folder.path(), 1, Policy::EverySecond) };
    let error = Server::start(small).expect_err("the memory is too small").to_string();
    assert!(error.contains("memory is too small") && error.contains("offset"), "{error}");
    let few = Options { databases: 1, ..options(folder.path(), 1, Policy::EverySecond) };
    stop(Server::start(few).expect("database 0 is enough"));
}

/// `WAITAOF` returns when the changes are durable.
#[test]
fn clients_wait_for_the_file() {
    let folder = folder();
    let server = start(folder.path(), 1);
    let mut client = Client::new(&server);
    client.call("SET a 1");
    assert_eq!(client.call("WAITAOF 1 0 0"), "1) (integer) 1 2) (integer) 0");
    assert_eq!(client.call("WAITAOF 0 0 0"), "1) (integer) 1 2) (integer) 0");
    assert_eq!(client.call("WAITAOF 1 1 1"), "1) (integer) 1 2) (integer) 0");
    assert_eq!(client.call("PING"), "PONG");
    assert_eq!(info(&mut client, "aof_enabled"), "1");
}

/// Both ways in which a client ends a server.
#[test]
fn a_shutdown_keeps_everything() {
    let folder = folder();
    for (number, line) in ["SHUTDOWN", "SHUTDOWN SAVE", "SHUTDOWN NOSAVE"].iter().enumerate() {
        let server = start(folder.path(), 2);
        let mut client = Client::new(&server);
        assert_eq!(client.call("INCR count"), format!("(integer) {}", number + 1));
        client.send(line);
        server.join().expect("no worker fails");
    }
}
