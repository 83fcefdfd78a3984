// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies of a cluster with one node beside those of redis-server, byte by byte.

use freeport_testbed::redis::RedisServer;
use freeport_testbed::wait::wait_until;

use super::nodes::Nodes;
use crate::client::Client;

/// Commands whose replies depend on nothing but the commands before, and on ids and ports.
const LINES: &str = "
ASKING
CLUSTER
CLUSTER COUNT-FAILURE-REPORTS x
CLUSTER COUNTKEYSINSLOT
CLUSTER COUNTKEYSINSLOT -1
CLUSTER COUNTKEYSINSLOT 16384
CLUSTER COUNTKEYSINSLOT x
CLUSTER COUNTKEYSINSLOT 15495
CLUSTER FAILOVER
CLUSTER FAILOVER x
CLUSTER GETKEYSINSLOT 1 -1
CLUSTER GETKEYSINSLOT 16384 1
CLUSTER GETKEYSINSLOT x 1
CLUSTER GETKEYSINSLOT 1 x
CLUSTER GETKEYSINSLOT 1 1
CLUSTER KEYSLOT a
CLUSTER KEYSLOT x{a}y
CLUSTER LINKS x
CLUSTER LINKS
CLUSTER MYID x
CLUSTER MYID
CLUSTER NOSUCH
CLUSTER REPLICAS x
CLUSTER REPLICAS 0000000000000000000000000000000000000000
CLUSTER SAVECONFIG
CLUSTER SHARDS
CLUSTER SLAVES x
CLUSTER SLOTS
CLUSTER NODES
READONLY
READONLY x
READWRITE
SELECT 0
SELECT 1
SELECT x
MOVE a 1
MOVE a x
SWAPDB 0 1
SET a 1
MGET a {a}b
MGET a b
DEL a b
COPY a b
COPY a {a}b
COPY a {a}c DB 0
COPY a {a}c DB 1
CLUSTER COUNTKEYSINSLOT 15495
SORT a BY x*
SORT {a}none BY nosort
SORT {a}none GET x
SORT_RO {a}none LIMIT 0 1 GET #
SINTERSTORE a b c
EVAL return{1} 2 a b
EVAL return{1} 1 a
EVAL return{1} 0
MULTI
SET a 1
SET b 1
EXEC
EXEC
MULTI
MSET a 1 b 1
GET a
EXEC
MULTI
GET a
STRLEN {a}x
EXEC
WATCH a b
WATCH a
UNWATCH
OBJECT ENCODING a
SPUBLISH a b
SSUBSCRIBE a b
PUBLISH a b
DBSIZE
";

/// The reply of one server, with placeholders for its id and port.
fn shown(client: &mut Client, line: &str, (id, port): (&str, u16)) -> String {
    let reply = client.ask(line).replace(id, "ID");
    // A server of Redis that has met no other does not know its own address, and has a bus.
    let bus = format!(":{port}@{}", u32::from(port) + 10_000);
    let lengths = |reply: String| match line {
        "CLUSTER NODES" => {
            reply.split_once("\r\n").map(|(_, text)| text.to_owned()).unwrap_or(reply)
        }
        _ => reply.replace("$9\r\n127.0.0.1\r\n", "$0\r\n\r\n"),
    };
    lengths(reply)
        .replace(&bus, ":PORT")
        .replace(&format!("127.0.0.1:{port}@0"), ":PORT")
        .replace(&format!(":{port}\r\n"), ":PORT\r\n")
        .replace("- 0 0 2 connected", "- 0 0 0 connected")
}

#[test]
#[ignore = "long: needs redis-server"]
fn replies_are_those_of_redis() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().to_str().expect("a path of ASCII");
    let options = ["--cluster-enabled", "yes", "--dir", folder];
    let Some(redis) = RedisServer::start(&options) else {
        freeport_testbed::skip("redis-server is not installed");
        return;
    };
    let mut theirs = Client::connect(redis.address());
    theirs.check("CLUSTER ADDSLOTSRANGE 0 16383", "+OK\r\n");
    wait_until("redis-server serves", || theirs.call("CLUSTER INFO").contains("cluster_state:ok"));
    let mut differing = vec![];
    for (workers, version) in [(1, "2"), (3, "3")] {
        let mut nodes = Nodes::start(1, workers);
        nodes.set(&[("0-16383", &[0])]);
        let mut ours = nodes.all[0].client();
        for client in [&mut ours, &mut theirs] {
            client.ask(&format!("HELLO {version}"));
            client.check("FLUSHALL", "+OK\r\n");
        }
        let our_id = nodes.all[0].id.to_string();
        let their_id = theirs.call("CLUSTER MYID");
        let their_id = their_id.trim_matches('"');
        for line in LINES.lines().filter(|line| !line.is_empty()) {
            let one = shown(&mut ours, line, (&our_id, nodes.all[0].port()));
            let other = shown(&mut theirs, line, (their_id, redis.address().port()));
            if one != other {
                differing.push(format!("{line} ({version})\n ours:  {one:?}\n redis: {other:?}"));
            }
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
