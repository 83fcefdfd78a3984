// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets: every kind of access compared with the same operations in Rust; the passes for both
//! kinds of back end must change neither the output nor the counters.

use super::{errors, with_instance};
use freeport_ir::interp::{Interpreter, Options};
use freeport_ir::passes::{self, PassSet};
use freeport_ir::{InstanceId, Program};

/// Returns the output of the first port, and the number of accesses out of range.
fn run(program: &Program, packets: &[Vec<u8>]) -> (Vec<Vec<u8>>, u64) {
    let mut interpreter = Interpreter::new(program, &Options::default()).unwrap();
    let input = interpreter.endpoint("in").unwrap();
    let output = interpreter.endpoint("out").unwrap();
    for packet in packets {
        interpreter.feed_packet(input, packet).unwrap();
    }
    interpreter.run(100_000).unwrap();
    let out_of_range = interpreter.counters(InstanceId(0)).out_of_range;
    (interpreter.take_packets(output).unwrap(), out_of_range)
}

/// Runs the statements in a handler that reads a packet `p` before and puts it afterwards.
fn changed(functions: &str, body: &str, packets: &[Vec<u8>]) -> (Vec<Vec<u8>>, u64) {
    let text = format!(
        "{STRUCTS} .element Test (packet in -> packet out) {{
            .state {{ uint state[4]; }}
            {functions}
            .handler {{
                packet p = read_input_port(in);
                {body}
                set_output_port(out, p);
            }}
        }}"
    );
    let program = with_instance(&text);
    let before = run(&program, packets);
    for set in [PassSet::for_cpu(), PassSet::for_hardware()] {
        let mut optimised = program.clone();
        passes::run(&mut optimised, &set);
        freeport_ir::verify(&optimised).unwrap_or_else(|errors| panic!("{body}: {errors:#?}"));
        assert_eq!(before, run(&optimised, packets), "{body}");
    }
    before
}

/// Runs [`changed`] on packets of each length up to 80 bytes, and compares with `by_hand`, which
/// returns the number of accesses out of range.
fn agrees(functions: &str, body: &str, by_hand: impl Fn(&mut Vec<u8>) -> u64) {
    let packets: Vec<Vec<u8>> =
        (1..=80).map(|length| (0..length).map(|at| (at * 37 + length) as u8).collect()).collect();
    let mut expected = packets.clone();
    let count = expected.iter_mut().map(by_hand).sum();
    let (found, out_of_range) = changed(functions, body, &packets);
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected, "{body}");
    }
    assert_eq!((found.len(), out_of_range), (expected.len(), count), "{body}");
}

const STRUCTS: &str = "
    struct Ethernet { uchar target[6]; uchar source[6]; ushort type; };
    struct Ip { uchar length : 4; uchar version : 4; uchar service; ushort total; uint rest;
                uchar ttl; uchar protocol; };
    struct Odd { uint13 narrow; bool flag; int24 wide; };";

