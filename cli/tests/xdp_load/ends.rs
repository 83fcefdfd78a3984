// SPDX-License-Identifier: Apache-2.0 OR MIT
//! After any end of the program, its interfaces are in their original state.

use super::place::{Net, address, know_neighbours, link, mac};
use crate::hosts::may_make_hosts;
use freeport_bench::network::{echo, until};
use freeport_testbed::skip;
use freeport_xdp::Kernel;
use std::time::Duration;

/// Drops all packets.
const DROP: &str = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
    SEC(\"xdp\") int drop(struct xdp_md *context) { return context ? XDP_DROP : XDP_PASS; }\n";
const MIDDLE: usize = 3;
const SILENCE: Duration = Duration::from_millis(200);

fn is_answered(net: &Net) -> bool {
    let echoes = echo::ping(&net.sides[0], address(MIDDLE), 1, 56, SILENCE).unwrap();
    !echoes.round_trips.is_empty()
}

fn however_it_ends(on: &str) {
    if !may_make_hosts() {
        return;
    }
    let net = Net::new();
    let (m0, address, mac) = (link(0), address(MIDDLE), mac(MIDDLE));
    net.middle
        .ip(&format!("link set {m0} address {mac}\naddr add {address}/24 dev {m0}\n"))
        .unwrap();
    know_neighbours(&net.middle, &m0, MIDDLE);
    let object = net.object(DROP);
    let words = ["--on", on, "--port", "m0", "--port", "m1"];
    for end in ["stop", "SIGINT", "SIGTERM", "SIGKILL"] {
        until("it answers", || is_answered(&net).then_some(())).unwrap();
        let loaded = net.load(&object, &words);
        let reported = net.reported(&["ps"]);
        assert!(
            reported.contains(&format!("xdp on {on}")) && reported.contains("drop=xdp:m1"),
            "{reported}"
        );
        assert!(!is_answered(&net), "it is dropped");
        let links = net.middle.run("ip", &["link", "show", "dev", "m1"]).unwrap();
        assert!(links.contains("xdp"), "{links}");
        match end {
            "stop" => drop(loaded.stop()),
            "SIGKILL" => {
                loaded.signal(libc::SIGKILL);
                assert!(!loaded.ended().0);
            }
            _ => {
                loaded.signal(if end == "SIGINT" { libc::SIGINT } else { libc::SIGTERM });
                let (is_well, said) = loaded.ended();
                assert!(is_well, "{end}: {said}");
            }
        }
        // The kernel releases the queue of a socket shortly after the end of its process.
        until("it answers again", || is_answered(&net).then_some(())).unwrap();
        let links = net.middle.run("ip", &["link", "show"]).unwrap();
        assert!(!links.contains("xdp"), "{end}: {links}");
        assert_eq!(net.reported(&["ps"]), "");
    }
}

#[test]
fn in_the_interpreter() {
    however_it_ends("interpreter");
}

#[test]
fn in_the_kernel() {
    match Kernel::refusal() {
        Some(reason) => skip(reason),
        None => however_it_ends("kernel"),
    }
}

fn whose_interface_is_deleted(on: &str, reason: &str) {
    if !may_make_hosts() {
        return;
    }
    let net = Net::new();
    let object = net.object(DROP);
    let loaded = net.load(&object, &["--on", on, "--port", "m0", "--port", "m1"]);
    net.middle.run("ip", &["link", "delete", "m0"]).unwrap();
    let (is_well, said) = loaded.ended();
    assert!(!is_well && said.contains(reason), "{said}");
    assert!(said.contains("xdp:m1 (ifindex "), "its statistics are printed: {said}");
    let links = net.middle.run("ip", &["link", "show"]).unwrap();
    assert!(!links.contains("xdp"), "{links}");
}

#[test]
fn in_the_interpreter_when_an_interface_is_deleted() {
    whose_interface_is_deleted("interpreter", "m0");
}

#[test]
fn in_the_kernel_when_an_interface_is_deleted() {
    match Kernel::refusal() {
        Some(reason) => skip(reason),
        None => whose_interface_is_deleted("kernel", "xdp:m0: the interface is gone"),
    }
}

#[test]
fn a_mode_that_was_asked_for_is_told_as_such() {
    if !may_make_hosts() {
        return;
    }
    if let Some(reason) = Kernel::refusal() {
        return skip(reason);
    }
    let net = Net::new();
    let object = net.object(DROP);
    let loaded = net.load(&object, &["--on", "kernel", "--port", "m0", "--mode", "generic"]);
    let said = loaded.stop();
    assert!(said.contains("xdp:m0: generic: in the network stack, as requested\n"), "{said}");
}
