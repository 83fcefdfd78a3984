// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The optimization passes that run before a program is compiled to native code.

use clap::Args;
use freeport_ir::passes::UnknownPass;
use freeport_native::Options;

/// Passes on the command line.
#[derive(Args, Clone, Debug, Default)]
pub struct PassArguments {
    /// Leave out an optimization pass, to see its effect; may be repeated
    #[arg(long, value_name = "PASS")]
    without: Vec<String>,
}

impl PassArguments {
    /// Options of the native compiler.
    ///
    /// # Errors
    /// An unknown pass.
    pub fn options(&self) -> Result<Options, UnknownPass> {
        let mut options = Options::default();
        for pass in &self.without {
            options.passes = options.passes.without(pass)?;
        }
        Ok(options)
    }
}
