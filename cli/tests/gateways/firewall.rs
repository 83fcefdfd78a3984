// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The firewall of `examples/gateway_firewall.cnp` between a client and a server: unmodified stacks
//! and programs on separate hosts that are connected only by the running command.

use super::network::{Kind, MOMENT, at, kernel_frames, launch, lead, wait_until_up};
use crate::hosts::may_make_hosts;
use freeport_bench::network::bulk::{self, Direction};
use freeport_bench::network::http::{self, Connection, Connections, HttpServer, Load, Outcome};
use freeport_bench::network::{Freeport, Host, PATIENCE, Service, datagram, echo, until};
use freeport_testbed::skip;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;

const CLIENT_MAC: &str = "02:00:00:00:00:01";
const SERVER_MAC: &str = "02:00:00:00:00:02";
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const HTTP: u16 = 80;
const BULK: u16 = 9;
/// Bytes of a transfer that must complete.
const BULK_BYTES: u64 = 20_000_000;
/// Requests of a round.
const REQUESTS: u64 = 200;

/// A client and a server with the firewall between them.
struct Site {
    client: Host,
    server: Host,
    firewall: Freeport,
    http: HttpServer,
    _bulk: Service,
    _mirror: datagram::Mirror,
}

impl Site {
    fn new(kind: Kind, initial: Option<&str>) -> Self {
        let [client, server, gateway] =
            ["client", "server", "gateway"].map(|name| Host::new(name).expect("permitted"));
        let tor = lead(kind, (&client, "c0", CLIENT_MAC), (&gateway, "g0"), 1_500);
        let nic = lead(kind, (&server, "s0", SERVER_MAC), (&gateway, "g1"), 1_500);
        client.ip("addr add 10.0.0.1/24 dev c0\n").expect("an address");
        server.ip("addr add 10.0.0.2/24 dev s0\n").expect("an address");
        let initial = initial.map(|file| format!("--init {file}")).unwrap_or_default();
        let arguments = format!(
            "examples/gateway_firewall.cnp {initial} --in from_tor={tor} --out to_tor={tor} \
             --in from_nic={nic} --out to_nic={nic}"
        );
        let firewall = Freeport::start(&launch(), &gateway, "fw", &arguments).expect("it runs");
        wait_until_up(&client, "c0");
        wait_until_up(&server, "s0");
        Self {
            http: HttpServer::start(&server, HTTP, "server").expect("the port is free"),
            _bulk: bulk::serve(&server, BULK).expect("the port is free"),
            _mirror: datagram::Mirror::start(&server, 7).expect("the port is free"),
            client,
            server,
            firewall,
        }
    }

    /// Adds a rule that passes a protocol, to this port if it has ports.
    fn allow(&self, protocol: u8, port: u16) {
        assert_eq!(self.change("insert", protocol, port, ", 0, 10"), "0\n", "it is inserted");
    }

    fn forbid(&self, protocol: u8, port: u16) {
        assert_eq!(self.change("remove", protocol, port, ""), "0\n", "it is removed");
    }

    fn change(&self, method: &str, protocol: u8, port: u16, rest: &str) -> String {
        let mask = if port == 0 { 0 } else { u16::MAX };
        let call = format!(
            "firewall.manager.{method}({{target_port: {port}, protocol: {protocol}}}, \
             {{target_port: {mask}, protocol: 255}}{rest})"
        );
        self.firewall.reported(&["call", &call]).expect("it is well written")
    }

    fn pings(&self, count: u16) -> u64 {
        let wait = if count > 3 { PATIENCE } else { MOMENT };
        echo::ping(&self.client, SERVER, count, 56, wait)
            .expect("there is a route")
            .round_trips
            .len()
    }

    fn load(&self, connections: Connections) -> Outcome {
        let load = Load {
            host: &self.client,
            server: at(SERVER, HTTP),
            path: "/bytes/2000",
            connections,
            clients: 4,
            requests: REQUESTS,
            limit: PATIENCE,
        };
        load.run(&AtomicBool::new(false)).expect("it runs")
    }

    fn transfer(&self, direction: Direction, bytes: u64) -> bulk::Transfer {
        bulk::start(&self.client, at(SERVER, BULK), direction, bytes).expect("it is allowed")
    }

    /// Waits until this number of further bytes of a transfer has arrived.
    fn wait_for(&self, transfer: &bulk::Transfer, bytes: u64) {
        let before = transfer.bytes();
        let more = || (transfer.bytes() >= before + bytes || transfer.has_ended()).then_some(());
        until("a transfer goes on", more).expect("it goes on");
        assert!(!transfer.has_ended(), "it has no end");
    }

