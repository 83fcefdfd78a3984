// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loads an object on its target and joins it to its ports.

use super::port::{self, PortSpec};
use super::{Arguments, Mode};
use crate::commands::xdp::place::Place;
use anyhow::{Context, bail};
use freeport_attach::{Engine, Mode as Hook, OnCard, OnKernel, OneByOne, Running, Wire};
use freeport_card::Sim;
use freeport_ebpf::interpreter::Environment;
use freeport_ebpf::object::Object;
use freeport_port::bpf::AttachMode;
use freeport_vliw::Options;
use freeport_xdp::{Interpreter, Kernel, Loading, Native, RunTimes, Setting, Target, Vliw, needed};
use std::path::Path;

/// The program to run, with its object.
pub struct Loaded<'a> {
    pub bytes: &'a [u8],
    pub object: &'a Object,
    pub program: &'a str,
}

/// Loads the object, applies the settings, and then joins the ports, so that no packet finds empty
/// maps.
///
/// # Errors
/// A program or setting that the target refuses, or a port that cannot be opened.
pub fn begin(
    loaded: &Loaded<'_>,
    settings: &[Setting],
    arguments: &Arguments,
) -> anyhow::Result<Box<dyn Running>> {
    let &Loaded { object, program, .. } = loaded;
    let environment = Environment { seed: arguments.seed, ..Environment::default() };
    match arguments.on {
        Place::Kernel => in_kernel(loaded, settings, arguments),
        Place::Interpreter => {
            let interpreter = Interpreter::load(object, environment)?;
            let engine = OneByOne::new("interpreter", object, interpreter, program);
            wired(engine.context(arguments.on.place())?, object, settings, arguments)
        }
        Place::Native => {
            let native = Native::load(object, program, &freeport_native::Options::default())?;
            let engine = OneByOne::new("code", object, native, program);
            wired(engine.context(arguments.on.place())?, object, settings, arguments)
        }
        Place::Vliw => {
            let mut options = Options::default();
            options.machine.lanes = arguments.lanes.unwrap_or(options.machine.lanes);
            let vliw = Vliw::load(object, &options, environment)?;
            let engine = OneByOne::new("model", object, vliw, program);
            wired(engine.context(arguments.on.place())?, object, settings, arguments)
        }
        Place::Sim => {
            let sim = Sim::load(object, &Options::default(), &environment)?;
            let engine = OnCard::new(object, sim, program);
            wired(engine.context(arguments.on.place())?, object, settings, arguments)
        }
    }
}

fn wired(
    mut engine: impl Engine + 'static,
    object: &Object,
    settings: &[Setting],
    arguments: &Arguments,
) -> anyhow::Result<Box<dyn Running>> {
    set(settings, object, engine.target_mut())?;
    Ok(Box::new(Wire::new(engine, port::open(&arguments.port)?)?))
}

fn in_kernel(
    loaded: &Loaded<'_>,
    settings: &[Setting],
    arguments: &Arguments,
) -> anyhow::Result<Box<dyn Running>> {
    let ports = arguments.port.iter().map(PortSpec::for_kernel);
    let ports = ports.collect::<anyhow::Result<Vec<_>>>()?;
    if let Some(refusal) = Kernel::refusal() {
        bail!("{refusal}; or use --on interpreter");
    }
    let programs = needed(loaded.object, loaded.program, settings);
    let pins = arguments.pin_maps.as_deref();
    let loading = Loading { programs, maps: &loaded.object.maps, pins };
    let mut kernel =
        Kernel::load_to_attach(loaded.bytes, &loading).context(arguments.on.place())?;
    say_pins(loaded.object, pins);
    set(settings, loaded.object, &mut kernel)?;
    let times = arguments.count_runs.then(RunTimes::enable).transpose();
    let times = times.context("the kernel cannot count runs")?;
    let mode = match arguments.mode.unwrap_or(Mode::Best) {
        Mode::Best => Hook::Best,
        Mode::Native => Hook::Only(AttachMode::Native),
        Mode::Generic => Hook::Only(AttachMode::Generic),
    };
    let running = OnKernel::attach(kernel, loaded.program, &ports, mode, times)?;
    running.modes().for_each(|mode| eprintln!("{mode}"));
    Ok(Box::new(running))
}

/// Reports which maps are pinned, and which are not although the object marks them as pinned.
fn say_pins(object: &Object, pins: Option<&Path>) {
    for map in object.maps.iter().filter(|map| map.pinned) {
        match pins {
            Some(folder) => eprintln!("map {} is pinned in {}", map.name, folder.display()),
            None => eprintln!(
                "map {} is not pinned, although the object marks it so; see --pin-maps",
                map.name
            ),
        }
    }
}

fn set(settings: &[Setting], object: &Object, target: &mut dyn Target) -> anyhow::Result<()> {
    settings.iter().try_for_each(|setting| Ok(setting.apply(object, target)?))
}
