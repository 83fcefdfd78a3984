// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Queues keep their size next to tables whose entries are added and removed: ports of a pool are
//! allocated and freed until a queue is full, which takes a few thousand packets.

use crate::scenarios;
use freeport_ebpf::interpreter::Environment;
use freeport_xdp::Interpreter;
use freeport_xdp::scenario::compare;

const PACKETS: u64 = 12_000;

#[test]
fn a_full_queue_takes_no_more_whatever_tables_have_done() {
    let mut cases = scenarios::cases();
    cases.retain(|case| case.scenario.name == "port_pool");
    let [case] = cases.as_slice() else {
        // Another scenario may have been selected by name.
        return assert!(std::env::var_os("FREEPORT_CASES").is_some(), "there is no such scenario");
    };
    let interpreter = Interpreter::load(&case.object, Environment::default());
    let mut interpreter = interpreter.expect("it can run");
    let mut sim = case.sim(&Environment::default());
    let verdicts = compare(&case.scenario, 1, PACKETS, &mut interpreter, &mut sim);
    let verdicts = verdicts.unwrap_or_else(|difference| panic!("{difference}"));
    assert!(verdicts.len() > 1, "{verdicts:?}");
}
