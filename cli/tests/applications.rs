// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The applications of `examples/` on the sample capture, run as commands, with the tables that the
//! files beside them fill.

use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The capture that most applications run on.
const SAMPLE: &str = "examples/traces/sample.pcap";

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs an application on the sample capture; returns its output and the capture it writes.
fn run(application: &str, machine: &str, gets: &[&str]) -> (String, Vec<u8>) {
    let gets = gets.iter().flat_map(|get| ["--get", get]);
    run_to("to_tor", application, machine, &gets.collect::<Vec<_>>())
}

/// The same with the endpoint that frames leave by, and further arguments.
fn run_to(end: &str, application: &str, machine: &str, others: &[&str]) -> (String, Vec<u8>) {
    run_on(Path::new(SAMPLE), end, application, machine, others)
}

/// The same on another capture.
fn run_on(
    capture: &Path,
    end: &str,
    application: &str,
    machine: &str,
    others: &[&str],
) -> (String, Vec<u8>) {
    let [program, initial] = ["cnp", "json"].map(|kind| format!("examples/{application}.{kind}"));
    run_files([&program, &initial], capture, end, machine, others)
}

/// The same for a program and a file that fills its tables.
fn run_files(
    [program, initial]: [&str; 2],
    capture: &Path,
    end: &str,
    machine: &str,
    others: &[&str],
) -> (String, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.pcap");
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(["run", program, "--init", initial, "--on", machine]);
    command.args(["--in", &format!("from_tor={}", capture.display())]);
    command.args(["--out", &format!("{end}={}", out.display())]).args(others);
    command.current_dir(repository()).stdin(Stdio::null());
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")).env_remove("FREEPORT_ELEMENTS");
    let output = command.output().expect("it can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let reported = String::from_utf8(output.stdout).expect("it is text");
    (reported, std::fs::read(out).expect("it was written"))
}

/// Runs the application on both devices, which must agree; returns its output and the number of
/// frames that it sent.
fn run_on_both(application: &str, gets: &[&str]) -> (String, usize) {
    let native = run(application, "native", gets);
    let interpreted = run(application, "interpreter", gets);
    assert_eq!(native.0, interpreted.0);
    assert!(native.1 == interpreted.1, "the captures differ");
    (native.0, frames(&native.1).len())
}

/// The frames of a capture.
fn frames(capture: &[u8]) -> Vec<&[u8]> {
    let mut left = &capture[24..];
    let mut frames = vec![];
    while let Some(header) = left.get(..16) {
        let length = u32::from_le_bytes(header[8..12].try_into().expect("4 bytes"));
        let (frame, rest) = left[16..].split_at(length as usize);
        frames.push(frame);
        left = rest;
    }
    frames
}

/// Firewall and balancer in a row, as in `examples/gateway.cnp`, which accepts only frames to its
/// own address.
const BOTH: &str = "Firewall :: firewall\nBalancer<FLOW_BITS = 16> :: balancer\n\
                    from_tor -> firewall -> balancer -> to_tor\n";

#[test]
fn a_balancer_tunnels_what_a_firewall_before_it_passes() {
    let http = "firewall.manager.insert({target_port: 80, protocol: 6}, \
                {target_port: 65535, protocol: 255}, 0, 10)";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("both.cnp");
    std::fs::write(&program, BOTH).expect("it can be written");
    let files = [program.to_str().expect("it is text"), "examples/balancer.json"];
    let run = |machine| run_files(files, Path::new(SAMPLE), "to_tor", machine, &["--call", http]).1;
    let both = run("native");
    assert!(both == run("interpreter"), "the captures differ");
    let tunnelled: Vec<&[u8]> = frames(&both).iter().map(|frame| &frame[42..]).collect();
    let (_, passed) = run_to("to_nic", "gateway_firewall", "native", &["--call", http]);
    // The packets to port 80; the capture has none to port 22, and no echoes.
    assert_eq!(tunnelled.len(), 43);
    assert!(tunnelled == frames(&passed), "what is in the tunnels is what went in");
}

#[test]
fn the_firewall_passes_what_its_four_tables_allow() {
    let gets = ["sent", "refused", "unmatched"].map(|it| format!("firewall.buffer.{it}"));
    let (reported, frames) = run_on_both("firewall", &gets.each_ref().map(String::as_str));
    // Among the 43 packets to port 80, 10 are to the prefix that is dropped, with 19 others; 6 have
    // an exact rule, and 11 one with a mask of its own.
    let counters = "firewall.buffer.sent = 50\nfirewall.buffer.refused = 29\n\
                    firewall.buffer.unmatched = 21\n";
    assert_eq!((reported.as_str(), frames), (counters, 50));
}

#[test]
fn the_router_sends_what_has_a_route_and_a_next_hop() {
    let gets = ["forward.sent", "forward.unrouted", "parse.bad_checksums", "unrouted.sent"];
    let (reported, frames) = run_on_both("router", &gets);
    // One packet of the capture has a wrong checksum; 6 have a route without a next hop, which
    // their sources are informed of.
    let counters = "forward.sent = 93\nforward.unrouted = 6\nparse.bad_checksums = 1\n\
                    unrouted.sent = 6\n";
    assert_eq!((reported.as_str(), frames), (counters, 99));
}

/// A frame of UDP over IPv6 to an address, with this hop limit, after an empty option header if
/// `has_options`.
fn ipv6_frame(target: Ipv6Addr, hops: u8, has_options: bool) -> Vec<u8> {
    let source = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1);
    let options: &[u8] = if has_options { &[17, 0, 1, 4, 0, 0, 0, 0] } else { &[] };
    let datagram = [0, 7, 0, 9, 0, 8, 0, 1];
    let length = (options.len() + datagram.len()) as u8;
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x86, 0xdd];
    frame.extend([0x60, 0, 0, 0, 0, length, if has_options { 60 } else { 17 }, hops]);
    frame.extend(source.octets());
    frame.extend(target.octets());
    frame.extend(options);
    frame.extend(datagram);
    frame
}

