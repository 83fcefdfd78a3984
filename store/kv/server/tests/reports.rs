// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reports of the server on itself.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use freeport_kv_server::Options;
use freeport_testbed::wait_until;

use super::client::{Client, server, server_with};

#[test]
fn sections_are_shown_as_asked_for() {
    let server = server(3);
    let mut client = Client::connect(server.addresses()[0]);
    for key in 0..20 {
        client.check(&format!("SET {key} 1"), "+OK\r\n");
    }
    client.check("SELECT 5", "+OK\r\n");
    client.check("SADD key 1", ":1\r\n");
    client.ask("GET key");
    let all = client.ask("INFO everything");
    let value = |name: &str| field(&all, name);
    assert_eq!(value("role").as_deref(), Some("master"));
    assert_eq!(value("db0").as_deref(), Some("keys=20,expires=0,avg_ttl=0"));
    assert_eq!(value("db5").as_deref(), Some("keys=1,expires=0,avg_ttl=0"));
    assert_eq!(value("errorstat_WRONGTYPE").as_deref(), Some("count=1"));
    assert_eq!(value("tcp_port"), Some(server.addresses()[0].port().to_string()));
    assert!(value("cmdstat_set").is_some_and(|it| it.starts_with("calls=20,usec=")), "{all}");
    assert!(value("cmdstat_get").is_some_and(|it| it.ends_with("rejected_calls=0,failed_calls=1")));
    assert!(value("latency_percentiles_usec_set").is_some_and(|it| it.starts_with("p50=")));
    assert_eq!(value("total_commands_processed").as_deref(), Some("23"));
    let sections = |reply: &str| -> Vec<String> {
        let titles = reply.lines().filter_map(|line| line.strip_prefix("# "));
        titles.map(str::to_owned).collect()
    };
    assert_eq!(sections(&client.ask("INFO keyspace CPU")), ["CPU", "Keyspace"]);
    assert_eq!(client.ask("INFO nosuch"), "$0\r\n\r\n");
    assert!(!sections(&client.ask("INFO")).contains(&"Commandstats".to_owned()));
    for line in ["MULTI", "PING", "PING", "ECHO x", "EXEC"] {
        client.ask(line);
    }
    let calls = client.ask("INFO commandstats");
    for (name, count) in [("ping", 2), ("echo", 1), ("exec", 1), ("multi", 1)] {
        let value = field(&calls, &format!("cmdstat_{name}")).unwrap_or_default();
        assert!(value.starts_with(&format!("calls={count},")), "{name}: {value}");
    }
    client.check("CONFIG RESETSTAT", "+OK\r\n");
    let statistics = client.ask("INFO commandstats");
    assert_eq!(field(&statistics, "cmdstat_set"), None);
}

#[test]
fn subcommands_are_counted_and_waits_once() {
    let server = server(1);
    let [mut client, mut other] = [0, 1].map(|_| Client::connect(server.addresses()[0]));
    for line in ["CONFIG GET hz", "CONFIG GET port", "CLIENT ID", "BLPOP none 0.001"] {
        client.ask(line);
    }
    other.send("BLPOP list 0");
    freeport_testbed::wait::wait_until("a client is blocked", || {
        client.ask("INFO clients").contains("blocked_clients:1")
    });
    client.check("RPUSH list x", ":1\r\n");
    other.reply();
    let calls = client.ask("INFO commandstats");
    for (name, count) in [("config|get", 2), ("client|id", 1), ("blpop", 2)] {
        let value = field(&calls, &format!("cmdstat_{name}")).unwrap_or_default();
        assert!(value.starts_with(&format!("calls={count},")), "{name}: {value}");
    }
    assert_eq!(field(&calls, "cmdstat_config"), None);
    let latencies = client.ask("INFO latencystats");
    assert!(field(&latencies, "latency_percentiles_usec_config|get").is_some(), "{latencies}");
    let histogram = client.ask("LATENCY HISTOGRAM config nosuch");
    assert!(histogram.starts_with("*2\r\n$10\r\nconfig|get\r\n"), "{histogram}");
    assert!(other.ask("CLIENT LIST").contains(" cmd=latency|histogram "));
}

