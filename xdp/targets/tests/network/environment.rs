// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The network of the tests as the interpreter's environment.

use freeport_ebpf::interpreter::{Device, Environment, Neighbour, Route, Way};
use std::net::IpAddr;

/// Returns the environment that describes the network.
pub fn environment() -> Environment {
    let device = |ifindex, address| Device { ifindex, address, mtu: 1500, forwards: true };
    let route = |target: &str, prefix_bits, way| Route {
        target: parsed(target),
        prefix_bits,
        metric: 0,
        way,
    };
    let out = |ifindex, gateway: Option<&str>| Way::Out { ifindex, gateway: gateway.map(parsed) };
    Environment {
        devices: vec![
            Device { mtu: 65_536, ..device(1, [0; 6]) },
            device(2, [2, 0, 0, 0, 2, 1]),
            device(3, [2, 0, 0, 0, 3, 1]),
        ],
        routes: vec![
            route("10.9.2.0", 24, out(2, None)),
            route("10.9.3.0", 24, out(3, None)),
            route("10.9.2.1", 32, Way::Local),
            route("10.9.3.1", 32, Way::Local),
            route("10.0.0.0", 24, out(2, Some("10.9.2.2"))),
            route("10.0.1.0", 24, out(3, Some("10.9.3.2"))),
            route("10.0.2.0", 24, Way::Blackhole),
            route("192.0.2.8", 32, Way::Unreachable),
            route("192.0.2.9", 32, Way::Prohibited),
            route("2001:db8:902::", 64, out(2, None)),
            route("2001:db8:902::1", 128, Way::Local),
            route("2001:db8:0::", 48, out(2, Some("2001:db8:902::2"))),
            route("2001:db8:1::", 48, out(2, Some("2001:db8:902::2"))),
            route("2001:db8:2::", 48, Way::Blackhole),
        ],
        neighbours: ["10.9.2.2", "2001:db8:902::2"]
            .map(|address| Neighbour {
                address: parsed(address),
                ifindex: 2,
                link_address: [2, 0, 0, 0, 2, 2],
            })
            .to_vec(),
        ..Environment::default()
    }
}

fn parsed(address: &str) -> IpAddr {
    address.parse().expect("an address")
}
