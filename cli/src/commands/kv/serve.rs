// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv serve`: the key-value server.

use super::certificates::TlsArguments;
use super::functions::FunctionArguments;
use super::replication::ReplicationArguments;
use super::storage::{self, Loading, StorageArguments};
use crate::arguments::bytes;
use crate::stopping::stop_signals;
use anyhow::Context;
use clap::Args;
use freeport_kv_functions::Registry;
use freeport_kv_server::{Bind, EvictionPolicy, Options, Server};
use serde_json::json;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv serve\n  \
                  freeport kv serve --port 7000 --memcached-port 11211 --memory 4GiB\n\n\
                  Clients connect as to Redis or memcached, such as `redis-cli -p 7000`. See \
                  docs/guide/kv.md.")]
pub struct Arguments {
    /// TCP port for clients of Redis; 0: the system chooses one
    #[arg(long, value_name = "PORT", default_value_t = 6379)]
    port: u16,
    /// TCP port for clients of memcached; 0: the system chooses one [default: none]
    #[arg(long, value_name = "PORT")]
    memcached_port: Option<u16>,
    /// Address to listen on; may be repeated
    #[arg(long, value_name = "ADDRESS", default_values_t = [IpAddr::V4(Ipv4Addr::LOCALHOST)])]
    bind: Vec<IpAddr>,
    /// Unix socket for clients of Redis, besides the port
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Unix socket for clients of memcached
    #[arg(long, value_name = "PATH")]
    memcached_socket: Option<PathBuf>,
    /// TCP port for clients of the batched protocol; 0: the system chooses one [default: none]
    #[arg(long, value_name = "PORT")]
    batch_port: Option<u16>,
    /// UDP port for datagrams of the batched protocol; 0: the system chooses one [default: none]
    #[arg(long, value_name = "PORT")]
    batch_udp_port: Option<u16>,
    /// Unix socket where processes of this machine meet the server, to exchange packets of the
    /// batched protocol through shared memory [default: none]
    #[arg(long, value_name = "PATH")]
    batch_fabric: Option<PathBuf>,
    /// Number of worker threads, 1 to 64
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    workers: usize,
    /// Memory for keys and values, such as 512MiB or 4GiB
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = bytes)]
    memory: usize,
    /// Keys that are removed when the memory is full, such as allkeys-lru or volatile-ttl (the
    /// policies of Redis) [default: none, writes are refused]
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    eviction: Option<EvictionPolicy>,
    /// Memory for items of memcached, such as 64MiB
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = bytes)]
    memcached_memory: usize,
    /// Number of databases
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    databases: u16,
    /// Maximum number of clients
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    clients: usize,
    /// File of users, which must exist; `ACL SAVE` writes it [default: none]
    #[arg(long, value_name = "PATH")]
    aclfile: Option<PathBuf>,
    /// Address where `GET /metrics` returns counts for Prometheus, such as 127.0.0.1:9121
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    functions: FunctionArguments,
    #[command(flatten)]
    storage: StorageArguments,
    #[command(flatten)]
    replication: ReplicationArguments,
    #[command(flatten)]
    tls: TlsArguments,
    /// Print the line about the start as a JSON object
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn options(&self, functions: Registry) -> anyhow::Result<Options> {
        let tcp = |port: u16| {
            self.bind.iter().map(move |address| Bind::Tcp(SocketAddr::new(*address, port)))
        };
        let udp = |port: u16| self.bind.iter().map(move |address| SocketAddr::new(*address, port));
        let unix = |path: &Option<PathBuf>| path.clone().map(Bind::Unix);
        Ok(Options {
            resp: self.plain_port().into_iter().flat_map(tcp).chain(unix(&self.socket)).collect(),
            memcached: self
                .memcached_port
                .into_iter()
                .flat_map(tcp)
                .chain(unix(&self.memcached_socket))
                .collect(),
            batch: self
                .batch_port
                .into_iter()
                .flat_map(tcp)
                .chain(self.batch_fabric.clone().map(Bind::Fabric))
                .collect(),
            batch_udp: self.batch_udp_port.into_iter().flat_map(udp).collect(),
            workers: self.workers,
            memory_bytes: self.memory,
            eviction: self.eviction,
            memcached_memory_bytes: self.memcached_memory,
            databases: self.databases,
            clients_max: self.clients,
            access_file: self.aclfile.clone(),
            metrics: self.metrics,
            functions,
            persistence: self.storage.options(),
            tls: self.tls.options(&self.bind),
            replication: self.replication.replication()?,
            cluster: self.replication.cluster(&self.bind, self.storage.folder())?,
        })
    }

    /// The port for clients of Redis that do not encrypt.
    fn plain_port(&self) -> Option<u16> {
        (!self.tls.is_only()).then_some(self.port)
    }
}

