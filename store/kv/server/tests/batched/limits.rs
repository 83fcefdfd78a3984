// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that do not read, servers without memory, and too many clients.

use freeport_kv_protocol::batch::{Operation, Status};
use freeport_kv_server::{EvictionPolicy, Options};
use freeport_testbed::wait_until;

use super::client::{BatchClient, Served, WAYS, Way, served, served_with};

/// A field of `CLIENT LIST` of the client that is not the operator.
fn field(list: &str, name: &str) -> Option<u64> {
    let line = list.lines().find(|line| line.contains("id=") && !line.contains("cmd=client"))?;
    let word = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
    word.parse().ok()
}

/// More replies than the server keeps are asked for at once.
#[test]
fn replies_wait_for_a_client_that_does_not_read() {
    const PACKETS: usize = 1_500;
    const VALUE_BYTES: usize = 50_000;
    for way in WAYS {
        let served = served(1);
        let mut resp = served.resp();
        let mut client = served.client(way);
        client.put(b"key", &vec![b'x'; VALUE_BYTES]);
        let batches: Vec<u32> =
            (0..PACKETS).map(|_| client.send(&[Operation::get(b"key")])).collect();
        wait_until("its replies wait", || {
            let list = resp.ask("CLIENT LIST");
            field(&list, "omem").is_some_and(|bytes| bytes > 256 << 10)
        });
        let unsent = field(&resp.ask("CLIENT LIST"), "omem").expect("it is there");
        assert!(unsent < (256 << 10) + 4 * VALUE_BYTES as u64, "{unsent}");
        served.client(Way::Fabric).put(b"other", b"1");
        for batch in batches {
            let replies = client.replies(batch);
            assert_eq!(replies[0].1.as_ref().map(Vec::len), Some(VALUE_BYTES));
        }
        client.put(b"key", b"1");
    }
}

/// A client that has asked for much, and goes.
#[test]
fn nothing_is_left_of_a_client_that_never_reads() {
    for way in WAYS {
        let served = served(2);
        let mut client = served.client(way);
        client.put(b"key", &vec![b'x'; 100_000]);
        for _ in 0..500 {
            client.send(&[Operation::get(b"key")]);
        }
        drop(client);
        wait_until("it has gone", || served.server.census().connections == 0);
    }
}

fn fill(client: &mut BatchClient, keys: usize) -> Vec<Status> {
    let mut statuses = vec![];
    for first in (0..keys).step_by(100) {
        let keys: Vec<String> = (first..first + 100).map(|key| format!("key{key}")).collect();
        let value = [b'x'; 1_000];
        let puts: Vec<_> = keys.iter().map(|key| Operation::put(key.as_bytes(), &value)).collect();
        statuses.extend(client.run(&puts).into_iter().map(|(status, _)| status));
    }
    statuses
}

fn small(eviction: Option<EvictionPolicy>) -> Served {
    served_with(Options { memory_bytes: 8 << 20, eviction, ..Options::default() })
}

#[test]
fn puts_are_refused_when_memory_is_full() {
    let served = small(None);
    let mut client = served.client(Way::Tcp);
    let statuses = fill(&mut client, 20_000);
    let refused = statuses.iter().filter(|status| **status == Status::OutOfMemory).count();
    let done = statuses.iter().filter(|status| **status == Status::Done).count();
    assert_eq!(refused + done, statuses.len());
    assert!(refused > 5_000 && done > 2_000, "{refused} {done}");
    assert!(client.get(b"key0").is_some());
    let mut resp = served.resp();
    assert_eq!(resp.call("CONFIG SET maxmemory 1"), "OK");
    let replies = client.run(&[
        Operation::put(b"key0", b"1"),
        Operation::get(b"key0"),
        Operation::delete(b"key0"),
    ]);
    let statuses: Vec<Status> = replies.into_iter().map(|(status, _)| status).collect();
    assert_eq!(statuses, [Status::OutOfMemory, Status::Done, Status::Done]);
}

#[test]
fn keys_are_evicted_for_puts() {
    let served = small(EvictionPolicy::of("allkeys-lru"));
    let mut client = served.client(Way::Fabric);
    let statuses = fill(&mut client, 20_000);
    assert!(statuses.iter().all(|status| *status == Status::Done));
    assert!(client.get(b"key19999").is_some(), "the last one stays");
    let info = served.resp().ask("INFO stats");
    let evicted = info.lines().find_map(|line| line.strip_prefix("evicted_keys:"));
    assert!(evicted.is_some_and(|count| count.parse::<u64>().is_ok_and(|count| count > 5_000)));
}

#[test]
fn clients_above_the_maximum_are_refused() {
    let served = served_with(Options { clients_max: 2, ..Options::default() });
    let [mut one, mut two] = WAYS.map(|way| served.client(way));
    one.put(b"a", b"1");
    two.put(b"b", b"1");
    let mut third = served.client(Way::Tcp);
    assert_eq!(third.error(), "max number of clients reached");
    assert!(third.is_closed());
    // The socket closes before its hello is answered.
    let socket = std::os::unix::net::UnixStream::connect(served.path()).expect("it listens");
    let refused = freeport_fabric::shm::Connection::connect(socket, &Default::default());
    assert!(refused.is_err());
}

#[test]
fn idle_clients_are_disconnected() {
    let served = served(1);
    let mut resp = served.resp();
    let mut clients = WAYS.map(|way| served.client(way));
    clients.iter_mut().for_each(|client| client.put(b"a", b"1"));
    assert_eq!(resp.call("CONFIG SET timeout 1"), "OK");
    wait_until("they have gone", || {
        resp.call("PING");
        served.server.census().connections == 1
    });
    assert!(clients.iter_mut().all(BatchClient::is_closed));
}
