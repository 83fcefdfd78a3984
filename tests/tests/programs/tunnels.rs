// SPDX-License-Identifier: Apache-2.0 OR MIT
//! VXLAN tunnels against an independent stack: the stack parses packets that an element has made,
//! and an element parses packets that the stack has made, whole, truncated at every length, and
//! changed.

use fastrand::Rng;
use freeport_clicknp::{Options, compile_text};
use freeport_golden::Variable;
use freeport_golden::native::Native;
use freeport_golden::run::Machine;
use freeport_ir::interp::{Interpreter, Options as Running, Outcome};
use freeport_ir::{Bits, Item, Program};
use freeport_port::packet::flow_hash::flow_hash;
use freeport_testbed::cache::Cache;
use freeport_testbed::is_long;
use freeport_tests::oracle::seed;
use freeport_tests::repository;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, IpAddress, IpProtocol, Ipv4Address,
    Ipv4Packet, Ipv4Repr, UdpPacket, UdpRepr,
};
use std::collections::BTreeMap;

const OUTER: usize = 50;
const VXLAN: u16 = 4789;

type Ends = BTreeMap<&'static str, Vec<Vec<u8>>>;

/// Runs one instance `dut` in the interpreter, which must not read beyond a packet, and as native
/// code, which must do the same; returns the packets that left each end, and the counters of these
/// names.
fn run<const N: usize>(
    text: &str,
    input: &[(&str, &[Vec<u8>])],
    names: [&str; N],
) -> (Ends, [u64; N]) {
    let library = Options { library: vec![repository().join("elements")] };
    let compiled = compile_text("tunnels.cnp", text, &library);
    let program = compiled.unwrap_or_else(|failure| panic!("{text}\n{failure}")).program;
    let mut interpreter = Interpreter::new(&program, &Running::default()).unwrap();
    for (name, items) in input {
        let end = interpreter.endpoint(name).unwrap();
        for item in *items {
            match program.graph.endpoints[end.index()].item {
                Item::Bits(width) => {
                    interpreter.feed_item(end, Bits::from_le_bytes(width, item)).unwrap();
                }
                _ => interpreter.feed_packet(end, item).unwrap(),
            }
        }
    }
    assert_eq!(interpreter.run(u64::MAX), Ok(Outcome::Idle));
    let dut = interpreter.instance("dut").unwrap();
    assert_eq!(interpreter.counters(dut).out_of_range, 0, "a read beyond a packet");
    let mut ends = Ends::new();
    for name in ["to_tor", "to_nic", "to_host"] {
        let Some(end) = interpreter.endpoint(name) else { continue };
        let items = match program.graph.endpoints[end.index()].item {
            Item::Bits(_) => {
                interpreter.take_items(end).unwrap().iter().map(Bits::to_le_bytes).collect()
            }
            _ => interpreter.take_packets(end).unwrap(),
        };
        ends.insert(name, items);
    }
    let counters = names.map(|name| interpreter.read_variable(dut, name, 0).unwrap().to_u64());
    check_native(&program, input, &ends, &names, &counters);
    (ends, counters)
}

fn check_native(
    program: &Program,
    input: &[(&str, &[Vec<u8>])],
    ends: &Ends,
    names: &[&str],
    counters: &[u64],
) {
    let cache = Cache::of("native");
    let options = freeport_native::Options {
        optimization: 1,
        cache: Some(cache.path().to_owned()),
        ..freeport_native::Options::default()
    };
    let image = freeport_native::build(program, &options).unwrap();
    let mut native = Native::new(&image, 1).unwrap();
    for (name, items) in input {
        items.iter().for_each(|item| native.feed(name, item).unwrap());
    }
    native.settle().unwrap();
    for (name, items) in ends {
        assert!(native.take(name).unwrap() == *items, "native code gives others at {name}");
    }
    for (name, counter) in names.iter().zip(counters) {
        let variable = Variable { name: (*name).to_owned(), index: 0 };
        assert_eq!(native.read(&variable), Ok(*counter), "{name}");
    }
}

fn bytes(random: &mut Rng, count: usize) -> Vec<u8> {
    (0..count).map(|_| random.u8(..)).collect()
}

/// Returns an inner frame: of some UDP flow, tagged or not, or arbitrary bytes.
fn inner(random: &mut Rng) -> Vec<u8> {
    let mut frame = bytes(random, 12);
    if random.u8(..3) == 0 {
        frame.extend([0x81, 0, 0, random.u8(..)]);
    }
    if random.bool() {
        let length = random.usize(2..200);
        frame.extend(bytes(random, length));
        return frame;
    }
    frame.extend([8, 0]);
    let (source, target) =
        (Ipv4Address::new(10, 0, 0, random.u8(..)), Ipv4Address::new(10, 0, 1, 1));
    let length = random.usize(..60);
    let payload = bytes(random, length);
    frame.extend(datagram((source, target), (random.u16(..), 53), &payload, true));
    frame
}

