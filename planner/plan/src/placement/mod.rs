// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Settings that a plan gives a service: which share of its calls takes which alternative
//! (`docs/reference/placement.md`).
//!
//! A plan file has the settings of one service. A placement file has those of several, each with
//! the plan that it comes from. Both are TOML, are read strictly, and are written so that reading
//! gives the same again.

mod read;
mod write;

pub use write::{WriteError, write};

use crate::function::{Action, Alternative, Function, Repeated, Service};
use crate::plan::Plan;
use freeport_plan_model::{Path, Side};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Version of the form of both files.
pub const VERSION: u64 = 1;

/// Settings of services.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Placement {
    /// The services, each with its settings.
    pub services: BTreeMap<Service, Settings>,
}

/// Settings of a service.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// SHA-256 of the plan file, as hexadecimal digits.
    pub plan: String,
    /// The function that was planned.
    pub function: String,
    /// The device of the profile.
    pub device: String,
    /// Shares of calls in the order of their rank; together they are 1.
    pub shares: Vec<Setting>,
}

/// Settings of a service as a plan file has them.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanFile {
    /// The service.
    pub service: Service,
    /// The function that was planned.
    pub function: String,
    /// The device of the profile.
    pub device: String,
    /// Calls per second that resources allow, in millions (modelled).
    pub rate: f64,
    /// The limiting resource, or the offered load.
    pub limit: String,
    /// Shares of calls in the order of their rank; together they are 1.
    pub shares: Vec<Setting>,
}

/// An alternative with its share of calls.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// The alternative.
    pub alternative: String,
    /// Share of calls: above 0, at most 1.
    pub share: f64,
    /// Paths of its steps, in their order, each once.
    pub paths: Vec<Path>,
    /// Largest payload of a step before compression, in bytes: of messages and answers too.
    pub bytes: u64,
    /// Requests with one doorbell.
    pub batch: u32,
    /// The side that compresses.
    pub compression: Compression,
}

/// The side that compresses data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// None.
    None,
    /// The host.
    Host,
    /// The device's processor.
    Soc,
}

impl Compression {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Host => "host",
            Self::Soc => "soc",
        }
    }
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = [Self::None, Self::Host, Self::Soc].into_iter().find(|it| it.name() == name);
        found.ok_or_else(|| format!("{name} is not none, host or soc"))
    }
}

impl PlanFile {
    /// Returns the settings of a plan; none if its function belongs to no service.
    pub fn of(plan: &Plan) -> Option<Self> {
        let settings = plan
            .shares
            .iter()
            .map(|share| Setting::of(plan, &share.candidate.alternative, share.share));
        Some(Self {
            service: plan.function.service?,
            function: plan.function.name.clone(),
            device: plan.device.clone(),
            rate: plan.rate,
            limit: plan.limit.to_owned(),
            shares: settings.collect(),
        })
    }

    /// Returns the settings for a placement file; `text` is that of the plan file.
    pub fn settings(self, text: &str) -> Settings {
        let Self { function, device, shares, .. } = self;
        Settings { plan: hash(text), function, device, shares }
    }
}

impl Setting {
    fn of(plan: &Plan, alternative: &Alternative, share: f64) -> Self {
        let steps = || alternative.steps.iter().chain(&alternative.miss);
        let mut paths = vec![];
        for path in steps().filter_map(|step| step.action.path()) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        let side = steps().find_map(|step| match step.action {
            Action::Work { side: Side::Host, .. } if step.is_compressed => Some(Compression::Host),
            Action::Work { side: Side::Soc, .. } if step.is_compressed => Some(Compression::Soc),
            _ => None,
        });
        let batch = alternative.requests().map(|request| request.batch).max();
        Self {
            alternative: alternative.name.clone(),
            share,
            paths,
            bytes: largest(&plan.function, alternative),
            batch: batch.unwrap_or(1),
            compression: side.unwrap_or(Compression::None),
        }
    }
}

/// Returns the largest payload of a step before compression, in the parts that the rules made.
fn largest(function: &Function, alternative: &Alternative) -> u64 {
    let steps = || alternative.steps.iter().chain(&alternative.miss);
    let declared = function.alternatives.iter().find(|other| other.name == alternative.name);
    let sizes: Vec<u64> = match declared {
        // Rules keep the number of steps, and so does compression.
        Some(declared) if function.ratio < 1.0 => {
            let declared = declared.steps.iter().chain(&declared.miss);
            declared.zip(steps()).map(|(declared, step)| original(declared, step)).collect()
        }
        _ => steps().map(|step| step.action.bytes()).collect(),
    };
    sizes.into_iter().max().unwrap_or_default()
}

/// Returns the payload of a step before compression.
fn original(declared: &Repeated, step: &Repeated) -> u64 {
    let parts = (step.times / declared.times).round().max(1.0) as u64;
    if step.is_compressed { declared.action.bytes().div_ceil(parts) } else { step.action.bytes() }
}

/// Returns the SHA-256 of a text as hexadecimal digits.
fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
