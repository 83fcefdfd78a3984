// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tests of each program of `programs/xdp` for comparing targets: entries of its maps, kinds of
//! packets, and the parts of its maps that depend on time or chance.

mod further;
mod published;
mod trial;

use crate::traffic::Kind;
use crate::{Error, Target};
use std::ops::Range;

pub use trial::{Lengths, Streams, compare, compare_lengths, compare_streams};

/// A program with its inputs.
pub struct Scenario {
    /// Name of the source without `.bpf.c`, with a suffix if there are several scenarios of one
    /// source.
    pub name: &'static str,
    /// Name of the source.
    pub source: &'static str,
    /// Name of the program's function.
    pub program: &'static str,
    /// Kinds of packets that arrive.
    pub kinds: &'static [Kind],
    /// Fills the maps.
    pub set_up: fn(&mut dyn Target) -> Result<(), Error>,
    /// Verdicts that must occur within a thousand packets; otherwise the comparison proves little.
    pub verdicts: &'static [u32],
    /// Parts that depend on time or chance and are not compared: byte ranges of each value of a
    /// map.
    pub unsteady: &'static [(&'static str, Range<usize>)],
}

impl Scenario {
    /// Returns all scenarios.
    pub fn all() -> Vec<Self> {
        published::scenarios().into_iter().chain(further::scenarios()).collect()
    }
}

/// Concatenates fields as they lie in a C struct.
pub(crate) fn bytes(fields: &[&[u8]]) -> Vec<u8> {
    fields.concat()
}

const ABORTED: u32 = 0;
const DROP: u32 = 1;
const PASS: u32 = 2;
const TX: u32 = 3;
const REDIRECT: u32 = 4;
const FIRST: [u8; 4] = [0; 4];

/// Creates a scenario with defaults.
const fn plain(
    name: &'static str,
    program: &'static str,
    kinds: &'static [Kind],
    verdicts: &'static [u32],
) -> Scenario {
    let set_up = |_: &mut dyn Target| Ok(());
    Scenario { name, source: name, program, kinds, set_up, verdicts, unsteady: &[] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_of_the_folder_has_a_scenario() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/xdp");
        let entries = std::fs::read_dir(folder).expect("the programs are there");
        let names =
            entries.filter_map(|entry| entry.expect("readable").file_name().into_string().ok());
        let mut sources: Vec<String> =
            names.filter_map(|name| name.strip_suffix(".bpf.c").map(Into::into)).collect();
        sources.sort();
        let mut given: Vec<String> = Scenario::all().iter().map(|it| it.source.into()).collect();
        given.sort();
        given.dedup();
        assert_eq!(given, sources);
    }
}
