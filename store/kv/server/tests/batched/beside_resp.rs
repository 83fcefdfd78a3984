// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients of both protocols see the same keys, and changes have the same consequences.

use freeport_kv_protocol::batch::{Opcode, Operation, Status};
use freeport_testbed::wait_until;

use super::client::{Served, WAYS, Way, served};

#[test]
fn both_protocols_have_the_same_keys() {
    for (workers, way) in [(1, WAYS[0]), (3, WAYS[1])] {
        let served = served(workers);
        let (mut batch, mut resp) = (served.client(way), served.resp());
        batch.put(b"a", b"1");
        assert_eq!(resp.call("GET a"), "\"1\"");
        assert_eq!(resp.call("INCR a"), "(integer) 2");
        assert_eq!(batch.get(b"a"), Some(b"2".to_vec()));
        assert_eq!(resp.call("RPUSH list x"), "(integer) 1");
        let (status, text) = batch.one(Operation::get(b"list"));
        assert_eq!(status, Status::WrongType);
        assert!(text.expect("a text").starts_with(b"WRONGTYPE "));
        assert_eq!(batch.one(Operation::delete(b"list")).0, Status::Done);
        assert_eq!(resp.call("EXISTS list"), "(integer) 0");
        assert_eq!(resp.call("SET b 1 EX 100"), "OK");
        batch.put(b"b", b"2");
        assert_eq!(resp.call("TTL b"), "(integer) -1");
    }
}

/// Batched clients of both workers, of which the second one executes the script.
#[test]
fn packets_wait_for_a_script_that_runs_for_long() {
    let served = served(2);
    let [mut client, mut runner] = [(); 2].map(|()| served.resp());
    assert_eq!(client.call("CONFIG SET busy-reply-threshold 1"), "OK");
    runner.send_arguments(&[b"EVAL", b"while true do end", b"0"]);
    drop(served.resp());
    let mut witness = served.resp();
    wait_until("the script runs for long", || witness.call("PING").contains("BUSY"));
    let mut waiting = [(); 2].map(|()| served.client(Way::Tcp));
    let batches = waiting.each_mut().map(|client| client.send(&[Operation::get(b"key")]));
    drop(served.resp());
    let mut new = served.resp();
    assert_eq!(new.call("SCRIPT KILL"), "OK");
    assert!(runner.text().contains("Script killed by user"));
    for (client, batch) in waiting.iter_mut().zip(batches) {
        assert_eq!(client.replies(batch)[0].0, Status::NotFound);
    }
}

/// Function 3 is `add`; type 3 is `u64`, and type 1 `u16`.
#[test]
fn functions_change_values_where_they_are() {
    let served = served(2);
    let (mut batch, mut resp) = (served.client(Way::Tcp), served.resp());
    batch.put(b"counter", &5_u64.to_le_bytes());
    let seven = 7_u64.to_le_bytes();
    let add = Operation::call(Opcode::Update, b"counter", 3, 3, &seven);
    assert_eq!(batch.one(add), (Status::Done, Some(5_u64.to_le_bytes().to_vec())));
    assert_eq!(batch.one(add.without_return()), (Status::Done, None));
    assert_eq!(resp.call("KV.UPDATE counter add u64 1"), "\"19\"");
    assert_eq!(batch.get(b"counter"), Some(20_u64.to_le_bytes().to_vec()));
    batch.put(b"vector", &[1, 0, 2, 0, 3, 0]);
    let sum = Operation::call(Opcode::Reduce, b"vector", 32, 1, &[0; 8]);
    assert_eq!(batch.one(sum), (Status::Done, Some(6_u64.to_le_bytes().to_vec())));
    let missing = Operation::call(Opcode::Update, b"none", 3, 3, &seven);
    assert_eq!(batch.one(missing), (Status::NotFound, None));
    let odd = Operation::call(Opcode::Update, b"vector", 3, 3, &seven);
    assert_eq!(batch.one(odd).0, Status::Refused);
    assert!(batch.one(Operation::functions()).1.is_some_and(|list| list.len() > 100));
}

#[test]
fn a_transaction_notices_a_batched_write_of_a_key_that_it_watches() {
    for workers in [1, 3] {
        let served = served(workers);
        let (mut batch, mut resp) = (served.client(Way::Fabric), served.resp());
        batch.put(b"a", b"1");
        assert_eq!(resp.call("WATCH a"), "OK");
        batch.get(b"a");
        assert_eq!(resp.call("MULTI"), "OK");
        assert_eq!(resp.call("GET a"), "QUEUED");
        assert_eq!(resp.call("EXEC"), "1) \"1\"");
        assert_eq!(resp.call("WATCH a"), "OK");
        batch.put(b"a", b"2");
        assert_eq!(resp.call("MULTI"), "OK");
        assert_eq!(resp.call("GET a"), "QUEUED");
        assert_eq!(resp.call("EXEC"), "(nil)");
    }
}

