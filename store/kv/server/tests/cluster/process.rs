// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node of a cluster in a process of its own, which can be killed and paused.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use freeport_kv_cluster::{Address, open};
use freeport_kv_server::{Bind, ClusterOptions, Options, PersistenceOptions, Policy, Server};
use freeport_testbed::port::free_port;
use freeport_testbed::{process, wait_until};

use crate::functions::registry as functions;

/// Name of the test that serves.
const SERVES: &str = "cluster::process::serves_as_a_node";
/// Variables that configure it.
const FOLDER: &str = "FREEPORT_NODE_FOLDER";
const PORT: &str = "FREEPORT_NODE_PORT";
const REGISTRY: &str = "FREEPORT_NODE_REGISTRY";
const WORKERS: &str = "FREEPORT_NODE_WORKERS";
const LEASE_MS: &str = "FREEPORT_NODE_LEASE_MS";

/// A program whose nodes make a cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Program {
    Freeport {
        workers: usize,
        /// Nodes agree in etcd, otherwise in a folder.
        has_etcd: bool,
    },
    Redis,
}

impl Program {
    /// Whether the nodes have the functions of the tests.
    pub fn has_functions(self) -> bool {
        matches!(self, Self::Freeport { .. })
    }
}

/// A node. Dropping it kills the process.
pub struct Node {
    program: Program,
    port: u16,
    folder: PathBuf,
    /// Where nodes of ours agree.
    registry: String,
    /// Time for which it is believed to be there.
    lease: Duration,
    process: Option<Child>,
}

impl Node {
    /// Starts a node whose files are in a folder.
    pub fn new(program: Program, folder: PathBuf, (registry, lease): (&str, Duration)) -> Self {
        fs::create_dir_all(&folder).expect("a folder");
        let (port, registry) = (free_port(), registry.to_owned());
        let mut node = Self { program, port, folder, registry, lease, process: None };
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
        let mut command = match self.program {
            Program::Freeport { workers, .. } => self.freeport(workers),
            Program::Redis => self.redis(),
        };
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut child = child.expect("the program is installed");
        wait_until("the node accepts connections", || {
            let end = child.try_wait().expect("it is ours");
            assert!(end.is_none(), "the node has ended by itself: {end:?}");
            TcpStream::connect(self.address()).is_ok()
        });
        self.process = Some(child);
    }

    /// This test binary again: a test of it serves until its standard input ends, which is also
    /// when the parent is killed.
    fn freeport(&self, workers: usize) -> Command {
        let test = std::env::current_exe().expect("a test knows its own file");
        let mut command = Command::new(test);
        command.args([SERVES, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(FOLDER, &self.folder).env(PORT, self.port.to_string());
        command.env(REGISTRY, &self.registry).env(WORKERS, workers.to_string());
        command.env(LEASE_MS, self.lease.as_millis().to_string());
        command
    }

    fn redis(&self) -> Command {
        let mut command = Command::new("redis-server");
        let bus = free_port().to_string();
        let timeout = self.lease.as_millis().to_string();
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

/// A node for other tests, which start this one in a process of its own.
#[test]
fn serves_as_a_node() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let variable = |name: &str| std::env::var(name).expect("it is set");
    let port: u16 = variable(PORT).parse().expect("a port");
    let address = Address { host: Ipv4Addr::LOCALHOST.to_string(), port, ..Address::default() };
    let registry = open(&variable(REGISTRY)).unwrap_or_else(|error| panic!("{error}"));
    let timeout = Duration::from_millis(variable(LEASE_MS).parse().expect("a time"));
    let options = Options {
        resp: vec![Bind::Tcp((Ipv4Addr::LOCALHOST, port).into())],
        workers: variable(WORKERS).parse().expect("a number"),
        persistence: Some(PersistenceOptions {
            policy: Policy::Never,
            ..PersistenceOptions::new(folder.into())
        }),
        functions: functions(),
        cluster: Some(ClusterOptions { registry, address, timeout }),
        ..Options::default()
    };
    let _server = Server::start(options).unwrap_or_else(|error| panic!("{error}"));
    // An end of any kind is one.
    let _ = std::io::stdin().read_to_end(&mut vec![]);
}
