// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reports of nodes on the cluster.

use freeport_kv_protocol::slots::slot_of;

use super::nodes::Nodes;

#[test]
fn the_slot_map_is_shown_in_all_forms() {
    let mut nodes = Nodes::start(3, 1);
    nodes.set(&[("0-99,200", &[0, 2]), ("100-199", &[1])]);
    let ids: Vec<String> = nodes.all.iter().map(|node| node.id.to_string()).collect();
    let ports: Vec<u16> = nodes.all.iter().map(|node| node.port()).collect();
    let mut client = nodes.all[0].client();
    let text = client.ask("CLUSTER NODES");
    // The term is what it is.
    let fields = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        [&words[..6], words.get(7..).unwrap_or_default()].concat().join(" ")
    };
    let shown: Vec<String> = text.lines().filter(|line| line.contains('@')).map(fields).collect();
    for line in [
        format!("{} 127.0.0.1:{}@0 myself,master - 0 0 connected 0-99 200", ids[0], ports[0]),
        format!("{} 127.0.0.1:{}@0 master - 0 0 connected 100-199", ids[1], ports[1]),
        format!("{} 127.0.0.1:{}@0 slave {} 0 0 connected", ids[2], ports[2], ids[0]),
    ] {
        assert!(shown.contains(&line), "{line} is in {shown:?}");
    }
    let node = |number: usize| {
        let (port, id) = (ports[number], &ids[number]);
        format!("*4\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$40\r\n{id}\r\n*0\r\n")
    };
    let first = |range: &str| format!("*4\r\n{range}{}{}", node(0), node(2));
    let slots = format!(
        "*3\r\n{}*3\r\n:100\r\n:199\r\n{}{}",
        first(":0\r\n:99\r\n"),
        node(1),
        first(":200\r\n:200\r\n")
    );
    client.check("CLUSTER SLOTS", &slots);
    let shards = client.call("CLUSTER SHARDS");
    assert!(shards.contains("replica") && shards.contains("replication-offset"), "{shards}");
    let replicas = client.call(&format!("CLUSTER REPLICAS {}", ids[0]));
    assert!(replicas.contains(&format!("slave {}", ids[0])), "{replicas}");
    client.check(
        &format!("CLUSTER REPLICAS {}", ids[2]),
        "-ERR The specified node is not a master\r\n",
    );
    client.check("CLUSTER MYID", &format!("$40\r\n{}\r\n", ids[0]));
    let my_shard = client.call("CLUSTER MYSHARDID");
    assert_eq!(my_shard, nodes.all[2].client().call("CLUSTER MYSHARDID"));
    assert_ne!(my_shard, nodes.all[1].client().call("CLUSTER MYSHARDID"));
}

#[test]
fn the_state_of_the_cluster_is_shown() {
    let mut nodes = Nodes::start(2, 1);
    let mut client = nodes.all[0].client();
    assert!(client.call("CLUSTER INFO").contains("cluster_state:fail"));
    let text = client.call("CLUSTER NODES");
    assert!(text.contains("myself,master - 0 0 0 connected"), "{text}");
    nodes.set(&[("0-8191", &[0]), ("8192-16383", &[1])]);
    let text = client.call("CLUSTER INFO");
    for line in [
        "cluster_state:ok",
        "cluster_slots_assigned:16384",
        "cluster_known_nodes:2",
        "cluster_size:2",
    ] {
        assert!(text.contains(line), "{line} is in {text}");
    }
    let info = client.call("INFO");
    assert!(info.contains("redis_mode:cluster") && info.contains("cluster_enabled:1"), "{info}");
    assert!(client.call("HELLO").contains("cluster"));
    assert!(client.call("CONFIG GET cluster-enabled").contains("yes"));
    let timeout = client.call("CONFIG GET cluster-node-timeout");
    assert!(timeout.contains("60000"), "{timeout}");
}

#[test]
fn keys_of_a_slot_are_counted_and_listed() {
    for workers in [1, 3] {
        let mut nodes = Nodes::start(1, workers);
        nodes.set(&[("0-16383", &[0])]);
        let mut client = nodes.all[0].client();
        let slot = slot_of(b"a");
        client.check(&format!("CLUSTER COUNTKEYSINSLOT {slot}"), ":0\r\n");
        for number in 0..30 {
            client.check(&format!("SET {{a}}{number} x"), "+OK\r\n");
            client.check(&format!("SET other{number} x"), "+OK\r\n");
        }
        client.check(&format!("CLUSTER COUNTKEYSINSLOT {slot}"), ":30\r\n");
        let keys = client.call(&format!("CLUSTER GETKEYSINSLOT {slot} 7"));
        assert_eq!(keys.matches("{a}").count(), 7, "{keys}");
        let keys = client.call(&format!("CLUSTER GETKEYSINSLOT {slot} 70"));
        assert_eq!(keys.matches("{a}").count(), 30, "{keys}");
    }
}

#[test]
fn commands_of_clusters_that_gossip_name_what_to_use() {
    let nodes = Nodes::start(1, 1);
    let mut client = nodes.all[0].client();
    for line in [
        "MEET 127.0.0.1 1",
        "ADDSLOTS 1",
        "ADDSLOTSRANGE 1 2",
        "DELSLOTS 1",
        "DELSLOTSRANGE 1 2",
        "FLUSHSLOTS",
        "SETSLOT 1 STABLE",
        "FORGET x",
        "REPLICATE x",
        "RESET",
    ] {
        let reply = client.call(&format!("CLUSTER {line}"));
        assert!(reply.contains("`freeport kv cluster "), "{line}: {reply}");
    }
}
