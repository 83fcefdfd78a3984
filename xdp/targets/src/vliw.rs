// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The small processor of `docs/internals/vliw.md` as a target: a model of it executes images of an
//! object's
//! programs.

use crate::{Error, Executor, Hosted, Profiles};
use freeport_ebpf::interpreter::{Environment, Machine, Outcome, Packet};
use freeport_ebpf::object::Object;
use freeport_vliw::image::Image;
use freeport_vliw::model::{Mode, Model, Statistics, Step};
use freeport_vliw::{Options, compile};

/// An object with the images of its programs.
pub type Vliw = Hosted<Rows>;

/// A model of the processor, which finds what images may not do.
pub struct Rows {
    model: Model,
    /// Why there is no image, for each program.
    refusals: Vec<Option<String>>,
    last: Option<Statistics>,
}

impl Executor for Rows {
    fn refusal(&self, machine: &Machine, program: usize) -> Option<String> {
        match self.refusals.get(program) {
            Some(Some(refusal)) => Some(refusal.clone()),
            // A map that it uses may be too large for this machine.
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
    /// maps into a world.
    ///
    /// # Errors
    /// What is wrong with the object.
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

    /// The same where it is known which ways packets take: see
    /// [`Profiles::compile`].
    ///
    /// # Errors
    /// What is wrong with the object.
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

    /// The same with given images: of each program, in the order of the object, there is one or a
    /// reason why there is none.
    ///
    /// # Errors
    /// What is wrong with the object.
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

    /// The image of a program, by its number in the object.
    pub fn image(&self, program: usize) -> Option<&Image> {
        self.executor.model.image(program)
    }

    /// Keeps what the next packets do, the first `most` rows of it; 0 for nothing.
    pub fn record(&mut self, most: usize) {
        self.executor.model.record(most);
    }

    /// Takes what was kept, and how many rows more were executed.
    pub fn take_steps(&mut self) -> (Vec<Step>, u64) {
        self.executor.model.take_steps()
    }

    /// What was done for the last packet.
    pub fn statistics(&self) -> Option<&Statistics> {
        self.executor.last.as_ref()
    }
}
