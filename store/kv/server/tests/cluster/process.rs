// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node of a cluster in a process of its own, which can be killed and paused.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use freeport_testbed::port::free_port;
use freeport_testbed::{process, wait_until};

/// Time for which a node is believed to be there, in milliseconds.
pub const TIMEOUT_MS: u64 = 2000;

/// A program whose nodes make a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    Redis,
}

impl Program {
    /// Whether the nodes have the functions of the tests.
    pub fn has_functions(&self) -> bool {
        match self {
            Self::Redis => false,
        }
    }
}

/// A node. Dropping it kills the process.
pub struct Node {
    program: Program,
    port: u16,
    folder: PathBuf,
    process: Option<Child>,
}

impl Node {
    /// Starts a node whose files are in a folder.
    pub fn new(program: &Program, folder: PathBuf) -> Self {
        fs::create_dir_all(&folder).expect("a folder");
        let mut node = Self { program: program.clone(), port: free_port(), folder, process: None };
        node.start();
        node
    }

    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Starts it unless it runs, and waits until it accepts connections.
    pub fn start(&mut self) {
        if self.process.is_some() {
            return;
        }
        let mut command = match &self.program {
            Program::Redis => self.redis(),
        };
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        self.process = Some(child.expect("the program is installed"));
        wait_until("the node accepts connections", || TcpStream::connect(self.address()).is_ok());
    }

    fn redis(&self) -> Command {
        let mut command = Command::new("redis-server");
        let bus = free_port().to_string();
        let timeout = TIMEOUT_MS.to_string();
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"]);
        command.arg("--dir").arg(&self.folder);
        command.args(["--save", "", "--appendonly", "yes", "--appendfsync", "no"]);
        command.args(["--repl-diskless-sync-delay", "0", "--cluster-enabled", "yes"]);
        command.args(["--cluster-port", &bus, "--cluster-node-timeout", &timeout]);
        command.args(["--cluster-replica-validity-factor", "0"]);
        command
    }

    /// Kills it at once, as `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it is ours");
            process.wait().expect("it is ours");
        }
    }

    /// Stops all of its threads.
    pub fn pause(&self) {
        process::pause(self.pid());
    }

    /// Continues after [`Node::pause`].
    pub fn resume(&self) {
        process::resume(self.pid());
    }

    fn pid(&self) -> i32 {
        let process = self.process.as_ref().expect("it runs");
        i32::try_from(process.id()).expect("a number of a process")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}
