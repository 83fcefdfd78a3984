// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The passes: one ordered list, each entry with the reason for its place.
//!
//! Every pass keeps what the interpreter does with a program: histories, state, answers and
//! counters. Each can be switched off by name, so that a difference can be hunted down to one of
//! them. `async_extraction` alone changes the graph, and says itself what that changes.
//!
//! What all passes keep to: a loop with a bound has one header, which goes into the loop by one
//! edge; the bound counts how often that edge is taken. Accesses out of range are counted, and so
//! are effects that no pass may add or remove.

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

use crate::{Program, verify};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A place in the order: a pass and why it stands there.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The pass, a name of [`NAMES`].
    pub pass: &'static str,
    /// Why it runs at this point.
    pub reason: &'static str,
}

const fn step(pass: &'static str, reason: &'static str) -> Step {
    Step { pass, reason }
}

/// The order in which passes run.
pub const ORDER: [Step; 19] = [
    step("async_extraction", "first: slow paths must leave while they are still calls"),
    step("inlining", "before all others: they look at one function at a time"),
    step("constant_folding", "indexes become constants, which single assignment asks for"),
    step("ssa", "iterators become values, from which iterations can be counted"),
    step("constant_folding", "conditions of loops and fields of structs become plain"),
    step("dead_code", "the size of loop bodies is that of what they need"),
    step("unroll", "now the number of iterations is known"),
    step("constant_folding", "each copy has its own iterator, which is a constant"),
    step("unroll", "inner loops whose bound was an outer iterator"),
    step("constant_folding", "as above, for their copies"),
    step("dead_code", "copies that no iteration reaches go, and with them their accesses"),
    step("ssa", "arrays indexed by iterators now have constant indexes (ClickNP 4.8, 4.10)"),
    step("constant_folding", "what was stored in one copy is seen in the next"),
    step("dead_code", "parameters and inserts that folding left behind"),
    step("if_conversion", "what is left to branch around, and how little, is known now"),
    step("constant_folding", "merged blocks show more"),
    step("dead_code", "what that left behind"),
    step("promote", "last: accesses with a moving index may have gone (ClickNP 4.3)"),
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

/// What passes can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Inline calls of every latency, not only [`Latency::Inline`](crate::Latency::Inline).
    pub inline_every_call: bool,
    /// Most operations that a loop without a wish of its own may become by unrolling, where the
    /// number of its iterations is known.
    pub unroll_limit: u64,
    /// Most operations that any loop may become; one that asks for more stays, which is reported.
    pub unroll_most: u64,
    /// Most that a side of a branch may cost to be computed in vain: about as many operations of
    /// 64 bits.
    pub if_limit: u64,
    /// Most elements of an array that becomes registers.
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

/// Which passes run, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassSet {
    enabled: BTreeSet<&'static str>,
    /// See [`Options`].
    pub options: Options,
}

/// There is no pass of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no pass `{0}`; the passes are: {list}", list = NAMES.join(", "))]
pub struct UnknownPass(pub String);

/// Every pass but `async_extraction`, which back ends for hardware ask for.
impl Default for PassSet {
    fn default() -> Self {
        let enabled = NAMES.into_iter().filter(|name| *name != "async_extraction").collect();
        Self { enabled, options: Options::default() }
    }
}

impl PassSet {
    /// No pass.
    pub fn none() -> Self {
        Self { enabled: BTreeSet::new(), options: Options::default() }
    }

    /// What a back end for the CPU wants: the default, with calls of every latency inlined.
    pub fn for_cpu() -> Self {
        let options = Options { inline_every_call: true, ..Options::default() };
        Self { options, ..Self::default() }
    }

    /// What a back end for hardware wants: all passes, so that slow paths become elements.
    pub fn for_hardware() -> Self {
        Self { enabled: NAMES.into_iter().collect(), options: Options::default() }
    }

    /// Those passes alone, each at its places in [`ORDER`].
    ///
    /// # Errors
    /// A name that no pass has.
    pub fn only(names: &[&str]) -> Result<Self, UnknownPass> {
        names.iter().try_fold(Self::none(), |set, name| set.with(name))
    }

    /// This set and that pass.
    ///
    /// # Errors
    /// A name that no pass has.
    pub fn with(mut self, name: &str) -> Result<Self, UnknownPass> {
        self.enabled.insert(find(name)?);
        Ok(self)
    }

    /// This set without that pass.
    ///
    /// # Errors
    /// A name that no pass has.
    pub fn without(mut self, name: &str) -> Result<Self, UnknownPass> {
        self.enabled.remove(find(name)?);
        Ok(self)
    }

    /// Whether that pass runs.
    pub fn contains(&self, name: &str) -> bool {
        self.enabled.contains(name)
    }
}

fn find(name: &str) -> Result<&'static str, UnknownPass> {
    let found = NAMES.into_iter().find(|known| *known == name);
    found.ok_or_else(|| UnknownPass(name.to_owned()))
}

/// What a pass did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// By kind of change; only those that happened.
    pub counts: BTreeMap<&'static str, u64>,
    /// What it declined to do and why, and what the programmer should know.
    pub notes: Vec<String>,
}

impl Changes {
    /// Adds to the count of that kind.
    fn count(&mut self, kind: &'static str, by: u64) {
        if by > 0 {
            *self.counts.entry(kind).or_default() += by;
        }
    }

    fn note(&mut self, note: String) {
        self.notes.push(note);
    }
}

/// What all passes did, in the order in which they ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The name of each pass that ran, and what it did.
    pub steps: Vec<(&'static str, Changes)>,
}

impl Report {
    /// What the pass of that name did in all its places.
    pub fn of(&self, name: &str) -> Changes {
        let mut all = Changes::default();
        for (_, changes) in self.steps.iter().filter(|(pass, _)| *pass == name) {
            changes.counts.iter().for_each(|(kind, by)| all.count(kind, *by));
            all.notes.extend(changes.notes.iter().cloned());
        }
        all
    }
}

/// A line for each pass that changed something, and one for each note.
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

/// Runs the passes of `set` in their [`ORDER`]. The program must be one that the verifier accepts,
/// and stays one.
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

/// In debug builds, the verifier looks at what each pass has made.
fn check(program: &Program, pass: &str) {
    if let Err(errors) = verify(program) {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        panic!("{pass} broke the program {}:\n{}", program.name, errors.join("\n"));
    }
}