/// Returns bytes `at..` of a packet as a number; `None` if they are not all present.
fn number(packet: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let part = packet.get(at..at.checked_add(bytes)?)?;
    Some(part.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn set(packet: &mut [u8], at: usize, bytes: usize, value: u64) -> u64 {
    match packet.get_mut(at..at + bytes) {
        Some(part) => {
            part.copy_from_slice(&value.to_le_bytes()[..bytes]);
            0
        }
        None => 1,
    }
}

#[test]
fn bytes_are_read_and_written_at_constant_and_computed_places() {
    agrees("", "p.data[5] = p.data[1];", |packet| {
        let value = number(packet, 1, 1);
        u64::from(value.is_none()) + set(packet, 5, 1, value.unwrap_or(0))
    });
    agrees("", "uint at = p.length / 2; p.data[at + 3] += 1; p.data[at] = (uchar)at;", |packet| {
        let at = packet.len() / 2;
        let value = number(packet, at + 3, 1);
        let first = set(packet, at + 3, 1, value.unwrap_or(0) + 1);
        u64::from(value.is_none()) + first + set(packet, at, 1, at as u64)
    });
    agrees(
        "",
        "int at = 10 - (int)p.length; p.data[at + 5] = 7; *(p.data + at + 6) = 8;",
        |packet| {
            let at = 10 - packet.len() as i64;
            let mut put = |at: i64, value| match usize::try_from(at) {
                Ok(at) => set(packet, at, 1, value),
                Err(_) => 1,
            };
            put(at + 5, 7) + put(at + 6, 8)
        },
    );
}

#[test]
fn structs_are_viewed_at_constant_and_computed_offsets() {
    let body = "Ip *ip = (Ip *)(p.data + 14); ip->ttl = ip->ttl - 1; ip->version++;";
    agrees("", body, |packet| {
        let mut wrong = 0;
        for (at, bits, add) in [(22, 8, 255), (14, 4, 16)] {
            let value = number(packet, at, 1);
            let changed = value.map_or(0, |value| value + add);
            // A write to a bit field reads it again first.
            wrong += u64::from(value.is_none()) * if bits == 8 { 1 } else { 2 };
            wrong += set(packet, at, 1, changed);
        }
        wrong
    });
    let body = "uint off = p.data[0] & 31; Ip *ip = (Ip *)&p.data[off]; Ip copy = *ip;
                copy.total = htons((ushort)p.length); *ip = copy;";
    agrees("", body, |packet| {
        let off = usize::from(packet[0] & 31);
        let length = packet.len() as u16;
        match packet.get_mut(off..off + 12) {
            Some(view) => {
                view[2..4].copy_from_slice(&length.to_be_bytes());
                0
            }
            None => 2,
        }
    });
    let body = "Ethernet *e = (Ethernet *)p.data; uint48 kept = *(uint48 *)e->target;
                *(uint48 *)e->target = *(uint48 *)(p.data + 6); *(uint48 *)&e->source[0] = kept;";
    agrees("", body, |packet| {
        let values = [number(packet, 0, 6), number(packet, 6, 6)];
        let missing = values.iter().filter(|value| value.is_none()).count() as u64;
        let first = set(packet, 0, 6, values[1].unwrap_or(0));
        missing + first + set(packet, 6, 6, values[0].unwrap_or(0))
    });
}

#[test]
fn parts_of_bytes_leave_the_rest_as_it_is() {
    agrees("", "p.data[3][6:2] = 9; p.data[4][7] = true;", |packet| {
        let first = number(packet, 3, 1);
        let mut wrong = u64::from(first.is_none());
        wrong += set(packet, 3, 1, first.unwrap_or(0) & 0x83 | 9 << 2);
        let second = number(packet, 4, 1);
        wrong += u64::from(second.is_none());
        wrong + set(packet, 4, 1, second.unwrap_or(0) | 0x80)
    });
    agrees("", "uint bit = p.length % 19; ((Ip *)p.data)->total[bit] = true;", |packet| {
        let bit = packet.len() % 19;
        let value = number(packet, 2, 2);
        let new = if bit < 16 { value.unwrap_or(0) | 1 << bit } else { value.unwrap_or(0) };
        u64::from(value.is_none()) + set(packet, 2, 2, new)
    });
    let body = "Odd *odd = (Odd *)(p.data + 1); odd->narrow = odd->narrow + 1;
                odd->flag = !odd->flag; odd->wide = -2; p.data[20] = odd->narrow[12];";
    agrees("", body, |packet| {
        let mut wrong = 0;
        let old = number(packet, 1, 2);
        wrong += 2 * u64::from(old.is_none());
        let old = old.unwrap_or(0);
        wrong += set(packet, 1, 2, old & 0xe000 | (old + 1) & 0x1fff);
        let flag = number(packet, 3, 1);
        wrong += 2 * u64::from(flag.is_none());
        wrong += set(packet, 3, 1, flag.unwrap_or(0) ^ 1);
        wrong += set(packet, 5, 3, 0xff_fffe);
        let bit = number(packet, 2, 1);
        wrong += u64::from(bit.is_none());
        wrong + set(packet, 20, 1, bit.unwrap_or(0) >> 4 & 1)
    });
}

#[test]
fn pointers_walk_and_functions_take_packets_and_pointers_into_them() {
    let body = "uchar *at = p.data; for (uint i = 0; i < 9; i++) { *at = *at + (uchar)i; at++; }";
    agrees("", body, |packet| {
        let missing = 9_usize.saturating_sub(packet.len()) as u64;
        packet
            .iter_mut()
            .take(9)
            .enumerate()
            .for_each(|(at, byte)| *byte = byte.wrapping_add(at as u8));
        2 * missing
    });
    let functions = "
        inline uint first(packet q, uint at) { q.data[at] = 1; return q.data[at + 1] + q.length; }
        inline void mark(uchar *bytes, packet q) {
            bytes[2] = (uchar)q.length; bytes += 3; *bytes = 4;
        }
        inline uint get(packet q) { if (q.length < 4) { return 0; } return *(uint *)q.data; }";
    let body = "uint sum = first(p, 7); p.data[0] = (uchar)sum; mark(p.data + 1, p);
                if (get(p) == 5) { p.data[1] = 0; }";
    agrees(functions, body, |packet| {
        let length = packet.len() as u64;
        let mut wrong = set(packet, 7, 1, 1);
        let next = number(packet, 8, 1);
        wrong += u64::from(next.is_none());
        wrong += set(packet, 0, 1, next.unwrap_or(0) + length);
        wrong += set(packet, 3, 1, length & 0xff);
        wrong + set(packet, 4, 1, 4)
    });
}

#[test]
fn what_is_guarded_is_not_read() {
    let body = "Ip *ip = (Ip *)(p.data + 14); bool is_v4 = p.length >= 34 && ip->version == 4;
                uint ttl = p.length > 22 ? ip->ttl : 1; p.data[0] = (uchar)(ttl + is_v4);";
    agrees("", body, |packet| {
        let is_v4 = packet.len() >= 34 && packet[14] >> 4 == 4;
        let ttl = if packet.len() > 22 { packet[22] } else { 1 };
        set(packet, 0, 1, u64::from(ttl) + u64::from(is_v4))
    });
}

#[test]
fn ends_move_and_offsets_count_from_the_start_at_the_time() {
    let body = "Ethernet *e = (Ethernet *)p.data;
                if (adjust_head(p, -4)) { e->source[0] = 0xee; }
                if (!adjust_head(p, 20)) { p.data[0] = 1; }
                bool grown = adjust_tail(p, 2); if (grown) { p.data[p.length - 1] = 2; }";
    agrees("", body, |packet| {
        packet.splice(..0, [0; 4]);
        let wrong = set(packet, 6, 1, 0xee);
        if packet.len() >= 20 {
            packet.drain(..20);
        } else {
            packet[0] = 1;
        }
        packet.extend([0, 2]);
        wrong
    });
    agrees(
        "",
        "bool no = adjust_head(p, -257); p.data[0] = no; adjust_tail(p, 1 - (int)p.length);",
        |p| {
            p.truncate(1);
            set(p, 0, 1, 0)
        },
    );
}

#[test]
fn a_put_takes_the_packet_as_it_is_and_a_peek_is_another_packet() {
    let text = ".element Test (packet in -> packet out, packet early[2]) {
        .handler {
            packet look = peek_input_port(in);
            look.data[0] = 99;
            packet p = read_input_port(in);
            set_output_port(early[p.data[0] & 1], p);
            p.data[1] = 55;
            set_output_port(out, p);
        } }";
    let program = with_instance(text);
    let mut interpreter = Interpreter::new(&program, &Options::default()).unwrap();
    let input = interpreter.endpoint("in").unwrap();
    for first in [4, 5] {
        interpreter.feed_packet(input, &[first, 2, 3]).unwrap();
    }
    interpreter.run(1_000).unwrap();
    let mut packets = |name: &str| {
        let endpoint = interpreter.endpoint(name).unwrap();
        interpreter.take_packets(endpoint).unwrap()
    };
    assert_eq!(packets("out"), [[4, 55, 3], [5, 55, 3]]);
    assert_eq!(
        (packets("early[0]"), packets("early[1]")),
        (vec![vec![4, 2, 3]], vec![vec![5, 2, 3]])
    );
}

#[test]
fn slow_paths_run_between_uses_of_a_packet() {
    let body = "uint key = p.data[0] & 3; uint seen = 0;
                async { state[key] += 1; seen = state[key]; }
                p.data[0] = (uchar)seen;";
    let packets = vec![vec![1, 2], vec![1, 3], vec![2, 4], vec![1, 5]];
    let (found, _) = changed("", body, &packets);
    assert_eq!(found, [[1, 2], [2, 3], [1, 4], [3, 5]]);
}

#[test]
fn packets_of_an_arm_end_with_it() {
    let text = ".element Test (uint kind, packet a, packet b -> packet out) {
        .handler {
            switch (read_input_port(kind)) {
                case 1: packet p = read_input_port(a); set_output_port(out, p); break;
                case 2: { packet p = read_input_port(b); set_output_port(out, p); break; }
                default: return kind;
            }
        } }";
    assert_eq!(errors(text), "");
}
