// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a program runs: on one target, or on two that are compared.

use super::options::{On, Time};
use super::report::abort;
use super::{Arguments, unsteady};
use anyhow::{Context, bail};
use freeport_ebpf::interpreter::{Clock, Environment, Outcome};
use freeport_ebpf::object::{MapKind, Object};
use freeport_xdp::{
    Arrival, Comparison, Contents, Departure, Disagreement, Interpreter, Kernel, Setting, Target,
};
use std::ops::RangeInclusive;

/// Entries of maps that are compared for each packet, on the average: large maps are compared less
/// often.
const ENTRIES_PER_PACKET: u64 = 16;

/// One or two targets with the object loaded.
pub struct Targets<'o> {
    interpreter: Option<Interpreter>,
    kernel: Option<Kernel>,
    comparison: Comparison,
    departure: Departure,
    time: Time,
    maps: MapWatch,
    /// Names of the programs and their lines, for reasons of the interpreter.
    object: &'o Object,
}

/// When maps are compared between packets.
struct MapWatch {
    /// Those that reading does not empty.
    names: Vec<String>,
    every: Option<u64>,
    packets: u64,
    next: u64,
    /// The last packet after which all were the same.
    alike: Option<u64>,
}

impl<'o> Targets<'o> {
    /// Loads an object, of which a program is to be run.
    ///
    /// # Errors
    /// What a target says against it, or that the kernel may not be used.
    pub fn load(
        bytes: &[u8],
        object: &'o Object,
        program: &str,
        arguments: &Arguments,
    ) -> anyhow::Result<Self> {
        let on = arguments.on;
        let environment = Environment {
            clock: match arguments.clock {
                Time::Set(time_ns) => Clock::Set(time_ns),
                Time::Capture | Time::Running => Clock::running(),
            },
            seed: arguments.seed,
            instructions_max: arguments.limit,
            ..Environment::default()
        };
        let in_interpreter = (on != On::Kernel).then(|| Interpreter::load(object, environment));
        let interpreter = in_interpreter.transpose().context("in the interpreter")?;
        if let Some(interpreter) = &interpreter {
            interpreter.takes(program).context("in the interpreter")?;
        }
        let kernel = if on == On::Interpreter { None } else { Some(load_in_kernel(bytes)?) };
        let stays = |kind| !matches!(kind, MapKind::Queue | MapKind::Stack | MapKind::RingBuffer);
        let lasting = object.maps.iter().filter(|map| stays(map.kind));
        let names = lasting.map(|map| map.name.clone()).collect();
        let every = arguments.maps_every;
        let next = every.unwrap_or(1);
        Ok(Self {
            interpreter,
            kernel,
            comparison: Comparison::new(["kernel", "interpreter"], unsteady(arguments)),
            departure: Departure::default(),
            time: arguments.clock,
            maps: MapWatch { names, every, packets: 0, next, alike: None },
            object,
        })
    }

    fn all(&mut self) -> impl Iterator<Item = &mut dyn Target> {
        let kernel = self.kernel.iter_mut().map(|kernel| kernel as &mut dyn Target);
        kernel.chain(self.interpreter.iter_mut().map(|interpreter| interpreter as _))
    }

    /// Changes a map on all of them.
    ///
    /// # Errors
    /// What is wrong with the setting, or what the map says.
    pub fn set(&mut self, setting: &Setting) -> anyhow::Result<()> {
        let object = self.object;
        for target in self.all() {
            setting.apply(object, target)?;
        }
        Ok(())
    }

    /// Which lengths of packets the kernel takes, if it is one of them.
    pub fn lengths(on: On) -> Option<RangeInclusive<usize>> {
        (on != On::Interpreter).then_some(Kernel::LENGTHS)
    }

    /// Whether all take a packet of that length.
    pub fn take(&self, length: usize) -> bool {
        self.kernel.is_none() || Kernel::LENGTHS.contains(&length)
    }

