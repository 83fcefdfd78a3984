// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies of commands of operators and drivers beside those of redis-server, byte by byte.

use freeport_testbed::redis::RedisServer;

use super::client::{Client, server};

/// Commands whose replies depend on nothing but the commands before.
const LINES: &str = "
ACL CAT nosuch
ACL CAT x y
ACL GENPASS 0
ACL GENPASS 4097
ACL GENPASS x
ACL GETUSER nobody
ACL GETUSER default
ACL LIST
ACL NOSUCH
ACL USERS
ACL WHOAMI
ACL WHOAMI x
AUTH x
AUTH default x
AUTH nobody x
AUTH a b c
CLIENT
CLIENT CACHING YES
CLIENT GETNAME
CLIENT GETREDIR
CLIENT KILL 1.1.1.1:1
CLIENT KILL ID 0
CLIENT KILL ID 999999
CLIENT KILL ID x
CLIENT KILL TYPE x
CLIENT KILL USER nobody
CLIENT KILL SKIPME maybe
CLIENT KILL ADDR
CLIENT KILL LADDR 1.1.1.1:1 TYPE pubsub
CLIENT LIST ID x
CLIENT LIST ID
CLIENT LIST TYPE x
CLIENT LIST TYPE master
CLIENT LIST x
CLIENT NO-EVICT ON
CLIENT NO-EVICT OFF
CLIENT NO-EVICT x
CLIENT NOSUCH
CLIENT PAUSE -1
CLIENT PAUSE 0 x
CLIENT PAUSE 0 ALL x
CLIENT PAUSE x
CLIENT PAUSE 0
CLIENT REPLY ON
CLIENT REPLY x
CLIENT SETNAME
CLIENT SETNAME a\tb
CLIENT SETNAME name
CLIENT GETNAME
CLIENT SETNAME _
CLIENT GETNAME
CLIENT TRACKINGINFO
CLIENT TRACKING OFF
CLIENT UNBLOCK 999999
CLIENT UNBLOCK 999999 ERROR
CLIENT UNBLOCK 999999 x
CLIENT UNBLOCK x
CLIENT UNPAUSE
CLUSTER INFO
COMMAND GETKEYS GET x
COMMAND GETKEYS NOSUCH x
COMMAND GETKEYS PING x
COMMAND GETKEYS HSET h a b
COMMAND GETKEYSANDFLAGS GET x
COMMAND INFO get
COMMAND INFO echo select
COMMAND INFO nosuch
COMMAND INFO client|id
COMMAND INFO client|nosuch
COMMAND INFO acl|whoami client|pause
COMMAND LIST FILTERBY MODULE x
COMMAND LIST FILTERBY PATTERN ech*
COMMAND LIST FILTERBY x y
COMMAND LIST x
COMMAND NOSUCH
CONFIG GET
CONFIG GET nosuch
CONFIG GET maxmemory-policy
CONFIG GET HASH-MAX-LISTPACK-VALUE
CONFIG GET slowlog-log-slower-than nosuch
CONFIG GET save
CONFIG NOSUCH
CONFIG RESETSTAT x
CONFIG REWRITE
CONFIG SET appendonly 7
CONFIG SET databases 3
CONFIG SET hz 10 hz 20
CONFIG SET hz x
CONFIG SET hz 100000000000
CONFIG SET latency-monitor-threshold -1
CONFIG SET maxmemory 3zz
CONFIG SET maxmemory-policy x
CONFIG SET nosuch 1
CONFIG SET hz 10 nosuch 1
CONFIG SET notify-keyspace-events KX
CONFIG SET notify-keyspace-events gKE$
CONFIG GET notify-keyspace-events
CONFIG SET notify-keyspace-events AmKE
CONFIG GET notify-keyspace-events
CONFIG SET notify-keyspace-events _
CONFIG GET notify-keyspace-events
CONFIG SET port
CONFIG SET slowlog-max-len -4
CONFIG SET slowlog-max-len 77 latency-monitor-threshold 1000000
CONFIG GET slowlog-max-len
CONFIG SET client-query-buffer-limit 1mb
CONFIG GET client-query-buffer-limit
CONFIG SET save _
CONFIG SET timeout 1 x
DEBUG SLEEP 0
DEBUG DIGEST
DEBUG OBJECT none
DEBUG SLEEP
OBJECT ENCODING none
FAILOVER
HELLO 4
HELLO foo
HELLO 2 AUTH
HELLO 2 AUTH nobody x
HELLO 2 foo
HELLO 2 SETNAME a\tb
LATENCY DOCTOR x
LATENCY GRAPH nosuch
LATENCY HISTORY nosuch
LATENCY LATEST
LATENCY NOSUCH
LATENCY RESET nosuch
MEMORY NOSUCH
MEMORY PURGE
MEMORY USAGE
MEMORY USAGE none
MEMORY USAGE none SAMPLES x
MODULE LIST
MODULE NOSUCH
NOSUCH a b
REPLICAOF NO ONE
ROLE
SHUTDOWN ABORT
SHUTDOWN SAVE NOSAVE
SHUTDOWN x
SLOWLOG GET -2
SLOWLOG GET x
SLOWLOG NOSUCH
SLOWLOG RESET
WAIT 0 0
WAIT 1 1
WAIT x 1
WAIT 1 -1
WAIT 1 x
ACL HELP
CONFIG HELP
COMMAND HELP
SLOWLOG HELP x
SLOWLOG HELP
LATENCY HELP
MEMORY HELP
RESET
";

#[test]
#[ignore = "long: needs redis-server"]
fn replies_are_those_of_redis() {
    let Some(redis) = RedisServer::start(&[]) else {
        freeport_testbed::skip("redis-server is not installed");
        return;
    };
    let mut differing = vec![];
    for (workers, version) in [(1, "2"), (3, "3")] {
        let server = server(workers);
        let mut clients =
            [Client::connect(server.addresses()[0]), Client::connect(redis.address())];
        clients.iter_mut().for_each(|client| _ = client.ask(&format!("HELLO {version}")));
        // Redis 7.0 shows users in another form, and has other lines in the help, than 7.2.
        let is_newer = |line: &str| matches!(line, "ACL HELP" | "ACL GETUSER default" | "ACL LIST");
        for line in LINES.lines().filter(|line| !line.is_empty() && !is_newer(line)) {
            let line = line.replace("\\t", "\t");
            let [ours, theirs] = [0, 1].map(|at| clients[at].ask(&line));
            if ours != theirs {
                differing.push(format!("{line} ({version})\n ours:  {ours:?}\n redis: {theirs:?}"));
            }
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
