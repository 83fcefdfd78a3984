// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The applications of `examples/` on the sample capture, from the outside, with the tables that
//! the files beside them fill.

use std::path::PathBuf;
use std::process::{Command, Stdio};

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs an application on the sample capture; what it prints, and the capture it writes.
fn run(application: &str, machine: &str, gets: &[&str]) -> (String, Vec<u8>) {
    let gets = gets.iter().flat_map(|get| ["--get", get]);
    run_to("to_tor", application, machine, &gets.collect::<Vec<_>>())
}

/// The same with the end that it leaves by, and other arguments.
fn run_to(end: &str, application: &str, machine: &str, others: &[&str]) -> (String, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.pcap");
    let [program, initial] = ["cnp", "json"].map(|kind| format!("examples/{application}.{kind}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(["run", &program, "--init", &initial, "--on", machine]);
    command.args(["--in", "from_tor=examples/traces/sample.pcap"]);
    command.args(["--out", &format!("{end}={}", out.display())]).args(others);
    command.current_dir(repository()).stdin(Stdio::null());
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")).env_remove("FREEPORT_ELEMENTS");
    let output = command.output().expect("it can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(output.stdout).expect("it is text");
    (told, std::fs::read(out).expect("it was written"))
}

/// Runs it on both, which have to agree; what it prints, and how many frames came out.
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

#[test]
fn the_gateway_tunnels_what_its_firewall_passes() {
    let http = "firewall.manager.insert({target_port: 80, protocol: 6}, \
                {target_port: 65535, protocol: 255}, 0, 10)";
    let run = |application, machine| run_to("to_nic", application, machine, &["--call", http]).1;
    let gateway = run("gateway", "native");
    assert!(gateway == run("gateway", "interpreter"), "the captures differ");
    let tunnelled: Vec<&[u8]> = frames(&gateway).iter().map(|frame| &frame[42..]).collect();
    let passed = run("gateway_firewall", "native");
    // The packets to port 80; the capture has none to port 22, and no echoes.
    assert_eq!(tunnelled.len(), 43);
    assert!(tunnelled == frames(&passed), "what is in the tunnels is what went in");
}

#[test]
fn the_firewall_passes_what_its_four_tables_allow() {
    let gets = ["sent", "refused", "unmatched"].map(|it| format!("firewall.buffer.{it}"));
    let (told, frames) = run_on_both("firewall", &gets.each_ref().map(String::as_str));
    // Of the 43 packets to port 80, 10 are to the prefix that is dropped, with 19 others; 6 have an
    // exact rule, and 11 one with a mask of its own.
    let counters = "firewall.buffer.sent = 50\nfirewall.buffer.refused = 29\n\
                    firewall.buffer.unmatched = 21\n";
    assert_eq!((told.as_str(), frames), (counters, 50));
}

#[test]
fn the_router_sends_what_has_a_route_and_a_next_hop() {
    let gets = ["forward.sent", "forward.unrouted", "check.good"];
    let (told, frames) = run_on_both("router", &gets);
    // One packet of the capture has a wrong checksum; 6 have a route without a next hop.
    let counters = "forward.sent = 93\nforward.unrouted = 6\ncheck.good = 99\n";
    assert_eq!((told.as_str(), frames), (counters, 93));
}

#[test]
fn the_balancer_puts_each_flow_in_the_tunnel_to_one_backend() {
    let (told, frames) =
        run_on_both("balancer", &["balancer.flows.opened", "balancer.flows.unserved"]);
    assert_eq!(
        (told.as_str(), frames),
        ("balancer.flows.opened = 12\nbalancer.flows.unserved = 0\n", 100)
    );
}
