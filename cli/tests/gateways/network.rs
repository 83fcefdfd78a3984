// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shared parts of the tests with real traffic: starting the command, and the ports that join it to
//! the hosts.

use freeport_bench::network::{End, Host, Launch, join, until};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;

/// How long to wait for something that must not arrive.
pub const MOMENT: Duration = Duration::from_millis(500);

/// The kind of link between a program and a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The interface is a TAP, whose other side is the port.
    Tap,
    /// The interface is one end of a veth pair, and an AF_XDP port is at the peer.
    Xdp,
}

/// The command under test, with a cache of native code that only tests use.
pub fn launch() -> Launch {
    Launch {
        program: env!("CARGO_BIN_EXE_freeport").into(),
        folder: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(".."),
        library: vec![],
        cache: Some(env!("CARGO_TARGET_TMPDIR").into()),
    }
}

/// Creates an interface of a host that is linked to a program on another host, where it is called
/// `port`; returns the port as the program names it.
pub fn lead(kind: Kind, from: (&Host, &str, &str), to: (&Host, &str), mtu: u32) -> String {
    let (host, interface, mac) = from;
    match kind {
        Kind::Tap => make_tap(host, interface, mac, mtu),
        Kind::Xdp => {
            let port_mac = mac.replace("02:00:", "02:01:");
            let there = End { host: to.0, interface: to.1, mac: &port_mac };
            join(End { host, interface, mac }, there, mtu).expect("they can be joined");
            format!("xdp:{}", to.1)
        }
    }
}

/// Creates a persistent TAP interface, so that it can be configured before a program opens it;
/// returns the port as the program names it.
pub fn make_tap(host: &Host, interface: &str, mac: &str, mtu: u32) -> String {
    let commands = format!(
        "tuntap add mode tap name {interface}\nlink set {interface} mtu {mtu} address {mac} up\n"
    );
    host.ip(&commands).expect("a TAP interface can be made");
    format!("tap:{interface}@{}", host.path())
}

/// Waits until the kernel transmits on an interface. It notices some time after a program has
/// opened a TAP, and drops packets before that.
pub fn wait_until_up(host: &Host, interface: &str) {
    let is_up = || (link(host, interface)["operstate"] == "UP").then_some(());
    until("an interface is up", is_up).expect("a program has opened it");
}

/// Numbers of frames that the kernel has sent to and received from an interface.
pub fn kernel_frames(host: &Host, interface: &str) -> (u64, u64) {
    let reported = link(host, interface);
    let count = |way: &str| reported["stats64"][way]["packets"].as_u64().expect("a count");
    (count("tx"), count("rx"))
}

/// Output of `ip` about an interface.
fn link(host: &Host, interface: &str) -> Value {
    let arguments = ["-json", "-stats", "link", "show", interface];
    let reported = host.run("ip", &arguments).expect("it is there");
    let mut reported: Value = serde_json::from_str(&reported).expect("ip prints JSON");
    reported[0].take()
}

/// A port of an address.
pub fn at(address: Ipv4Addr, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(address, port)
}
