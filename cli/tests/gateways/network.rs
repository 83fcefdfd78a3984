// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the tests with real traffic share: how the command is started, and which ports join it to
//! the hosts.

use freeport_bench::network::{Host, Launch};
use freeport_nic::namespace::Namespace;
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
}

/// Whether the process may make hosts; if not, says that the test is skipped.
pub fn may_make_hosts() -> bool {
    match Namespace::new() {
        Ok(_) => true,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            eprintln!("skipped: this process may not make network namespaces");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// The command as it was built for the tests, which keeps native code to themselves.
pub fn launch() -> Launch {
    Launch {
        program: env!("CARGO_BIN_EXE_freeport").into(),
        folder: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(".."),
        cache: Some(env!("CARGO_TARGET_TMPDIR").into()),
    }
}

/// Makes an interface of a host that leads to a program; how that is told of it.
pub fn lead(kind: Kind, from: (&Host, &str, &str), _to: (&Host, &str), mtu: u32) -> String {
    let (host, interface, mac) = from;
    match kind {
        Kind::Tap => make_tap(host, interface, mac, mtu),
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

/// Frames that the kernel has sent to an interface, and that it has had from it.
pub fn kernel_frames(host: &Host, interface: &str) -> (u64, u64) {
    let told =
        host.run("ip", &["-json", "-stats", "link", "show", interface]).expect("it is there");
    let told: Value = serde_json::from_str(&told).expect("ip prints JSON");
    let count = |way: &str| told[0]["stats64"][way]["packets"].as_u64().expect("a count");
    (count("tx"), count("rx"))
}

/// A port of an address.
pub fn at(address: Ipv4Addr, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(address, port)
}
