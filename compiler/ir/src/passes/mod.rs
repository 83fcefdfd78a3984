// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The passes: one ordered list, each entry with the reason for its place.
//!
//! Every pass preserves the results of the interpreter: histories, state, answers and counters.
//! Each can be disabled by name, so that a difference can be attributed to one of them. Only
//! `async_extraction` changes the graph; it documents the observable changes.
//!
//! Invariants of all passes: a loop with a bound has one header, which enters the body by one edge;
//! the bound counts how often that edge is taken. Accesses out of range are counted and so are
//! effects, which no pass may add or remove.

mod async_extraction;
mod constant_folding;
mod construct;
mod dead_code;
mod edit;
mod if_conversion;
mod inlining;
mod loop_bound;
mod promote;
mod ssa;
mod unroll;

pub use edit::remove_unreachable_blocks;
pub use unroll::trip_count;

use crate::{Program, verify};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// An entry of the order: a pass and the reason for its position.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Name of the pass, one of [`NAMES`].
    pub pass: &'static str,
    /// Reason for its position.
    pub reason: &'static str,
}

const fn step(pass: &'static str, reason: &'static str) -> Step {
    Step { pass, reason }
}

/// The order in which passes run.
pub const ORDER: [Step; 19] = [
    step("async_extraction", "first: slow paths must leave while they are still calls"),
    step("inlining", "before all others: they look at one function at a time"),
    step("constant_folding", "indexes become constants, which single assignment requires"),
    step("ssa", "iterators become values, from which iterations can be counted"),
    step("constant_folding", "conditions of loops and fields of structs become visible"),
    step("dead_code", "loop bodies contain only needed operations when they are measured"),
    step("unroll", "now the number of iterations is known"),
    step("constant_folding", "each copy has its own iterator, which is a constant"),
    step("unroll", "inner loops whose bound was an outer iterator"),
    step("constant_folding", "as above, for their copies"),
    step("dead_code", "removes copies that no iteration reaches, with their accesses"),
    step("ssa", "arrays indexed by iterators now have constant indexes (ClickNP 4.8, 4.10)"),
    step("constant_folding", "values stored in one copy are visible in the next"),
    step("dead_code", "parameters and inserts that folding left behind"),
    step("if_conversion", "the remaining branches and their costs are known now"),
    step("constant_folding", "merged blocks allow more folding"),
    step("dead_code", "code that the conversion left behind"),
    step("promote", "last: accesses with a variable index may have been removed (ClickNP 4.3)"),
    step("dead_code", "leaves values numbered in order"),
];

struct Pass {
    name: &'static str,
    run: fn(&mut Program, &Options, &mut Changes),
}

const PASSES: [Pass; 8] = [
    Pass { name: "async_extraction", run: async_extraction::run },
    Pass { name: "inlining", run: inlining::run },
    Pass { name: "constant_folding", run: constant_folding::run },
    Pass { name: "ssa", run: ssa::run },
    Pass { name: "dead_code", run: dead_code::run },
    Pass { name: "unroll", run: unroll::run },
    Pass { name: "if_conversion", run: if_conversion::run },
    Pass { name: "promote", run: promote::run },
];

/// The names of all passes.
pub const NAMES: [&str; 8] = {
    let mut names = [""; 8];
    let mut at = 0;
    while at < names.len() {
        names[at] = PASSES[at].name;
        at += 1;
    }
    names
};

/// Options of the passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Inlines calls of every latency, not only [`Latency::Inline`](crate::Latency::Inline).
    pub inline_every_call: bool,
    /// Maximum operations that unrolling may produce from a loop without an unroll qualifier, if
    /// its number of iterations is known.
    pub unroll_limit: u64,
    /// Maximum operations that any loop may become; one that requests more is not unrolled, which
    /// is reported.
    pub unroll_most: u64,
    /// Maximum cost of speculatively executing one side of a branch, in operations of 64 bits.
    pub if_limit: u64,
    /// Maximum elements of an array that becomes registers.
    pub promote_limit: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            inline_every_call: false,
            unroll_limit: 512,
            unroll_most: 65_536,
            if_limit: 16,
            promote_limit: 64,
        }
    }
}

/// A selection of passes, with their options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassSet {
    enabled: BTreeSet<&'static str>,
    /// Options of the passes.
    pub options: Options,
}

/// No pass has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no pass `{0}`; the passes are: {list}", list = NAMES.join(", "))]
pub struct UnknownPass(pub String);

