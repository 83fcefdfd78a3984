// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Run times of programs, measured by the kernel.

use super::{Context, Kernel, named, refused};
use crate::{Arrival, Error, Timed};
use libbpf_rs::ProgramInput;

impl Kernel {
    /// Runs a program `repeat` times on a packet, each run on the result of the last, and returns
    /// the time by the kernel's clock.
    ///
    /// # Errors
    /// There is no such program, or the kernel refuses.
    pub fn time(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        repeat: u32,
    ) -> Result<Timed, Error> {
        let found = named(&mut self.object, program)?;
        let context = Context::of(arrival);
        let mut before = context.to_bytes();
        let run = found.test_run(ProgramInput {
            context_in: Some(&mut before),
            data_in: Some(arrival.bytes),
            repeat,
            ..ProgramInput::default()
        });
        let run = run.map_err(refused(format_args!("{program}, timed")))?;
        Ok(Timed { verdict: run.return_value, mean: run.duration })
    }
}
