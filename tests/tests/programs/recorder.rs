// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The recorder of `examples/recorder.cnp` against a Rust reading of the same frames: no record is
//! lost, each matches its frame, and those of a flow are in one logger, in order.

use fastrand::Rng;
use freeport_ir::Program;
use freeport_port::trace::Trace;
use freeport_testbed::cache::Cache;
use freeport_tests::oracle::seed;
use freeport_tests::repository;
use freeport_tests::running::{Running, program};
use std::collections::BTreeMap;
use std::fs;

/// Contents of a record, without the time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
struct Record {
    ends: [(u32, u16); 2],
    protocol: u8,
    service: u8,
    vlan: u16,
    flits: u8,
}

impl Record {
    /// Unpacks a record from its 20 bytes.
    fn unpacked(bytes: &[u8]) -> Self {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (ports, rest) = (word(8), word(12));
        Self {
            ends: [(word(0), ports as u16), (word(4), (ports >> 16) as u16)],
            protocol: rest as u8,
            service: (rest >> 8 & 0x3f) as u8,
            vlan: (rest >> 14 & 0xfff) as u16,
            flits: (rest >> 26) as u8,
        }
    }

    /// Reads a frame; a truncated or contradictory one gives only its length and outer tag.
    fn of(frame: &[u8]) -> Self {
        let mut record = Self { flits: frame.len().div_ceil(32).min(63) as u8, ..Self::default() };
        let short =
            |at: usize| frame.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
        let mut at = 12;
        for tag in 0..2 {
            if !matches!(short(at), Some(0x8100 | 0x88a8)) {
                break;
            }
            let Some(value) = short(at + 2) else { return record };
            // The outer tag counts only if the frame continues after it.
            if tag == 0 && frame.len() >= 18 {
                record.vlan = value & 0xfff;
            }
            at += 4;
        }
        if short(at) != Some(0x0800) {
            return record;
        }
        let Some(ip) = frame.get(at + 2..).filter(|ip| ip.len() >= 20) else { return record };
        let (header, total) = (usize::from(ip[0] & 15) * 4, short(at + 4).unwrap() as usize);
        if ip[0] >> 4 != 4 || header < 20 || header > total || total > ip.len() || ip[9] == 0 {
            return record;
        }
        let mut ports = [0, 0];
        let is_fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff != 0;
        if !is_fragment && matches!(ip[9], 6 | 17) {
            if total - header < if ip[9] == 6 { 20 } else { 8 } {
                return record;
            }
            ports = [0, 2].map(|at| u16::from_be_bytes([ip[header + at], ip[header + at + 1]]));
        }
        let address = |at: usize| u32::from_be_bytes(ip[at..at + 4].try_into().unwrap());
        record.ends = [(address(12), ports[0]), (address(16), ports[1])];
        record.protocol = ip[9];
        record.service = ip[1] >> 2;
        record
    }

    /// Returns the flow, independent of direction.
    fn flow(&self) -> ([(u32, u16); 2], u8) {
        let mut ends = self.ends;
        ends.sort_unstable();
        (ends, self.protocol)
    }
}

/// Returns the frames of a capture file, which must be a plain pcap in this machine's byte order.
fn captured(bytes: &[u8]) -> Vec<Vec<u8>> {
    assert!(matches!(bytes[..4], [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1]));
    let mut left = &bytes[24..];
    let mut frames = vec![];
    while !left.is_empty() {
        let length = u32::from_le_bytes(left[8..12].try_into().unwrap()) as usize;
        frames.push(left[16..16 + length].to_vec());
        left = &left[16 + length..];
    }
    frames
}