#[test]
fn slow_commands_are_noted() {
    let server = server(2);
    let mut client = Client::connect(server.addresses()[0]);
    client.check("CLIENT SETNAME slow", "+OK\r\n");
    client.check("CONFIG SET slowlog-log-slower-than 0 latency-monitor-threshold 1", "+OK\r\n");
    client.check("DEBUG SLEEP 0.002", "+OK\r\n");
    client.check("CONFIG SET slowlog-log-slower-than -1", "+OK\r\n");
    client.check("PING", "+PONG\r\n");
    let entries = client.ask("SLOWLOG GET -1");
    assert!(entries.contains("*3\r\n$5\r\nDEBUG\r\n$5\r\nSLEEP\r\n$5\r\n0.002\r\n"), "{entries}");
    assert!(entries.contains("\r\n$4\r\nslow\r\n") && !entries.contains("PING"), "{entries}");
    let latest = client.ask("LATENCY LATEST");
    assert!(latest.starts_with("*1\r\n*4\r\n$7\r\ncommand\r\n:"), "{latest}");
    assert!(client.ask("LATENCY HISTORY command").starts_with("*1\r\n*2\r\n:"));
    let histogram = client.ask("LATENCY HISTOGRAM debug nosuch");
    assert!(histogram.starts_with("*2\r\n$5\r\ndebug\r\n*4\r\n$5\r\ncalls\r\n:1\r\n"));
    client.check("SLOWLOG RESET", "+OK\r\n");
    client.check("SLOWLOG LEN", ":0\r\n");
    client.check("LATENCY RESET", ":1\r\n");
}

#[test]
fn commands_are_described() {
    let server = server(1);
    let mut client = Client::connect(server.addresses()[0]);
    let count: usize = client.ask("COMMAND COUNT")[1..].trim_end().parse().expect("a number");
    assert!(client.ask("COMMAND").starts_with(&format!("*{count}\r\n*10\r\n")));
    assert!(client.ask("COMMAND INFO").starts_with(&format!("*{count}\r\n*10\r\n")));
    let names = client.ask("COMMAND LIST");
    assert!(names.contains("\r\nclient\r\n") && names.contains("\r\nclient|list\r\n"));
    let docs = client.ask("COMMAND DOCS client nosuch");
    assert!(docs.starts_with("*2\r\n$6\r\nclient\r\n*8\r\n$7\r\nsummary\r\n"), "{docs}");
    assert!(docs.contains("$11\r\nclient|list\r\n"));
    let strings = client.ask("ACL CAT string");
    assert!(strings.contains("$3\r\nget\r\n") && !strings.contains("$4\r\nping\r\n"));
}

#[test]
fn counts_are_served_to_prometheus() {
    let metrics = Some((Ipv4Addr::LOCALHOST, 0).into());
    let server = server_with(Options { workers: 2, metrics, ..Options::default() });
    let mut client = Client::connect(server.addresses()[0]);
    for key in 0..10 {
        client.check(&format!("SET {key} 1"), "+OK\r\n");
    }
    client.ask("SADD 1 1");
    let get = |path: &str| {
        let address = server.metrics_address().expect("it serves counts");
        let mut stream = TcpStream::connect(address).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("it replies and closes");
        reply
    };
    let reply = get("/metrics");
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"));
    for line in [
        "freeport_kv_commands_total{command=\"set\"} 10",
        "freeport_kv_commands_failed_total{command=\"sadd\"} 1",
        "freeport_kv_errors_total{code=\"WRONGTYPE\"} 1",
        "freeport_kv_connected_clients 1",
        "# TYPE freeport_kv_keys gauge",
    ] {
        assert!(reply.lines().any(|one| one == line), "{line} is not in {reply}");
    }
    wait_until("workers publish their sizes", || {
        get("/metrics").lines().any(|line| line == "freeport_kv_keys 10")
    });
    assert!(get("/").starts_with("HTTP/1.1 404 "));
}

#[test]
fn the_server_says_what_it_has_not() {
    let server = server(1);
    let mut client = Client::connect(server.addresses()[0]);
    for line in ["SAVE", "BGSAVE", "BGREWRITEAOF", "SHUTDOWN SAVE"] {
        client.check(line, "-ERR persistence is not configured\r\n");
    }
    assert!(client.ask("REPLICAOF 127.0.0.1 1").contains("needs a folder"));
    assert!(client.ask("PSYNC ? -1").contains("replicas of Redis cannot follow"));
    client.check("REPLICAOF NO ONE", "+OK\r\n");
    client.check("WAITAOF 0 0 0", "*2\r\n:0\r\n:0\r\n");
    assert!(client.ask("TIME").starts_with("*2\r\n$10\r\n"));
    assert!(client.ask("LOLWUT").contains("Redis ver. 7.2"));
    assert!(client.ask("MEMORY STATS").contains("keys.count"));
    client.check("SET key value", "+OK\r\n");
    assert!(client.ask("MEMORY USAGE key").starts_with(':'));
    assert!(client.ask("DEBUG OBJECT key").contains("encoding:embstr"));
    client.send("SHUTDOWN NOSAVE");
    assert!(client.is_closed());
    server.join().expect("it has ended");
}

/// The value of a name in a text of lines such as `name:value`.
fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.split(':').next() == Some(name))?;
    line.split_once(':').map(|(_, value)| value.trim_end().to_owned())
}
