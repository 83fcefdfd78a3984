// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server and clients that exchange messages, for tests of what operators see.

use crate::harness::{Mode, Node, Program, find_or_skip, free_port};
use std::path::PathBuf;
use std::process::Command;

/// Their source.
pub struct Pings {
    python: PathBuf,
    program: PathBuf,
    /// Port of the server.
    pub port: u16,
}

impl Pings {
    /// `None`: there is no interpreter; the test is skipped.
    pub fn new(node: &Node) -> Option<Self> {
        let python = find_or_skip("python3")?;
        let program = node.write("pings.py", include_str!("programs/pings.py"));
        Some(Self { python, program, port: free_port() })
    }

    /// Starts the server.
    pub fn serve(&self, node: &Node) -> Program {
        let mut command = node.command(Mode::Accelerated, &self.python);
        command.args(self.words(&["serve"]));
        node.serve("pings server", command, self.port)
    }

    /// Command of a client that sends this number of bytes at a time, with pauses.
    pub fn client(&self, node: &Node, mode: Mode, bytes: &str, pause: &str) -> Command {
        let mut command = node.command(mode, &self.python);
        command.args(self.words(&["ask"])).args([bytes, pause]);
        command
    }

    /// Starts a client; returns its end.
    pub fn ask(&self, node: &Node, mode: Mode, bytes: &str, pause: &str) -> (Program, String) {
        self.begin(node, self.client(node, mode, bytes, pause))
    }

    /// The same for another command.
    pub fn begin(&self, node: &Node, command: Command) -> (Program, String) {
        let mut client = node.start("pings client", command);
        // The file with the output is read, so that the process can be checked concurrently.
        let log = client.log().to_owned();
        let said = || descriptor(&std::fs::read_to_string(&log).unwrap_or_default());
        client.wait_until("it is connected", || said().is_some());
        let end = format!("{}:{}", client.pid(), said().expect("it was there"));
        (client, end)
    }

    fn words(&self, role: &[&str]) -> Vec<String> {
        let program = self.program.display().to_string();
        let words = ["-B", &program].into_iter().chain(role.iter().copied()).map(str::to_owned);
        words.chain([self.port.to_string()]).collect()
    }
}

/// The descriptor that a client says it has.
fn descriptor(printed: &str) -> Option<String> {
    printed.lines().find_map(|line| line.strip_prefix("fd ")).map(str::to_owned)
}