/// Returns the sample capture, generated frames of any length, and copies of both with changed
/// bytes and inserted tags.
fn frames(random: &mut Rng) -> Vec<Vec<u8>> {
    let sample = fs::read(repository().join("examples/traces/sample.pcap")).unwrap();
    let mut frames = captured(&sample);
    let trace = Trace { seed: random.u64(..), frames: 1_500, ..Trace::default() };
    frames.extend(trace.generate().into_iter().map(|frame| frame.bytes));
    let plain = frames.clone();
    for mut frame in plain {
        match random.u32(0..6) {
            0 => frame.truncate(random.usize(1..frame.len())),
            1 => {
                let at = random.usize(12..frame.len().min(50));
                frame[at] = random.u8(..);
            }
            2 => {
                let tag = [0x81, 0x00, random.u8(..), random.u8(..)];
                frame.splice(12..12, tag);
            }
            3 => frame[15] = random.u8(..),
            _ => continue,
        }
        frames.push(frame);
    }
    frames
}

fn recorder() -> std::sync::Arc<Program> {
    program(&fs::read_to_string(repository().join("examples/recorder.cnp")).unwrap())
}

/// Capacity of the channels of the ticks, plus one that is being sent.
const TICKS_ON_THE_WAY: u64 = 17;

/// Records the frames, then those that wait for a tick; returns each logger's records in order.
fn recorded(mut running: Running, frames: &[Vec<u8>]) -> Vec<Vec<Record>> {
    running.set(&[("tick.left", 0)]);
    running.receive(frames);
    let before: u64 = (1..=4).map(|at| running.get(&format!("logger#{at}.records"))).sum();
    assert!(before <= frames.len() as u64 && before + 8 > frames.len() as u64, "{before}");
    running.set(&[("tick.left", 1)]);
    running.run(None, None);
    let records = |at: u32| -> Vec<Record> {
        let name = format!("logger#{at}");
        assert_eq!(running.get(&format!("{name}.cut")), 0);
        // Packed densely: one tick ended the last train. On its own worker, the source of ticks may
        // have sent some before it was disabled, each of which ends a train early.
        let count = running.get(&format!("{name}.records"));
        let (flits, least) = (running.get(&format!("{name}.flits")), (count * 20).div_ceil(32));
        assert!((least..=least + TICKS_ON_THE_WAY).contains(&flits), "{flits} for {count}");
        let bytes = |index| running.bits(&name, "kept", index).to_le_bytes();
        (0..count).map(|index| Record::unpacked(&bytes(index))).collect()
    };
    (1..=4).map(records).collect()
}

fn check(running: Running, frames: &[Vec<u8>], name: &str) {
    let mut wanted: BTreeMap<_, Vec<Record>> = BTreeMap::new();
    for record in frames.iter().map(|frame| Record::of(frame)) {
        wanted.entry(record.flow()).or_default().push(record);
    }
    let loggers = recorded(running, frames);
    let count: usize = loggers.iter().map(Vec::len).sum();
    assert_eq!(count, frames.len(), "{name}");
    let mut found: BTreeMap<_, Vec<Record>> = BTreeMap::new();
    let mut places: BTreeMap<_, usize> = BTreeMap::new();
    for (at, records) in loggers.iter().enumerate() {
        assert!(records.len() > frames.len() / 20, "{name}: logger {at} has its share");
        for record in records {
            assert_eq!(*places.entry(record.flow()).or_insert(at), at, "{name}: {record:?}");
            found.entry(record.flow()).or_default().push(*record);
        }
    }
    for (flow, records) in &wanted {
        assert_eq!(found.get(flow), Some(records), "{name}");
    }
    assert_eq!(found.len(), wanted.len(), "{name}");
}

#[test]
fn every_packet_is_recorded_as_it_is_and_flows_keep_their_order() {
    let first = seed(1);
    let frames = frames(&mut Rng::with_seed(first));
    let cache = Cache::of("native");
    let program = recorder();
    check(Running::interpreted(&program), &frames, "interpreter");
    check(Running::native(&program, cache.path()), &frames, "native");
    let instances = program.graph.instances.iter();
    let loggers: Vec<usize> =
        instances.map(|instance| usize::from(instance.name.starts_with("logger"))).collect();
    check(Running::on_workers(&program, cache.path(), &loggers), &frames, "loggers elsewhere");
    let all: Vec<usize> = (0..program.graph.instances.len()).map(|at| at % 3).collect();
    check(Running::on_workers(&program, cache.path(), &all), &frames, "everywhere");
}
