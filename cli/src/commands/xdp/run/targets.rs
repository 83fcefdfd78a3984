// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The targets of a run: one, or two that are compared; the first is the reference.

use super::options::{On, Time};
use super::report::abort;
use super::tally::Reported;
use super::{Arguments, unsteady};
use crate::commands::xdp::place::Place;
use anyhow::{Context, bail};
use freeport_card::{Nic, Sim};
use freeport_ebpf::interpreter::{Clock, Environment, Outcome};
use freeport_ebpf::object::{MapDefinition, MapKind, Object, Program};
use freeport_vliw::Options;
use freeport_xdp::{
    Arrival, Comparison, Contents, Departure, Disagreement, InUserSpace, Interpreter, Kernel,
    Loading, Native, Profiles, Setting, Target, Vliw, needed,
};
use std::ops::RangeInclusive;
use std::path::Path;

/// Mean number of map entries that are compared per packet: large maps are compared less often.
const ENTRIES_PER_PACKET: u64 = 16;
/// Maximum number of entries of an array that is compared. Every entry of an array exists, so the
/// contents of a larger one might not fit into memory.
const COMPARED_ENTRIES_MAX: u32 = 1 << 20;

/// One or two targets with the object loaded.
pub struct Targets<'o> {
    all: Vec<Loaded>,
    /// Used with two targets.
    comparison: Comparison,
    departure: Departure,
    time: Time,
    maps: MapWatch,
    /// The object, for names of programs and source lines in messages.
    object: &'o Object,
}

/// The program to run, with its object and settings.
pub struct Subject<'a> {
    pub bytes: &'a [u8],
    pub object: &'a Object,
    pub program: &'a Program,
    pub settings: &'a [Setting],
}

/// A target with the object loaded.
enum Loaded {
    Interpreter(Box<Interpreter>),
    Kernel(Box<Kernel>),
    Native(Box<Native>),
    Vliw(Box<Vliw>, Option<ImageSize>),
    Sim(Box<Sim>),
}

/// Size of the image of a program for the processor.
#[derive(Clone, Copy)]
pub struct ImageSize {
    pub lanes: u8,
    pub rows: usize,
    /// Number of rows without the profile, if there is one.
    pub unprofiled_rows: Option<usize>,
}

/// The schedule of map comparisons between packets.
struct MapWatch {
    /// Maps that reading does not empty.
    names: Vec<String>,
    /// Maps that are too large to be compared.
    too_large: Vec<String>,
    every: Option<u64>,
    packets: u64,
    next: u64,
    /// The last packet after which all maps were equal.
    alike: Option<u64>,
}

impl<'o> Targets<'o> {
    /// Loads the object on all targets; for the processor, scheduled for profiles if there are any.
    ///
    /// # Errors
    /// A program that a target refuses, or missing privileges for the kernel.
    pub fn load(
        subject: &Subject<'o>,
        profiles: Option<&Profiles>,
        arguments: &Arguments,
    ) -> anyhow::Result<Self> {
        let &Subject { object, program, .. } = subject;
        let places = arguments.on.places();
        let load = |place: &Place| match place {
            Place::Kernel => load_in_kernel(subject),
            Place::Interpreter => {
                load_interpreter(object, program, arguments).context(place.place())
            }
            Place::Native => load_native(object, program).context(place.place()),
            Place::Vliw => load_vliw(object, program, profiles, arguments).context(place.place()),
            Place::Sim => load_sim(object, program, profiles, arguments).context(place.place()),
        };
        let all = places.iter().map(load).collect::<anyhow::Result<_>>()?;
        let stays = |kind| !matches!(kind, MapKind::Queue | MapKind::Stack | MapKind::RingBuffer);
        let (large, small): (Vec<_>, Vec<_>) = object.maps.iter().partition(|map| is_large(map));
        let lasting = small.into_iter().filter(|map| stays(map.kind));
        let names = lasting.map(|map| map.name.clone()).collect();
        let too_large: Vec<String> = large.into_iter().map(|map| map.name.clone()).collect();
        if arguments.on.compares() {
            for name in &too_large {
                eprintln!(
                    "map {name} is neither compared nor printed: it is an array of more than \
                     {COMPARED_ENTRIES_MAX} entries"
                );
            }
        }
        let every = arguments.maps_every;
        let next = every.unwrap_or(1);
        let compared = [0, 1].map(|at| places.get(at).map_or("", |place| place.name()));
        Ok(Self {
            all,
            comparison: Comparison::new(compared, unsteady(arguments)),
            departure: Departure::default(),
            time: arguments.clock,
            maps: MapWatch { names, too_large, every, packets: 0, next, alike: None },
            object,
        })
    }

