// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The programs of `programs/xdp` on four cores: the departures, with verdict, bytes and metadata,
//! are the same as the interpreter's for packets one by one, in any order, and the maps have the
//! same contents, with per-core values added up. Programs that depend on the order of flows are
//! listed with the reason.

use crate::network;
use crate::scenarios;
use crate::scenarios::Case;
use freeport_card::{Nic, Sim};
use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_xdp::traffic::Traffic;
use freeport_xdp::{Contents, Departure, Interpreter, Target};
use std::collections::BTreeMap;

const CORES: u8 = 4;

/// Scenarios in which the outcome of a packet depends on earlier packets of other flows, and why.
const ORDERED: [(&str, &str); 6] = [
    ("load_balancer", "its flows share one server's rate; and its maps take minutes to be read"),
    ("rate_limiter", "flows of an address share its bucket"),
    ("port_knocking", "knocks at several ports are several flows"),
    ("metadata", "it numbers packets"),
    ("spread", "it learns of all flows where addresses are"),
    ("port_pool", "ports are given in turn"),
];

/// Maps whose contents depend on the order of flows, and why.
const ORDERED_MAPS: [(&str, &str, &str); 6] = [
    ("router_ipv4", "cache", "who comes first to an address puts its route there"),
    ("router_ipv4", "counters", "and is counted for that"),
    ("vlan", "frames", "of two first frames one finds that the other has made the entry"),
    ("dns_filter", "rooms", "what the last name left in each core's room stays there"),
    ("request_filter", "windows", "what the last request left in each core's window stays there"),
    ("length_histogram", "summary_of_frames", "it is one for all, and changed without a lock"),
];

/// Number of packets by departure.
type Fates = BTreeMap<(u32, Vec<u8>, Vec<u8>), usize>;

#[test]
fn all_packets_and_maps_fare_as_one_after_the_other() {
    let packets = if scenarios::is_long() { 5_000 } else { 40 };
    let environment = Environment { clock: Clock::Set(1_000_000_007), ..network::environment() };
    let mut failures = vec![];
    for case in scenarios::taken() {
        let name = case.scenario.name;
        if ORDERED.iter().any(|(ordered, _)| *ordered == name) {
            continue;
        }
        if let Err(difference) = compare(&case, packets, &environment) {
            failures.push(format!("{name}: {difference}"));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

fn compare(case: &Case, packets: u64, environment: &Environment) -> Result<(), String> {
    let scenario = &case.scenario;
    let mut interpreter = Interpreter::load(&case.object, environment.clone()).expect("it can run");
    let nic = Nic::with_cores(CORES).expect("there is such a card");
    let options = scenarios::options();
    let mut sim = Sim::load_on(nic, &case.object, &options, environment).expect("it fits");
    (scenario.set_up)(&mut interpreter).expect("the interpreter takes it");
    (scenario.set_up)(&mut sim).expect("the card takes it");
    let mut traffic = Traffic::new(scenarios::seed(), scenario.kinds);
    let (mut arrivals, mut expected) = (vec![], vec![]);
    for _ in 0..packets {
        let packet = traffic.next_packet();
        let departure = interpreter.run(scenario.program, &packet.arrival()).expect("it runs");
        traffic.observe(&departure);
        arrivals.push(packet);
        expected.push(departure);
    }
    let arrivals: Vec<_> = arrivals.iter().map(|packet| packet.arrival()).collect();
    let found = sim.run_together(scenario.program, &arrivals).expect("it runs");
    let by_core = sim.nic_mut().packets_by_core().expect("it answers");
    assert!(by_core[..CORES.into()].iter().all(|count| *count > 0), "{by_core:?}");
    let (expected, found) = (fates(expected), fates(found));
    if expected != found {
        let more = |of: &Fates, than: &Fates| {
            of.iter().filter(|(fate, count)| than.get(fate).unwrap_or(&0) < count).count()
        };
        let (missing, new) = (more(&expected, &found), more(&found, &expected));
        return Err(format!("{missing} fates of packets are missing, {new} are new"));
    }
    let is_ordered = |map: &str| {
        ORDERED_MAPS.iter().any(|(name, ordered, _)| (*name, *ordered) == (scenario.name, map))
    };
    let mut maps = interpreter.maps();
    maps.retain(|map| !is_ordered(map));
    maps.iter().try_for_each(|map| same_map(map, &mut interpreter, &mut sim))
}

fn fates(departures: Vec<Departure>) -> Fates {
    let mut fates = Fates::new();
    for Departure { verdict, bytes, metadata } in departures {
        *fates.entry((verdict, bytes, metadata)).or_default() += 1;
    }
    fates
}

fn same_map(map: &str, interpreter: &mut Interpreter, sim: &mut Sim) -> Result<(), String> {
    let expected = interpreter.contents(map).expect("it is read");
    let Contents::Entries(expected) = expected else {
        let found = sim.contents(map).expect("it is read");
        return if found == expected { Ok(()) } else { Err(format!("map {map}")) };
    };
    let found = sim.values(map).expect("it is read");
    let found: BTreeMap<_, _> = found.into_iter().map(|(key, of)| (key, sum(&of))).collect();
    match expected.iter().find(|(key, value)| found.get(*key) != Some(value)) {
        None if expected.len() == found.len() => Ok(()),
        None => Err(format!("map {map}: {} entries, not {}", found.len(), expected.len())),
        Some((key, value)) => {
            Err(format!("map {map}: key {key:02x?}: {value:02x?}, found {:02x?}", found.get(key)))
        }
    }
}

/// Adds up the values of all cores, as numbers of eight bytes.
fn sum(values: &[Vec<u8>]) -> Vec<u8> {
    let word = |value: &Vec<u8>, at: usize| {
        let mut bytes = [0; 8];
        let part = &value[at..value.len().min(at + 8)];
        bytes[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(bytes)
    };
    let bytes = values.first().map_or(0, Vec::len);
    let sums = (0..bytes).step_by(8).flat_map(|at| {
        let sum = values.iter().fold(0, |sum: u64, value| sum.wrapping_add(word(value, at)));
        sum.to_le_bytes()
    });
    sums.take(bytes).collect()
}
