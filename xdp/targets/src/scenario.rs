// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What each program of `programs/xdp` is given to do when targets are compared: entries of its
//! maps, packets that it knows, and what of its maps depends on time or chance.

mod further;
mod published;
mod trial;

use crate::traffic::Kind;
use crate::{Error, Target};
use std::ops::Range;

pub use trial::{Lengths, Streams, compare, compare_lengths, compare_streams};

/// A program with its surroundings.
pub struct Scenario {
    /// Its source without `.bpf.c`, and with what else there are several of one source.
    pub name: &'static str,
    /// The source.
    pub source: &'static str,
    /// The function.
    pub program: &'static str,
    /// What comes.
    pub kinds: &'static [Kind],
    /// Fills the maps.
    pub set_up: fn(&mut dyn Target) -> Result<(), Error>,
    /// Verdicts that have to be among those of a thousand packets, or the comparison shows little.
    pub verdicts: &'static [u32],
    /// What is not compared, because it is made of time or chance: bytes of each value of a map.
    pub unsteady: &'static [(&'static str, Range<usize>)],
}

impl Scenario {
    /// All of them.
    pub fn all() -> Vec<Self> {
        published::scenarios().into_iter().chain(further::scenarios()).collect()
    }
}

/// Puts fields together as they lie in a C struct.
pub(crate) fn bytes(fields: &[&[u8]]) -> Vec<u8> {
    fields.concat()
}

const ABORTED: u32 = 0;
const DROP: u32 = 1;
const PASS: u32 = 2;
const TX: u32 = 3;
const REDIRECT: u32 = 4;
const FIRST: [u8; 4] = [0; 4];

/// A scenario without anything special.
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
