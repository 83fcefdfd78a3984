// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which running program a command talks to.

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
    /// Connects to it.
    ///
    /// # Errors
    /// None of that name runs, or none or several without a name.
    pub fn connect(&self) -> Result<Client, ClientError> {
        Client::connect(&RunFolder::of_user()?, self.to.as_deref())
    }
}
