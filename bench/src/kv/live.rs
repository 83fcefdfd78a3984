// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv bench`: a load on a server that runs already, ours or another one with the same
//! protocol. It is the load of `freeport bench kv`, without a server of its own.

use super::draws::Spread;
use super::load::contents::{Contents, Form, Workload};
use super::load::script::{Recipe, Script};
use super::load::target::{Link, Target};
use super::load::wire::Wire;
use super::load::{self, Outcome, Plan, Span};
use crate::harness::Output;
use anyhow::{Context, Error, Result, anyhow, ensure};
use clap::builder::RangedU64ValueParser;
use serde_json::json;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Sends requests to a running server, and prints rate and latencies
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// Address of the server [default: 127.0.0.1, with port 6379 or, for memcached, 11211]
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    address: Option<SocketAddr>,
    /// Unix socket of the server
    #[arg(long, value_name = "PATH", conflicts_with = "address")]
    socket: Option<PathBuf>,
    /// Unix socket of the server where connections over the fabric begin
    #[arg(long, value_name = "PATH", conflicts_with_all = ["address", "socket"])]
    fabric: Option<PathBuf>,
    /// UDP address of the server, for the batched protocol
    #[arg(long, value_name = "HOST:PORT", value_parser = address,
          conflicts_with_all = ["address", "socket", "fabric"])]
    udp: Option<SocketAddr>,
    /// Protocol of the server [default: resp; batch with --fabric and --udp]
    #[arg(long, value_enum, value_name = "PROTOCOL")]
    protocol: Option<Protocol>,
    /// Operations
    #[arg(long, value_enum, value_name = "MIX", default_value = "a", ignore_case = true)]
    mix: Workload,
    /// How operations choose keys
    #[arg(long, value_enum, value_name = "DISTRIBUTION", default_value = "zipf")]
    distribution: Spread,
    /// Number of keys, which are numbers from 0 on
    #[arg(long, value_name = "COUNT", default_value_t = 100_000,
          value_parser = RangedU64ValueParser::<u64>::new().range(1..=1 << 30))]
    keys: u64,
    /// Bytes per key: decimal digits
    #[arg(long, value_name = "BYTES", default_value_t = 8,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=255))]
    key: usize,
    /// Bytes per value; fetch-add has numbers instead
    #[arg(long, value_name = "BYTES", default_value_t = 64,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=1 << 20))]
    value: usize,
    /// Connections, which one thread serves [default: 50; 4 for the batched protocol]
    #[arg(long, value_name = "COUNT",
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000))]
    connections: Option<usize>,
    /// Requests that a connection sends before it waits; operations in a packet for the batched
    /// protocol, less if a datagram has no room for them
    #[arg(long, value_name = "COUNT", default_value_t = 16,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=65_535))]
    pipeline: usize,
    /// Length of the measurement, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = seconds)]
    seconds: f64,
    /// Ends after this number of requests instead; the last packet is sent whole
    #[arg(long, value_name = "COUNT", conflicts_with = "seconds",
          value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Does not store the keys before
    #[arg(long)]
    no_load: bool,
    /// Seed of all draws
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A protocol of a running server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Protocol {
    /// RESP, of Redis
    Resp,
    /// memcached's text protocol
    Memcached,
    /// memcached's meta commands
    MemcachedMeta,
    /// The batched protocol
    Batch,
}

/// Time before the measurement.
const WARM_UP: Duration = Duration::from_millis(200);
const MANY: usize = 50;
/// Connections with packets: while the server works on one, others lie in their sockets or rings.
const FEW: usize = 4;

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Self::Resp => "resp",
            Self::Memcached => "memcached",
            Self::MemcachedMeta => "memcached-meta",
            Self::Batch => "batch",
        }
    }

    fn form(self, target: &Target) -> Form {
        match self {
            Self::Resp => Form::Single(Wire::Resp),
            Self::Memcached => Form::Single(Wire::Text),
            Self::MemcachedMeta => Form::Single(Wire::Meta),
            Self::Batch if target.is_lossy() => Form::DATAGRAM,
            Self::Batch => Form::STREAM,
        }
    }

    fn usual_port(self) -> u16 {
        if matches!(self, Self::Resp | Self::Batch) { 6379 } else { 11211 }
    }
}

