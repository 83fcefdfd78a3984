// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Users of servers, and connections to nodes for commands that ask them something.

use super::connection::Connection;
use super::replication::first_line;
use anyhow::Context;
use clap::Args;
use freeport_kv_cluster::Address;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
pub struct Login {
    /// User to log in as
    #[arg(long, value_name = "NAME", default_value = "default", requires = "password_file")]
    user: String,
    /// File with the user's password in its first line
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

impl Login {
    /// Connects to a node, which has to answer within `limit` each time, and logs in.
    ///
    /// # Errors
    /// The node does not answer, or refuses the user.
    pub fn connect(&self, address: &Address, limit: Duration) -> anyhow::Result<Connection> {
        let address = address.to_string();
        let mut connection = Connection::limited(&address, limit)?;
        self.log_in(&mut connection, &address)?;
        Ok(connection)
    }

    /// Logs in, if there is a password.
    ///
    /// # Errors
    /// The file cannot be read, or the server does not answer or refuses the user.
    pub fn log_in(&self, connection: &mut Connection, server: &str) -> anyhow::Result<()> {
        let Some(path) = &self.password_file else { return Ok(()) };
        let words = ["AUTH", &self.user, &first_line(path)?];
        let failed = || format!("cannot log in to {server} as user `{}`", self.user);
        connection.run(&words).with_context(failed)?;
        Ok(())
    }
}
