// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements that rewrite headers, and update their checksums.

use super::frames::{
    TCP, UDP, behind_tags, carried, fill_checksum, fill_header_checksum, frames, ipv4, ipv6, word,
};
use fastrand::Rng;
use freeport_testbed::usual_or_long;
use freeport_tests::both::{Both, Call, Counts};
use freeport_tests::oracle::seed;
use smoltcp::wire::{IpAddress, Ipv4Packet};

/// Returns the checksum of some words by its definition: their ones' complement sum, inverted.
fn checksum(words: &[u16]) -> u16 {
    let sum = words.iter().fold(0u32, |sum, word| {
        let sum = sum + u32::from(*word);
        (sum & 0xffff) + (sum >> 16)
    });
    !(sum as u16)
}

#[test]
fn adjusted_checksums_are_those_made_anew() {
    let text = "import \"ip/checksums.cnp\"
        struct Change { ushort checksum; ushort before; ushort after; ushort second;
                        ushort second_after; ushort spare; };
        struct Sums { ushort once; ushort twice; };
        .element Adjust (Change in -> Sums out) {
            .handler {
                Change c = read_input_port(in);
                Sums sums;
                sums.once = adjusted(c.checksum, c.before, c.after);
                uint before = (uint)c.second << 16 | c.before;
                uint after = (uint)c.second_after << 16 | c.after;
                sums.twice = adjusted_twice(c.checksum, before, after);
                set_output_port(out, sums);
            }
        }
        Adjust :: dut
        from_tor -> dut -> to_tor";
    let mut random = Rng::with_seed(seed(61));
    let (mut changes, mut sums) = (vec![], vec![]);
    for _ in 0..usual_or_long(10_000, 100_000) {
        // A header is never all zeros.
        let mut words: Vec<u16> = (0..random.usize(2..6)).map(|_| word(&mut random)).collect();
        words.push(random.u16(1..));
        let before = checksum(&words);
        let (first, second) = (words[0], words[1]);
        words[0] = word(&mut random);
        let once = checksum(&words);
        words[1] = word(&mut random);
        let change = [before, first, words[0], second, words[1], 0];
        changes.push(change.map(u16::to_le_bytes).as_flattened().to_vec());
        sums.push([once, checksum(&words)].map(u16::to_le_bytes).as_flattened().to_vec());
    }
    let found = Both::new(text).run(&[], &[("from_tor", &changes)]);
    for ((change, found), sums) in changes.iter().zip(&found.out["to_tor"]).zip(&sums) {
        assert_eq!(found, sums, "{change:02x?}");
    }
    assert_eq!(found.out["to_tor"].len(), sums.len());
}

