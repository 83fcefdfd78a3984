// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each cycle in which the card works is attributed, and the sums by use equal the card's own
//! counters.

use crate::network;
use crate::objects::object;
use freeport_card::{Cycles, RowCycles, SPENT_ON, Sim};
use freeport_ebpf::object::Object;
use freeport_vliw::Options;
use freeport_xdp::Arrival;
use freeport_xdp::scenario::Scenario;
use freeport_xdp::traffic::Traffic;

const PACKETS: usize = 120;

/// Counters of the card that must equal sums of the attribution.
const COUNTERS: [&str; 6] =
    ["packets", "busy_cycles", "rows", "helper_wait_cycles", "long_wait_cycles", "jumps"];

/// Returns the attribution of the packets of a scenario, and the card's own counters; `None` if the
/// card refuses the program.
fn counted(scenario: &Scenario, object: &Object) -> Option<(Cycles, [u64; COUNTERS.len()])> {
    let mut sim = Sim::load(object, &Options::default(), &network::environment()).expect("it fits");
    sim.takes(scenario.program).ok()?;
    if sim.layout().maps.iter().any(Result::is_err) {
        return None;
    }
    (scenario.set_up)(&mut sim).expect("it can be set up");
    let mut traffic = Traffic::new(3, scenario.kinds);
    let packets: Vec<_> = (0..PACKETS).map(|_| traffic.next_packet()).collect();
    let arrivals: Vec<Arrival<'_>> = packets.iter().map(|packet| packet.arrival()).collect();
    let arrivals: Vec<_> =
        arrivals.into_iter().filter(|it| Sim::LENGTHS.contains(&it.bytes.len())).collect();
    let mut reported = || COUNTERS.map(|name| sim.nic_mut().counter(name).expect("it answers"));
    let before = reported();
    let cycles = sim.count_stream(scenario.program, &arrivals).expect("all are done");
    let mut reported = || COUNTERS.map(|name| sim.nic_mut().counter(name).expect("it answers"));
    let after = reported();
    assert_eq!(cycles.packets, arrivals.len() as u64, "{}", scenario.name);
    Some((cycles, std::array::from_fn(|at| after[at] - before[at])))
}

#[test]
fn cycles_of_rows_are_those_that_the_card_counts() {
    let (mut taken, mut spent_on) = (0, [0; SPENT_ON.len()]);
    for scenario in Scenario::all() {
        let name = scenario.name;
        let object = object(scenario.source);
        let Some((cycles, reported)) = counted(&scenario, &object) else { continue };
        taken += 1;
        let sum = |of: fn(&RowCycles) -> u64| cycles.rows.iter().map(of).sum::<u64>();
        let found = [
            cycles.packets,
            cycles.total - cycles.idle,
            sum(|row| row.executed),
            sum(|row| row.cycles[2]),
            sum(|row| row.cycles[3]),
            sum(|row| row.jumps),
        ];
        assert_eq!(found, reported, "{name}: {COUNTERS:?}");
        assert_eq!(cycles.attributed(), cycles.total, "{name}");
        for row in &cycles.rows {
            assert!(row.executed > 0 || row.sum() == 0, "{name}: {row:?}");
            spent_on.iter_mut().zip(row.cycles).for_each(|(all, cycles)| *all += cycles);
        }
    }
    assert!(taken >= 25, "the card takes most programs, and not {taken}");
    let never: Vec<_> = SPENT_ON.iter().zip(spent_on).filter(|(_, cycles)| *cycles == 0).collect();
    assert!(never.is_empty(), "nothing is spent on {never:?}");
}
