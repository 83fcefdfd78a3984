// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The system asks idle clients whether they are still there (`tcp-keepalive`).

use std::net::SocketAddr;

use freeport_testbed::wait_until;

use super::client::{Client, server};

/// Kind of the timer of a connection by its two addresses: 2 is that of keepalive probes.
fn timer(local: SocketAddr, remote: SocketAddr) -> u8 {
    let shown = |address: SocketAddr| format!("0100007F:{:04X}", address.port());
    let text = std::fs::read_to_string("/proc/net/tcp").expect("the system has TCP");
    let line = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find(|words| {
        words.get(1) == Some(&&*shown(local)) && words.get(2) == Some(&&*shown(remote))
    });
    let line = line.expect("the connection exists");
    u8::from_str_radix(&line[5][..2], 16).expect("it is a number")
}

#[test]
fn the_system_probes_idle_connections() {
    let server = server(2);
    let address = server.addresses()[0];
    let mut operator = Client::connect(address);
    assert_eq!(operator.call("CONFIG GET tcp-keepalive"), "1) \"tcp-keepalive\" 2) \"300\"");
    for (seconds, kind) in [("300", 2), ("0", 0), ("1", 2)] {
        assert_eq!(operator.call(&format!("CONFIG SET tcp-keepalive {seconds}")), "OK");
        let mut client = Client::connect(address);
        assert_eq!(client.call("PING"), "PONG");
        let remote = client.stream.local_addr().expect("it is connected");
        // Until the reply is acknowledged, another timer runs.
        wait_until("it has the timer", || timer(address, remote) == kind);
    }
}