#[test]
fn marked_packets_differ_in_their_class_alone() {
    let mut random = Rng::with_seed(seed(62));
    let mut traffic = frames(&mut random, ipv4);
    traffic.extend(frames(&mut random, ipv6));
    let (mut marked, mut counts) = (vec![], Counts::default());
    counts.0.insert("dscp".into(), 46);
    for frame in &traffic {
        let mut after = frame.clone();
        let counter = match behind_tags(frame) {
            Some((0x0800, ip)) if frame.len() >= ip + 20 => {
                let is_right = Ipv4Packet::new_checked(&frame[ip..])
                    .is_ok_and(|it| it.header_len() >= 20 && it.verify_checksum());
                after[ip + 1] = 46 << 2 | frame[ip + 1] & 3;
                if is_right {
                    fill_header_checksum(&mut after);
                } else {
                    // By the same difference, with the carry added back.
                    let words = [ip + 10, ip].map(|at| [frame[at], frame[at + 1]]);
                    let [sum, old] = words.map(|word| !u16::from_be_bytes(word));
                    let new = u16::from_be_bytes([after[ip], after[ip + 1]]);
                    let sum = checksum(&[sum, old, new]);
                    after[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
                }
                "marked"
            }
            Some((0x86dd, ip)) if frame.len() >= ip + 40 => {
                let class = 46 << 2 | (frame[ip + 1] >> 4 & 3);
                after[ip] = frame[ip] & 0xf0 | class >> 4;
                after[ip + 1] = frame[ip + 1] & 0x0f | class << 4;
                "marked"
            }
            _ => "others",
        };
        counts.add(counter);
        marked.push(after);
    }
    let found = Both::new("SetDscp<46> :: dut\nfrom_tor -> dut -> to_tor")
        .run(&[], &[("from_tor", &traffic)]);
    for (found, marked) in found.out["to_tor"].iter().zip(&marked) {
        assert_eq!(found, marked);
    }
    assert_eq!(found.out["to_tor"].len(), marked.len());
    counts.check(&found.counters);
}

const TRANSLATE: &str = "Translate :: dut
    from_nic -> [inside] dut\nfrom_tor -> [outside] dut
    dut [to_outside] -> to_tor\ndut [to_inside] -> to_nic
    dut [rest_inside] -> to_host\ndut [rest_outside] -> to_memory";

/// An entry: protocol, inside address and port, outside address and port.
type Entry = (u8, [u8; 4], u16, [u8; 4], u16);

/// Inside addresses are 10.0.0.1 to 10.0.3.4, like the sources of the frames.
fn entries(random: &mut Rng) -> Vec<Entry> {
    let mut entries: Vec<Entry> = vec![];
    for _ in 0..24 {
        let protocol = [0, TCP, UDP][random.usize(..3)];
        let inside = [10, 0, random.u8(..4), random.u8(1..5)];
        let [high, low] = [word(random), word(random)].map(u16::to_be_bytes);
        let outside = [high[0], high[1], low[0], low[1]];
        let ports = [80, 0xffff].map(|it| if protocol == 0 { 0 } else { it });
        let entry = (protocol, inside, ports[0], outside, ports[1]);
        let is_taken = entries.iter().any(|old| {
            old.0 == protocol && (old.1 == inside || (old.3, old.4) == (outside, entry.4))
        });
        if !is_taken {
            entries.push(entry);
        }
    }
    entries
}

/// Returns the translated frame, if an entry matches.
fn translated(frame: &[u8], is_outside: bool, entries: &[Entry]) -> Option<Vec<u8>> {
    let it = carried(frame).filter(|it| matches!(it.source, IpAddress::Ipv4(_)))?;
    let length = it.end - it.at;
    let is_first = u16::from_be_bytes([frame[it.ip + 6], frame[it.ip + 7]]) & 0x1fff == 0;
    // An error would be translated by its quoted packet, which is none here.
    let is_error = is_first && length > 0 && [3, 4, 5, 11, 12].contains(&frame[it.at]);
    if it.protocol == 1 && is_error {
        return None;
    }
    let address_at = it.ip + if is_outside { 16 } else { 12 };
    let port_at = it.at + if is_outside { 2 } else { 0 };
    let has_ports = !it.is_fragment
        && (it.protocol == TCP && length >= 20 || it.protocol == UDP && length >= 8);
    let find = |protocol: u8, port: u16| {
        let sides = entries.iter().map(|(protocol, inside, in_port, outside, out_port)| {
            let (here, there) = ((inside, in_port), (outside, out_port));
            if is_outside { (protocol, there, here) } else { (protocol, here, there) }
        });
        let mut sides = sides.filter(|(its, (address, its_port), _)| {
            **its == protocol
                && frame[address_at..address_at + 4] == **address
                && **its_port == port
        });
        sides.next().map(|(_, _, (address, port))| (*address, *port))
    };
    let port = has_ports.then(|| u16::from_be_bytes([frame[port_at], frame[port_at + 1]]));
    let of_port = port.and_then(|port| find(it.protocol, port));
    let (address, port) = of_port.or_else(|| find(0, 0))?;
    let mut after = frame.to_vec();
    after[address_at..address_at + 4].copy_from_slice(&address);
    if port != 0 {
        after[port_at..port_at + 2].copy_from_slice(&port.to_be_bytes());
    }
    Some(after)
}

/// Returns the calls that add the entries.
fn calls(entries: &[Entry]) -> Vec<Call<'static>> {
    let octets = |address: &[u8; 4]| u32::from_be_bytes(*address).to_le_bytes().to_vec();
    entries
        .iter()
        .map(|(protocol, inside, in_port, outside, out_port)| {
            let ports = [in_port, out_port].map(|port| port.to_le_bytes().to_vec());
            let [inside_port, outside_port] = ports;
            let sides = [octets(inside), inside_port, octets(outside), outside_port];
            ("add", [&[vec![*protocol]][..], &sides].concat())
        })
        .collect()
}

