// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The load balancer of `examples/gateway_balancer.cnp` between clients and backends: each backend
//! is a host with a program that terminates its tunnel (`examples/backend.cnp`) and an unmodified
//! HTTP server. Answers return outside the tunnels, through the other direction of the balancer.

use super::network::{Kind, MOMENT, at, launch, lead, make_tap, wait_until_up};
use crate::hosts::may_make_hosts;
use freeport_bench::network::http::{self, Connection, HttpServer};
use freeport_bench::network::{Freeport, Host, PATIENCE, datagram, echo, until};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

const CLIENT_MAC: &str = "02:00:00:00:00:01";
/// Addresses of all backends inside their tunnels; the first is that of the interface.
const SERVICE_MAC: &str = "02:00:00:00:00:99";
const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 9, 9, 9);
const HTTP: u16 = 80;
const MIRROR: u16 = 7;
/// MTU of the clients, and between the balancer and the backends: a tunnel adds 42 bytes.
const INNER_MTU: u32 = 1_500;
const OUTER_MTU: u32 = 1_600;

/// A client, the balancer, a switch, and backends on the switch.
struct Site {
    kind: Kind,
    client: Host,
    switch: Host,
    balancer: Freeport,
    backends: Vec<Backend>,
    /// Makes the network, with options for the backends.
    folder: tempfile::TempDir,
}

struct Backend {
    http: HttpServer,
    tunnel: Freeport,
    _mirror: datagram::Mirror,
    _host: Host,
}

impl Site {
    fn new(kind: Kind) -> Self {
        let [client, switch, gateway] =
            ["client", "switch", "gateway"].map(|name| Host::new(name).expect("permitted"));
        let tor = lead(kind, (&client, "c0", CLIENT_MAC), (&gateway, "g0"), INNER_MTU);
        let nic = lead(kind, (&switch, "p0", "02:00:00:00:02:00"), (&gateway, "g1"), OUTER_MTU);
        let route = format!("addr add 10.0.0.1/24 dev c0\nroute add {SERVICE} dev c0\n");
        client.ip(&route).expect("an address");
        let bridge = "link add br0 type bridge\nlink set br0 up\nlink set p0 master br0\n";
        switch.ip(bridge).expect("a bridge");
        let arguments = format!(
            "examples/gateway_balancer.cnp --in from_tor={tor} --out to_tor={tor} \
             --in from_nic={nic} --out to_nic={nic}"
        );
        let balancer = Freeport::start(&launch(), &gateway, "lb", &arguments).expect("it runs");
        let front = "balancer.manager.set_front(10.0.0.254, 24, 02:00:00:00:00:fe, 0)";
        let back = "balancer.manager.set_back(198.51.100.254, 24, 02:00:00:00:01:fe, 0)";
        let serve = format!("balancer.manager.serve({SERVICE})");
        let reported = balancer.reported(&["call", front, back, &serve]);
        assert_eq!(reported.expect("it is well written"), "1\n1\n1\n");
        wait_until_up(&client, "c0");
        wait_until_up(&switch, "p0");
        let folder = tempfile::tempdir().expect("a folder");
        Self { kind, client, switch, balancer, backends: vec![], folder }
    }

