// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys that are evicted when memory is full, as clients see it.

use std::io::{Read, Write};

use freeport_kv_protocol::resp::Value;
use freeport_kv_server::{EvictionPolicy, Options, Server};
use freeport_testbed::wait::wait_until;

use super::client::{Client, request, server, server_with};

/// The number behind a name in `INFO`.
fn info(client: &mut Client, name: &str) -> u64 {
    let text = client.ask("INFO all");
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.and_then(|value| value.parse().ok()).expect("INFO has the number")
}

/// Sends writes of many keys at once, and returns the number of those that succeeded.
fn write_keys(client: &mut Client, keys: usize, bytes: impl Fn(usize) -> usize) -> usize {
    let mut stored = 0;
    for first in (0..keys).step_by(100) {
        let mut requests = vec![];
        for number in first..first + 100 {
            let (key, value) = (format!("key{number}"), vec![b'v'; bytes(number)]);
            requests.extend(request(&[b"SET", key.as_bytes(), &value]));
        }
        client.stream.write_all(&requests).expect("the server reads");
        stored += (0..100).filter(|_| client.reply() == Value::Status("OK".into())).count();
    }
    stored
}

fn with_policy(policy: &str, memory_bytes: usize) -> Server {
    let eviction = EvictionPolicy::of(policy);
    server_with(Options { memory_bytes, eviction, ..Options::default() })
}

#[test]
fn memory_stays_below_the_limit_with_any_number_of_workers() {
    for workers in [1, 3] {
        let server = server(workers);
        let mut client = Client::new(&server);
        client.check("CONFIG SET maxmemory 6mb maxmemory-policy allkeys-lru", "+OK\r\n");
        assert_eq!(write_keys(&mut client, 20_000, |_| 500), 20_000);
        // Workers continue to evict between their turns.
        wait_until("enough is evicted", || info(&mut client, "used_memory") < 7 << 20);
        let keys = info_keys(&mut client);
        assert!((8_000..14_000).contains(&keys), "{keys} keys with {workers} workers");
        // They may evict between the two requests as well.
        wait_until("each key is there or was evicted", || {
            info_keys(&mut client) + info(&mut client, "evicted_keys") == 20_000
        });
        client.check("CONFIG SET maxmemory 3mb", "+OK\r\n");
        wait_until("enough is evicted", || info_keys(&mut client) < 7_000);
    }
}

fn info_keys(client: &mut Client) -> u64 {
    let Value::Integer(keys) = ({
        client.send("DBSIZE");
        client.reply()
    }) else {
        panic!("DBSIZE replies a number")
    };
    keys as u64
}

#[test]
fn a_full_memory_takes_values_of_any_size() {
    let server = with_policy("allkeys-random", 2 << 20);
    let mut client = Client::new(&server);
    // Small values first, whose blocks then have to become large ones.
    assert_eq!(write_keys(&mut client, 30_000, |_| 30), 30_000);
    assert_eq!(write_keys(&mut client, 2_000, |number| 1 << (number % 17)), 2_000);
    assert_eq!(write_keys(&mut client, 30_000, |_| 3), 30_000);
    assert!(info(&mut client, "evicted_keys") > 30_000);
    let too_large = vec![b'v'; 3 << 20];
    client.send_arguments(&[b"SET", b"key", &too_large]);
    assert!(client.raw().starts_with("-OOM "));
}

#[test]
fn writes_are_refused_if_nothing_may_be_evicted() {
    let server = server(1);
    let mut client = Client::new(&server);
    client.check("SET stays 1", "+OK\r\n");
    client.check("CONFIG SET maxmemory-policy volatile-ttl maxmemory 1", "+OK\r\n");
    let refusal = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    client.check("SET other 1", refusal);
    client.check("GET stays", "$1\r\n1\r\n");
    client.check("MULTI", "+OK\r\n");
    client.check("SET other 1", "+QUEUED\r\n");
    let discarded = "-EXECABORT Transaction discarded because of: ";
    client.check("EXEC", &format!("{discarded}{}", &refusal[1..]));
    client.check("EXEC", "-ERR EXEC without MULTI\r\n");
    let reply = client.ask("EVAL return(redis.call('set','x','y')) 0");
    assert!(reply.starts_with("-OOM ") || reply.contains("OOM"), "{reply}");
    client.check("EVAL return(redis.call('get','stays')) 0", "$1\r\n1\r\n");
    client.check("CONFIG SET maxmemory 100mb", "+OK\r\n");
    client.check("SET goes 1 EX 100", "+OK\r\n");
    client.check("CONFIG SET maxmemory 1", "+OK\r\n");
    wait_until("enough is evicted", || info_keys(&mut client) == 1);
    client.check("EXISTS stays goes", ":1\r\n");
}

