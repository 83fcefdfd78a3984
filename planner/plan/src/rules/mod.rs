// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rules of the study (off-path SmartNIC study, 3.6), applied to an alternative on a device.
//!
//! Each rule looks at the numbers of the profile, and changes the alternative only if that does not
//! lower its limit, so that another device gets other advice without other code.

mod requests;
mod transfers;

use crate::cost::Cost;
use crate::function::Alternative;
use freeport_plan_model::Profile;
use std::fmt::{self, Display};

/// A rule of the study.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// Small one-sided requests use path 2, or paths 1 and 2 together.
    R1,
    /// Addresses in the processor's memory are spread, and hot items are replicated.
    R2,
    /// Long reads from the processor's memory are split.
    R3,
    /// Transfers on path 3 are split into chunks, or made by DMA.
    R4,
    /// Doorbells are rung for batches.
    R5,
    /// Path 3 leaves clients their bandwidth.
    R6,
    /// Messages go to the processor only while it has capacity.
    R7,
    /// Compression on the processor over path 3 needs a small ratio.
    R8,
}

/// The consequence of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It changed the alternative.
    Changed,
    /// The alternative does what the rule warns of.
    Warning,
    /// It gives advice that the alternative cannot follow by itself.
    Advice,
}

/// A rule that fired.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The name of the alternative.
    pub alternative: String,
    /// The consequence.
    pub effect: Effect,
    /// The reason, with the numbers of the profile.
    pub reason: String,
}

/// Share of its limit that an alternative may lose by a change.
const LOSS_MAX: f64 = 0.01;

impl Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "R{}", *self as u8 + 1)
    }
}

/// Applies all rules to an alternative, whose sizes are those after compression with this ratio.
/// Returns the changed alternative and the rules that fired.
pub fn optimise(
    profile: &Profile,
    ratio: f64,
    alternative: &Alternative,
) -> (Alternative, Vec<Finding>) {
    let mut review = Review { profile, ratio, alternative: alternative.clone(), findings: vec![] };
    review.split_long_reads();
    review.split_path3();
    review.prefer_dma();
    review.batch_doorbells();
    review.spread_addresses();
    review.compare_small_reads();
    review.watch_path3();
    review.watch_messages();
    review.watch_compression();
    review.findings.sort_by_key(|finding| finding.rule);
    (review.alternative, review.findings)
}

/// An alternative under review.
struct Review<'a> {
    profile: &'a Profile,
    ratio: f64,
    alternative: Alternative,
    findings: Vec<Finding>,
}

impl Review<'_> {
    fn cost(&self) -> Cost {
        Cost::of(self.profile, &self.alternative)
    }

    fn add(&mut self, rule: Rule, effect: Effect, reason: String) {
        let alternative = self.alternative.name.clone();
        self.findings.push(Finding { rule, alternative, effect, reason });
    }

    /// Takes a changed alternative in place of the present one if that loses next to nothing.
    /// Returns the costs before and after, and whether it was taken.
    fn take(&mut self, changed: Alternative) -> (Cost, Cost, bool) {
        let (before, after) = (self.cost(), Cost::of(self.profile, &changed));
        let is_good = after.limit().rate >= (1.0 - LOSS_MAX) * before.limit().rate;
        if is_good {
            self.alternative = changed;
        }
        (before, after, is_good)
    }
}
