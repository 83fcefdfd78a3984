// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients of the batched protocol in `CLIENT LIST` and `INFO`.

use freeport_kv_protocol::batch::Operation;
use freeport_testbed::wait_until;

use super::client::{Way, served};

#[test]
fn clients_are_listed_and_can_be_killed() {
    for workers in [1, 3] {
        let served = served(workers);
        let mut resp = served.resp();
        let (mut tcp, mut fabric) = (served.client(Way::Tcp), served.client(Way::Fabric));
        tcp.put(b"a", b"1");
        fabric.put(b"b", b"1");
        let list = resp.ask("CLIENT LIST");
        let path = served.path();
        let line = list.lines().find(|line| line.contains(&format!("addr={}", path.display())));
        let line = line.expect("the one over the fabric is there");
        assert!(line.contains(" flags=U ") && line.contains(" user=default "), "{line}");
        let id = line.strip_prefix("id=").and_then(|rest| rest.split(' ').next()).expect("an id");
        assert_eq!(resp.call(&format!("CLIENT KILL ID {id}")), "(integer) 1");
        assert!(fabric.is_closed());
        assert_eq!(resp.call("CLIENT KILL SKIPME yes"), "(integer) 1");
        assert!(tcp.is_closed());
        wait_until("they have gone", || served.server.census().connections == 1);
    }
}

#[test]
fn operations_are_counted() {
    let served = served(2);
    let mut resp = served.resp();
    let mut client = served.client(Way::Fabric);
    client.put(b"a", b"1");
    client.run(&[Operation::get(b"a"), Operation::get(b"none"), Operation::get(b"b")]);
    let mut field = |section: &str, name: &str| -> String {
        let text = resp.ask(&format!("INFO {section}"));
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("{name} is in {text}")).to_owned()
    };
    assert_eq!(field("stats", "batched_operations"), "4");
    assert_eq!(field("stats", "keyspace_hits"), "1");
    assert_eq!(field("stats", "keyspace_misses"), "2");
    assert_eq!(field("clients", "batched_clients"), "1");
}
