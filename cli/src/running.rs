// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The running program that a command talks to.

use clap::Args;
use freeport_runtime::server::{Client, ClientError, RunFolder};

/// `--to NAME`
#[derive(Args, Clone, Debug, Default)]
pub struct To {
    /// The running program [default: the only one]
    #[arg(long, value_name = "NAME")]
    to: Option<String>,
}

impl To {
    /// Connects to the program.
    ///
    /// # Errors
    /// No program of that name runs or, without a name, none or several programs run.
    pub fn connect(&self) -> Result<Client, ClientError> {
        Client::connect(&RunFolder::of_user()?, self.to.as_deref())
    }
}
