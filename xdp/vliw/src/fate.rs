// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The fate of each instruction of a program: its place in the rows, the instructions with which it
//! shares an operation, or its removal; and the pass that caused it.
//!
//! Passes are enabled one after the other, as [`Effects`](crate::report::Effects) does. The named
//! pass is the first from which on the instruction's fate equals the final one.

use crate::compile::compile_for;
use crate::image::Image;
use crate::options::{Options, PASSES};
use crate::profile::Profile;
use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::instruction::decode;
use freeport_ebpf::interpreter::Unsupported;
use freeport_ebpf::object::Program;

/// Fate of an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fate {
    /// First slot of the instruction.
    pub slot: usize,
    /// Kind of the fate.
    pub kind: Kind,
    /// Pass that caused it; `None` if it is the same without any pass.
    pub pass: Option<&'static str>,
}

/// Kind of an instruction's fate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Unreachable.
    Unreached,
    /// Removed.
    Gone,
    /// In one or more operations, possibly combined with other instructions.
    Placed {
        /// All places; there are several if blocks or operations are duplicated.
        places: Vec<Place>,
        /// Slots of the other instructions in those operations, in order.
        partners: Vec<usize>,
    },
}

/// Place of an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// Row.
    pub row: usize,
    /// Lane.
    pub lane: usize,
}

/// State of an instruction with some passes enabled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Gone,
    Alone,
    Shared,
}

/// Compiles a program, and returns the fate of each instruction, in order.
///
/// # Errors
/// As [`compile`](crate::compile()).
pub fn fates(
    program: &Program,
    analysis: &Analysis,
    profile: Option<&Profile>,
    options: &Options,
) -> Result<(Image, Vec<Fate>), Unsupported> {
    let slots = program.instructions.len();
    let mut steps = vec![];
    for (pass, options) in switched_on(options) {
        let image = compile_for(program, analysis, profile, &options)?;
        steps.push((pass, presence(&image, slots)));
    }
    let image = compile_for(program, analysis, profile, options)?;
    let fate = |slot: usize| {
        let is_final = |(_, presence): &(_, Vec<Presence>)| presence[slot] == last(&steps, slot);
        let settled = steps.iter().rposition(|step| !is_final(step)).map_or(0, |at| at + 1);
        let pass = steps.get(settled).and_then(|(pass, _)| *pass);
        let kind = match kind(&image, slot) {
            Kind::Gone if analysis.registers(slot).is_none() => Kind::Unreached,
            kind => kind,
        };
        Fate { slot, pass: pass.filter(|_| kind != Kind::Unreached), kind }
    };
    let fates = beginnings(program).into_iter().map(fate).collect();
    Ok((image, fates))
}

/// Returns options from none of the passes, with one more pass at a time, up to the given ones.
fn switched_on(options: &Options) -> Vec<(Option<&'static str>, Options)> {
    let mut wanted = *options;
    let mut step = Options { machine: options.machine, ..Options::plain() };
    step.code_motion = options.code_motion;
    step.renaming = options.renaming;
    let mut steps = vec![(None, step)];
    for pass in PASSES {
        let is_wanted = wanted.pass_mut(pass).is_some_and(|switch| *switch);
        let Some(switch) = step.pass_mut(pass) else { continue };
        if is_wanted && !std::mem::replace(switch, true) {
            steps.push((Some(pass), step));
        }
    }
    steps
}

