// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Verilator reports no warnings for the card, with any number of lanes and cores.

use crate::verilator;
use crate::verilator::Verilator;
use std::path::Path;

#[test]
fn the_card_is_clean_for_all_numbers_of_lanes_and_cores() {
    let hardware = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hardware");
    let verilator = Verilator::find().expect("it built this crate");
    let sources = verilator::sources(&hardware).expect("they are there");
    for (lanes, cores) in [(1, 1), (2, 1), (3, 1), (4, 1), (8, 1), (4, 2), (4, 4), (1, 4)] {
        let mut command = verilator.command();
        command.args(["--lint-only", "-Wall", "--no-timing", "--top-module", "nic"]);
        command.arg(format!("-GLANES={lanes}")).arg(format!("-GCORES={cores}"));
        command.args(verilator::include_flags(&hardware));
        let linted = verilator::run(command.args(&sources));
        assert!(linted.is_ok(), "{lanes} lanes, {cores} cores: {}", linted.unwrap_err());
    }
}
