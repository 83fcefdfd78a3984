// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rules of the study (off-path SmartNIC study, 3.6), applied to an alternative on a device.
//!
//! Each rule looks at the numbers of the profile, so that another device gets other advice without
//! other code. A rule changes an alternative only if the change keeps the constraints of the
//! function and if the limit is at most 1 % below the highest one so far: all rules together cost
//! an alternative at most 1 % of its declared limit.

mod requests;
mod transfers;

use crate::constraints::broken;
use crate::cost::Cost;
use crate::figures::rate;
use crate::function::{Alternative, Constraints};
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

/// Share of its highest limit so far that an alternative may lose by a change.
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
    constraints: &Constraints,
    alternative: &Alternative,
) -> (Alternative, Vec<Finding>) {
    let best = Cost::of(profile, alternative).limit().rate;
    let alternative = alternative.clone();
    let mut review = Review { profile, ratio, constraints, best, alternative, findings: vec![] };
    review.split_long_reads();
    review.choose_path3();
    review.spread_addresses();
    review.compare_small_reads();
    review.watch_path3();
    review.watch_messages();
    review.watch_compression();
    review.findings.sort_by_key(|finding| finding.rule);
    (review.alternative, review.findings)
}

/// An alternative under review.
#[derive(Clone)]
struct Review<'a> {
    profile: &'a Profile,
    ratio: f64,
    constraints: &'a Constraints,
    /// Its highest limit so far, in millions of calls per second.
    best: f64,
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

    /// Takes a changed alternative in place of the present one if that loses next to nothing and
    /// breaks no constraint. Returns the reason if it was not taken.
    fn take(&mut self, changed: Alternative) -> Option<String> {
        let refused = self.refused(&changed);
        if refused.is_none() {
            self.alternative = changed;
            self.best = self.best.max(self.cost().limit().rate);
        }
        refused
    }

    /// Returns the reason if a change would lose too much, or break a constraint that is kept now.
    fn refused(&self, changed: &Alternative) -> Option<String> {
        let (before, after) = (self.cost(), Cost::of(self.profile, changed));
        if broken(self.constraints, &self.alternative, &before).is_none()
            && let Some(reason) = broken(self.constraints, changed, &after)
        {
            return Some(reason);
        }
        let limit = after.limit();
        (limit.rate < (1.0 - LOSS_MAX) * self.best).then(|| {
            let (from, to) = (rate(before.limit().rate), rate(limit.rate));
            format!("the limit would be {to} by {}, instead of {from}", limit.name)
        })
    }
}