    /// Size of the image, if the program runs on the model of the processor.
    pub fn image(&self) -> Option<ImageSize> {
        self.all.iter().find_map(|target| match target {
            Loaded::Vliw(_, image) => *image,
            _ => None,
        })
    }

    /// Changes a map on all targets.
    ///
    /// # Errors
    /// A malformed setting, or an operation that the map refuses.
    pub fn set(&mut self, setting: &Setting) -> anyhow::Result<()> {
        let object = self.object;
        for target in &mut self.all {
            setting.apply(object, target.target())?;
        }
        Ok(())
    }

    /// Starts writing the signals of the card, if it is one of the targets.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn open_waveform(&mut self, path: &Path) -> anyhow::Result<()> {
        self.all.iter_mut().try_for_each(|target| match target {
            Loaded::Sim(sim) => sim.nic_mut().open_waveform(path).map_err(anyhow::Error::msg),
            _ => Ok(()),
        })
    }

    /// The target that limits the length of packets, and the lengths that it supports.
    pub fn lengths(on: &On) -> Option<(&'static str, RangeInclusive<usize>)> {
        if on.has(Place::Kernel) {
            return Some(("kernel", Kernel::LENGTHS));
        }
        if on.has(Place::Sim) {
            return Some(("card", Sim::LENGTHS));
        }
        on.has(Place::Native).then_some(("compiled code", 0..=Native::LENGTH_MAX))
    }

    /// Whether all targets support a packet of that length.
    pub fn take(&self, length: usize) -> bool {
        self.all.iter().all(|target| match target {
            Loaded::Kernel(_) => Kernel::LENGTHS.contains(&length),
            Loaded::Sim(_) => Sim::LENGTHS.contains(&length),
            Loaded::Native(_) => length <= Native::LENGTH_MAX,
            Loaded::Interpreter(_) | Loaded::Vliw(..) => true,
        })
    }

    /// Sets the clock of targets in user space, if it follows the capture.
    pub fn set_time(&mut self, time_ns: u64) {
        if self.time == Time::Capture {
            let environments = self.all.iter_mut().filter_map(Loaded::environment_mut);
            environments.for_each(|environment| environment.clock = Clock::Set(time_ns));
        }
    }

    /// Runs a program on a packet, and compares the results of two targets.
    ///
    /// # Errors
    /// A difference, or an error of a target.
    pub fn run(&mut self, program: &str, number: u64, arrival: &Arrival<'_>) -> anyhow::Result<()> {
        match self.all.as_mut_slice() {
            [one, other] => {
                let pair = [one.target(), other.target()];
                let result = self.comparison.run(pair, program, number, arrival);
                result.map_err(|error| self.explained(error))?;
                self.compare_maps(number)
            }
            all => all.iter_mut().try_for_each(|one| {
                let result = one.target().run_into(program, arrival, &mut self.departure);
                result.with_context(|| format!("packet {number}"))
            }),
        }
    }

    /// Adds to a difference the reasons why targets in user space aborted the program.
    fn explained(&self, mut error: Disagreement) -> Disagreement {
        if let Disagreement::Packet { difference, .. } = &mut error {
            for (note, target) in difference.notes.iter_mut().zip(&self.all) {
                if let Some(ended) = target.outcome().and_then(|outcome| outcome.aborted.as_ref()) {
                    *note = format!("aborted: {}", abort(self.object, ended));
                }
            }
        }
        error
    }

    /// Compares the maps if a comparison is due.
    fn compare_maps(&mut self, number: u64) -> anyhow::Result<()> {
        let [one, other] = self.all.as_mut_slice() else { return Ok(()) };
        self.maps.packets += 1;
        if self.maps.packets < self.maps.next {
            return Ok(());
        }
        let mut entries = 0;
        for name in &self.maps.names {
            let contents = self.comparison.map([one.target(), other.target()], name);
            let contents = contents.with_context(|| match self.maps.alike {
                Some(alike) => {
                    format!("after packet {number}; they were equal after packet {alike}")
                }
                None => format!("after packet {number}"),
            })?;
            if let Contents::Entries(found) = contents {
                entries += found.len() as u64;
            }
        }
        let pause = self.maps.every.unwrap_or(1 + entries / ENTRIES_PER_PACKET);
        self.maps.next = self.maps.packets + pause;
        self.maps.alike = Some(number);
        Ok(())
    }

    /// The last packet after the program.
    pub fn departure(&self) -> &Departure {
        if self.all.len() > 1 { self.comparison.departure() } else { &self.departure }
    }

    /// Results of the last packet that targets in user space report.
    pub fn reported(&self) -> Reported<'_> {
        let mut reported = Reported::default();
        for target in &self.all {
            reported.outcome = reported.outcome.or(target.outcome());
            match target {
                Loaded::Interpreter(interpreter) => {
                    reported.instructions = interpreter.last().map(|outcome| outcome.instructions);
                }
                Loaded::Vliw(vliw, _) => reported.statistics = vliw.statistics(),
                Loaded::Sim(sim) => reported.cycles = sim.cycles_of_last(),
                Loaded::Kernel(_) | Loaded::Native(_) => {}
            }
        }
        reported
    }

    /// Takes the output of `bpf_printk` of the first target in user space.
    pub fn take_trace(&mut self) -> Vec<String> {
        self.all.iter_mut().find_map(Loaded::take_trace).unwrap_or_default()
    }

    /// Compares all maps; returns the contents of the requested maps.
    ///
    /// # Errors
    /// A map that differs between the targets, or cannot be read.
    pub fn finish(&mut self, dump: &[String]) -> anyhow::Result<Vec<(String, Contents)>> {
        let mut found = vec![];
        if let [one, other] = self.all.as_mut_slice() {
            for name in self.comparison.map_names([one.target(), other.target()])? {
                if self.maps.too_large.contains(&name) {
                    continue;
                }
                let contents = self.comparison.map([one.target(), other.target()], &name);
                let contents = contents.context("at the end")?;
                found.extend(dump.contains(&name).then_some((name, contents)));
            }
            return Ok(found);
        }
        for target in &mut self.all {
            for name in dump {
                found.push((name.clone(), target.target().contents(name)?));
            }
        }
        Ok(found)
    }
}

