// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which passes make a program better before it becomes native code.

use clap::Args;
use freeport_ir::passes::UnknownPass;
use freeport_native::Options;

/// Passes on the command line.
#[derive(Args, Clone, Debug, Default)]
pub struct PassArguments {
    /// Leave out a pass that makes the native code better, to see what it is good for; may be
    /// repeated
    #[arg(long, value_name = "PASS")]
    without: Vec<String>,
}

impl PassArguments {
    /// How native code is made.
    ///
    /// # Errors
    /// A name that no pass has.
    pub fn options(&self) -> Result<Options, UnknownPass> {
        let mut options = Options::default();
        for pass in &self.without {
            options.passes = options.passes.without(pass)?;
        }
        Ok(options)
    }
}