/// Returns an IPv4 packet with a datagram, as smoltcp writes it.
fn datagram(
    (source, target): (Ipv4Address, Ipv4Address),
    (from, to): (u16, u16),
    payload: &[u8],
    has_checksum: bool,
) -> Vec<u8> {
    let udp = UdpRepr { src_port: from, dst_port: to };
    let length = udp.header_len() + payload.len();
    let ip = Ipv4Repr {
        src_addr: source,
        dst_addr: target,
        next_header: IpProtocol::Udp,
        payload_len: length,
        hop_limit: 64,
    };
    let mut bytes = vec![0; ip.buffer_len() + length];
    ip.emit(&mut Ipv4Packet::new_unchecked(&mut bytes[..]), &ChecksumCapabilities::default());
    let mut packet = UdpPacket::new_unchecked(&mut bytes[ip.buffer_len()..]);
    let mut capabilities = ChecksumCapabilities::ignored();
    if has_checksum {
        capabilities = ChecksumCapabilities::default();
    }
    let (source, target) = (IpAddress::Ipv4(source), IpAddress::Ipv4(target));
    let fill = |buffer: &mut [u8]| buffer.copy_from_slice(payload);
    udp.emit(&mut packet, &source, &target, payload.len(), fill, &capabilities);
    bytes
}

/// The fields of a `Tunnel`, a record of 32 bytes.
struct Tunnel {
    source_mac: [u8; 6],
    target_mac: [u8; 6],
    source: Ipv4Address,
    target: Ipv4Address,
    network: [u8; 3],
    exists: bool,
}

impl Tunnel {
    fn random(random: &mut Rng) -> Self {
        let mut four = || Ipv4Address::from(random.u32(..));
        let (source, target) = (four(), four());
        let mut six = || [2, random.u8(..), random.u8(..), 0, 0, random.u8(..)];
        let (source_mac, target_mac) = (six(), six());
        let network = [random.u8(..), random.u8(..), random.u8(..)];
        Self { source_mac, target_mac, source, target, network, exists: random.u8(..8) > 0 }
    }

    fn record(&self, flow: u8) -> Vec<u8> {
        let back = |address: Ipv4Address| u32::from(address).to_le_bytes();
        let [high, middle, low] = self.network;
        let macs = [&self.target_mac[..], &[0; 2], &self.source_mac, &[0; 2]].concat();
        let rest = [back(self.source), back(self.target), [flow, low, middle, high]].concat();
        [macs, rest, vec![u8::from(self.exists), 0, 0, 0]].concat()
    }
}

#[test]
fn an_independent_stack_finds_what_was_put_into_a_tunnel() {
    let mut random = Rng::with_seed(seed(51));
    let mut frames: Vec<_> =
        (0..if is_long() { 20_000 } else { 400 }).map(|_| inner(&mut random)).collect();
    let whole = inner(&mut random);
    frames.extend((1..whole.len()).map(|length| whole[..length].to_vec()));
    let tunnels: Vec<_> = frames.iter().map(|_| Tunnel::random(&mut random)).collect();
    let records: Vec<_> = tunnels.iter().map(|it| it.record(random.u8(..))).collect();
    let text = "VxlanEncap :: dut\nfrom_tor -> [in] dut\nfrom_nic -> [tunnel] dut\ndut -> to_tor";
    let input = [("from_tor", &frames[..]), ("from_nic", &records[..])];
    let (ends, [sent, unrouted, refused]) = run(text, &input, ["sent", "unrouted", "refused"]);
    let mut found = ends["to_tor"].iter();
    let (mut without, mut short) = (0, 0);
    for (frame, tunnel) in frames.iter().zip(&tunnels) {
        if !tunnel.exists {
            without += 1;
            continue;
        }
        if frame.len() < 14 {
            short += 1;
            continue;
        }
        check_outside(found.next().expect("one for each"), frame, tunnel);
    }
    assert!(found.next().is_none());
    assert_eq!([sent, unrouted, refused], [ends["to_tor"].len() as u64, without, short]);
    assert!(without > 0 && short > 0);
}

fn check_outside(packet: &[u8], frame: &[u8], tunnel: &Tunnel) {
    assert_eq!(packet.len(), frame.len() + OUTER);
    let ethernet = EthernetFrame::new_checked(packet).unwrap();
    assert_eq!(ethernet.src_addr(), EthernetAddress(tunnel.source_mac));
    assert_eq!(ethernet.dst_addr(), EthernetAddress(tunnel.target_mac));
    assert_eq!(ethernet.ethertype(), EthernetProtocol::Ipv4);
    let ip = Ipv4Packet::new_checked(ethernet.payload()).unwrap();
    assert!(ip.verify_checksum() && ip.dont_frag() && !ip.more_frags());
    assert_eq!((ip.src_addr(), ip.dst_addr()), (tunnel.source, tunnel.target));
    assert_eq!((ip.next_header(), ip.hop_limit()), (IpProtocol::Udp, 64));
    assert_eq!(usize::from(ip.total_len()), packet.len() - 14);
    let udp = UdpPacket::new_checked(ip.payload()).unwrap();
    assert_eq!((udp.dst_port(), udp.checksum()), (VXLAN, 0));
    assert_eq!(udp.src_port(), 0xc000 | (flow_hash(frame) >> 50) as u16);
    let [high, middle, low] = tunnel.network;
    assert_eq!(udp.payload()[..8], [8, 0, 0, 0, high, middle, low, 0]);
    assert_eq!(udp.payload()[8..], *frame);
}

