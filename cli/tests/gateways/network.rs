// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the tests with real traffic share: how the command is started, and which ports join it to
//! the hosts.

use freeport_bench::network::{End, Host, Launch, join, until};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;

/// How long something is waited for that is not to come.
pub const MOMENT: Duration = Duration::from_millis(500);

/// What joins a program to an interface of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The interface is a TAP, whose other side is the port.
    Tap,
    /// The interface is one end of a link, at whose other end AF_XDP takes frames.
    Xdp,
}

/// The command as it was built for the tests, which keeps native code to themselves.
pub fn launch() -> Launch {
    Launch {
        program: env!("CARGO_BIN_EXE_freeport").into(),
        folder: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(".."),
        library: vec![],
        cache: Some(env!("CARGO_TARGET_TMPDIR").into()),
    }
}

/// Makes an interface of a host that leads to a program on another host, where it arrives at
/// `port`; how the program is told of it.
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

/// Makes a TAP interface that stays, so that it can be configured before a program opens it; how
/// that is told of it.
pub fn make_tap(host: &Host, interface: &str, mac: &str, mtu: u32) -> String {
    let commands = format!(
        "tuntap add mode tap name {interface}\nlink set {interface} mtu {mtu} address {mac} up\n"
    );
    host.ip(&commands).expect("a TAP interface can be made");
    format!("tap:{interface}@{}", host.path())
}

/// Waits until the kernel sends to an interface: it takes note a while after a program has opened a
/// TAP, and drops what it has to send before.
pub fn wait_until_up(host: &Host, interface: &str) {
    let is_up = || (link(host, interface)["operstate"] == "UP").then_some(());
    until("an interface is up", is_up).expect("a program has opened it");
}

/// Frames that the kernel has sent to an interface, and that it has had from it.
pub fn kernel_frames(host: &Host, interface: &str) -> (u64, u64) {
    let told = link(host, interface);
    let count = |way: &str| told["stats64"][way]["packets"].as_u64().expect("a count");
    (count("tx"), count("rx"))
}

/// What `ip` tells of an interface.
fn link(host: &Host, interface: &str) -> Value {
    let arguments = ["-json", "-stats", "link", "show", interface];
    let told = host.run("ip", &arguments).expect("it is there");
    let mut told: Value = serde_json::from_str(&told).expect("ip prints JSON");
    told[0].take()
}

/// A port of an address.
pub fn at(address: Ipv4Addr, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(address, port)
}
