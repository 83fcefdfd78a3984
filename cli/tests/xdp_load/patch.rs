// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each verdict has its effect on packets of real stacks over three links: passed packets reach the
//! host side, those that are sent back return, redirected ones reach another port. The map that
//! decides is changed while packets flow.

use super::place::{Loaded, Net, SIDES, address, know_neighbours, link, mac, word};
use crate::hosts::may_make_hosts;
use freeport_bench::network::{bulk, datagram, echo};
use freeport_ebpf::interpreter::verdict;
use freeport_testbed::skip;
use freeport_testbed::wait::{PATIENCE, wait_until};
use freeport_xdp::Kernel;
use std::net::SocketAddrV4;
use std::time::Duration;

/// The action for a packet is in a map, by the last byte of its destination.
const PATCH: &str = r#"#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_helpers.h>
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 256);
  __type(key, __u32); __type(value, __u32); } verdicts SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_DEVMAP_HASH); __uint(max_entries, 8);
  __type(key, __u32); __type(value, __u32); } ways SEC(".maps");
static __attribute__((always_inline)) void swap(unsigned char *one, unsigned char *other, int bytes)
{
  #pragma unroll
  for (int at = 0; at < bytes; at++) {
    unsigned char byte = one[at]; one[at] = other[at]; other[at] = byte;
  }
}
SEC("xdp") int patch(struct xdp_md *context) {
  unsigned char *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
  if (data + 38 > end) return XDP_DROP;
  __u32 key = data[5], *what = bpf_map_lookup_elem(&verdicts, &key);
  if (!what) return XDP_ABORTED;
  if (*what == XDP_REDIRECT) return bpf_redirect_map(&ways, key, XDP_DROP);
  if (*what == XDP_TX) {
    /* Ethernet, IPv4 and UDP: the sender gets the packet as an answer. */
    swap(data, data + 6, 6); swap(data + 26, data + 30, 4); swap(data + 34, data + 36, 2);
  }
  return *what;
}
char program_license[] SEC("license") = "GPL";
"#;

/// The host side of the first link.
const HOST: usize = 3;
/// The host that sends everything back.
const MIRROR: usize = 4;
const ANSWERS: Duration = PATIENCE;
const RETRY: Duration = Duration::from_secs(2);
const SILENCE: Duration = Duration::from_millis(300);

/// Bytes of a transfer. The simulation takes some milliseconds per packet.
fn transfer_bytes(on: &str) -> u64 {
    if on == "sim" { 100_000 } else { 4_000_000 }
}

fn begin<'n>(net: &'n Net, on: &str) -> Loaded<'n> {
    let object = net.object(PATCH);
    let mut words: Vec<String> = vec!["--on".into(), on.into()];
    let mut map = |setting: String| words.extend(["--map".into(), setting]);
    for number in 0..SIDES {
        let (key, ifindex) = (word(number as u32 + 1), word(net.ifindex(number)));
        map(format!("ways key {key} value {ifindex}"));
        map(format!("verdicts key {key} value {}", word(verdict::REDIRECT)));
    }
    map(format!("verdicts key {} value {}", word(HOST as u32 + 1), word(verdict::PASS)));
    map(format!("verdicts key {} value {}", word(MIRROR as u32 + 1), word(verdict::TX)));
    let host = match on {
        "kernel" => link(0),
        _ => "h0".into(),
    };
    for number in 0..SIDES {
        let end = if number == 0 && on != "kernel" { ",host=tap:h0" } else { "" };
        words.extend(["--port".into(), format!("xdp:{}{end}", link(number))]);
    }
    let (middle, mac, address) = (&net.middle, mac(HOST), address(HOST));
    if on == "kernel" {
        middle.ip(&format!("link set {host} address {mac}\n")).unwrap();
    } else {
        middle
            .ip(&format!("tuntap add mode tap name {host}\nlink set {host} address {mac} up\n"))
            .unwrap();
    }
    middle.ip(&format!("addr add {address}/24 dev {host}\n")).unwrap();
    know_neighbours(middle, &host, HOST);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    net.load(&object, &words)
}

/// Three echoes. Interfaces drop packets if the receiver is not scheduled, so an unanswered request
/// is repeated.
fn is_answered(net: &Net, from: usize, to: usize, how: &str) {
    let ping = || echo::ping(&net.sides[from], address(to), 1, 56, RETRY).unwrap();
    for _ in 0..3 {
        wait_until(&format!("{how} from {from} to {to}"), || ping().round_trips.len() == 1);
    }
}

