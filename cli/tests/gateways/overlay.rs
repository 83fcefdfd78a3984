// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The VXLAN tunnel of `examples/overlay.cnp` with the VXLAN device of the kernel as the peer: each
//! side decapsulates the packets of the other, whatever the tunnel carries.

use super::network::{Kind, MOMENT, at, launch, lead, make_tap, wait_until_up};
use crate::hosts::may_make_hosts;
use freeport_bench::network::bulk::{self, Direction};
use freeport_bench::network::http::{self, HttpServer};
use freeport_bench::network::{Freeport, Host, PATIENCE, echo};
use std::net::Ipv4Addr;

const KERNEL_MAC: &str = "02:00:00:00:01:02";
const OURS: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 1);
const KERNELS: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 2);
const HTTP: u16 = 80;
const BULK: u16 = 9;
/// Bytes of a transfer in each direction.
const BULK_BYTES: u64 = 5_000_000;
/// MTU of the virtual network: 50 bytes less than outside.
const INNER_MTU: u32 = 1_450;

/// A host with the kernel's VXLAN device `vx0`, and one whose interface `ov0` is the program's.
struct Site {
    kernel: Host,
    ours: Host,
    overlay: Freeport,
}

impl Site {
    /// Makes the hosts, with options for the kernel's device.
    fn new(kind: Kind, options: &str) -> Self {
        let [kernel, ours] = ["kernel", "ours"].map(|name| Host::new(name).expect("permitted"));
        let outside = lead(kind, (&kernel, "k0", KERNEL_MAC), (&ours, "g0"), 1_500);
        let inside = make_tap(&ours, "ov0", "02:00:00:00:07:01", INNER_MTU);
        ours.ip(&format!("addr add {OURS}/24 dev ov0\n")).expect("an address");
        kernel.ip("addr add 192.0.2.2/24 dev k0\n").expect("an address");
        let site = Self {
            overlay: Freeport::start(
                &launch(),
                &ours,
                "overlay",
                &format!(
                    "examples/overlay.cnp --init examples/overlay.json --in from_tor={outside} \
                     --out to_tor={outside} --in from_nic={inside} --out to_nic={inside}"
                ),
            )
            .expect("it runs"),
            kernel,
            ours,
        };
        wait_until_up(&site.kernel, "k0");
        wait_until_up(&site.ours, "ov0");
        site.add_device("vx0", 7, options);
        site.kernel.ip(&format!("addr add {KERNELS}/24 dev vx0\n")).expect("an address");
        site
    }

    /// Makes a VXLAN device of the kernel.
    fn add_device(&self, name: &str, network: u32, options: &str) {
        let commands = format!(
            "link add {name} type vxlan id {network} local 192.0.2.2 remote 192.0.2.1 \
             dstport 4789 dev k0 {options}\nlink set {name} mtu {INNER_MTU} up\n"
        );
        self.kernel.ip(&commands).expect("the kernel knows VXLAN");
    }

    fn value(&self, path: &str) -> u64 {
        self.overlay.number(path).expect("it runs")
    }
}

#[test]
fn on_taps_the_kernel_is_the_other_end() {
    the_kernel_is_the_other_end(Kind::Tap, "noudpcsum");
}

#[test]
fn on_taps_the_kernel_is_the_other_end_with_checksums() {
    the_kernel_is_the_other_end(Kind::Tap, "udpcsum");
}

#[test]
fn on_af_xdp_the_kernel_is_the_other_end() {
    the_kernel_is_the_other_end(Kind::Xdp, "noudpcsum");
}

#[test]
fn on_af_xdp_the_kernel_is_the_other_end_with_checksums() {
    the_kernel_is_the_other_end(Kind::Xdp, "udpcsum");
}

fn the_kernel_is_the_other_end(kind: Kind, options: &str) {
    if !may_make_hosts() {
        return;
    }
    let site = Site::new(kind, options);
    let front = echo::ping(&site.kernel, Ipv4Addr::new(192, 0, 2, 1), 2, 56, PATIENCE);
    assert_eq!(front.expect("there is a route").round_trips.len(), 2, "the end itself answers");
    // No inner Ethernet address is configured: ARP resolves them through the tunnel.
    let longest = INNER_MTU as usize - 28;
    for (from, target) in [(&site.ours, KERNELS), (&site.kernel, OURS)] {
        for bytes in [0, 56, longest] {
            let echoes = echo::ping(from, target, 3, bytes, PATIENCE).expect("there is a route");
            assert_eq!(echoes.round_trips.len(), 3, "{bytes} bytes to {target}");
        }
    }
    for (server, client, target) in
        [(&site.ours, &site.kernel, OURS), (&site.kernel, &site.ours, KERNELS)]
    {
        let _http = HttpServer::start(server, HTTP, "server").expect("the port is free");
        let answer = http::get(client, at(target, HTTP), "/bytes/20000", PATIENCE);
        assert_eq!(answer.expect("an answer").body.len(), 20_000);
        let _bulk = bulk::serve(server, BULK).expect("the port is free");
        for direction in [Direction::Up, Direction::Down] {
            let transfer = bulk::start(client, at(target, BULK), direction, BULK_BYTES);
            let done = transfer.expect("a connection").finish().expect("all of it arrives");
            assert_eq!(done.bytes, BULK_BYTES);
        }
    }
    assert!(site.value("decap.received") > 0);
    for counter in ["decap.malformed", "decap.bad_checksums", "own.foreign", "encap.refused"] {
        assert_eq!(site.value(counter), 0, "{counter}");
    }
    check_isolation(&site, options);
}

/// Another network on the same tunnel does not reach this one, although its addresses are equal.
fn check_isolation(site: &Site, options: &str) {
    site.kernel.ip("link set vx0 down\n").expect("it is there");
    site.add_device("vx8", 8, options);
    site.kernel.ip(&format!("addr add {KERNELS}/24 dev vx8\n")).expect("an address");
    let echoes = echo::ping(&site.kernel, OURS, 2, 56, MOMENT).expect("there is a route");
    assert_eq!(echoes.round_trips.len(), 0);
    assert!(site.value("own.foreign") > 0);
}