#[test]
fn listeners_to_keyspace_events_notice_batched_writes() {
    let served = served(3);
    let (mut batch, mut resp, mut listener) =
        (served.client(Way::Tcp), served.resp(), served.resp());
    assert_eq!(resp.call("CONFIG SET notify-keyspace-events EA"), "OK");
    listener.call("PSUBSCRIBE __keyevent@0__:*");
    let keys: Vec<String> = (0..20).map(|key| format!("key{key}")).collect();
    let puts: Vec<_> = keys.iter().map(|key| Operation::put(key.as_bytes(), b"1")).collect();
    batch.run(&puts);
    assert_eq!(batch.one(Operation::delete(b"key7")).0, Status::Done);
    let mut events: Vec<String> = (0..20).map(|_| listener.text()).collect();
    assert!(events.iter().all(|event| event.contains(":set\"")), "{events:?}");
    events.dedup();
    assert_eq!(events.len(), 20, "one for each key");
    assert!(listener.text().contains(":del\" 4) \"key7\""));
}

/// Clients with copies of keys, or of all keys with a prefix, get a notice of each change.
#[test]
fn copies_end_with_batched_writes() {
    for (workers, way) in [(1, Way::Tcp), (3, Way::Fabric)] {
        for mode in ["", " BCAST"] {
            let served = served(workers);
            let (mut batch, mut resp, mut listener) =
                (served.client(way), served.resp(), served.resp());
            let id = listener.call("CLIENT ID").replace("(integer) ", "");
            listener.call("SUBSCRIBE __redis__:invalidate");
            assert_eq!(resp.call(&format!("CLIENT TRACKING ON REDIRECT {id}{mode}")), "OK");
            batch.put(b"a", &5_u64.to_le_bytes());
            if mode.is_empty() {
                resp.call("GET a");
            } else {
                assert!(listener.text().contains("\"a\""), "a put");
            }
            let one = 1_u64.to_le_bytes();
            let add = Operation::call(Opcode::Update, b"a", 3, 3, &one);
            assert_eq!(batch.one(add).0, Status::Done);
            assert!(listener.text().contains("\"a\""), "an update");
            resp.call("GET a");
            assert_eq!(batch.one(Operation::delete(b"a")).0, Status::Done);
            assert!(listener.text().contains("\"a\""), "a delete");
        }
    }
}

#[test]
fn monitors_see_operations_as_commands() {
    let served = served(2);
    let (mut batch, mut monitor) = (served.client(Way::Tcp), served.resp());
    assert_eq!(monitor.call("MONITOR"), "OK");
    batch.run(&[Operation::put(b"a", b"1"), Operation::get(b"b")]);
    for shown in ["\"SET\" \"a\" \"1\"", "\"GET\" \"b\""] {
        let line = monitor.raw();
        assert!(line.contains(shown), "{line}");
    }
}

/// A pause of writes holds a packet with a write, and no other.
#[test]
fn packets_wait_for_the_end_of_a_pause() {
    let served = served(1);
    let (mut batch, mut resp) = (served.client(Way::Fabric), served.resp());
    batch.put(b"a", b"1");
    assert_eq!(resp.call("CLIENT PAUSE 100000 WRITE"), "OK");
    assert_eq!(batch.get(b"a"), Some(b"1".to_vec()));
    let waits = batch.send(&[Operation::get(b"a"), Operation::put(b"a", b"2")]);
    freeport_testbed::wait_until("it waits", || resp.ask("CLIENT LIST").contains("flags=bU"));
    assert_eq!(resp.call("GET a"), "\"1\"");
    assert_eq!(resp.call("CLIENT UNPAUSE"), "OK");
    let expected = [(Status::Done, Some(b"1".to_vec())), (Status::Done, None)];
    assert_eq!(batch.replies(waits), expected);
}

/// Commands that need all keys, and packets for all workers.
#[test]
fn transactions_over_all_workers_and_packets_do_not_stop_each_other() {
    let served: Served = served(3);
    std::thread::scope(|scope| {
        for way in WAYS {
            let mut batch = served.client(way);
            scope.spawn(move || {
                let keys: Vec<String> = (0..30).map(|key| format!("k{key}")).collect();
                for round in 0..200_u32 {
                    let value = round.to_le_bytes();
                    let puts: Vec<_> =
                        keys.iter().map(|key| Operation::put(key.as_bytes(), &value)).collect();
                    let replies = batch.run(&puts);
                    assert!(replies.iter().all(|(status, _)| *status == Status::Done));
                }
            });
        }
        let mut resp = served.resp();
        scope.spawn(move || {
            for round in 0..200 {
                assert_eq!(resp.call(&format!("MSET k1 {round} k2 {round} k3 {round}")), "OK");
                assert_eq!(resp.call("MULTI"), "OK");
                assert_eq!(resp.call("MGET k1 k2 k3"), "QUEUED");
                assert_ne!(resp.call("EXEC"), "(nil)");
            }
        });
    });
}
