// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The small processor of `docs/internals/vliw.md` as a target: a model of it executes images of an
//! object's programs.

use crate::{Error, Executor, Hosted, Profiles};
use freeport_ebpf::interpreter::{Environment, Machine, Outcome, Packet};
use freeport_ebpf::object::Object;
use freeport_vliw::image::Image;
use freeport_vliw::model::{Mode, Model, Statistics, Step};
use freeport_vliw::{Options, compile};

/// An object with the images of its programs.
pub type Vliw = Hosted<Rows>;

/// A model of the processor, which detects forbidden operations of images.
pub struct Rows {
    model: Model,
    /// Reason for which there is no image, for each program.
    refusals: Vec<Option<String>>,
    last: Option<Statistics>,
}

impl Executor for Rows {
    fn refusal(&self, machine: &Machine, program: usize) -> Option<String> {
        match self.refusals.get(program) {
            Some(Some(refusal)) => Some(refusal.clone()),
            // A map that the program uses may be too large for this machine.
            Some(None) => machine.refused(program).first().map(ToString::to_string),
            None => Some("it has no image".to_owned()),
        }
    }

    fn run(
        &mut self,
        machine: &mut Machine,
        program: usize,
        packet: &mut Packet,
    ) -> Result<Outcome, Error> {
        self.last = None;
        let run = self.model.run(machine, program, packet)?;
        self.last = Some(run.statistics);
        Ok(run.outcome)
    }
}

impl Vliw {
    /// Compiles all programs of an object that the processor can execute, and loads it with its
    /// maps into an environment.
    ///
    /// # Errors
    /// The object is malformed or unsupported.
    pub fn load(
        object: &Object,
        options: &Options,
        environment: Environment,
    ) -> Result<Self, Error> {
        let image = |program| {
            compile(program, &object.maps, options).map_err(|unsupported| unsupported.to_string())
        };
        Self::with_images(object, object.programs.iter().map(image).collect(), environment)
    }

    /// As `load`, optimised for the paths in profiles; see [`Profiles::compile`].
    ///
    /// # Errors
    /// The object is malformed or unsupported.
    pub fn load_profiled(
        object: &Object,
        options: &Options,
        profiles: &Profiles,
        environment: Environment,
    ) -> Result<Self, Error> {
        let programs = object.programs.iter().enumerate();
        let images = programs.map(|(number, program)| {
            let image = profiles.compile(number, program, &object.maps, options);
            image.map_err(|unsupported| unsupported.to_string())
        });
        Self::with_images(object, images.collect(), environment)
    }

    /// As `load`, with given images: for each program, in the order of the object, an
    /// image or the reason for which there is none.
    ///
    /// # Errors
    /// The object is malformed or unsupported.
    pub fn with_images(
        object: &Object,
        images: Vec<Result<Image, String>>,
        environment: Environment,
    ) -> Result<Self, Error> {
        let refusals = images.iter().map(|image| image.as_ref().err().cloned()).collect();
        let images = images.into_iter().map(Result::ok).collect();
        let rows = Rows { model: Model::new(images, Mode::Strict), refusals, last: None };
        Self::with_executor(object, rows, environment)
    }

    /// Returns the image of a program, by its number in the object.
    pub fn image(&self, program: usize) -> Option<&Image> {
        self.executor.model.image(program)
    }

    /// Records the first `most` rows executed for each following packet; 0 turns recording off.
    pub fn record(&mut self, most: usize) {
        self.executor.model.record(most);
    }

    /// Takes the recorded rows, and the number of rows executed beyond them.
    pub fn take_steps(&mut self) -> (Vec<Step>, u64) {
        self.executor.model.take_steps()
    }

    /// Returns the statistics of the last packet.
    pub fn statistics(&self) -> Option<&Statistics> {
        self.executor.last.as_ref()
    }
}
