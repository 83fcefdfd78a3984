// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections to nodes, for commands that ask them something.

use crate::commands::kv::connection::Connection;
use crate::commands::kv::replication::first_line;
use anyhow::Context;
use clap::Args;
use freeport_kv_cluster::Address;
use std::path::PathBuf;

#[derive(Args)]
pub struct Login {
    /// User of the nodes, if they need one
    #[arg(long, value_name = "NAME", default_value = "default", requires = "password_file")]
    user: String,
    /// File with the user's password in its first line
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

impl Login {
    /// Connects to a node, and logs in.
    ///
    /// # Errors
    /// The node does not answer, or refuses the user.
    pub fn connect(&self, address: &Address) -> anyhow::Result<Connection> {
        let mut connection = Connection::tcp(&address.to_string(), None)?;
        if let Some(path) = &self.password_file {
            connection
                .run(&["AUTH", &self.user, &first_line(path)?])
                .with_context(|| format!("{address} refused user `{}`", self.user))?;
        }
        Ok(connection)
    }
}
