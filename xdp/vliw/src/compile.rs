// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles a program to an image, pass by pass.

use crate::blocks::Routine;
use crate::image::Image;
use crate::layout::{self, Scheduled};
use crate::lower::lower;
use crate::number;
use crate::options::Options;
use crate::passes::{
    bounds, coalescing, dead, if_conversion, memory_operations, replication, superblocks,
    threading, wide_accesses, zeroing,
};
use crate::profile::Profile;
use crate::region::Region;
use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::interpreter::Unsupported;
use freeport_ebpf::object::{MapDefinition, Program};

/// Compiles a program of an object with these maps.
///
/// # Errors
/// The first instruction that the processor cannot execute.
///
/// # Panics
/// The number of lanes is not in [`LANES`](crate::machine::LANES).
pub fn compile(
    program: &Program,
    maps: &[MapDefinition],
    options: &Options,
) -> Result<Image, Unsupported> {
    let analysis = Analysis::of(program, maps).map_err(|malformed| Unsupported {
        program: program.name.clone(),
        slot: malformed.slot,
        reason: malformed.reason,
    })?;
    compile_analysed(program, &analysis, options)
}

/// As [`compile`], for a program that was analysed already.
///
/// # Errors
/// As [`compile`].
pub fn compile_analysed(
    program: &Program,
    analysis: &Analysis,
    options: &Options,
) -> Result<Image, Unsupported> {
    compile_for(program, analysis, None, options)
}

/// As [`compile_analysed`], with a profile: likely paths are scheduled as one region even where
/// others join them, at the cost of duplicated rows.
///
/// # Errors
/// As [`compile`].
pub fn compile_profiled(
    program: &Program,
    analysis: &Analysis,
    profile: &Profile,
    options: &Options,
) -> Result<Image, Unsupported> {
    compile_for(program, analysis, Some(profile), options)
}

/// As [`compile_profiled`], with an optional profile.
pub(crate) fn compile_for(
    program: &Program,
    analysis: &Analysis,
    profile: Option<&Profile>,
    options: &Options,
) -> Result<Image, Unsupported> {
    let functions = schedule_all(program, analysis, profile, options)?;
    Ok(layout::link(&program.name, functions, options))
}

/// As [`compile_for`], and returns the number of rows that dependences alone would need.
pub(crate) fn compile_measured(
    program: &Program,
    analysis: &Analysis,
    options: &Options,
) -> Result<(Image, usize), Unsupported> {
    let functions = schedule_all(program, analysis, None, options)?;
    let critical_rows = functions.iter().map(|function| function.critical_rows).sum();
    Ok((layout::link(&program.name, functions, options), critical_rows))
}

/// Schedules all functions.
fn schedule_all(
    program: &Program,
    analysis: &Analysis,
    profile: Option<&Profile>,
    options: &Options,
) -> Result<Vec<Scheduled>, Unsupported> {
    let routines = lower(program, analysis, options.machine.lanes)?;
    Ok(routines.into_iter().map(|routine| schedule(routine, analysis, profile, options)).collect())
}

/// Schedules a function.
fn schedule(
    mut routine: Routine,
    analysis: &Analysis,
    profile: Option<&Profile>,
    options: &Options,
) -> Scheduled {
    if options.bounds {
        bounds::run(&mut routine, analysis);
    }
    if options.zeroing {
        zeroing::run(&mut routine);
    }
    if options.exits {
        threading::run(&mut routine, analysis);
        threading::end(&mut routine);
    }
    routine.remove_unreachable();
    if options.if_conversion {
        if_conversion::run(&mut routine, analysis, options.machine.lanes.into());
    }
    let paths = if options.code_motion {
        superblocks::paths(&routine, profile)
    } else {
        superblocks::single(&routine)
    };
    let mut regions: Vec<Region> =
        paths.iter().map(|path| number::region(&routine, path, analysis, options)).collect();
    let mut live = dead::run(&mut regions, options.dead);
    if options.wide_accesses {
        regions.iter_mut().for_each(|region| wide_accesses::run(region, &live));
        live = dead::run(&mut regions, options.dead);
    }
    if options.memory_operations {
        regions.iter_mut().for_each(|region| memory_operations::run(region, &live));
        live = dead::run(&mut regions, options.dead);
    }
    if options.coalescing {
        regions.iter_mut().for_each(|region| coalescing::run(region, &live));
        live = dead::run(&mut regions, options.dead);
    }
    if options.replication {
        regions.iter_mut().for_each(replication::run);
    }
    layout::schedule(&routine.name, &regions, &live, options)
}