/// A load on a running server.
struct Live<'a> {
    arguments: &'a Arguments,
    protocol: Protocol,
    target: Target,
    contents: Contents,
    connections: usize,
}

impl<'a> Live<'a> {
    fn new(arguments: &'a Arguments) -> Result<Self> {
        let is_batched = arguments.fabric.is_some() || arguments.udp.is_some();
        let usual = if is_batched { Protocol::Batch } else { Protocol::Resp };
        let protocol = arguments.protocol.unwrap_or(usual);
        let target = match arguments {
            Arguments { socket: Some(path), .. } => Target::Unix(path.clone()),
            Arguments { fabric: Some(path), .. } => Target::Fabric(path.clone()),
            Arguments { udp: Some(address), .. } => Target::Udp(*address),
            Arguments { address: Some(address), .. } => Target::Tcp(*address),
            _ => {
                ensure!(
                    protocol != Protocol::Batch,
                    "the batched protocol has no usual port: give --address, --fabric or --udp"
                );
                Target::local(protocol.usual_port())
            }
        };
        ensure!(
            protocol == Protocol::Batch || !target.is_lossy(),
            "--udp is for the batched protocol only, not for {}",
            protocol.name()
        );
        let contents = Contents {
            form: protocol.form(&target),
            key_bytes: arguments.key,
            value_bytes: arguments.value,
            pairs: arguments.keys,
            are_counters: false,
        };
        let contents =
            if arguments.mix.is_of_counters() { contents.of_counters() } else { contents };
        contents.check()?;
        let usual = if protocol == Protocol::Batch { FEW } else { MANY };
        let connections = arguments.connections.unwrap_or(usual);
        Ok(Self { arguments, protocol, target, contents, connections })
    }

    /// Stores the keys; returns whether that was not interrupted.
    fn fill(&self, watch: &mut dyn FnMut(&str) -> bool) -> Result<bool> {
        let pairs = self.contents.pairs;
        let mut is_wanted = true;
        load::fill(&self.target, &self.contents, &mut |stored| {
            is_wanted = watch(&format!("storing keys: {stored} of {pairs}"));
            is_wanted
        })?;
        Ok(is_wanted)
    }

    fn measure(&self, watch: &mut dyn FnMut(&str) -> bool) -> (Outcome, Result<()>) {
        let Arguments { mix, distribution, pipeline, seed, .. } = *self.arguments;
        let recipe = Recipe { workload: mix, spread: distribution, pipeline, seed };
        let script = Script::mixed(self.contents, &recipe);
        let span = match self.arguments.requests {
            Some(requests) => Span::Requests(requests),
            None => {
                let window = Duration::from_secs_f64(self.arguments.seconds);
                Span::Time { warm_up: WARM_UP, window }
            }
        };
        let (target, connections) = (&self.target, self.connections);
        let plan = Plan { target, connections, pipeline, span, compares: true };
        let begin = Instant::now();
        load::run_watched(&script, &plan, &mut |progress| {
            let seconds = begin.elapsed().as_secs_f64();
            watch(&format!("{} requests in {seconds:.1} s", progress.answered))
        })
    }

    /// Adds what may be wrong to an error.
    fn explain(&self, error: Error) -> Error {
        let (target, protocol) = (&self.target, self.protocol.name());
        error.context(format!("{target} does not answer as a server of the protocol {protocol}"))
    }

    /// Operations in a packet, or requests before a wait.
    fn pipeline(&self) -> usize {
        let pipeline = self.arguments.pipeline;
        self.contents.packet(pipeline).unwrap_or(pipeline)
    }

