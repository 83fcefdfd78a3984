// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shared code for tests of all programs of `programs/xdp` on the card: the programs that it
//! accepts, with the number of lanes of the build (`FREEPORT_LANES`), and the test's settings from
//! the environment.

#![allow(dead_code)]

use crate::objects::compiled;
use freeport_card::{Nic, Sim};
use freeport_ebpf::interpreter::Environment;
use freeport_ebpf::object::Object;
#[allow(unused_imports, reason = "each test uses what it needs")]
pub use freeport_testbed::{is_long, number, seed};
use freeport_vliw::Options;
use freeport_xdp::scenario::Scenario;

/// Returns options with all passes, for this card.
pub fn options() -> Options {
    let lanes = Nic::new().expect("there is a card").identity().expect("it answers").lanes;
    let mut options = Options::default();
    options.machine.lanes = lanes;
    options
}

/// A scenario with its object, as a file and parsed.
pub struct Case {
    pub scenario: Scenario,
    pub bytes: Vec<u8>,
    pub object: Object,
}

impl Case {
    /// Loads the object on a new card.
    pub fn sim(&self, environment: &Environment) -> Sim {
        Sim::load(&self.object, &options(), environment).expect("it fits")
    }

    /// Returns the reasons for which the card refuses the program, if it does: those of the program
    /// and of all maps, since all maps are compared.
    pub fn refusals(&self) -> Vec<String> {
        let sim = self.sim(&Environment::default());
        let program = sim.takes(self.scenario.program).map_err(|error| error.to_string());
        let maps = sim.layout().maps.iter().filter_map(|map| map.as_ref().err());
        program.err().into_iter().chain(maps.cloned()).collect()
    }
}

/// Returns all scenarios, or those whose name contains `FREEPORT_CASES`.
pub fn cases() -> Vec<Case> {
    let only = std::env::var("FREEPORT_CASES").ok();
    let mut scenarios = Scenario::all();
    scenarios.retain(|it| only.as_ref().is_none_or(|only| it.name.contains(only.as_str())));
    let case = |scenario: Scenario| {
        let bytes = compiled(scenario.source);
        let object = Object::parse(&bytes).expect("clang makes such objects");
        Case { scenario, bytes, object }
    };
    scenarios.into_iter().map(case).collect()
}

/// Returns the cases that the card accepts.
pub fn taken() -> Vec<Case> {
    let mut cases = cases();
    cases.retain(|case| case.refusals().is_empty());
    cases
}
