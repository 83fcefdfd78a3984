// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A firewall of the repository between two hosts, on every target, with its flows read by name and
//! removed.

use super::place::{Net, address, word};
use crate::hosts::may_make_hosts;
use freeport_bench::network::datagram::{Mirror, ask};
use freeport_testbed::skip;
use freeport_testbed::wait::PATIENCE;
use freeport_xdp::Kernel;
use std::net::SocketAddrV4;
use std::time::Duration;

const PORT: u16 = 4_000;

fn a_flow_is_opened_from_inside_only(on: &str) {
    if !may_make_hosts() {
        return;
    }
    let net = Net::new();
    let _polling = (on == "kernel").then(|| net.poll());
    let [inside, outside] = [0, 1].map(|number| word(net.ifindex(number)));
    let settings = [
        format!("inside key 0 0 0 0 value {inside}"),
        format!("ways key {} value {outside}", word(0)),
        format!("ways key {} value {inside}", word(1)),
    ];
    let mut words = vec!["--on", on, "--port", "m0", "--port", "m1"];
    settings.iter().for_each(|setting| words.extend(["--map", setting]));
    let loaded = net.load(&net.object("simple_firewall"), &words);
    let _mirrors = [0, 1].map(|number| Mirror::start(&net.sides[number], PORT).unwrap());
    let wait = PATIENCE;
    let asked = |from: usize, to: usize, wait| {
        let to = SocketAddrV4::new(address(to), PORT);
        ask(&net.sides[from], to, 2, 200, wait).unwrap()
    };
    assert_eq!(asked(1, 0, Duration::from_millis(200)), 0, "from outside");
    assert_eq!(asked(0, 1, wait), 2, "from inside");
    let flows = loaded.map("dump flows");
    assert!(flows.contains("protocol: 17") || flows.contains("protocol\": 17"), "{flows}");
    assert!(flows.contains("Found 1 element"), "{flows}");
    let entries = loaded.map_json("dump flows");
    let value = &entries[0]["formatted"]["value"];
    assert_eq!(value["packets"], 4, "{entries}");
    let key = entries[0]["key"].as_array().unwrap().iter();
    let key: Vec<&str> = key.map(|byte| byte.as_str().unwrap()).collect();
    let key = key.join(" ");
    let found = loaded.map_json(&format!("lookup flows key {key}"));
    assert_eq!(found["formatted"]["value"], *value);
    loaded.map(&format!("delete flows key {key}"));
    assert_eq!(loaded.map("dump flows"), "Found 0 elements\n");
    let words = ["xdp", "map", "lookup", "flows", "key"];
    let words: Vec<&str> = words.into_iter().chain(key.split(' ')).collect();
    let error = net.complaint(&words);
    assert!(error.contains("map `flows` has no such entry"), "{error}");
    loaded.stop();
}

#[test]
fn in_the_interpreter() {
    a_flow_is_opened_from_inside_only("interpreter");
}

#[test]
fn as_compiled_code() {
    a_flow_is_opened_from_inside_only("native");
}

#[test]
fn on_the_simulated_card() {
    a_flow_is_opened_from_inside_only("sim");
}

#[test]
fn in_the_kernel() {
    match Kernel::refusal() {
        Some(reason) => skip(reason),
        None => a_flow_is_opened_from_inside_only("kernel"),
    }
}
