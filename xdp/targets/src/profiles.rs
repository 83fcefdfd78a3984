// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles of the paths that packets take through the programs of an object, recorded in the
//! interpreter.

use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::interpreter::{Observer, Point};
use freeport_ebpf::object::{MapDefinition, Object, Program};
use freeport_vliw::image::Image;
use freeport_vliw::{Options, Profile, Unsupported, compile, compile_profiled};

/// A profile of each program of an object, including those reached by tail calls.
pub struct Profiles {
    programs: Vec<Profile>,
}

impl Profiles {
    /// Creates empty profiles. [`Interpreter::run_observed`](crate::Interpreter::run_observed)
    /// fills them.
    pub fn new(object: &Object) -> Self {
        Self { programs: (0..object.programs.len()).map(Profile::new).collect() }
    }

    /// Returns the profile of a program by its number in the object, or `None` if the program was
    /// not executed: an empty profile would make no path likely.
    pub fn of(&self, program: usize) -> Option<&Profile> {
        self.programs.get(program).filter(|profile| profile.count(0) > 0)
    }

    /// Compiles a program, by its number in the object, and optimises for its likely paths if it
    /// has a profile.
    ///
    /// # Errors
    /// The processor cannot execute the program.
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