    fn no_http(&self) {
        let refused = http::get(&self.client, at(SERVER, HTTP), "/", MOMENT);
        let error = refused.expect_err("there is no rule");
        assert!(format!("{error:#}").contains("no connection"), "{error:#}");
    }
}

#[test]
fn on_taps_only_what_is_allowed_passes() {
    only_what_is_allowed_passes(Kind::Tap);
}

#[test]
fn on_af_xdp_only_what_is_allowed_passes() {
    only_what_is_allowed_passes(Kind::Xdp);
}

fn only_what_is_allowed_passes(kind: Kind) {
    if !may_make_hosts() {
        return;
    }
    let site = Site::new(kind, None);
    // Nothing is allowed, and all packets are counted.
    assert_eq!(site.pings(2), 0);
    site.no_http();
    let missed = datagram::ask(&site.client, at(SERVER, 7), 3, 100, MOMENT / 5);
    assert_eq!(missed.expect("there is a route"), 0);
    let fw = &site.firewall;
    let value = |path: &str| fw.number(path).expect("it runs");
    let passed = fw.endpoint("to_nic", "frames").expect("it runs");
    assert_eq!(passed, value("firewall.allowed.passed"), "nothing but ARP");
    assert!(passed > 0, "they have to find each other");
    assert!(value("firewall.ipv4.buffer.unmatched") >= 2 + 1 + 3);
    // A rule passes echoes and nothing else.
    site.allow(1, 0);
    assert_eq!(site.pings(20), 20);
    assert_eq!(value("firewall.ipv4.buffer.sent"), 20);
    site.no_http();
    site.allow(17, 7);
    let back = datagram::ask(&site.client, at(SERVER, 7), 20, 1_000, PATIENCE);
    assert_eq!(back.expect("there is a route"), 20);
    site.allow(6, BULK);
    for direction in [Direction::Up, Direction::Down] {
        let done = site.transfer(direction, BULK_BYTES).finish().expect("all bytes are right");
        eprintln!("{kind:?} {direction:?}: {:.0} MB/s", done.megabytes_per_second());
        assert_eq!(done.bytes, BULK_BYTES);
    }
    counters_agree(&site);
}

#[test]
fn on_taps_rules_come_and_go_beside_a_transfer() {
    rules_come_and_go_beside_a_transfer(Kind::Tap);
}

#[test]
fn on_af_xdp_rules_come_and_go_beside_a_transfer() {
    rules_come_and_go_beside_a_transfer(Kind::Xdp);
}

fn rules_come_and_go_beside_a_transfer(kind: Kind) {
    if !may_make_hosts() {
        return;
    }
    let site = Site::new(kind, None);
    site.allow(6, BULK);
    let transfer = site.transfer(Direction::Up, u64::MAX);
    site.wait_for(&transfer, 1_000_000);
    site.no_http();
    site.allow(6, HTTP);
    for connections in [Connections::Fresh, Connections::Kept] {
        let outcome = site.load(connections);
        let [p50, p99] = [0.5, 0.99].map(|part| outcome.latencies.quantile(part) / 1e3);
        let rate = outcome.per_second();
        eprintln!("{kind:?} {connections:?}: {rate:.0}/s, {p50:.1} us, {p99:.1} us");
        assert_eq!(outcome.failures, Default::default());
        assert_eq!(outcome.answered.len() as u64, REQUESTS);
    }
    assert_eq!(site.http.requests(), 2 * REQUESTS);
    // The wait for packets that must not arrive is no longer than this; on a loaded machine,
    // allowed packets may take longer.
    let attempt = || {
        let mut kept = Connection::open(&site.client, at(SERVER, HTTP), MOMENT).ok()?;
        kept.get("/").is_ok().then_some(kept)
    };
    let mut kept = until("it is allowed", attempt).expect("it is allowed");
    let requests = site.http.requests();
    site.wait_for(&transfer, 1_000_000);
    site.forbid(6, HTTP);
    kept.get("/").expect_err("it was forbidden");
    site.no_http();
    assert_eq!(site.http.requests(), requests);
    site.wait_for(&transfer, 1_000_000);
    transfer.stop().expect("every byte was right");
    counters_agree(&site);
}