/// Routes of the example, by the words of each address and the number of words of the prefix.
fn next_hop(target: Ipv6Addr) -> Option<u8> {
    match target.segments() {
        [0x2001, 0xdb8, 0x8000, 1, 0, 0, 0, 7] => None,
        [0x2001, 0xdb8, 0x8000, 1, ..] => Some(1),
        [0x2001, 0xdb8, 0x8000..=0xffff, ..] => Some(2),
        [0x2001, 0xdb8, ..] => Some(1),
        _ => None,
    }
}

#[test]
fn the_router_of_ipv6_sends_by_the_longest_prefix() {
    let targets = [
        "2001:db8::5",
        "2001:db8:7fff::",
        "2001:db8:8000::",
        "2001:db8:8000:1::6",
        "2001:db8:8000:1::7",
        "2001:db8:ffff::1",
        "2001:db9::1",
        "fe80::1",
        "ff0e::1",
        "::1",
    ];
    let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    capture.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0]);
    let mut expected = vec![];
    for at in 0..300 {
        let target: Ipv6Addr = targets[at % 10].parse().expect("an address");
        let (hops, has_options) = ((at / 10 % 4) as u8, at % 3 == 0);
        let mut frame = ipv6_frame(target, hops, has_options);
        capture.extend([0; 8]);
        let length = (frame.len() as u32).to_le_bytes();
        capture.extend([length, length].as_flattened());
        capture.extend(&frame);
        if let (Some(hop), 2..) = (next_hop(target), hops) {
            frame[..12].copy_from_slice(&[2, 0, 0, 0, 1, hop, 2, 0, 0, 0, 0, 1]);
            frame[21] -= 1;
            expected.push(frame);
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("in.pcap");
    std::fs::write(&path, capture).expect("it can be written");
    let gets = ["check.good", "check.bad_addresses", "check.expired", "forward.confined"];
    let gets: Vec<&str> = gets.iter().flat_map(|get| ["--get", get]).collect();
    for machine in ["native", "interpreter"] {
        let (reported, out) = run_on(&path, "to_tor", "router6", machine, &gets);
        assert_eq!(frames(&out), expected, "{machine}");
        let counters = "check.good = 126\ncheck.bad_addresses = 30\ncheck.expired = 144\n\
                        forward.confined = 28\n";
        assert_eq!(reported, counters);
    }
}

#[test]
fn the_balancer_puts_each_flow_in_the_tunnel_to_one_backend() {
    let (reported, frames) =
        run_on_both("balancer", &["balancer.flows.opened", "balancer.flows.unserved"]);
    assert_eq!(
        (reported.as_str(), frames),
        ("balancer.flows.opened = 12\nbalancer.flows.unserved = 0\n", 100)
    );
}