/// Every pass except `async_extraction`, which back ends for hardware request.
impl Default for PassSet {
    fn default() -> Self {
        let enabled = NAMES.into_iter().filter(|name| *name != "async_extraction").collect();
        Self { enabled, options: Options::default() }
    }
}

impl PassSet {
    /// Returns an empty selection.
    pub fn none() -> Self {
        Self { enabled: BTreeSet::new(), options: Options::default() }
    }

    /// Returns the selection for back ends for the CPU: the default, with calls of every latency
    /// inlined.
    pub fn for_cpu() -> Self {
        let options = Options { inline_every_call: true, ..Options::default() };
        Self { options, ..Self::default() }
    }

    /// Returns the selection for back ends for hardware: all passes, so that slow paths become
    /// elements.
    pub fn for_hardware() -> Self {
        Self { enabled: NAMES.into_iter().collect(), options: Options::default() }
    }

    /// Returns a selection of these passes alone, each at its positions in [`ORDER`].
    ///
    /// # Errors
    /// A name that no pass has.
    pub fn only(names: &[&str]) -> Result<Self, UnknownPass> {
        names.iter().try_fold(Self::none(), |set, name| set.with(name))
    }

    /// Adds a pass.
    ///
    /// # Errors
    /// A name that no pass has.
    pub fn with(mut self, name: &str) -> Result<Self, UnknownPass> {
        self.enabled.insert(find(name)?);
        Ok(self)
    }

    /// Removes a pass.
    ///
    /// # Errors
    /// A name that no pass has.
    pub fn without(mut self, name: &str) -> Result<Self, UnknownPass> {
        self.enabled.remove(find(name)?);
        Ok(self)
    }

    /// Returns whether a pass is selected.
    pub fn contains(&self, name: &str) -> bool {
        self.enabled.contains(name)
    }
}

fn find(name: &str) -> Result<&'static str, UnknownPass> {
    let found = NAMES.into_iter().find(|known| *known == name);
    found.ok_or_else(|| UnknownPass(name.to_owned()))
}

/// Changes that a pass made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Number of changes by kind; only nonzero ones.
    pub counts: BTreeMap<&'static str, u64>,
    /// Changes that the pass declined, with reasons, and hints for the programmer.
    pub notes: Vec<String>,
}

impl Changes {
    /// Adds to the count of a kind.
    fn count(&mut self, kind: &'static str, by: u64) {
        if by > 0 {
            *self.counts.entry(kind).or_default() += by;
        }
    }

    fn note(&mut self, note: String) {
        self.notes.push(note);
    }
}

/// Changes of all passes, in the order in which they ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Name of each pass that ran, and its changes.
    pub steps: Vec<(&'static str, Changes)>,
}

impl Report {
    /// Returns the total changes of the pass of that name.
    pub fn of(&self, name: &str) -> Changes {
        let mut all = Changes::default();
        for (_, changes) in self.steps.iter().filter(|(pass, _)| *pass == name) {
            changes.counts.iter().for_each(|(kind, by)| all.count(kind, *by));
            all.notes.extend(changes.notes.iter().cloned());
        }
        all
    }
}

/// Prints a line for each pass that changed something, and one for each note.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (pass, changes) in &self.steps {
            if !changes.counts.is_empty() {
                let counts = changes.counts.iter().map(|(kind, by)| format!("{by} {kind}"));
                writeln!(f, "{pass}: {}", counts.collect::<Vec<_>>().join(", "))?;
            }
            for note in &changes.notes {
                writeln!(f, "{pass}: {note}")?;
            }
        }
        Ok(())
    }
}

/// Runs the passes of `set` in their [`ORDER`]. The program must be accepted by the verifier, and
/// still is afterwards.
pub fn run(program: &mut Program, set: &PassSet) -> Report {
    let mut report = Report::default();
    for step in ORDER {
        for pass in PASSES.iter().filter(|pass| pass.name == step.pass && set.contains(pass.name)) {
            let mut changes = Changes::default();
            (pass.run)(program, &set.options, &mut changes);
            if cfg!(debug_assertions) {
                check(program, pass.name);
            }
            report.steps.push((pass.name, changes));
        }
    }
    report
}

/// Verifies the result of each pass, in debug builds.
fn check(program: &Program, pass: &str) {
    if let Err(errors) = verify(program) {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        panic!("{pass} broke the program {}:\n{}", program.name, errors.join("\n"));
    }
}