#[test]
fn nothing_disappears_from_a_transaction_or_a_script_while_it_runs() {
    const KEYS: usize = 200;
    let server = with_policy("allkeys-random", 2 << 20);
    let mut client = Client::new(&server);
    let value = "v".repeat(100);
    for round in 0..20 {
        write_keys(&mut client, 10_000, |number| (number * 7 + round) % 300);
        client.check("MULTI", "+OK\r\n");
        for number in 0..KEYS {
            client.check(&format!("SET new{round}-{number} {value}"), "+QUEUED\r\n");
        }
        let keys: Vec<String> = (0..KEYS).map(|number| format!("new{round}-{number}")).collect();
        client.check(&format!("EXISTS {}", keys.join(" ")), "+QUEUED\r\n");
        client.send("EXEC");
        let Value::Array(replies) = client.reply() else { panic!("EXEC replies an array") };
        assert_eq!(replies.last(), Some(&Value::Integer(KEYS as i64)));
        let script = "for\ti=1,200\tdo\tredis.call('set','s'..i,ARGV[1])\tend\t\
                      local\tn=0\tfor\ti=1,200\tdo\tn=n+redis.call('exists','s'..i)\tend\t\
                      return\tn";
        client.check(&format!("EVAL {script} 0 {value}"), ":200\r\n");
    }
}

#[test]
fn listeners_and_those_that_watch_notice_evictions() {
    let server = server(2);
    let [mut client, mut listener, mut watcher] = std::array::from_fn(|_| Client::new(&server));
    client.check("CONFIG SET notify-keyspace-events Ee", "+OK\r\n");
    client.check("SET key 1", "+OK\r\n");
    listener.send("SUBSCRIBE __keyevent@0__:evicted");
    listener.raw();
    watcher.check("WATCH key", "+OK\r\n");
    client.check("CONFIG SET maxmemory-policy allkeys-lfu maxmemory 1", "+OK\r\n");
    let message = "1) \"message\" 2) \"__keyevent@0__:evicted\" 3) \"key\"";
    assert_eq!(listener.text(), message);
    watcher.check("MULTI", "+OK\r\n");
    watcher.check("EXEC", "*-1\r\n");
}

#[test]
fn uses_are_known_to_operators() {
    let server = server(2);
    let mut client = Client::new(&server);
    client.check("CONFIG SET maxmemory-policy allkeys-lfu lfu-log-factor 0", "+OK\r\n");
    client.check("SET key 1", "+OK\r\n");
    (0..10).for_each(|_| client.check("GET key", "$1\r\n1\r\n"));
    client.check("CLIENT NO-TOUCH ON", "+OK\r\n");
    client.check("GET key", "$1\r\n1\r\n");
    client.check("OBJECT FREQ key", ":15\r\n");
    assert!(client.ask("OBJECT IDLETIME key").starts_with("-ERR An LFU maxmemory policy is sel"));
    client.check("CONFIG SET maxmemory-policy noeviction", "+OK\r\n");
    assert!(client.ask("OBJECT FREQ key").starts_with("-ERR An LFU maxmemory policy is not"));
    client.check("OBJECT IDLETIME key", ":0\r\n");
}

#[test]
fn counts_of_keys_are_served_to_prometheus() {
    let metrics = Some("127.0.0.1:0".parse().expect("it is an address"));
    let server = server_with(Options { metrics, ..Options::default() });
    let mut client = Client::new(&server);
    client.check("SET key 1", "+OK\r\n");
    client.check("MGET key key none", "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$-1\r\n");
    assert_eq!([info(&mut client, "keyspace_hits"), info(&mut client, "keyspace_misses")], [2, 1]);
    let address = server.metrics_address().expect("counts are served");
    let mut stream = std::net::TcpStream::connect(address).expect("the server listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("the server reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("counts are text");
    for line in ["key_hits_total 2", "key_misses_total 1", "evicted_keys_total 0"] {
        assert!(text.contains(&format!("\nfreeport_kv_{line}\n")), "{line}: {text}");
    }
}