/// Serves until a signal or a client ends the server.
///
/// # Errors
/// The reason why it does not start.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    // Before any thread starts, so that none gets the signals.
    let mut signals = File::from(stop_signals().context("cannot wait for signals")?);
    let functions = arguments.functions.compile()?;
    let count = functions.user_functions();
    let mut loading = Loading::default();
    let options = arguments.options(functions)?;
    let server = Server::recover(options, &mut |progress| loading.report(progress))?;
    storage::report_repairs(&server);
    report(arguments, &server, count)?;
    let stopper = server.stopper();
    // It ends with the process.
    thread::spawn(move || {
        let mut signal = [0; 128];
        if signals.read(&mut signal).is_ok() {
            stopper.stop();
        }
    });
    server.join()?;
    Ok(ExitCode::SUCCESS)
}

/// Says that clients can connect, and where. The server has a number of user functions.
fn report(arguments: &Arguments, server: &Server, functions: usize) -> anyhow::Result<()> {
    let mut addresses = server.addresses().iter().map(SocketAddr::to_string);
    let mut next = |port: Option<u16>| -> Vec<String> {
        addresses.by_ref().take(port.map_or(0, |_| arguments.bind.len())).collect()
    };
    let listeners = [
        ("resp", "RESP", next(arguments.plain_port())),
        ("memcached", "memcached", next(arguments.memcached_port)),
        ("batch", "batched protocol", next(arguments.batch_port)),
        ("resp_tls", "RESP with TLS", next(arguments.tls.port())),
        ("memcached_tls", "memcached with TLS", next(arguments.tls.memcached_port())),
    ];
    let udp: Vec<_> = server.udp_addresses().iter().map(SocketAddr::to_string).collect();
    let stored = arguments.storage.folder().zip(server.recovery());
    let mut output = std::io::stdout();
    if arguments.json {
        let mut line = json!({
            "event": "ready",
            "workers": arguments.workers,
            "memory_bytes": arguments.memory,
        });
        for (key, _, addresses) in listeners {
            if !addresses.is_empty() || matches!(key, "resp" | "memcached") {
                line[key] = addresses.into();
            }
        }
        if !udp.is_empty() {
            line["batch_udp"] = udp.into();
        }
        if let Some(path) = &arguments.batch_fabric {
            line["batch_fabric"] = json!(path);
        }
        if let Some((folder, recovery)) = stored {
            line["folder"] = json!(folder);
            line["keys"] = json!(recovery.keys);
        }
        if let Some((node, url)) = server.node().zip(arguments.replication.registry()) {
            line["node"] = json!(node);
            line["cluster"] = json!(url.to_string());
        }
        if let Some(primary) = arguments.replication.follows() {
            line["replica_of"] = json!(primary.to_string());
        }
        if functions > 0 {
            line["functions"] = functions.into();
        }
        writeln!(output, "{line}")?;
    } else {
        write!(output, "ready: ")?;
        for (_, name, addresses) in listeners.iter().filter(|(.., it)| !it.is_empty()) {
            write!(output, "{name} at {}; ", addresses.join(", "))?;
        }
        if !udp.is_empty() {
            write!(output, "batched protocol over UDP at {}; ", udp.join(", "))?;
        }
        if let Some(path) = &arguments.batch_fabric {
            write!(output, "batched protocol in shared memory at {}; ", path.display())?;
        }
        write!(output, "workers: {}; memory: {} bytes", arguments.workers, arguments.memory)?;
        if let Some((folder, recovery)) = stored {
            write!(output, "; folder: {}; keys: {}", folder.display(), recovery.keys)?;
        }
        if let Some((node, url)) = server.node().zip(arguments.replication.registry()) {
            write!(output, "; node {node} of {url}")?;
        }
        if let Some(primary) = arguments.replication.follows() {
            write!(output, "; replica of {primary}")?;
        }
        if functions > 0 {
            write!(output, "; functions: {functions}")?;
        }
        writeln!(output)?;
    }
    Ok(output.flush()?)
}

/// Parses the name of a policy of eviction.
fn policy(name: &str) -> Result<EvictionPolicy, String> {
    let names = || EvictionPolicy::ALL.map(|(name, _)| name).join(", ");
    EvictionPolicy::of(name).ok_or_else(|| format!("expected one of {}", names()))
}