    fn text(&self, outcome: &Outcome, errors: usize) -> String {
        let Contents { key_bytes, value_bytes, pairs, .. } = self.contents;
        let [p50, p99, p999, max] = latencies(outcome);
        let (requests, seconds) = (outcome.measured, outcome.elapsed.as_secs_f64());
        let load = [
            self.target.to_string(),
            self.protocol.name().into(),
            self.arguments.mix.name().into(),
            self.arguments.distribution.name().into(),
            format!("{pairs} keys of {key_bytes} + {value_bytes} B"),
            format!("{} connections of {}", self.connections, self.pipeline()),
        ];
        format!(
            "{}\n  \
             rate      {:.0} op/s\n  \
             latency   p50 {p50:.1} us, p99 {p99:.1} us, p99.9 {p999:.1} us, max {max:.1} us\n  \
             requests  {requests} in {seconds:.2} s; errors: {errors}; lost: {}\n",
            load.join(", "),
            outcome.rate(),
            outcome.lost,
        )
    }

    fn json(&self, outcome: &Outcome, error: Option<&Error>) -> String {
        let Contents { key_bytes, value_bytes, pairs, .. } = self.contents;
        let [p50, p99, p999, max] = latencies(outcome);
        let line = json!({
            "target": self.target.to_string(),
            "protocol": self.protocol.name(),
            "mix": self.arguments.mix.name(),
            "distribution": self.arguments.distribution.name(),
            "keys": pairs,
            "key_bytes": key_bytes,
            "value_bytes": value_bytes,
            "connections": self.connections,
            "pipeline": self.pipeline(),
            "seed": self.arguments.seed,
            "requests": outcome.measured,
            "elapsed_s": outcome.elapsed.as_secs_f64(),
            "ops_per_s": outcome.rate(),
            "latency_p50_us": p50,
            "latency_p99_us": p99,
            "latency_p999_us": p999,
            "latency_max_us": max,
            "errors": usize::from(error.is_some()),
            "error": error.map(|error| format!("{error:#}")),
            "lost": outcome.lost,
        });
        format!("{line}\n")
    }
}

/// Median, 99 %, 99.9 % and maximum of the latencies, in microseconds.
fn latencies(outcome: &Outcome) -> [f64; 4] {
    [0.5, 0.99, 0.999, 1.0].map(|part| outcome.latency_us(part))
}

/// Runs the load. `watch` is called several times a second with the progress, and returns whether
/// the load shall continue. A wrong reply ends it, and is a failure beside the result until then.
///
/// # Errors
/// The options contradict each other, nothing listens, or nothing was measured.
pub fn run(arguments: &Arguments, watch: &mut dyn FnMut(&str) -> bool) -> Result<Output> {
    let live = Live::new(arguments)?;
    // The first connection shows whether there is a server.
    Link::open(&live.target).context("no server answers; start one with `freeport kv serve`")?;
    if !arguments.no_load && !live.fill(watch).map_err(|error| live.explain(error))? {
        return Err(anyhow!("interrupted while keys were stored; nothing was measured"));
    }
    let (outcome, end) = live.measure(watch);
    let failure = end.err().map(|error| match outcome.measured {
        0 => live.explain(error),
        _ => error,
    });
    let text = match arguments.json {
        true => live.json(&outcome, failure.as_ref()),
        false => live.text(&outcome, usize::from(failure.is_some())),
    };
    let failures = failure.iter().map(|error| format!("{error:#}")).collect();
    Ok(Output { text, failures, ..Output::default() })
}

/// Parses and resolves `HOST:PORT`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text
        .to_socket_addrs()
        .map_err(|error| format!("{error}; expected a host and a port, such as 127.0.0.1:6379"))?;
    let mut found = found.collect::<Vec<_>>();
    // Servers listen on the loopback of IPv4 unless they are told more.
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| "the host has no address".into())
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=1e6).contains(seconds));
    seconds.ok_or_else(|| "expected a number of seconds, such as 0.5 or 10".into())
}