/// Counters of the firewall match those of the kernels on both sides, and add up.
fn counters_agree(site: &Site) {
    let fw = &site.firewall;
    let count = |endpoint: &str| fw.endpoint(endpoint, "frames").expect("it runs");
    let value = |path: &str| fw.number(path).expect("it runs");
    // The last acknowledgements may still be in flight.
    let agree = || {
        let (sent, received) = kernel_frames(&site.client, "c0");
        let (replied, arrived) = kernel_frames(&site.server, "s0");
        let ours = [count("from_tor"), count("to_nic"), count("from_nic"), count("to_tor")];
        (ours == [sent, arrived, replied, received]).then_some(())
    };
    until("the counters agree with those of the kernels", agree).unwrap_or_else(|error| {
        let kernels = [kernel_frames(&site.client, "c0"), kernel_frames(&site.server, "s0")];
        panic!("{error}: {kernels:?}, {}", fw.statistics().expect("it runs"))
    });
    let beside = value("firewall.allowed.passed");
    assert_eq!(count("to_nic"), value("firewall.ipv4.buffer.sent") + beside);
    let whole = value("firewall.ipv4.parse.whole");
    assert_eq!(whole + beside, count("from_tor"), "nothing but whole IPv4 and ARP is under way");
    let ended = ["sent", "unmatched", "refused", "others"];
    let ended = ended.map(|it| value(&format!("firewall.ipv4.buffer.{it}")));
    assert_eq!(whole, ended.iter().sum::<u64>());
}

#[test]
fn on_taps_ipv6_passes_when_the_policy_says_so() {
    ipv6_passes_when_the_policy_says_so(Kind::Tap);
}

#[test]
fn on_af_xdp_ipv6_passes_when_the_policy_says_so() {
    ipv6_passes_when_the_policy_says_so(Kind::Xdp);
}

fn ipv6_passes_when_the_policy_says_so(kind: Kind) {
    if !may_make_hosts() {
        return;
    }
    let site = Site::new(kind, None);
    for (host, interface, own) in [(&site.client, "c0", "fd00::1"), (&site.server, "s0", "fd00::2")]
    {
        let switch = format!("ipv6/conf/{interface}/disable_ipv6");
        if host.set(&switch, "0").is_err() {
            skip("this kernel has no IPv6");
            return;
        }
        let address = format!("addr add {own}/64 dev {interface} nodad\n");
        host.ip(&address).expect("an address");
    }
    let server = SocketAddr::from((Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2), HTTP));
    let listening = site.server.within(|| Ok(TcpListener::bind(server)?)).expect("it is free");
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let serving = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listening.accept()?;
        let mut request = [0; 100];
        assert!(stream.read(&mut request)? > 0);
        stream.write_all(answer.as_bytes())
    });
    let connect = || site.client.within(|| Ok(TcpStream::connect_timeout(&server, MOMENT)?));
    let call = |call: &str| site.firewall.reported(&["call", call]).expect("it is well written");
    connect().expect_err("no IPv6 passes at first");
    assert!(site.firewall.number("firewall.allowed.dropped").expect("it runs") > 0);
    assert_eq!(call("firewall.manager.policy(0x86dd, 1)"), "1\n");
    let mut stream = until("it passes", || connect().ok()).expect("neighbours are found");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").expect("it is there");
    let mut reported = String::new();
    stream.read_to_string(&mut reported).expect("an answer");
    assert_eq!(reported, answer);
    serving.join().expect("no panic").expect("it serves");
    assert_eq!(call("firewall.manager.policy(0x86dd, 0)"), "1\n");
    connect().expect_err("no more");
}

#[test]
fn on_taps_a_killed_firewall_can_be_started_again() {
    a_killed_firewall_can_be_started_again(Kind::Tap);
}

#[test]
fn on_af_xdp_a_killed_firewall_can_be_started_again() {
    a_killed_firewall_can_be_started_again(Kind::Xdp);
}

fn a_killed_firewall_can_be_started_again(kind: Kind) {
    if !may_make_hosts() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let initial = folder.path().join("rules.json");
    let rules = format!(
        r#"{{"firewall.manager": {{"insert()": [
            [{{"protocol": 1}}, {{"protocol": 255}}, 0, 10],
            [{{"target_port": {BULK}, "protocol": 6}}, {{"target_port": 65535, "protocol": 255}},
             0, 10]]}}}}"#
    );
    std::fs::write(&initial, rules).expect("it can be written");
    let mut site = Site::new(kind, initial.to_str());
    assert_eq!(site.pings(5), 5);
    let transfer = site.transfer(Direction::Up, u64::MAX);
    site.wait_for(&transfer, 1_000_000);
    site.firewall.kill().expect("it runs");
    assert_eq!(site.pings(2), 0, "nobody carries it");
    assert!(!transfer.has_ended(), "the stacks on both sides are patient");
    site.firewall.restart().expect("its name and its interfaces are free");
    wait_until_up(&site.client, "c0");
    wait_until_up(&site.server, "s0");
    assert_eq!(site.pings(5), 5);
    // The same connection, without losing a byte.
    site.wait_for(&transfer, 1_000_000);
    transfer.stop().expect("every byte was right");
    site.no_http();
}