    /// Starts another backend, which the balancer does not know yet.
    fn start_backend(&mut self) {
        let number = self.backends.len() + 1;
        let name = format!("backend{number}");
        let host = Host::new(&name).expect("permitted");
        let port = format!("p{number}");
        let mac = format!("02:00:00:00:02:0{number}");
        let outside = lead(self.kind, (&self.switch, &port, &mac), (&host, "u0"), OUTER_MTU);
        self.switch.ip(&format!("link set {port} master br0\n")).expect("it is joined");
        let inside = make_tap(&host, "vip0", SERVICE_MAC, INNER_MTU);
        let addresses = format!(
            "addr add {SERVICE}/32 dev vip0\nroute add 10.0.0.0/24 dev vip0 src {SERVICE}\n"
        );
        host.ip(&addresses).expect("an address");
        // A file, so that it applies again when the program is restarted.
        let initial = self.folder.path().join(format!("{name}.json"));
        let own = format!(
            r#"{{"manager": {{
                "set_outside()": [["198.51.100.{number}", 24, "02:00:00:00:01:0{number}",
                                   "198.51.100.254"]],
                "set_inside()": [["{SERVICE_MAC}"]]}}}}"#
        );
        std::fs::write(&initial, own).expect("it can be written");
        let arguments = format!(
            "examples/backend.cnp --init {} --in from_tor={outside} --out to_tor={outside} \
             --in from_nic={inside} --out to_nic={inside}",
            initial.display()
        );
        let tunnel = Freeport::start(&launch(), &host, &name, &arguments).expect("it runs");
        wait_until_up(&self.switch, &port);
        wait_until_up(&host, "vip0");
        let http = HttpServer::start(&host, HTTP, &name).expect("the port is free");
        let mirror = datagram::Mirror::start(&host, MIRROR).expect("the port is free");
        self.backends.push(Backend { http, tunnel, _mirror: mirror, _host: host });
    }

    /// Adds the last backend to the balancer.
    fn add_backend(&self) {
        let number = self.backends.len();
        let add = format!("add(198.51.100.{number}, 7, 1)");
        assert_eq!(self.reported(&add), format!("{}\n", number - 1));
    }

    /// The result of a method of the balancer's manager.
    fn reported(&self, call: &str) -> String {
        let call = format!("balancer.manager.{call}");
        self.balancer.reported(&["call", &call]).expect("it is well written")
    }

    /// A variable of an instance inside the balancer.
    fn value(&self, path: &str) -> u64 {
        self.balancer.number(&format!("balancer.{path}")).expect("it runs")
    }

    fn open(&self, count: usize) -> Vec<Kept> {
        (0..count).map(|_| Kept::open(&self.client)).collect()
    }

    /// Requests to each backend so far, in order.
    fn requests(&self) -> Vec<u64> {
        self.backends.iter().map(|backend| backend.http.requests()).collect()
    }
}

/// A connection, and the backend that answered first.
struct Kept {
    connection: Connection,
    backend: String,
}

impl Kept {
    fn open(client: &Host) -> Self {
        let mut connection =
            Connection::open(client, at(SERVICE, HTTP), PATIENCE).expect("somebody answers");
        let backend = connection.get("/").expect("an answer").backend;
        Self { connection, backend }
    }

    /// Requests a long answer, in segments of maximum size, from the backend that answered first.
    fn check(&mut self) {
        let response = self.connection.get("/bytes/100000").expect("an answer");
        assert_eq!((response.status, response.body.len()), (200, 100_000));
        assert_eq!(response.backend, self.backend, "it stays with its backend");
    }
}

/// How many connections each backend has.
fn spread(connections: &[Kept]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for kept in connections {
        *counts.entry(kept.backend.as_str()).or_default() += 1;
    }
    counts
}

#[test]
fn on_taps_connections_are_spread_and_stay_with_their_backends() {
    connections_are_spread_and_stay_with_their_backends(Kind::Tap);
}

#[test]
fn on_af_xdp_connections_are_spread_and_stay_with_their_backends() {
    connections_are_spread_and_stay_with_their_backends(Kind::Xdp);
}

