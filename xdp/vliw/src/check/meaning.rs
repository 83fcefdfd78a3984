// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks that an image is equivalent to its program: both are executed symbolically with the same
//! unknown values, path by path, and must have the same effects.
//!
//! A path is a set of outcomes of those comparisons that do not follow from others. The effects are
//! the helper calls with their arguments and memory, and the memory and the verdict at the end.

mod facts;
mod log;
mod program;
mod rows;
mod state;
mod values;

use super::{Rule, Violation, text};
use crate::image::Image;
use facts::Question;
use freeport_ebpf::analysis::Analysis;
use log::{Change, Region};
use rows::{Ended, Needed, Rows};
use state::{Effect, Path, State};
use std::collections::{BTreeMap, HashMap};
use values::{Leaf, Node};

/// Number of times that each outcome of a branch was followed, by slot and whether the jump is
/// taken.
type Visits = HashMap<(usize, bool), u32>;

/// A path is not followed to its end.
#[derive(Clone, Copy, Debug)]
struct Abandoned;

/// Paths that were compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Paths {
    /// Number of paths on which program and image have the same effects.
    pub validated: usize,
    /// Number of paths that were not followed to their end: they are infeasible according to the
    /// analysis, too long, or use unsupported operations.
    pub abandoned: usize,
    /// Whether there are no further paths.
    pub is_complete: bool,
}

/// Compares an image with its program on at most `paths_max` paths; each function that a helper
/// calls is treated as a separate program.
pub(super) fn check(
    image: &Image,
    analysis: &Analysis,
    paths_max: usize,
) -> Result<Paths, Vec<Violation>> {
    let rows = Rows::new(image, analysis);
    let mut paths = Paths { is_complete: true, ..Paths::default() };
    for (number, function) in analysis.graph().functions().iter().enumerate() {
        let entry = function.slots.start;
        let row = if number == 0 { Some(0) } else { rows.row_of(number) };
        let is_entered = number == 0 || function.is_callback && analysis.is_reachable(entry);
        if let Some(row) = row.filter(|_| is_entered) {
            let mut search =
                Search { rows: &rows, analysis, visits: Visits::new(), path: Path::default() };
            search.all(entry, row, paths_max, &mut paths)?;
        } else if is_entered {
            let what = format!("there is no row of the function in slot {entry}");
            return Err(vec![Violation { row: 0, lanes: vec![], rule: Rule::Meaning, what }]);
        }
    }
    Ok(paths)
}

/// Assumptions at the start of pending paths, by the branch whose outcome differs in the last one.
type Waiting = BTreeMap<(usize, bool), Vec<Vec<(Question, bool)>>>;

/// Exploration of the paths of a function.
struct Search<'a> {
    rows: &'a Rows<'a>,
    analysis: &'a Analysis,
    visits: Visits,
    path: Path,
}

