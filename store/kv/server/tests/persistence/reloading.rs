// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `DEBUG LOADAOF`: the keys of a running server come from its folder again.

use freeport_kv_server::Policy;

use super::{digest, folder, info, options, start};
use crate::client::{Client, server_with};

#[test]
fn keys_come_from_the_folder_again() {
    for (workers, policy) in [(1, Policy::Always), (3, Policy::EverySecond)] {
        let folder = folder();
        let server = server_with(options(folder.path(), workers, policy));
        let mut client = Client::new(&server);
        for number in 0..500 {
            client.call(&format!("SET key{number} {number} EX 1000"));
            client.call(&format!("SADD set{} {number}", number % 7));
        }
        client.call("SPOP set3 20");
        let before = digest(&server);
        // With a snapshot that is being written, and with the one that replaces it.
        for command in ["BGREWRITEAOF", "SAVE", "SET after 1"] {
            client.call(command);
            let expected = digest(&server);
            assert_eq!(client.call("DEBUG LOADAOF"), "OK", "{command}");
            assert_eq!(digest(&server), expected, "{command}");
        }
        client.call("DEL after");
        assert_eq!(digest(&server), before);
        assert_eq!(info(&mut client, "aof_last_write_status"), "ok");
        drop(server);
        let again = start(folder.path(), 2);
        assert_eq!(digest(&again), before);
    }
}

/// The keys are really read: those of another folder's files are there afterwards.
#[test]
fn keys_that_only_the_folder_has_come() {
    let [one, other] = [folder(), folder()];
    for (folder, value) in [(&one, "1"), (&other, "2")] {
        let server = start(folder.path(), 1);
        Client::new(&server).call(&format!("SET key {value}"));
    }
    let server = start(one.path(), 1);
    let mut client = Client::new(&server);
    for entry in std::fs::read_dir(other.path()).expect("it is a folder") {
        let file = entry.expect("it can be read").path();
        let name = file.file_name().expect("files have names");
        std::fs::copy(&file, one.path().join(name)).expect("files can be replaced");
    }
    assert_eq!(client.call("DEBUG LOADAOF"), "OK");
    assert_eq!(client.call("GET key"), "\"2\"");
    client.call("MULTI");
    client.call("SET key 3");
    client.call("DEBUG LOADAOF");
    assert!(client.call("EXEC").contains("ERR DEBUG cannot reload inside a transaction"));
    assert_eq!(client.call("GET key"), "\"3\"");
}

#[test]
fn a_folder_that_cannot_be_read_changes_no_keys() {
    let folder = folder();
    let server = start(folder.path(), 1);
    let mut client = Client::new(&server);
    client.call("SET key 1");
    let manifest = folder.path().join("manifest");
    std::fs::remove_file(&manifest).expect("there is a manifest");
    let refused = client.call("DEBUG LOADAOF");
    assert!(refused.starts_with("(error) ERR Error trying to load the AOF: "), "{refused}");
    assert_eq!(client.call("GET key"), "\"1\"");
}
