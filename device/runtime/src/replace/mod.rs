// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replacing a running graph by another, without losing queued packets or state.
//!
//! 1. The new program is verified, compiled and loaded into a device of its own, while the old one
//!    runs; its init functions run then. Whatever can fail with it fails here. [`Ports::check`]
//!    tells whether it has the endpoints that ports are bound to.
//! 2. [`replace`] drains the old graph: it runs without new input until nothing moves.
//! 3. What still waits is compared with what the new graph has room for. If something would be lost
//!    the old graph simply goes on, unless the caller insists ([`ReplaceOptions::force`]).
//! 4. Variables, tables, packets, items and counters move to the new graph, each to what has its
//!    name and type there. This cannot fail; what has no place is told in the [`Replacement`].
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
//! What a variable is kept by: the names of its instance and its own, its width, its number of
//! elements, and, where both programs come with [`Layouts`], what its bits mean. A table is kept by
//! its names, its kind, and what its keys and values are; its capacity may change. Initial values
//! of a file are the caller's to set, before the replacement: what is kept overwrites them.
//!
//! What is not kept: a handler that waits in its middle begins anew, what `random` draws, and a
//! recording, which starts anew with the new graph (one that began with packets inside cannot be
//! replayed). An instance that rests at a breakpoint does not rest any more. Take what probes of
//! the old device have told before it goes.
//!
//! Between two native graphs memory goes as it is, tables with the order of their uses, and large
//! variables by moving their pages, so that they are not needed twice. To and from the interpreter
//! everything goes element by element.

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

/// How a graph is replaced.
#[derive(Clone, Copy, Default)]
pub struct ReplaceOptions<'a> {
    /// Replaces it even if packets are lost.
    pub force: bool,
    /// What the bits of the old and the new program's variables and tables mean. Without them, two
    /// types are the same if they have as many bits.
    pub layouts: Option<(&'a Layouts, &'a Layouts)>,
}

/// Why a graph was not replaced. The old one can go on.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// While the old graph was drained.
    #[error("the running graph fails: {0}")]
    Device(#[from] DeviceError),
    /// Its state is with several workers.
    #[error(
        "a program on several workers cannot be replaced while it runs: stop it, start the new one"
    )]
    Workers,
    /// Packets or items would be lost, as the report tells that a replacement would give.
    #[error("{}; the old graph goes on. Replace it by force to lose them", .0.losses())]
    WouldLose(Box<Replacement>),
}

/// Moves what `old` has to `new`, which has not run yet. If this succeeds `old` is left with
/// nothing that is of use, and has to go.
///
/// # Errors
/// Then `old` is as it was, except that it was drained: what came out waits for its ports.
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
    // Now, since draining counts, and taking out what a writer held.
    let counted = old.counters();
    to.count_from(counters::renamed(&counted, &old_manifest, &new_manifest));
    Ok(report)
}
