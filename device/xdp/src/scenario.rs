// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What each program of `programs/xdp` is given to do when targets are compared: entries of its
//! maps, packets that it knows, and what of its maps depends on time or chance.

mod further;
mod published;

use crate::traffic::Kind;
use crate::{Contents, Error, Target};
use std::ops::Range;

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

    /// Sets to 0 what is not compared.
    pub(crate) fn leave_out(&self, map: &str, contents: &mut Contents) {
        let ranges = self.unsteady.iter().filter(|(name, _)| *name == map);
        for (_, range) in ranges {
            match contents {
                Contents::Entries(entries) => {
                    entries.values_mut().for_each(|value| clear(value, range));
                }
                Contents::Items(items) => items.iter_mut().for_each(|item| clear(item, range)),
                Contents::Opaque => {}
            }
        }
    }
}

fn clear(value: &mut [u8], range: &Range<usize>) {
    let end = range.end.min(value.len());
    value[range.start.min(end)..end].fill(0);
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

    #[test]
    fn only_what_is_named_is_left_out() {
        let mut scenario = plain("a", "b", &[], &[]);
        scenario.unsteady = &[("map", 1..3)];
        let filled = Contents::Items(vec![vec![9; 4], vec![9; 2]]);
        let mut contents = filled.clone();
        scenario.leave_out("other", &mut contents);
        assert_eq!(contents, filled);
        scenario.leave_out("map", &mut contents);
        assert_eq!(contents, Contents::Items(vec![vec![9, 0, 0, 9], vec![9, 0]]));
    }
}