fn connections_are_spread_and_stay_with_their_backends(kind: Kind) {
    if !may_make_hosts() {
        return;
    }
    let mut site = Site::new(kind);
    let nobody = http::get(&site.client, at(SERVICE, HTTP), "/", MOMENT);
    nobody.expect_err("there is no backend");
    assert!(site.value("tunnelled.flows.unserved") > 0);
    for _ in 0..2 {
        site.start_backend();
        site.add_backend();
    }
    // In turn, by their weights.
    let mut first = site.open(8);
    assert_eq!(spread(&first), BTreeMap::from([("backend1", 4), ("backend2", 4)]));
    assert_eq!((site.value("tunnelled.flows.opened"), site.requests()), (8, vec![4, 4]));
    // Another backend joins; existing connections stay where they are.
    site.start_backend();
    site.add_backend();
    let mut second = site.open(6);
    let expected = [("backend1", 2), ("backend2", 2), ("backend3", 2)];
    assert_eq!(spread(&second), BTreeMap::from(expected));
    first.iter_mut().chain(&mut second).for_each(Kept::check);
    // A backend gets no new connections; existing ones stay with it.
    assert_eq!(site.reported("remove(198.51.100.1, 7)"), "1\n");
    let third = site.open(4);
    assert_eq!(spread(&third), BTreeMap::from([("backend2", 2), ("backend3", 2)]));
    first.iter_mut().chain(&mut second).for_each(Kept::check);
    assert_eq!(site.value("tunnelled.flows.opened"), 18);
    assert_eq!(site.reported("flows_of(198.51.100.1, 7)"), "6\n");
    end_all(&site, [first, second, third]);
    check_tunnels(&site);
}

#[test]
fn on_taps_a_killed_backend_program_can_be_started_again() {
    a_killed_backend_program_can_be_started_again(Kind::Tap);
}

#[test]
fn on_af_xdp_a_killed_backend_program_can_be_started_again() {
    a_killed_backend_program_can_be_started_again(Kind::Xdp);
}

fn a_killed_backend_program_can_be_started_again(kind: Kind) {
    if !may_make_hosts() {
        return;
    }
    let mut site = Site::new(kind);
    for _ in 0..2 {
        site.start_backend();
        site.add_backend();
    }
    let mut kept = site.open(4);
    site.backends[0].tunnel.kill().expect("it runs");
    let (dead, living): (Vec<_>, Vec<_>) =
        kept.iter_mut().partition(|kept| kept.backend == "backend1");
    assert_eq!((dead.len(), living.len()), (2, 2));
    living.into_iter().for_each(Kept::check);
    site.backends[0].tunnel.restart().expect("its name and its interfaces are free");
    // Its server kept running, and so its connections survive.
    dead.into_iter().for_each(Kept::check);
    assert_eq!(site.backends[0].http.connections(), 2);
}

/// A FIN ends a flow in the balancer after a delay; a backend without flows returns its number.
fn end_all(site: &Site, connections: [Vec<Kept>; 3]) {
    for kept in connections.into_iter().flatten() {
        assert_eq!(kept.connection.last("/").expect("an answer").backend, kept.backend);
    }
    until("all flows end", || (site.value("tunnelled.flows.closed") == 18).then_some(()))
        .expect("FINs come");
    site.balancer
        .reported(&["set", "balancer.tunnelled.flows.linger=0"])
        .expect("it has such a variable");
    // Its number is free once its last flow has been removed, and not before.
    until("the removed backend is forgotten", || {
        (site.reported("sweep(65536)") == "1\n").then_some(())
    })
    .expect("nothing is sent any more");
    assert_eq!(site.reported("flows_of(198.51.100.1, 7)"), "0\n");
}

/// The balancer encapsulated as many packets as the backends decapsulated, and none was too large.
fn check_tunnels(site: &Site) {
    let out = || -> u64 {
        let taken = |it: &Backend| it.tunnel.number("own.passed").expect("it runs");
        site.backends.iter().map(taken).sum()
    };
    // The longest packets pass.
    let most = INNER_MTU as usize - 28;
    let mirrored = datagram::ask(&site.client, at(SERVICE, MIRROR), 5, most, PATIENCE);
    assert_eq!(mirrored.expect("there is a route"), 5);
    let agree = || (site.value("back.neighbours.sent") == out()).then_some(());
    until("the ends of the tunnels agree", agree).expect("nothing is lost on the way");
    assert_eq!(site.value("tunnelled.encap.refused"), 0);
    for backend in &site.backends {
        assert_eq!(backend.tunnel.number("decap.malformed").expect("it runs"), 0);
    }
    let whole = echo::ping(&site.client, SERVICE, 5, most, PATIENCE);
    assert_eq!(whole.expect("there is a route").round_trips.len(), 5, "the balancer answers");
    assert_eq!(site.value("front.echo.answered"), 5);
}