/// Checks that are the same on all targets.
fn every_verdict_does_what_it_says(on: &str) -> Option<(Net, String)> {
    if !may_make_hosts() {
        return None;
    }
    let net = Net::new();
    let _polling = (on == "kernel").then(|| net.poll());
    let loaded = begin(&net, on);
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        is_answered(&net, from, to, "redirected");
    }
    is_answered(&net, 0, HOST, "passed");
    let mirror = SocketAddrV4::new(address(MIRROR), 7);
    let returned = datagram::ask(&net.sides[1], mirror, 5, 300, ANSWERS).unwrap();
    assert_eq!(returned, 5, "sent back");
    let _server = bulk::serve(&net.sides[2], 5_000).unwrap();
    let server = SocketAddrV4::new(address(2), 5_000);
    let (bytes, up) = (transfer_bytes(on), bulk::Direction::Up);
    let done = bulk::start(&net.sides[0], server, up, bytes).unwrap().finish().unwrap();
    println!("{on}: {:.3} MB/s through it", done.megabytes_per_second());
    assert_eq!(done.bytes, bytes);
    // The action for packets is changed, and changed back.
    let set = |verdict| {
        loaded.map(&format!("update verdicts key {} value {}", word(2), word(verdict)));
    };
    set(verdict::DROP);
    let lost = echo::ping(&net.sides[0], address(1), 2, 56, SILENCE).unwrap();
    assert_eq!(lost.round_trips.len(), 0, "dropped");
    let reported = loaded.map(&format!("lookup verdicts key {}", word(2)));
    assert_eq!(reported, "key: 2  value: 1\n");
    set(verdict::REDIRECT);
    is_answered(&net, 0, 1, "redirected again");
    loaded.map(&format!("delete ways key {}", word(2)));
    let lost = echo::ping(&net.sides[0], address(1), 2, 56, SILENCE).unwrap();
    assert_eq!(lost.round_trips.len(), 0, "no way there");
    let ways = loaded.map("dump ways");
    let numbers = [0, 2].map(|number| net.ifindex(number));
    let expected =
        format!("key: 1  value: {}\nkey: 3  value: {}\nFound 2 elements\n", numbers[0], numbers[1]);
    assert_eq!(ways, expected);
    if on != "kernel" {
        check_counters(&loaded);
    }
    let said = loaded.stop();
    Some((net, said))
}

fn check_counters(loaded: &Loaded<'_>) {
    for (port, verdict, least, most) in [
        // Four pings and the packets of the transfer exceed these numbers. An echo that was not
        // answered in time was repeated.
        (0, "XDP_REDIRECT", 6, u64::MAX),
        (0, "XDP_PASS", 3, u64::MAX),
        (0, "XDP_DROP", 4, 4),
        (1, "XDP_TX", 5, 5),
        (1, "XDP_REDIRECT", 9, u64::MAX),
        (1, "XDP_ABORTED", 0, 0),
    ] {
        let found = loaded.verdict(port, verdict);
        assert!((least..=most).contains(&found), "{port} {verdict}: {found}\n{}", loaded.stats());
    }
    let passed = loaded.verdict(0, "XDP_PASS");
    let stats = loaded.stats();
    let first = &stats["ports"][0];
    assert_eq!(first["to_host"]["packets"], passed, "{stats}");
    let answers = first["from_host"]["packets"].as_u64().expect("a number");
    assert!((3..=passed).contains(&answers), "{stats}");
    assert_eq!(stats["drops"], serde_json::json!([]), "{stats}");
}

#[test]
fn in_the_interpreter() {
    let Some((_, said)) = every_verdict_does_what_it_says("interpreter") else { return };
    assert!(said.contains("instructions executed: "), "{said}");
}

#[test]
fn on_the_model_of_the_processor() {
    every_verdict_does_what_it_says("vliw");
}

#[test]
fn on_the_simulated_card() {
    let Some((_, said)) = every_verdict_does_what_it_says("sim") else { return };
    assert!(said.contains("the card is simulated"), "{said}");
    assert!(said.contains("simulated card, busy_cycles: "), "{said}");
}

#[test]
fn in_the_kernel() {
    if let Some(reason) = Kernel::refusal() {
        return skip(reason);
    }
    let Some((net, said)) = every_verdict_does_what_it_says("kernel") else { return };
    assert!(said.contains("xdp:m0: native: in the driver"), "{said}");
    for unknown in
        ["verdicts                      unknown", "dropped: unknown", "kernel, runs: unknown"]
    {
        assert!(said.contains(unknown), "{unknown}\n{said}");
    }
    let links = net.middle.run("ip", &["link", "show"]).unwrap();
    assert!(!links.contains("xdp"), "nothing is attached any more: {links}");
}