#[test]
fn translated_packets_have_right_checksums() {
    let mut random = Rng::with_seed(seed(63));
    let entries = entries(&mut random);
    let calls = calls(&entries);
    let mut both_ways = [vec![], vec![]];
    let (mut after, mut rest) = ([vec![], vec![]], [vec![], vec![]]);
    let mut counts = Counts::default();
    for at in 0..6_000 {
        let is_outside = at % 2 == 1;
        let is_ipv6 = random.u8(..20) == 0;
        let mut frame = if is_ipv6 { ipv6(&mut random) } else { ipv4(&mut random) };
        let entry = entries[random.usize(..entries.len())];
        if let Some(it) = carried(&frame).filter(|_| !is_ipv6) {
            // Mostly packets that match an entry.
            let (address, port) = if is_outside { (entry.3, entry.4) } else { (entry.1, entry.2) };
            let address_at = it.ip + if is_outside { 16 } else { 12 };
            frame[address_at..address_at + 4].copy_from_slice(&address);
            if it.end - it.at >= 8 && random.bool() && !it.is_fragment {
                let port_at = it.at + if is_outside { 2 } else { 0 };
                frame[port_at..port_at + 2].copy_from_slice(&port.to_be_bytes());
            }
            fill_checksum(&mut frame);
            fill_header_checksum(&mut frame);
            if it.protocol == UDP && random.u8(..4) == 0 && it.end - it.at >= 8 {
                frame[it.at + 6..it.at + 8].fill(0);
            }
            if it.is_fragment || random.u8(..10) == 0 {
                frame.truncate(random.usize(it.ip..=frame.len()));
            }
        }
        let side = usize::from(is_outside);
        match translated(&frame, is_outside, &entries) {
            Some(mut new) => {
                let it = carried(&frame).expect("it was translated");
                let has_none = it.protocol == UDP
                    && it.end - it.at >= 8
                    && frame[it.at + 6..it.at + 8] == [0; 2];
                fill_header_checksum(&mut new);
                if it.is_fragment {
                    // A fragment's checksum covers data that are not there; it must stay wrong by
                    // the same amount.
                    fragment_checksum(&frame, &mut new);
                } else if !has_none && it.protocol != 1 {
                    fill_checksum(&mut new);
                }
                counts.add(["sent", "received"][side]);
                after[side].push(new);
            }
            None => {
                counts.add(["kept_inside", "kept_outside"][side]);
                rest[side].push(frame.clone());
            }
        }
        both_ways[side].push(frame);
    }
    assert_eq!(counts.0.len(), 4);
    let input = [("from_nic", &both_ways[0][..]), ("from_tor", &both_ways[1][..])];
    let found = Both::new(TRANSLATE).run(&calls, &input);
    let ends = ["to_tor", "to_nic", "to_host", "to_memory"];
    for (end, expected) in ends.iter().zip(after.iter().chain(&rest)) {
        for (found, expected) in found.out[*end].iter().zip(expected) {
            assert_eq!(found, expected, "at {end}");
        }
        assert_eq!(found.out[*end].len(), expected.len(), "at {end}");
    }
    counts.check(&found.counters);
}

/// Returns a frame with the ICMP error about the first `length` bytes of a packet.
fn error(source: &[u8], target: &[u8], quoted: &[u8], length: usize) -> Vec<u8> {
    let quoted = &quoted[..length.min(quoted.len())];
    let total = (28 + quoted.len() as u16).to_be_bytes();
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend([&total[..], &[0, 0, 0, 0, 64, 1, 0, 0], source, target].concat());
    frame.extend([&[11, 0, 0, 0, 0, 0, 0, 0][..], quoted].concat());
    fill_checksum(&mut frame);
    fill_header_checksum(&mut frame);
    frame
}