impl Loaded {
    fn target(&mut self) -> &mut dyn Target {
        match self {
            Self::Interpreter(interpreter) => interpreter.as_mut(),
            Self::Kernel(kernel) => kernel.as_mut(),
            Self::Native(native) => native.as_mut(),
            Self::Vliw(vliw, _) => vliw.as_mut(),
            Self::Sim(sim) => sim.as_mut(),
        }
    }

    fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Interpreter(interpreter) => interpreter.last(),
            Self::Vliw(vliw, _) => vliw.last(),
            Self::Native(native) => native.last(),
            Self::Kernel(_) | Self::Sim(_) => None,
        }
    }

    fn environment_mut(&mut self) -> Option<&mut Environment> {
        match self {
            Self::Interpreter(interpreter) => Some(interpreter.environment_mut()),
            Self::Vliw(vliw, _) => Some(vliw.environment_mut()),
            Self::Kernel(_) | Self::Native(_) | Self::Sim(_) => None,
        }
    }

    fn take_trace(&mut self) -> Option<Vec<String>> {
        match self {
            Self::Interpreter(interpreter) => Some(interpreter.take_trace()),
            Self::Vliw(vliw, _) => Some(vliw.take_trace()),
            Self::Kernel(_) | Self::Native(_) | Self::Sim(_) => None,
        }
    }
}

