// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The networks: a client, its servers, and what joins them.
//!
//! In all of them hosts have the same addresses, and the client's next hop is the same apart from
//! its Ethernet address. Interfaces compute checksums and segment frames in software (see
//! [`join`]), also where only the kernel forwards them, so that each network carries the same
//! frames. The last of the networks shows the kernel with offloads.

use crate::network::http::{Connection, HttpServer};
use crate::network::{End, Freeport, Host, Launch, PATIENCE, Service, bulk, join, until};
use anyhow::{Context, Result, ensure};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Ports of the servers.
pub const HTTP: u16 = 80;
/// A port that no rule allows at first.
pub const LATE_HTTP: u16 = 8_080;
pub const BULK: u16 = 9;

/// Address of the service; with the balancer, all backends have it.
const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 9, 9, 9);
const CLIENT_MAC: &str = "02:00:00:00:00:01";
const SERVICE_MAC: &str = "02:00:00:00:00:99";
const GATEWAY_MACS: [&str; 2] = ["02:00:00:00:01:00", "02:00:00:00:01:01"];
const MTU: u32 = 1_500;
/// MTU of tunnelled links: a tunnel adds 42 bytes.
const TUNNEL_MTU: u32 = 1_600;
const BACKENDS: usize = 2;

/// Application of Freeport between the hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum App {
    /// Pass what one of four tables of rules allows
    Firewall,
    /// Tunnel each connection to one of two backends
    Balancer,
    /// Both in one program: tunnel what a rule allows
    Gateway,
}

/// How the hosts are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// By the application, on AF_XDP.
    Freeport,
    /// By kernel forwarding; to backends, by a multipath route.
    Kernel,
    /// By kernel forwarding with default offloads: virtual interfaces pass on segments of up to 64
    /// KB unsegmented, without checksums.
    KernelOffloads,
}

/// A network that is set up.
pub struct Site {
    pub way: Way,
    pub client: Host,
    /// Address of the service, with servers at [`HTTP`] and [`BULK`], and for the firewall at
    /// [`LATE_HTTP`].
    pub service: Ipv4Addr,
    pub servers: Vec<Server>,
    /// Running programs, if any; the one between the networks is first.
    pub programs: Vec<Freeport>,
    _others: Vec<Host>,
}

pub struct Server {
    pub host: Host,
    _http: [HttpServer; 2],
    _bulk: Service,
}

impl App {
    pub const ALL: [Self; 3] = [Self::Firewall, Self::Balancer, Self::Gateway];

    pub fn name(self) -> &'static str {
        match self {
            Self::Firewall => "firewall",
            Self::Balancer => "balancer",
            Self::Gateway => "gateway",
        }
    }

    fn program(self) -> &'static str {
        match self {
            Self::Firewall => "examples/gateway_firewall.cnp",
            Self::Balancer => "examples/gateway_balancer.cnp",
            Self::Gateway => "examples/gateway.cnp",
        }
    }
}

impl Way {
    pub const ALL: [Self; 3] = [Self::Freeport, Self::Kernel, Self::KernelOffloads];

    pub fn name(self) -> &'static str {
        match self {
            Self::Freeport => "freeport, AF_XDP",
            Self::Kernel => "kernel forwarding",
            Self::KernelOffloads => "kernel, offloads",
        }
    }
}

impl Server {
    fn start(host: Host) -> Result<Self> {
        Ok(Self {
            _http: [
                HttpServer::start(&host, HTTP, host.name())?,
                HttpServer::start(&host, LATE_HTTP, host.name())?,
            ],
            _bulk: bulk::serve(&host, BULK)?,
            host,
        })
    }
}

impl Site {
    /// Sets up the network, and checks that traffic flows.
    pub fn new(app: App, way: Way, launch: &Launch) -> Result<Self> {
        let [client, gateway] = ["client", "gateway"].map(Host::new);
        let (client, gateway) = (client?, gateway?);
        let ends = [(&client, "c0", CLIENT_MAC), (&gateway, "g0", GATEWAY_MACS[0])];
        link(ends, MTU, way)?;
        // The service is a neighbour behind Freeport, and otherwise behind a router.
        let via = if way == Way::Freeport { "dev c0" } else { "via 10.0.1.254" };
        client.ip(&format!("addr add 10.0.1.1/24 dev c0\nroute add 10.9.9.0/24 {via}\n"))?;
        if way != Way::Freeport {
            gateway.set("ipv4/ip_forward", "1")?;
            gateway.ip("addr add 10.0.1.254/24 dev g0\n")?;
        }
        let (service, servers, programs, _others) = (SERVICE, vec![], vec![], vec![]);
        let mut site = Self { way, client, service, servers, programs, _others };
        match app {
            App::Firewall => site.add_server(&gateway, launch)?,
            App::Balancer | App::Gateway => site.add_backends(&gateway, app, launch)?,
        }
        site._others.push(gateway);
        // Resolves all neighbours first, since that may lose a packet.
        for _ in 0..=BACKENDS {
            let ask = || Connection::open(&site.client, site.at(HTTP), PATIENCE)?.last("/");
            until("the service answers", || ask().ok())?;
        }
        Ok(site)
    }

    pub fn at(&self, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(self.service, port)
    }

    fn add_server(&mut self, gateway: &Host, launch: &Launch) -> Result<()> {
        let server = Host::new("server")?;
        let ends = [(&server, "s0", SERVICE_MAC), (gateway, "g1", GATEWAY_MACS[1])];
        link(ends, MTU, self.way)?;
        let via = if self.way == Way::Freeport { "dev s0" } else { "via 10.9.9.254" };
        server.ip(&format!("addr add {SERVICE}/24 dev s0\nroute add 10.0.1.0/24 {via}\n"))?;
        if self.way == Way::Freeport {
            self.start(gateway, App::Firewall, launch)?;
        } else {
            gateway.ip("addr add 10.9.9.254/24 dev g1\n")?;
        }
        self.servers.push(Server::start(server)?);
        Ok(())
    }

