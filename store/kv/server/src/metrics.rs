// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of the server for Prometheus, as text that `GET /metrics` returns.
//!
//! A thread of its own serves one request after the other. It reads counts that workers publish,
//! and never asks a worker.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::channels::Kind;
use crate::commands::process;
use crate::shared::Shared;
use crate::statistics::{Calls, errors, sum};

/// Bytes of a request that are read.
const REQUEST_BYTES: u64 = 8 << 10;
/// Time that a client has for its request, and for reading the reply.
const PATIENCE: Duration = Duration::from_secs(2);

/// The thread that serves counts. It ends when this value is dropped.
#[derive(Debug)]
pub struct Metrics {
    address: SocketAddr,
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Metrics {
    /// Serves counts at an address.
    ///
    /// # Errors
    /// The address cannot be listened on, or there is no thread.
    pub fn start(address: SocketAddr, shared: Arc<Shared>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let is_stopping = Arc::new(AtomicBool::new(false));
        let stops = is_stopping.clone();
        let thread = std::thread::Builder::new().name("kv-metrics".into()).spawn(move || {
            for stream in listener.incoming() {
                if stops.load(Ordering::Acquire) {
                    return;
                }
                // A client that fails is its own affair.
                let _ = stream.and_then(|stream| answer(&stream, &shared));
            }
        })?;
        Ok(Self { address, is_stopping, thread: Some(thread) })
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Release);
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        // A connection wakes the thread. If there is none, it must not be waited for.
        if TcpStream::connect_timeout(&address, PATIENCE).is_ok()
            && let Some(thread) = self.thread.take()
        {
            // A panic was reported by its thread.
            let _ = thread.join();
        }
    }
}

/// Answers one request.
fn answer(mut stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = BufReader::new(stream.take(REQUEST_BYTES));
    let mut line = String::new();
    request.read_line(&mut line)?;
    // The headers say nothing that matters, but have to be read before the connection is closed.
    let mut header = String::new();
    while request.read_line(&mut header)? > 0 && !header.trim_end().is_empty() {
        header.clear();
    }
    let mut words = line.split_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET" | "HEAD"), Some("/metrics")) => ("200 OK", text(shared)),
        (Some("GET" | "HEAD"), Some(_)) => ("404 Not Found", "see /metrics\n".into()),
        _ => ("400 Bad Request", "see GET /metrics\n".into()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if !line.starts_with("HEAD") {
        stream.write_all(body.as_bytes())?;
    }
    Ok(())
}

/// All counts, in Prometheus' text format.
fn text(shared: &Shared) -> String {
    let workers = || shared.workers();
    let mut text = String::new();
    let mut add = |kind: &str, name: &str, help: &str, values: Vec<(String, f64)>| {
        // Writing to a text does not fail.
        let _ = writeln!(text, "# HELP freeport_kv_{name} {help}");
        let _ = writeln!(text, "# TYPE freeport_kv_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "freeport_kv_{name}{labels} {value}");
        }
    };
    let one = |value: f64| vec![(String::new(), value)];
    let total = |count: fn(&crate::statistics::Statistics) -> &crate::statistics::Counter| {
        one(sum(workers(), count) as f64)
    };
    let gauge = "gauge";
    let count = "counter";
    add(
        gauge,
        "uptime_seconds",
        "Time since the start.",
        one(shared.started.elapsed().as_secs_f64()),
    );
    add(gauge, "workers", "Worker threads.", one(shared.mailboxes.len() as f64));
    let clients = shared.clients.load(Ordering::Relaxed);
    add(gauge, "connected_clients", "Connected clients.", one(clients as f64));
    add(gauge, "keys", "Keys in all databases.", total(|worker| &worker.keys));
    let memory = "Bytes of keys and values.";
    add(gauge, "memory_used_bytes", memory, total(|worker| &worker.memory_bytes));
    let memory = "Bytes that keys and values may use.";
    add(gauge, "memory_max_bytes", memory, one(shared.options.memory_bytes as f64));
    let memory = "Bytes of memory that the process has.";
    add(gauge, "memory_resident_bytes", memory, one(process::resident_bytes() as f64));
    let (program_s, system_s) = process::seconds();
    add(
        count,
        "cpu_seconds_total",
        "Processor time.",
        vec![("{mode=\"user\"}".into(), program_s), ("{mode=\"system\"}".into(), system_s)],
    );
    let channels = shared.channels.count(Kind::Channel);
    add(gauge, "pubsub_channels", "Channels that clients listen to.", one(channels as f64));
    add(count, "connections_total", "Clients taken in.", total(|worker| &worker.connections));
    let refused = shared.refused_clients.load(Ordering::Relaxed);
    add(count, "connections_refused_total", "Clients refused.", one(refused as f64));
    add(count, "received_bytes_total", "Bytes from clients.", total(|it| &it.received_bytes));
    add(count, "sent_bytes_total", "Bytes to clients.", total(|worker| &worker.sent_bytes));
    let mut commands: Vec<(&str, Calls)> = shared
        .table
        .iter()
        .map(|command| (command.spec.name, Calls::of(workers(), command.spec.number)))
        .filter(|(_, calls)| calls.count() > 0 || calls.rejected > 0)
        .collect();
    commands.sort_by_key(|(name, _)| *name);
    let of_each = |value: fn(&Calls) -> f64| {
        let labelled =
            commands.iter().map(|(name, calls)| (format!("{{command=\"{name}\"}}"), value(calls)));
        labelled.collect::<Vec<_>>()
    };
    add(count, "commands_total", "Executed commands.", of_each(|calls| calls.count() as f64));
    let seconds = of_each(|calls| calls.nanoseconds as f64 / 1e9);
    add(count, "command_seconds_total", "Time of executed commands.", seconds);
    let failed = of_each(|calls| calls.failed as f64);
    add(count, "commands_failed_total", "Commands that replied an error.", failed);
    let rejected = of_each(|calls| calls.rejected as f64);
    add(count, "commands_rejected_total", "Commands refused before execution.", rejected);
    let label = |(code, count): (String, u64)| {
        let code = code.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        (format!("{{code=\"{code}\"}}"), count as f64)
    };
    let errors = errors(workers()).into_iter().map(label).collect();
    add(count, "errors_total", "Error replies by code.", errors);
    add(gauge, "slow_log_entries", "Entries in the slow log.", one(shared.slow_log.len() as f64));
    text
}