/// Whether a map is too large to be compared.
fn is_large(map: &MapDefinition) -> bool {
    let is_array = matches!(map.kind, MapKind::Array | MapKind::PerCpuArray);
    is_array && map.max_entries > COMPARED_ENTRIES_MAX
}

/// The environment that the options describe.
pub fn environment(arguments: &Arguments) -> Environment {
    Environment {
        clock: match arguments.clock {
            Time::Set(time_ns) => Clock::Set(time_ns),
            Time::Capture | Time::Running => Clock::running(),
        },
        seed: arguments.seed,
        instructions_max: arguments.limit,
        ..Environment::default()
    }
}

/// Loads the object on the model of the processor; determines the size of the image.
fn load_vliw(
    object: &Object,
    program: &Program,
    profiles: Option<&Profiles>,
    arguments: &Arguments,
) -> anyhow::Result<Loaded> {
    let mut options = Options::default();
    if let Some(lanes) = arguments.lanes {
        options.machine.lanes = lanes;
    }
    let plain = Vliw::load(object, &options, environment(arguments))?;
    plain.takes(&program.name)?;
    let number = object.programs.iter().position(|it| it.name == program.name);
    let rows = |vliw: &Vliw| number.and_then(|it| vliw.image(it)).map(|image| image.rows.len());
    let plain_rows = rows(&plain);
    let lanes = options.machine.lanes;
    let size = |rows, unprofiled_rows| ImageSize { lanes, rows, unprofiled_rows };
    let Some(profiles) = profiles else {
        return Ok(Loaded::Vliw(Box::new(plain), plain_rows.map(|rows| size(rows, None))));
    };
    let vliw = Vliw::load_profiled(object, &options, profiles, environment(arguments))?;
    let image = rows(&vliw).map(|rows| size(rows, plain_rows));
    Ok(Loaded::Vliw(Box::new(vliw), image))
}

/// Loads the object on the simulated card, whose number of lanes is fixed.
fn load_sim(
    object: &Object,
    program: &Program,
    profiles: Option<&Profiles>,
    arguments: &Arguments,
) -> anyhow::Result<Loaded> {
    let environment = environment(arguments);
    if let Some(profiles) = profiles {
        let nic = Nic::with_cores(arguments.cores)?;
        let sim = Sim::load_profiled_on(nic, object, profiles, &environment)?;
        match sim.takes(&program.name) {
            Ok(()) => return Ok(Loaded::Sim(Box::new(sim))),
            Err(error) => eprintln!(
                "the schedule with the profile does not fit, so the one without it is used: {error}"
            ),
        }
    }
    let nic = Nic::with_cores(arguments.cores)?;
    let sim = Sim::load_on(nic, object, &Options::default(), &environment)?;
    sim.takes(&program.name)?;
    Ok(Loaded::Sim(Box::new(sim)))
}

fn load_interpreter(
    object: &Object,
    program: &Program,
    arguments: &Arguments,
) -> anyhow::Result<Loaded> {
    let interpreter = Interpreter::load(object, environment(arguments))?;
    interpreter.takes(&program.name)?;
    Ok(Loaded::Interpreter(Box::new(interpreter)))
}

fn load_native(object: &Object, program: &Program) -> anyhow::Result<Loaded> {
    let native = Native::load(object, &program.name, &freeport_native::Options::default())?;
    Ok(Loaded::Native(Box::new(native)))
}

fn load_in_kernel(subject: &Subject<'_>) -> anyhow::Result<Loaded> {
    if let Some(refusal) = Kernel::refusal() {
        bail!("{refusal}; or use --on interpreter, which needs no privileges");
    }
    let &Subject { bytes, object, program, settings } = subject;
    let programs = needed(object, &program.name, settings);
    let loading = Loading { programs, maps: &object.maps, pins: None };
    let kernel = Kernel::load_part(bytes, &loading).context(Place::Kernel.place())?;
    Ok(Loaded::Kernel(Box::new(kernel)))
}