    /// Tells the interpreter when a packet comes, if its clock shows that.
    pub fn set_time(&mut self, time_ns: u64) {
        if let (Time::Capture, Some(interpreter)) = (self.time, &mut self.interpreter) {
            interpreter.environment_mut().clock = Clock::Set(time_ns);
        }
    }

    /// Runs a program on a packet; on two targets, compares.
    ///
    /// # Errors
    /// The first difference, or what the target cannot do.
    pub fn run(&mut self, program: &str, number: u64, arrival: &Arrival<'_>) -> anyhow::Result<()> {
        let one: &mut dyn Target = match (&mut self.kernel, &mut self.interpreter) {
            (Some(kernel), Some(interpreter)) => {
                let result = self.comparison.run([kernel, interpreter], program, number, arrival);
                if let Err(error) = result {
                    return Err(self.explained(error).into());
                }
                return self.compare_maps(number);
            }
            (Some(kernel), None) => kernel,
            (None, Some(interpreter)) => interpreter,
            (None, None) => return Ok(()),
        };
        let result = one.run_into(program, arrival, &mut self.departure);
        result.with_context(|| format!("packet {number}"))
    }

    /// A difference with the reason why the interpreter ended the program, if it did.
    fn explained(&self, mut error: Disagreement) -> Disagreement {
        let ended = self.outcome().and_then(|outcome| outcome.aborted.as_ref());
        if let (Disagreement::Packet { difference, .. }, Some(ended)) = (&mut error, ended) {
            difference.notes[1] = format!("ended: {}", abort(self.object, ended));
        }
        error
    }

    /// Compares maps, if it is time for that.
    fn compare_maps(&mut self, number: u64) -> anyhow::Result<()> {
        let (Some(kernel), Some(interpreter)) = (&mut self.kernel, &mut self.interpreter) else {
            return Ok(());
        };
        self.maps.packets += 1;
        if self.maps.packets < self.maps.next {
            return Ok(());
        }
        let mut entries = 0;
        for name in &self.maps.names {
            let contents = self.comparison.map([kernel, interpreter], name);
            let contents = contents.with_context(|| match self.maps.alike {
                Some(alike) => format!("after packet {number}, the same after packet {alike}"),
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

    /// What became of the last packet.
    pub fn departure(&self) -> &Departure {
        let is_compared = self.kernel.is_some() && self.interpreter.is_some();
        if is_compared { self.comparison.departure() } else { &self.departure }
    }

    /// What the interpreter tells of the last packet, if it ran there.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.interpreter.as_ref().and_then(Interpreter::last)
    }

    /// Takes what programs have printed in the interpreter.
    pub fn take_trace(&mut self) -> Vec<String> {
        self.interpreter.as_mut().map_or(vec![], Interpreter::take_trace)
    }

    /// Compares all maps, and gives what is in those that are asked for.
    ///
    /// # Errors
    /// A map that is not the same on both, or cannot be read.
    pub fn finish(&mut self, dump: &[String]) -> anyhow::Result<Vec<(String, Contents)>> {
        let mut found = vec![];
        if let (Some(kernel), Some(interpreter)) = (&mut self.kernel, &mut self.interpreter) {
            for name in self.comparison.map_names([kernel, interpreter])? {
                let contents = self.comparison.map([kernel, interpreter], &name);
                let contents = contents.context("at the end")?;
                found.extend(dump.contains(&name).then_some((name, contents)));
            }
            return Ok(found);
        }
        for target in self.all() {
            for name in dump {
                found.push((name.clone(), target.contents(name)?));
            }
        }
        Ok(found)
    }
}

fn load_in_kernel(bytes: &[u8]) -> anyhow::Result<Kernel> {
    if let Some(refusal) = Kernel::refusal() {
        bail!(
            "{refusal}; it takes CAP_BPF and CAP_NET_ADMIN, or root: try it with sudo, or with \
             --on interpreter, which takes no rights"
        );
    }
    Kernel::load(bytes).context("in the kernel")
}
