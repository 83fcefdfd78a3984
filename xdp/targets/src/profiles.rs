// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which ways packets take through the programs of an object, as the interpreter sees it.

use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::interpreter::{Observer, Point};
use freeport_ebpf::object::{MapDefinition, Object, Program};
use freeport_vliw::image::Image;
use freeport_vliw::{Options, Profile, Unsupported, compile, compile_profiled};

/// A profile of each program of an object, among them those that others call in their place.
pub struct Profiles {
    programs: Vec<Profile>,
}

impl Profiles {
    /// Of programs of which nothing was executed yet: see
    /// [`Interpreter::run_observed`](crate::Interpreter::run_observed).
    pub fn new(object: &Object) -> Self {
        Self { programs: (0..object.programs.len()).map(Profile::new).collect() }
    }

    /// Of a program by its number in the object. There is none if it was not executed: of ways that
    /// nobody went, none is likely.
    pub fn of(&self, program: usize) -> Option<&Profile> {
        self.programs.get(program).filter(|profile| profile.count(0) > 0)
    }

    /// The image of a program, by its number in the object, made for its likely ways if there are
    /// any.
    ///
    /// # Errors
    /// What the processor cannot execute.
    pub fn compile(
        &self,
        number: usize,
        program: &Program,
        maps: &[MapDefinition],
        options: &Options,
    ) -> Result<Image, Unsupported> {
        let Some(profile) = self.of(number) else { return compile(program, maps, options) };
        let analysis = Analysis::of(program, maps).map_err(|malformed| Unsupported {
            program: program.name.clone(),
            slot: malformed.slot,
            reason: malformed.reason,
        })?;
        compile_profiled(program, &analysis, profile, options)
    }
}

impl Observer for Profiles {
    fn before(&mut self, point: &Point<'_, '_>) {
        if let Some(profile) = self.programs.get_mut(point.program()) {
            profile.before(point);
        }
    }
}