impl Search<'_> {
    fn all(
        &mut self,
        entry: usize,
        row: usize,
        paths_max: usize,
        paths: &mut Paths,
    ) -> Result<(), Vec<Violation>> {
        let mut waiting = Waiting::from([((entry, false), vec![vec![]])]);
        for _ in 0..paths_max {
            // The least visited outcomes are followed first.
            let visits = |branch: &(usize, bool)| self.visits.get(branch).copied().unwrap_or(0);
            let next = waiting.keys().copied().min_by_key(visits);
            let Some(mut found) = next.and_then(|branch| waiting.remove_entry(&branch)) else {
                return Ok(());
            };
            let trail = found.1.pop().unwrap_or_default();
            if !found.1.is_empty() {
                waiting.insert(found.0, found.1);
            }
            self.path.facts = facts::Facts::default();
            self.path.trail.clear();
            self.path.forks.clear();
            for (question, answer) in trail {
                self.path.assume(question, answer);
            }
            match program::run(&mut self.path, self.analysis, entry, &mut self.visits) {
                Ok((state, steps)) => {
                    self.compare(&state, row, steps)?;
                    paths.validated += 1;
                }
                Err(Abandoned) => paths.abandoned += 1,
            }
            for (length, question, answer, branch) in std::mem::take(&mut self.path.forks) {
                let mut trail = self.path.trail[..length].to_vec();
                trail.push((question, answer));
                waiting.entry(branch).or_default().push(trail);
            }
        }
        paths.is_complete &= waiting.is_empty();
        Ok(())
    }

    /// Executes the image on the path of the program, and compares the effects.
    fn compare(&mut self, program: &State, row: usize, steps: usize) -> Result<(), Vec<Violation>> {
        let fail = |row, lanes, rule, what| Err(vec![Violation { row, lanes, rule, what }]);
        let Ended { state: image, needed, lies } = match self.rows.run(&mut self.path, row, steps) {
            Ok(ended) => ended,
            Err(row) => {
                let what = "it does not end where the program does".into();
                return fail(row, vec![], Rule::Meaning, what);
            }
        };
        if let Some(what) = self.difference(program, &image) {
            let row = image.effects_at.get(what.0).or(image.effects_at.last());
            return fail(row.copied().unwrap_or(0), vec![], Rule::Meaning, what.1);
        }
        if let Some((row, lane)) = lies.into_iter().next() {
            let what = text(&self.rows.image.rows[row], lane) + " accesses other memory";
            return fail(row, vec![lane], Rule::Origin, what);
        }
        for load in &needed {
            if !self.exists(program, load) {
                let row = &self.rows.image.rows[load.row];
                let what = format!("{} on another path", text(row, load.lane));
                return fail(load.row, vec![load.lane], Rule::MayMiss, what);
            }
        }
        Ok(())
    }

    /// Returns the first effect that differs, with a description.
    fn difference(&mut self, program: &State, image: &State) -> Option<(usize, String)> {
        let longest = program.effects.len().max(image.effects.len());
        let mut differs = |at: &usize| match (program.effects.get(*at), image.effects.get(*at)) {
            (Some(wanted), Some(found)) => wanted != found && !self.path.is_same(wanted, found),
            _ => true,
        };
        let at = (0..longest).find(&mut differs)?;
        let (wanted, found) = (program.effects.get(at), image.effects.get(at));
        let slot = program.effects_at.get(at).or(program.effects_at.last()).copied();
        let what = match (wanted, found) {
            (Some(Effect::Exit { value: wanted, .. }), Some(Effect::Exit { value: found, .. }))
                if wanted != found =>
            {
                let [found, wanted] = [found, wanted].map(|id| self.describe(*id, 3));
                format!("it ends with {found} instead of {wanted}")
            }
            (
                Some(Effect::Exit { memory: wanted, .. }),
                Some(Effect::Exit { memory: found, .. }),
            ) => format!("memory differs at the end: {}", self.memory_difference(*wanted, *found)),
            (
                Some(Effect::Call { number: wanted, arguments, .. }),
                Some(Effect::Call { number: found, arguments: given, .. }),
            ) if wanted == found => match arguments.iter().zip(given).position(|(a, b)| a != b) {
                Some(at) => {
                    let [found, wanted] = [given[at], arguments[at]].map(|id| self.describe(id, 3));
                    format!("argument {} is {found} instead of {wanted}", at + 1)
                }
                None => {
                    format!(
                        "a helper finds {}",
                        self.seen_difference(&program.effects[at], &image.effects[at])
                    )
                }
            },
            _ => {
                let [found, wanted] = [found, wanted].map(name);
                format!("it {found} where the program {wanted}")
            }
        };
        let slot = slot.map_or(String::new(), |slot| format!(" (instruction {slot})"));
        Some((at, what + &slot))
    }

    /// Describes the difference between the memory that two calls read.
    fn seen_difference(&self, wanted: &Effect, found: &Effect) -> String {
        let (
            Effect::Call { bytes: wanted, views: wanted_views, .. },
            Effect::Call { bytes: found, views: found_views, .. },
        ) = (wanted, found)
        else {
            return "nothing".into();
        };
        if let Some((wanted, found)) = wanted.iter().zip(found).find(|(one, other)| one != other) {
            return format!(
                "{} instead of {}",
                self.describe(*found, 3),
                self.describe(*wanted, 3)
            );
        }
        let mut views = wanted_views.iter().zip(found_views);
        match views.find(|(one, other)| one != other) {
            Some((wanted, found)) => self.memory_difference(*wanted, *found),
            None => "other memory".into(),
        }
    }

    /// Describes the first change of memory that differs between two views.
    fn memory_difference(&self, wanted: u32, found: u32) -> String {
        let [wanted, found] = [wanted, found].map(|view| self.path.views.changes(view));
        let longest = wanted.len().max(found.len());
        let differs = |at: &usize| wanted.get(*at) != found.get(*at);
        let at = (0..longest).find(differs).unwrap_or_default();
        // Values loaded from memory that already differed.
        let view = |change: Option<&log::Seen>| match change {
            Some((.., Change::Byte(value))) => match self.path.values.node(*value) {
                Node::Memory { view, .. } => Some(*view),
                _ => None,
            },
            _ => None,
        };
        if let (Some(one), Some(other)) = (view(wanted.get(at)), view(found.get(at)))
            && one != other
        {
            return self.memory_difference(one, other);
        }
        let [found, wanted] = [found.get(at), wanted.get(at)].map(|change| match change {
            Some((Some((base, offset)), _, Change::Byte(value))) => {
                let (base, value) = (self.describe(*base, 2), self.describe(*value, 3));
                format!("{value} at {base} + {offset}")
            }
            Some((.., Change::Call(call))) => format!("what call {call} writes"),
            _ => "nothing".into(),
        });
        format!("{found} instead of {wanted}")
    }

    /// Returns whether a load of the image is certain to be valid: the program accesses the memory
    /// on this path too, or the memory is known to exist.
    fn exists(&self, program: &State, load: &Needed) -> bool {
        let Some((base, offset)) = load.place.address else { return false };
        let size = load.place.bytes.unwrap_or(0) as i64;
        let end = offset.saturating_add(size);
        if (offset..end).all(|at| program.accessed.contains(&(base, at))) {
            return true;
        }
        let place = &load.place;
        match place.region {
            Region::Packet => offset >= 0 && end <= self.path.facts.bytes_there(base),
            // A proven access to an element is valid wherever the element exists.
            Region::Element => {
                let is_null = self.path.facts.is_null(&self.path.values, base);
                let mut accesses = place.accesses.iter();
                is_null == Some(false) && accesses.all(|access| access.is_proven)
            }
            _ => false,
        }
    }

    /// Describes a value in words, up to a depth.
    fn describe(&self, id: values::Id, depth: usize) -> String {
        let inner = |id: &values::Id| self.describe(*id, depth.saturating_sub(1));
        match self.path.values.node(id) {
            Node::Constant(value) => format!("{value:#x}"),
            Node::Leaf(Leaf::Lost(..)) => "what a call left".into(),
            Node::Leaf(leaf) => format!("{leaf:?}"),
            _ if depth == 0 => "...".into(),
            Node::Sum(terms, constant) => {
                let terms: Vec<_> = terms.iter().map(|(term, _)| inner(term)).collect();
                format!("({} + {constant:#x})", terms.join(" + "))
            }
            Node::Compute(operation, _, left, right) => {
                format!("{operation:?}({}, {})", inner(left), inner(right))
            }
            Node::SignExtend(_, bits, value) => format!("s{bits}({})", inner(value)),
            Node::Bytes(bytes) => {
                format!("bytes({})", bytes.iter().map(inner).collect::<Vec<_>>().join(", "))
            }
            Node::Extract(at, value) => format!("{}[{at}]", inner(value)),
            Node::Memory { base, offset, .. } => {
                format!("*({} + {})", inner(base), *offset as i64)
            }
        }
    }
}

/// Returns the name of an effect.
fn name(effect: Option<&Effect>) -> String {
    match effect {
        Some(Effect::Call { number, .. }) => match freeport_ebpf::helper_functions::name(*number) {
            Some(name) => format!("calls {name}"),
            None => format!("calls {number}"),
        },
        Some(Effect::Exit { .. }) => "ends".into(),
        None => "does nothing more".into(),
    }
}

#[cfg(test)]
mod tests;
