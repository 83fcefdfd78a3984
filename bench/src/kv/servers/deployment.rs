// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers that are not alone: nodes of a cluster, and primaries with a replica.

use super::server::Kind;
use crate::sockets::programs::{Program, until};
use anyhow::{Context, Result, bail, ensure};
use freeport_kv_protocol::resp::{Value, ValueLimits, ValueProgress, ValueReader, Version, Writer};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The company of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deployment {
    /// Nothing.
    Alone,
    /// It is the only node of a cluster, and has all slots.
    Clustered,
    /// It has a replica, on the core of the load generator.
    Replicated,
    /// It is the replica of the server on this port.
    ReplicaOf(u16),
}

/// Time limit for a cluster or a replica to be ready.
const BEGINNING: Duration = Duration::from_secs(60);
/// Time limit for a reply.
const REPLYING: Duration = Duration::from_secs(10);

impl Deployment {
    /// Appends the options that a server needs for it. `folder` is the server's own.
    pub fn configure(self, kind: Kind, folder: &Path, command: &mut Command) {
        match (self, kind) {
            (Self::Clustered, Kind::Ours) => {
                command.args(["--cluster", &registry(folder), "--announce", "127.0.0.1"]);
            }
            (Self::Clustered, Kind::Redis) => {
                command.args(["--cluster-enabled", "yes"]);
            }
            (Self::ReplicaOf(port), Kind::Ours) => {
                command.arg("--replicaof").arg(format!("127.0.0.1:{port}"));
            }
            (Self::ReplicaOf(port), Kind::Redis) => {
                command.args(["--replicaof", "127.0.0.1", &port.to_string()]);
            }
            _ => {}
        }
    }

    /// Makes the server, which listens, a node with all slots, or waits for its replica.
    ///
    /// # Errors
    /// It does not get ready.
    pub fn complete(
        self,
        kind: Kind,
        folder: &Path,
        port: u16,
        program: &mut Program,
    ) -> Result<()> {
        match self {
            Self::Alone | Self::ReplicaOf(_) => return Ok(()),
            Self::Clustered => {
                let mut said = String::new();
                until(BEGINNING, || create(kind, folder, port, &mut said), program).with_context(
                    || format!("the cluster cannot be created; last answer: `{said}`"),
                )?;
            }
            Self::Replicated => {}
        }
        let is_ready = || {
            let request: &[&str] = match self {
                Self::Replicated => &["WAIT", "1", "100"],
                _ => &["SET", "is-ready", "1"],
            };
            Ok(match ask(port, request)? {
                Value::Integer(replicas) => replicas > 0,
                Value::Status(_) => ask(port, &["DEL", "is-ready"]).is_ok(),
                _ => false,
            })
        };
        until(BEGINNING, is_ready, program).context("the cluster or the replica is not ready")
    }
}

/// The registry of a cluster of one node.
fn registry(folder: &Path) -> String {
    format!("file:{}", folder.join("registry").display())
}

/// Gives all slots to the only node. False: it is not possible yet; `said` gets the reason.
fn create(kind: Kind, folder: &Path, port: u16, said: &mut String) -> Result<bool> {
    if kind == Kind::Redis {
        let last = (freeport_kv_protocol::slots::SLOTS - 1).to_string();
        let reply = ask(port, &["CLUSTER", "ADDSLOTSRANGE", "0", &last])?;
        ensure!(matches!(reply, Value::Status(_)), "CLUSTER ADDSLOTSRANGE: {reply}");
        return Ok(true);
    }
    let itself = std::env::current_exe().context("this program has no path")?;
    let mut command = Command::new(itself);
    command.args(["kv", "cluster", "--registry", &registry(folder), "create"]);
    let output = command.output().context("the cluster cannot be created")?;
    *said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok(output.status.success())
}

/// The reply of a server on a port to one command.
fn ask(port: u16, words: &[&str]) -> Result<Value> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(REPLYING))?;
    let mut request = vec![];
    let mut writer = Writer::new(&mut request, Version::Two);
    writer.array(words.len());
    words.iter().for_each(|word| writer.bulk(word.as_bytes()));
    stream.write_all(&request)?;
    let (mut reader, mut part) = (ValueReader::new(ValueLimits::default()), [0; 4096]);
    loop {
        let length = stream.read(&mut part)?;
        ensure!(length > 0, "the server has closed the connection");
        match reader.read(&part[..length]) {
            Ok(ValueProgress::Complete { value, .. }) => return Ok(value),
            Ok(ValueProgress::Incomplete { .. }) => {}
            Err(error) => bail!("{words:?}: {error}"),
        }
    }
}
