// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replacing a running graph by another, without losing queued packets or state.
//!
//! 1. The new program is verified, compiled and loaded into a device of its own while the old one
//!    runs; its init functions run then. Any failure of the new program occurs here.
//!    [`Ports::check`] checks that it has the endpoints that ports are bound to.
//! 2. [`replace`] drains the old graph: it runs without new input until nothing moves.
//! 3. The waiting frames and items are compared with the room that the new graph has. If something
//!    would be lost, the old graph keeps running, unless the caller insists
//!    ([`ReplaceOptions::force`]).
//! 4. Variables, tables, packets, items and counters move to the new graph, each to its counterpart
//!    of the same name and type. This cannot fail; the [`Replacement`] lists what has no
//!    counterpart.
//! 5. The caller drops the old device and runs the new one, with the same ports.
//!
//! ```no_run
//! # use freeport_runtime::{cpu::CpuDevice, device::{Device, Ports}, replace::*};
//! # use std::sync::Arc;
//! # fn go_on(program: freeport_ir::Program, old: &mut Box<dyn Device>, ports: &mut Ports<'_>)
//! # -> Result<Replacement, Box<dyn std::error::Error>> {
//! // A shared program has no lifetime, so that a process can do this again and again.
//! let options = freeport_native::Options::default();
//! let mut new: Box<dyn Device> = Box::new(CpuDevice::load(Arc::new(program), &options)?);
//! ports.check(new.program())?;
//! let told = replace(&mut **old, &mut *new, &ReplaceOptions::default())?;
//! *old = new;
//! Ok(told) // Which a person can read, or a program as JSON.
//! # }
//! ```
//!
//! A variable is matched by the name of its instance, its own name, its width, its number of
//! elements, and, where both programs come with [`Layouts`], the meaning of its bits. A table is
//! matched by its names, its kind, and the types of its keys and values; its capacity may change.
//! The caller sets initial values from a file before the replacement, and state that is kept
//! overwrites them.
//!
//! Not kept are: a handler suspended inside a firing, which starts again; the state of `random`;
//! and a recording, which starts anew with the new graph (one that began with packets inside cannot
//! be replayed). An instance paused at a breakpoint is resumed. Take the probe output of the old
//! device before dropping it.
//!
//! Between two native graphs, memory is copied as it is, tables with the order of their uses, and
//! large variables are moved page by page, so that they do not take twice the memory. To and from
//! the interpreter, everything is copied element by element.

mod counters;
mod plan;
mod report;
mod state;
#[cfg(test)]
mod tests;

pub use report::{KeptTable, Moved, NotKept, Reason, Replacement};

use crate::device::{Device, DeviceError};
use crate::layouts::Layouts;
use plan::Plan;

#[cfg(doc)]
use crate::device::Ports;

/// Options of a replacement.
#[derive(Clone, Copy, Default)]
pub struct ReplaceOptions<'a> {
    /// Replaces the graph even if packets are lost.
    pub force: bool,
    /// Meaning of the bits of the old and the new program's variables and tables. Without layouts,
    /// two types are equal if they have the same number of bits.
    pub layouts: Option<(&'a Layouts, &'a Layouts)>,
}

/// Reason why a graph was not replaced. The old one can keep running.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// The old graph failed while it was drained.
    #[error("the running graph failed: {0}")]
    Device(#[from] DeviceError),
    /// The device's state is distributed over several workers.
    #[error(
        "a program on several workers cannot be replaced while it runs: stop it, start the new one"
    )]
    Workers,
    /// Packets or items would be lost, as the report of the replacement shows.
    #[error("{}; the old graph keeps running. Replace it by force to lose them", .0.losses())]
    WouldLose(Box<Replacement>),
}

/// Moves the state and packets of `old` to `new`, which has not run yet. After success `old` is
/// left without useful state and has to be dropped.
///
/// # Errors
/// In every case `old` is unchanged, except that it was drained: its output waits for its ports.
pub fn replace(
    old: &mut dyn Device,
    new: &mut dyn Device,
    options: &ReplaceOptions<'_>,
) -> Result<Replacement, ReplaceError> {
    let (Some(from), Some(to)) = (old.transfer(), new.transfer()) else {
        return Err(ReplaceError::Workers);
    };
    let (old_manifest, new_manifest) = (from.manifest(), to.manifest());
    let plan = Plan::of(&old_manifest, &new_manifest, options.layouts);
    from.drain()?;
    let mut report = Replacement { new: plan.new.clone(), ..Replacement::default() };
    report.not_kept.clone_from(&plan.not_kept);
    plan.foresee(from, to, &mut report);
    if report.loses() && !options.force {
        return Err(ReplaceError::WouldLose(Box::new(report)));
    }
    let instances = old_manifest.instances.iter().enumerate();
    let suspended = instances.filter(|(at, _)| from.is_suspended(*at));
    report.suspended = suspended.map(|(_, instance)| instance.name.clone()).collect();
    state::keep(&plan, from, to, &mut report);
    plan.carry(from, to, &mut report);
    if let Some(clock_ns) = from.own_clock_ns() {
        to.advance_own_clock(clock_ns);
    }
    // Counted only now, because draining counts, and so does taking what a writer held.
    let counted = old.counters();
    to.count_from(counters::renamed(&counted, &old_manifest, &new_manifest));
    Ok(report)
}
