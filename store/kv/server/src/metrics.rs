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
use crate::datagrams::{DatagramCount, DatagramCounters};
use crate::shared::Shared;
use crate::statistics::{Calls, Counter, Statistics, errors, sum};

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

/// All counts, in the text format of Prometheus.
fn text(shared: &Shared) -> String {
    let mut text = Text::default();
    text.add_server(shared);
    text.add_process();
    text.add_traffic(shared);
    text.add_keys(shared);
    text.add_log(shared);
    text.add_commands(shared);
    text.0
}

/// Counts as text.
#[derive(Default)]
struct Text(String);

/// Labels and a value.
type Labelled = (String, f64);

impl Text {
    /// One count with several labels.
    fn add_all(&mut self, name: &str, help: &str, values: &[Labelled]) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        // Writing to a text does not fail.
        let _ = writeln!(self.0, "# HELP freeport_kv_{name} {help}");
        let _ = writeln!(self.0, "# TYPE freeport_kv_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(self.0, "freeport_kv_{name}{labels} {value}");
        }
    }

    /// One count.
    fn add(&mut self, name: &str, help: &str, value: f64) {
        self.add_all(name, help, &[(String::new(), value)]);
    }

    fn add_server(&mut self, shared: &Shared) {
        let total = |count: fn(&Statistics) -> &Counter| sum(shared.workers(), count) as f64;
        let clients = shared.connected_clients();
        let channels = shared.channels.count(Kind::Channel);
        let memory_max = shared.options.memory_bytes as f64;
        let uptime_s = shared.started.elapsed().as_secs_f64();
        self.add("uptime_seconds", "Time since the start.", uptime_s);
        self.add("workers", "Worker threads.", shared.mailboxes.len() as f64);
        let functions = shared.options.functions.user_functions() as f64;
        self.add("user_functions", "Functions of a user.", functions);
        self.add("connected_clients", "Connected clients.", clients as f64);
        self.add("keys", "Keys in all databases.", total(|worker| &worker.keys));
        let used = total(|worker| &worker.memory_bytes);
        self.add("memory_used_bytes", "Bytes of keys and values.", used);
        self.add("memory_max_bytes", "Bytes that keys and values may use.", memory_max);
        self.add("pubsub_channels", "Channels that clients listen to.", channels as f64);
        self.add("slow_log_entries", "Entries in the slow log.", shared.slow_log.len() as f64);
    }

    fn add_process(&mut self) {
        let (program_s, system_s) = process::seconds();
        let resident = process::resident_bytes() as f64;
        self.add("memory_resident_bytes", "Bytes of memory that the process has.", resident);
        let seconds =
            [("{mode=\"user\"}".into(), program_s), ("{mode=\"system\"}".into(), system_s)];
        self.add_all("cpu_seconds_total", "Processor time.", &seconds);
    }

    fn add_traffic(&mut self, shared: &Shared) {
        let total = |count: fn(&Statistics) -> &Counter| sum(shared.workers(), count) as f64;
        let refused = shared.refused_clients.load(Ordering::Relaxed);
        let connections = total(|worker| &worker.connections);
        self.add("connections_total", "Clients taken in.", connections);
        self.add("connections_refused_total", "Clients refused.", refused as f64);
        if let Some(tls) = &shared.configuration.tls {
            let completed = tls.handshakes.completed.load(Ordering::Relaxed) as f64;
            self.add("tls_handshakes_total", "Completed TLS handshakes.", completed);
            let failed = tls.handshakes.failed.load(Ordering::Relaxed) as f64;
            let help = "Connections that ended before their TLS handshake was complete.";
            self.add("tls_handshakes_failed_total", help, failed);
        }
        if !shared.options.batch_udp.is_empty() {
            self.add_datagrams(shared);
        }
        let batched = total(|worker| &worker.batched_operations);
        let help = "Operations of the batched protocol.";
        self.add("batched_operations_total", help, batched);
        let received = total(|worker| &worker.received_bytes);
        self.add("received_bytes_total", "Bytes from clients.", received);
        self.add("sent_bytes_total", "Bytes to clients.", total(|worker| &worker.sent_bytes));
    }

    fn add_datagrams(&mut self, shared: &Shared) {
        let sessions = sum(shared.workers(), |worker| &worker.datagrams.sessions);
        self.add("udp_sessions", "Clients that send datagrams.", sessions as f64);
        for DatagramCount { name, help, of } in &DatagramCounters::TOTALS {
            let total = sum(shared.workers(), |worker| of(&worker.datagrams));
            self.add(&format!("{name}_total"), help, total as f64);
        }
    }

    fn add_keys(&mut self, shared: &Shared) {
        let total = |count: fn(&Statistics) -> &Counter| sum(shared.workers(), count) as f64;
        let (hits, misses) = (total(|worker| &worker.hits), total(|worker| &worker.misses));
        self.add("key_hits_total", "Keys that reads have found.", hits);
        self.add("key_misses_total", "Keys that reads have not found.", misses);
        let (expired, evicted) = (total(|worker| &worker.expired), total(|worker| &worker.evicted));
        self.add("expired_keys_total", "Keys removed at their time.", expired);
        self.add("evicted_keys_total", "Keys removed to make room.", evicted);
    }

    fn add_log(&mut self, shared: &Shared) {
        let Some(persistence) = &shared.persistence else { return };
        let (status, report) = (persistence.journal.status(), persistence.snapshots.report());
        self.add("log_bytes", "Bytes of the append log.", status.log_bytes as f64);
        self.add("snapshot_bytes", "Bytes of the snapshot.", status.snapshot_bytes as f64);
        let failing = f64::from(u8::from(status.failure.is_some()));
        self.add("log_failing", "Writes are refused: the log cannot be written.", failing);
        let unsynced = status.end.0 - status.durable.0;
        self.add("log_unsynced_bytes", "Bytes that are not durable yet.", unsynced as f64);
        let units = status.appended_units as f64;
        self.add("log_units_total", "Units appended to the log.", units);
        self.add("log_appends_total", "Appends to the log.", status.appended_batches as f64);
        self.add("log_syncs_total", "Syncs of the log.", status.syncs as f64);
        let delayed = status.delayed_syncs as f64;
        self.add("log_syncs_delayed_total", "Syncs that took too long.", delayed);
        self.add("log_faults_total", "Failed operations of the disk.", status.faults as f64);
        self.add("snapshots_total", "Completed snapshots.", report.completed as f64);
        let is_active = f64::from(u8::from(report.active.is_some()));
        self.add("snapshot_active", "A snapshot is being written.", is_active);
    }

    fn add_commands(&mut self, shared: &Shared) {
        let mut commands: Vec<(&str, Calls)> = shared.calls().collect();
        commands.sort_by_key(|(name, _)| *name);
        let of_each = |value: fn(&Calls) -> f64| -> Vec<Labelled> {
            let label = |name: &str| format!("{{command=\"{name}\"}}");
            commands.iter().map(|(name, calls)| (label(name), value(calls))).collect()
        };
        let counts = of_each(|calls| calls.count() as f64);
        self.add_all("commands_total", "Executed commands.", &counts);
        let seconds = of_each(|calls| calls.nanoseconds as f64 / 1e9);
        self.add_all("command_seconds_total", "Time of executed commands.", &seconds);
        let failed = of_each(|calls| calls.failed as f64);
        self.add_all("commands_failed_total", "Commands that replied an error.", &failed);
        let rejected = of_each(|calls| calls.rejected as f64);
        self.add_all("commands_rejected_total", "Commands refused before execution.", &rejected);
        let errors: Vec<Labelled> = errors(shared.workers())
            .into_iter()
            .map(|(code, count)| label_of(code, count))
            .collect();
        self.add_all("errors_total", "Error replies by code.", &errors);
    }
}

/// The label of an error code, which scripts may have made up.
fn label_of(code: String, count: u64) -> Labelled {
    let code = code.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    (format!("{{code=\"{code}\"}}"), count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_quoted() {
        let (label, count) = label_of("A\"\\\n".into(), 2);
        assert_eq!((label.as_str(), count), (r#"{code="A\"\\\n"}"#, 2.0));
    }

    #[test]
    fn a_name_says_its_kind() {
        let mut text = Text::default();
        text.add("x_total", "Help.", 1.5);
        text.add("x", "Help.", 2.0);
        let expected = "# HELP freeport_kv_x_total Help.\n# TYPE freeport_kv_x_total counter\n\
                        freeport_kv_x_total 1.5\n# HELP freeport_kv_x Help.\n\
                        # TYPE freeport_kv_x gauge\nfreeport_kv_x 2\n";
        assert_eq!(text.0, expected);
    }
}