/// The packet quoted by an error is translated to what its receiver has sent, however little is
/// quoted.
#[test]
fn errors_quote_what_their_receiver_has_sent() {
    let mut random = Rng::with_seed(seed(64));
    let entries: Vec<Entry> = (1..5)
        .flat_map(|host| {
            [
                (0, [10, 0, 0, host], 0, [192, 0, 2, host], 0),
                (TCP, [10, 0, 1, host], 80, [198, 51, 100, host], 8_080),
                (UDP, [10, 0, 2, host], 80, [203, 0, 113, host], 9),
            ]
        })
        .collect();
    let router = [100, 64, 0, 1];
    let (mut both_ways, mut after) = ([vec![], vec![]], [vec![], vec![]]);
    for at in 0..4_000 {
        let is_outside = at % 2 == 1;
        let mut frame = ipv4(&mut random);
        let entry = entries[random.usize(..entries.len())];
        let Some(it) = carried(&frame).filter(|it| !it.is_fragment) else { continue };
        let (address, port) = if is_outside { (entry.3, entry.4) } else { (entry.1, entry.2) };
        let [address_at, port_at] = if is_outside { [16, 2] } else { [12, 0] };
        frame[it.ip + address_at..it.ip + address_at + 4].copy_from_slice(&address);
        if [TCP, UDP].contains(&it.protocol) {
            frame[it.at + port_at..it.at + port_at + 2].copy_from_slice(&port.to_be_bytes());
        }
        fill_checksum(&mut frame);
        fill_header_checksum(&mut frame);
        let Some(mut new) = translated(&frame, is_outside, &entries) else { continue };
        fill_checksum(&mut new);
        fill_header_checksum(&mut new);
        let [sent, arrived] = [&frame, &new].map(|frame| &frame[it.ip..it.end]);
        // Half a checksum cannot be translated.
        let length = it.at - it.ip + 2 * random.usize(4..40);
        let [source, target] = [12..16, 16..20];
        // From the node that has seen it on the other side, to its sender.
        let (before, back) = match is_outside {
            true => (
                error(&arrived[target.clone()], &arrived[source.clone()], arrived, length),
                error(&sent[target], &sent[source], sent, length),
            ),
            false => (
                error(&router, &arrived[source.clone()], arrived, length),
                error(&router, &sent[source], sent, length),
            ),
        };
        // The error takes the opposite direction of the packet.
        both_ways[usize::from(!is_outside)].push(before);
        after[usize::from(!is_outside)].push(back);
    }
    assert!(after.iter().all(|it| it.len() > 500), "{} and {}", after[0].len(), after[1].len());
    let input = [("from_nic", &both_ways[0][..]), ("from_tor", &both_ways[1][..])];
    let found = Both::new(TRANSLATE).run(&calls(&entries), &input);
    for (end, expected) in ["to_tor", "to_nic"].iter().zip(&after) {
        for (found, expected) in found.out[*end].iter().zip(expected) {
            assert_eq!(found, expected, "at {end}");
        }
        assert_eq!(found.out[*end].len(), expected.len(), "at {end}");
    }
}

/// Updates the TCP or UDP checksum in a first fragment by the difference of the addresses.
fn fragment_checksum(before: &[u8], after: &mut [u8]) {
    let it = carried(before).expect("IP");
    let is_first = u16::from_be_bytes([before[it.ip + 6], before[it.ip + 7]]) & 0x1fff == 0;
    let (place, least) = match it.protocol {
        TCP => (it.at + 16, 20),
        UDP => (it.at + 6, 8),
        _ => return,
    };
    if !is_first || it.end - it.at < least {
        return;
    }
    let word = |frame: &[u8], at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let old = word(before, place);
    if it.protocol == UDP && old == 0 {
        return;
    }
    let places = [12, 14, 16, 18].map(|at| it.ip + at);
    let mut words = vec![!old];
    words.extend(places.iter().map(|at| !word(before, *at)));
    words.extend(places.iter().map(|at| word(after, *at)));
    let sum = match checksum(&words) {
        0 if it.protocol == UDP => 0xffff,
        sum => sum,
    };
    after[place..place + 2].copy_from_slice(&sum.to_be_bytes());
}