/// Returns the final state of a slot.
fn last(steps: &[(Option<&'static str>, Vec<Presence>)], slot: usize) -> Presence {
    steps.last().map_or(Presence::Gone, |(_, presence)| presence[slot])
}

fn presence(image: &Image, slots: usize) -> Vec<Presence> {
    let mut found = vec![Presence::Gone; slots];
    for (_, operation) in image.rows.iter().flat_map(|row| row.slots()) {
        let how = match operation.origins.as_slice() {
            [_] => Presence::Alone,
            _ => Presence::Shared,
        };
        for origin in &operation.origins {
            if let Some(presence) = found.get_mut(*origin).filter(|it| **it != Presence::Shared) {
                *presence = how;
            }
        }
    }
    found
}

fn kind(image: &Image, slot: usize) -> Kind {
    let (mut places, mut partners) = (vec![], vec![]);
    for (row, of) in image.rows.iter().enumerate() {
        for (lane, operation) in of.slots().filter(|(_, it)| it.origins.contains(&slot)) {
            places.push(Place { row, lane });
            partners.extend(operation.origins.iter().copied().filter(|origin| *origin != slot));
        }
    }
    partners.sort_unstable();
    partners.dedup();
    if places.is_empty() { Kind::Gone } else { Kind::Placed { places, partners } }
}

/// Returns the first slots of all instructions.
fn beginnings(program: &Program) -> Vec<usize> {
    let (mut all, mut slot) = (vec![], 0);
    while slot < program.instructions.len() {
        all.push(slot);
        slot += decode(&program.instructions, slot).map_or(1, |operation| operation.slots());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_ebpf::instruction::assemble;

    const TEXT: &str = "r2 = *(u32 *)(r1 + 0)\n\
        r3 = *(u32 *)(r1 + 4)\n\
        r4 = r2\n\
        r4 += 14\n\
        r6 = 0x1234567890 ll\n\
        if r4 > r3 goto +3\n\
        r5 = *(u8 *)(r2 + 13)\n\
        r0 = 2\n\
        if r5 == 8 goto +1\n\
        r0 = 1\n\
        exit\n";

    fn of(options: &Options) -> (Image, Vec<Fate>) {
        let instructions = assemble(TEXT).unwrap();
        let program = Program { name: "filter".into(), instructions, ..Program::default() };
        let analysis = Analysis::of(&program, &[]).unwrap();
        fates(&program, &analysis, None, options).unwrap()
    }

    #[test]
    fn every_instruction_has_a_fate_and_every_operation_is_one() {
        for options in [Options::plain(), Options::keeping_all(), Options::default()] {
            let (image, fates) = of(&options);
            let slots: Vec<usize> = fates.iter().map(|fate| fate.slot).collect();
            assert_eq!(slots, [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]);
            let mut placed = std::collections::BTreeSet::new();
            for fate in &fates {
                let Kind::Placed { places, .. } = &fate.kind else { continue };
                for place in places {
                    let slot = image.rows[place.row].lanes[place.lane].as_ref().unwrap();
                    assert!(slot.origins.contains(&fate.slot), "{fate:?}");
                    placed.insert(*place);
                }
            }
            assert_eq!(placed.len(), image.operations(), "{options:?}");
        }
    }

    #[test]
    fn passes_are_named_that_removed_an_instruction() {
        let (_, kept) = of(&Options::keeping_all());
        assert!(kept.iter().all(|fate| fate.pass.is_none()), "{kept:?}");
        let (_, fates) = of(&Options::default());
        let gone = |slot: usize| {
            let fate = fates.iter().find(|fate| fate.slot == slot).unwrap();
            (fate.kind == Kind::Gone).then_some(fate.pass).flatten()
        };
        assert_eq!(gone(0), Some("dead"), "{fates:?}");
        assert_eq!(gone(1), Some("dead"), "{fates:?}");
        assert_eq!(gone(4), Some("dead"), "a constant that nobody needs: {fates:?}");
        assert_eq!(gone(6), None, "the check is there: {fates:?}");
    }

    #[test]
    fn what_control_never_reaches_is_said() {
        let instructions = assemble("r0 = 1\ngoto +1\nr0 = 2\nexit\n").unwrap();
        let program = Program { name: "filter".into(), instructions, ..Program::default() };
        let analysis = Analysis::of(&program, &[]).unwrap();
        let (_, fates) = fates(&program, &analysis, None, &Options::default()).unwrap();
        assert_eq!((&fates[2].kind, fates[2].pass), (&Kind::Unreached, None));
    }
}