    /// Starts the program between the networks, with rules for the measured traffic.
    fn start(&mut self, gateway: &Host, app: App, launch: &Launch) -> Result<()> {
        let program = Freeport::start(launch, gateway, app.name(), &between(app))?;
        if app != App::Balancer {
            allow(&program, 1, 0)?;
            for port in [HTTP, BULK] {
                allow(&program, 6, port)?;
            }
        }
        if app != App::Firewall {
            let [front, back] = GATEWAY_MACS;
            for reported in [
                format!("set_front(10.0.1.254, 24, {front}, 0)"),
                format!("set_back(198.51.100.254, 24, {back}, 0)"),
                format!("serve({SERVICE})"),
            ] {
                let done = program.call(&format!("balancer.manager.{reported}"))?;
                ensure!(done == 1, "{reported} is rejected");
            }
        }
        self.programs.push(program);
        Ok(())
    }

    fn add_backends(&mut self, gateway: &Host, app: App, launch: &Launch) -> Result<()> {
        let switch = Host::new("switch")?;
        let ends = [(gateway, "g1", GATEWAY_MACS[1]), (&switch, "p0", "02:00:00:00:02:00")];
        link(ends, TUNNEL_MTU, self.way)?;
        switch.ip("link add br0 type bridge\nlink set br0 up\nlink set p0 master br0\n")?;
        if self.way == Way::Freeport {
            self.start(gateway, app, launch)?;
        } else {
            gateway.ip("addr add 10.0.2.254/24 dev g1\n")?;
            // Spread by addresses and ports, as the balancer does.
            gateway.set("ipv4/fib_multipath_hash_policy", "1")?;
        }
        for number in 1..=BACKENDS {
            let name = format!("backend{number}");
            let (backend, port) = (Host::new(&name)?, format!("p{number}"));
            let [own, other] =
                [1, 2].map(|kind| format!("02:00:00:00:0{kind}:{:02x}", 0x10 + number));
            link([(&backend, "u0", &own), (&switch, &port, &other)], TUNNEL_MTU, self.way)?;
            switch.ip(&format!("link set {port} master br0\n"))?;
            if self.way == Way::Freeport {
                self.end_tunnel(&backend, number, &own, launch)?;
            } else {
                backend.ip(&format!(
                    "addr add {SERVICE}/32 dev lo\naddr add 10.0.2.{number}/24 dev u0\n\
                     link set u0 mtu {MTU}\nroute add default via 10.0.2.254\n"
                ))?;
            }
            self.servers.push(Server::start(backend)?);
        }
        if self.way != Way::Freeport {
            let hops = (1..=BACKENDS).map(|number| format!(" nexthop via 10.0.2.{number}"));
            gateway.ip(&format!("route add {SERVICE}{}\n", hops.collect::<String>()))?;
        }
        self._others.push(switch);
        Ok(())
    }

    /// Starts the program on a backend, and the balancer's tunnel to it.
    fn end_tunnel(
        &mut self,
        backend: &Host,
        number: usize,
        mac: &str,
        launch: &Launch,
    ) -> Result<()> {
        backend.ip(&format!(
            "tuntap add mode tap name vip0\nlink set vip0 address {SERVICE_MAC} mtu {MTU} up\n\
             addr add {SERVICE}/32 dev vip0\nroute add 10.0.1.0/24 dev vip0 src {SERVICE}\n"
        ))?;
        let arguments = "examples/backend.cnp --in from_tor=xdp:u0 --out to_tor=xdp:u0 \
                         --in from_nic=tap:vip0 --out to_nic=tap:vip0";
        let program = Freeport::start(launch, backend, backend.name(), arguments)?;
        let own = format!("198.51.100.{number}, 24, {mac}, 198.51.100.254");
        let done = program.call(&format!("manager.set_outside({own})"))?;
        ensure!(done == 1, "{own} is rejected");
        program.call(&format!("manager.set_inside({SERVICE_MAC})"))?;
        let balancer = self.programs.first().context("the balancer is not running")?;
        let given = balancer.call(&format!("balancer.manager.add(198.51.100.{number}, 7, 1)"))?;
        ensure!(given == number - 1, "backend {number} is number {given}");
        self.programs.push(program);
        Ok(())
    }
}

/// Allows a protocol in the firewall; on this port, if it has ports.
pub fn allow(firewall: &Freeport, protocol: u8, port: u16) -> Result<()> {
    let status = firewall.call(&rule(protocol, port))?;
    ensure!(status == 0, "a rule cannot be inserted: status {status}");
    Ok(())
}

/// Returns the call that inserts such a rule.
pub fn rule(protocol: u8, port: u16) -> String {
    let mask = if port == 0 { 0 } else { u16::MAX };
    format!(
        "firewall.manager.insert({{target_port: {port}, protocol: {protocol}}}, \
         {{target_port: {mask}, protocol: 255}}, 0, 10)"
    )
}

/// Returns the arguments of a gateway.
fn between(app: App) -> String {
    format!(
        "{} --in from_tor=xdp:g0 --out to_tor=xdp:g0 --in from_nic=xdp:g1 --out to_nic=xdp:g1",
        app.program()
    )
}

fn link(ends: [(&Host, &str, &str); 2], mtu: u32, way: Way) -> Result<()> {
    let [one, other] = ends.map(|(host, interface, mac)| End { host, interface, mac });
    join(one, other, mtu)?;
    if way == Way::KernelOffloads {
        for end in [one, other] {
            end.host.leave_to_interface(end.interface)?;
        }
    }
    Ok(())
}
