// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers in processes of their own, which can be killed. Ours is this test binary again: a test
//! of it serves until its standard input ends, which is also when the parent is killed.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use fastrand::Rng;
use freeport_kv_cluster::Address;
use freeport_kv_server::{Options, PersistenceOptions, Policy};
use freeport_testbed::redis::RedisServer;
use freeport_testbed::wait_until;

use crate::client::{Client, server_with};
use crate::functions::registry;

/// Name of the test that serves.
const SERVES: &str = "crash::process::serves_for_other_tests";
/// Variables that configure it.
const FOLDER: &str = "FREEPORT_CRASH_FOLDER";
const WORKERS: &str = "FREEPORT_CRASH_WORKERS";
const POLICY: &str = "FREEPORT_CRASH_POLICY";
const FOLLOWS: &str = "FREEPORT_CRASH_FOLLOWS";
/// Text before its address in its output.
const READY: &str = "ready at ";

/// A program that is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Program {
    Freeport { workers: usize },
    Redis,
}

impl Program {
    /// Whether the server has the functions of [`registry`].
    pub fn has_functions(self) -> bool {
        matches!(self, Self::Freeport { .. })
    }

    /// Whether requests of a client on different keys take effect in the order of the requests.
    pub fn is_ordered(self) -> bool {
        matches!(self, Self::Redis | Self::Freeport { workers: 1 })
    }
}

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Launch {
    pub program: Program,
    /// The policy of `appendfsync`; `None`: no log is kept.
    pub policy: Option<&'static str>,
    /// Where its files are.
    pub folder: PathBuf,
    /// The primary of a replica.
    pub follows: Option<SocketAddr>,
}

/// A server that has begun, and may not be ready. Dropping it kills the process.
pub enum Process {
    Freeport { child: Child, output: BufReader<ChildStdout> },
    Redis(RedisServer),
}

impl Launch {
    /// The next start: a folder does not depend on the number of workers, so that is a random one
    /// up to the present.
    pub fn next(&self, random: &mut Rng) -> Self {
        let program = match self.program {
            Program::Freeport { workers } => {
                Program::Freeport { workers: random.usize(1..=workers) }
            }
            Program::Redis => Program::Redis,
        };
        Self { program, ..self.clone() }
    }

    /// Begins a server. Nothing waits for the end of its recovery.
    pub fn begin(&self) -> Process {
        match self.program {
            Program::Freeport { workers } => self.freeport(workers),
            Program::Redis => self.redis(),
        }
    }

    fn freeport(&self, workers: usize) -> Process {
        let test = std::env::current_exe().expect("a test knows its own file");
        let mut command = Command::new(test);
        command.args([SERVES, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(FOLDER, &self.folder).env(WORKERS, workers.to_string());
        if let Some(policy) = self.policy {
            command.env(POLICY, policy);
        }
        if let Some(primary) = self.follows {
            command.env(FOLLOWS, primary.to_string());
        }
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Process::Freeport { child, output }
    }

    fn redis(&self) -> Process {
        let folder = self.folder.to_str().expect("a name in UTF-8");
        let (keeps, policy) = match self.policy {
            Some(policy) => ("yes", policy),
            None => ("no", "no"),
        };
        let options = ["--dir", folder, "--appendonly", keeps, "--appendfsync", policy];
        Process::Redis(RedisServer::start(&options).expect("redis-server is installed"))
    }
}

impl Process {
    /// Waits until it executes commands, and returns its address.
    ///
    /// # Errors
    /// It ended before.
    pub fn ready(&mut self) -> Result<SocketAddr, String> {
        match self {
            Self::Freeport { child, output } => loop {
                let mut line = String::new();
                let length = output.read_line(&mut line).expect("it can be read");
                if length == 0 {
                    return Err(format!("the server does not start: {:?}", child.wait()));
                }
                if let Some((_, address)) = line.trim_end().split_once(READY) {
                    return Ok(address.parse().expect("an address"));
                }
            },
            Self::Redis(server) => {
                let mut client = Client::connect(server.address());
                wait_until("redis-server has loaded its files", || client.call("PING") == "PONG");
                Ok(server.address())
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Self::Freeport { child, .. } = self {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A server for other tests, which start this one in a process of its own.
#[test]
fn serves_for_other_tests() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let workers = std::env::var(WORKERS).expect("it is set").parse().expect("a number");
    let mut options = options(folder.into(), workers, std::env::var(POLICY).ok());
    let follows = std::env::var(FOLLOWS).ok();
    options.replication.follows = follows.map(|text| address(text.parse().expect("an address")));
    let server = server_with(options);
    println!("{READY}{}", server.addresses()[0]);
    let mut nothing = vec![];
    // An end of any kind is one.
    let _ = std::io::stdin().read_to_end(&mut nothing);
}

/// An address as servers know those of others.
pub fn address(address: SocketAddr) -> Address {
    Address { host: address.ip().to_string(), port: address.port(), ..Address::default() }
}

fn options(folder: PathBuf, workers: usize, policy: Option<String>) -> Options {
    let persistence = policy.map(|policy| {
        let policy = match policy.as_str() {
            "always" => Policy::Always,
            "everysec" => Policy::EverySecond,
            "no" => Policy::Never,
            other => panic!("{other} is no policy"),
        };
        PersistenceOptions { policy, ..PersistenceOptions::new(folder) }
    });
    Options { workers, persistence, functions: registry(), ..Options::default() }
}