/// Returns a tunnelled frame as smoltcp writes it, then changed at random.
fn tunnelled(random: &mut Rng) -> Vec<u8> {
    let tunnel = Tunnel::random(random);
    let [high, middle, low] = tunnel.network;
    let mut payload = vec![8, 0, 0, 0, high, middle, low, 0];
    payload.extend(inner(random));
    let ports = (random.u16(49_152..), if random.u8(..10) == 0 { 4_788 } else { VXLAN });
    let packet = datagram((tunnel.source, tunnel.target), ports, &payload, random.bool());
    let mut frame = [&tunnel.target_mac[..], &tunnel.source_mac, &[8, 0], &packet].concat();
    match random.u8(..8) {
        0 => {
            let at = random.usize(12..52);
            frame[at] ^= 1 << random.u8(..8);
        }
        1 => {
            let at = random.usize(50..frame.len());
            frame[at] ^= 1 << random.u8(..8);
        }
        2 => frame.extend([7; 9]),
        3 => {
            // Options.
            frame[14] += 2;
            let total = u16::from_be_bytes([frame[16], frame[17]]) + 8;
            frame[16..18].copy_from_slice(&total.to_be_bytes());
            frame.splice(34..34, [1; 8]);
        }
        _ => {}
    }
    frame
}

/// Returns the content of a frame: key and inner frame, or the counter for the reason.
fn inside(frame: &[u8]) -> Result<(Vec<u8>, Vec<u8>), &'static str> {
    if frame.len() < 34 || frame[12..14] != [8, 0] {
        return Err("others");
    }
    let half = |at: usize| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let header = usize::from(frame[14] & 15) * 4;
    if frame[23] != 17 || half(20) & 0x3fff != 0 || header < 20 || frame.len() < 22 + header {
        return Err("others");
    }
    if half(16 + header) != usize::from(VXLAN) {
        return Err("others");
    }
    let (total, datagram) = (half(16), half(18 + header));
    let can_be = frame[14] >> 4 == 4 && total <= frame.len() - 14 && header + datagram <= total;
    if !can_be || datagram < 30 || frame[22 + header] & 8 == 0 {
        return Err("malformed");
    }
    let address =
        |at: usize| Ipv4Address::new(frame[at], frame[at + 1], frame[at + 2], frame[at + 3]);
    let udp = UdpPacket::new_checked(&frame[14 + header..14 + header + datagram]).unwrap();
    if !udp.verify_checksum(&IpAddress::Ipv4(address(26)), &IpAddress::Ipv4(address(30))) {
        return Err("bad_checksums");
    }
    let vxlan = udp.payload();
    Ok((vec![0, vxlan[6], vxlan[5], vxlan[4]], vxlan[8..].to_vec()))
}

#[test]
fn what_comes_out_of_a_tunnel_is_what_an_independent_stack_put_in() {
    let mut random = Rng::with_seed(seed(52));
    let mut frames: Vec<_> =
        (0..if is_long() { 20_000 } else { 2_000 }).map(|_| tunnelled(&mut random)).collect();
    for _ in 0..10 {
        let whole = tunnelled(&mut random);
        frames.extend((1..whole.len()).map(|length| whole[..length].to_vec()));
    }
    let (mut keys, mut inner, mut others) = (vec![], vec![], vec![]);
    let names = ["received", "others", "malformed", "bad_checksums"];
    let mut expected = [0; 4];
    for frame in &frames {
        let counter = match inside(frame) {
            Ok((key, frame)) => {
                keys.push(key);
                inner.push(frame);
                "received"
            }
            Err(why) => {
                if why == "others" {
                    others.push(frame.clone());
                }
                why
            }
        };
        expected[names.iter().position(|name| *name == counter).unwrap()] += 1;
    }
    assert!(expected.iter().all(|count| *count > 10), "every reason occurs: {expected:?}");
    let text = "VxlanDecap :: dut\nfrom_tor -> dut\ndut [out] -> to_tor\ndut [key] -> to_nic
        dut [other] -> to_host";
    let (ends, counters) = run(text, &[("from_tor", &frames)], names);
    assert_eq!(counters, expected);
    for (found, inner) in ends["to_tor"].iter().zip(&inner) {
        assert_eq!(found, inner);
    }
    assert_eq!((&ends["to_nic"], &ends["to_host"]), (&keys, &others));
}
