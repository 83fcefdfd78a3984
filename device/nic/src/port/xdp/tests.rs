// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports on real interfaces: pairs of virtual ones in namespaces of the tests' own, with a raw
//! socket or another port at the other end.

use super::*;
use crate::bpf::AttachMode;
use crate::namespace::Namespace;
use crate::port::Captured;
use crate::port::conformance::{self, plain};
use crate::port::tests::far_end::{Counted, PATIENCE, RawSocket, ip, quiet_namespace};
use std::cell::RefCell;
use std::time::Instant;

/// An Ethernet header: what the kernel takes.
const SHORTEST: usize = 14;
const RING_FRAMES: u32 = 512;

/// Two pairs of interfaces, `a0` to `a1` and `b0` to `b1`, up, with that MTU.
fn pairs(namespace: &Namespace, mtu: usize) {
    let make = || {
        for pair in ["a", "b"] {
            ip(&format!("link add {pair}0 mtu {mtu} type veth peer name {pair}1 mtu {mtu}"));
            ip(&format!("link set {pair}0 up"));
            ip(&format!("link set {pair}1 up"));
        }
    };
    namespace.with(make).expect("the thread comes and goes");
}

fn within<T>(namespace: &Namespace, work: impl FnOnce() -> T) -> T {
    namespace.with(work).expect("the thread comes and goes")
}

fn options(interface: &str) -> XdpOptions {
    XdpOptions { ring_frames: RING_FRAMES, ..interface.parse().expect("a port") }
}

fn open(namespace: &Namespace, interfaces: &[&str]) -> Vec<XdpPort> {
    let options: Vec<XdpOptions> = interfaces.iter().map(|name| options(name)).collect();
    within(namespace, || XdpPort::open_all(&options)).expect("it can be opened")
}

#[test]
fn the_receiver_conforms() {
    let Some(namespace) = quiet_namespace() else { return };
    pairs(&namespace, 9_400);
    conformance::check_receiver_from(SHORTEST, |trace| {
        let port = open(&namespace, &["a0"]).pop().expect("one port");
        let far = within(&namespace, || RawSocket::on("a1"));
        trace.iter().for_each(|item| far.send(&item.bytes));
        Counted::new(port.split().0, far, trace)
    });
}

#[test]
fn the_transmitter_conforms() {
    let Some(namespace) = quiet_namespace() else { return };
    pairs(&namespace, 9_400);
    let far = RefCell::new(None);
    let make = || {
        let port = open(&namespace, &["a0"]).pop().expect("one port");
        *far.borrow_mut() = Some(within(&namespace, || RawSocket::on("a1")));
        port.split().1
    };
    conformance::check_transmitter_from(SHORTEST, make, |port| {
        let far = far.borrow();
        let far = far.as_ref().expect("it was made");
        let (mut frames, since) = (vec![], Instant::now());
        while (frames.len() as u64) < port.sent().copied {
            frames.extend(far.incoming());
            assert!(since.elapsed() < PATIENCE, "{} frames came", frames.len());
        }
        let captured = plain(&frames).into_iter().map(|it| Captured {
            bytes: it.bytes,
            original_length: it.original_length,
            timestamp_ns: it.timestamp_ns,
        });
        captured.collect()
    });
}

#[test]
fn a_port_tells_how_it_works() {
    let Some(namespace) = quiet_namespace() else { return };
    pairs(&namespace, 1_500);
    let ports = open(&namespace, &["a0", "b0/0"]);
    let mode = ports[0].mode();
    assert_eq!((mode.place, mode.queues.as_slice()), (AttachMode::Native, &[0][..]));
    let text = ports[1].mode().to_string();
    assert!(text.starts_with("xdp:b0/0: native, "), "{text}");
    assert!(text.ends_with("memory shared by 2 ports"), "{text}");
}
