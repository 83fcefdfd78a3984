// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the network kit, on two hosts that are joined by a link.

use super::http::{Connections, HttpServer, Load};
use super::*;
use freeport_port::namespace::Namespace;
use freeport_port::packet::{checksum, ethernet, ipv4};
use freeport_testbed::skip;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const CLIENT_MAC: &str = "02:00:00:00:00:01";
const SERVER_MAC: &str = "02:00:00:00:00:02";
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
/// Time to wait for something that should not arrive.
const MOMENT: Duration = Duration::from_millis(300);

/// Creates two hosts; none if the process may not create any, and the test is skipped.
#[track_caller]
fn pair() -> Option<(Host, Host)> {
    if let Err(error) = Namespace::new() {
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}");
        skip("this process may not make network namespaces");
        return None;
    }
    let [client, server] = ["client", "server"].map(|name| Host::new(name).expect("permitted"));
    let ends = [(&client, "c0", CLIENT_MAC), (&server, "s0", SERVER_MAC)];
    let [one, other] = ends.map(|(host, interface, mac)| End { host, interface, mac });
    join(one, other, 1_500).expect("they can be joined");
    let to_nobody = "neigh add 10.0.0.3 lladdr 02:00:00:00:00:03 dev c0\n";
    client.ip(&format!("addr add 10.0.0.1/24 dev c0\n{to_nobody}")).expect("an address");
    server.ip("addr add 10.0.0.2/24 dev s0\n").expect("an address");
    Some((client, server))
}

fn at(address: Ipv4Addr, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(address, port)
}

#[test]
fn echoes_and_datagrams_come_back_or_are_missed() {
    let Some((client, server)) = pair() else { return };
    let echoes = echo::ping(&client, SERVER, 5, 56, PATIENCE).expect("it can be asked");
    assert_eq!((echoes.sent, echoes.round_trips.len()), (5, 5));
    let none = echo::ping(&client, NOBODY, 1, 56, MOMENT).expect("it can be asked");
    assert_eq!((none.sent, none.round_trips.len()), (1, 0));
    let _mirror = datagram::Mirror::start(&server, 7).expect("the port is free");
    let returned = datagram::ask(&client, at(SERVER, 7), 5, 1_000, PATIENCE).expect("it is there");
    assert_eq!(returned, 5);
    assert_eq!(datagram::ask(&client, at(NOBODY, 7), 1, 10, MOMENT).expect("a route"), 0);
}

#[test]
fn transfers_are_compared_byte_for_byte_and_can_be_stopped() {
    let Some((client, server)) = pair() else { return };
    let _service = bulk::serve(&server, 9).expect("the port is free");
    for direction in [bulk::Direction::Up, bulk::Direction::Down] {
        let few = bulk::start(&client, at(SERVER, 9), direction, 3_000_000).expect("it is there");
        assert_eq!(few.finish().expect("all bytes are right").bytes, 3_000_000);
        let endless = bulk::start(&client, at(SERVER, 9), direction, u64::MAX).expect("there");
        until("some bytes", || (endless.bytes() > 100_000).then_some(())).expect("they flow");
        assert!(!endless.has_ended());
        assert!(endless.stop().expect("all bytes are right").bytes > 100_000);
    }
}

#[test]
fn a_server_says_who_it_is_over_fresh_and_kept_connections() {
    let Some((client, server)) = pair() else { return };
    let http = HttpServer::start(&server, 80, "blue").expect("the port is free");
    let response = http::get(&client, at(SERVER, 80), "/", PATIENCE).expect("an answer");
    assert_eq!((response.status, response.backend.as_str()), (200, "blue"));
    assert_eq!(response.body, b"blue\n");
    let response = http::get(&client, at(SERVER, 80), "/none", PATIENCE).expect("an answer");
    assert_eq!(response.status, 404);
    // A client that gets its first turn after all requests were made opens no connection.
    for (connections, expected) in [(Connections::Fresh, 100..=100), (Connections::Kept, 1..=3)] {
        let before = http.connections();
        let load = Load {
            host: &client,
            server: at(SERVER, 80),
            path: "/bytes/5000",
            connections,
            clients: 3,
            requests: 100,
            limit: PATIENCE,
        };
        let outcome = load.run(&AtomicBool::new(false)).expect("it runs");
        assert_eq!((outcome.latencies.len(), outcome.failed()), (100, 0));
        assert_eq!(outcome.backends["blue"], 100);
        let made = http.connections() - before;
        assert!(expected.contains(&made), "{connections:?}: {made}");
    }
    assert_eq!(http.requests(), 202);
    drop(http);
    http::get(&client, at(SERVER, 80), "/", MOMENT).expect_err("it is gone");
}

#[test]
fn what_leaves_an_end_is_complete() {
    let Some((client, server)) = pair() else { return };
    let frames = server.within(all_frames).expect("root may open a raw socket");
    let _service = bulk::serve(&server, 9).expect("the port is free");
    let transfer = bulk::start(&client, at(SERVER, 9), bulk::Direction::Up, 100_000);
    transfer.expect("it is there").finish().expect("all bytes are right");
    let mut memory = vec![0; 1 << 16];
    let mut checked = 0;
    while let Ok(length) = frames.recv(&mut memory) {
        let frame = ethernet::View::new(&memory[..length]).expect("whole");
        let ip = ipv4::View::new(frame.payload()).expect("whole");
        let segment = ip.payload();
        assert!(length <= 1_514, "no segment is left to be cut");
        let sum = checksum::Sum::default();
        let sum = sum.pseudo_header(ip.source(), ip.target(), ipv4::TCP, segment.len());
        assert_eq!(sum.bytes(segment).finish(), 0, "no checksum is left open");
        checked += 1;
    }
    assert!(checked > 100_000 / 1_460, "{checked} frames");
}

/// Opens a socket that receives every frame of the host's interfaces, as a packet capture does.
fn all_frames() -> anyhow::Result<UdpSocket> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let all = (libc::ETH_P_IP as u16).to_be();
    // SAFETY: the call takes three numbers.
    let socket = unsafe { libc::socket(libc::AF_PACKET, kind, all.into()) };
    anyhow::ensure!(socket >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) }.into())
}
