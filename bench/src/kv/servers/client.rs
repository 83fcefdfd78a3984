// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The load generator on a core: in a thread, or in a process of its own where that has to be
//! accelerated.

use super::super::draws::Spread;
use super::super::load::contents::{Contents, Form, Workload};
use super::super::load::script::{Recipe, Script};
use super::super::load::target::Target;
use super::super::load::wire::Wire;
use super::super::load::{self, Outcome, Plan, Span};
use crate::harness::Output;
use crate::harness::machine::pin_to;
use crate::sockets::launcher::{Launcher, Mode};
use crate::sockets::programs::Program;
use anyhow::{Context, Result, anyhow, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// Time that a process may take beyond the length of its load.
const LONGEST: Duration = Duration::from_secs(60);
/// Seed of all draws.
const SEED: u64 = 20;

/// Sends requests to a key-value server: for `freeport bench kv` only
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    #[arg(long, value_enum)]
    wire: Wire,
    #[arg(long, value_enum)]
    workload: Workload,
    #[arg(long, value_enum)]
    spread: Spread,
    #[arg(long)]
    key_bytes: usize,
    #[arg(long)]
    value_bytes: usize,
    #[arg(long)]
    pairs: u64,
    #[arg(long)]
    counters: bool,
    #[arg(long)]
    port: u16,
    #[arg(long)]
    connections: usize,
    #[arg(long)]
    pipeline: usize,
    #[arg(long)]
    warm_up_ms: u64,
    #[arg(long)]
    window_ms: u64,
}

/// Operations on a server.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub contents: Contents,
    pub workload: Workload,
    pub spread: Spread,
    pub connections: usize,
    pub pipeline: usize,
    /// Time before the measurement.
    pub warm_up: Duration,
    pub window: Duration,
}

/// The figures of one load.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// All requests, with those before and after the measured time.
    pub requests: u64,
    /// Requests a second in the measured time.
    pub rate: f64,
    pub p50_us: f64,
    pub p99_us: f64,
}

impl Figures {
    fn of(outcome: &Outcome) -> Self {
        let [p50_us, p99_us] = [0.5, 0.99].map(|part| outcome.latency_us(part));
        Self { requests: outcome.requests, rate: outcome.rate(), p50_us, p99_us }
    }
}

impl Load {
    /// Makes the requests.
    pub fn script(&self) -> Script {
        let Self { workload, spread, pipeline, .. } = *self;
        Script::mixed(self.contents, &Recipe { workload, spread, pipeline, seed: SEED })
    }

    fn plan<'a>(&self, target: &'a Target, compares: bool) -> Plan<'a> {
        let Self { connections, pipeline, warm_up, window, .. } = *self;
        Plan { target, connections, pipeline, span: Span::Time { warm_up, window }, compares }
    }

    /// Sends the requests of `script` from a thread on `core`. `compares` is whether values that
    /// are returned are compared with those that were stored.
    ///
    /// # Errors
    /// A reply is missing or not what it has to be.
    pub fn in_thread(
        &self,
        script: &Script,
        target: &Target,
        core: usize,
        compares: bool,
    ) -> Result<Figures> {
        let work = || {
            ensure!(pin_to(core), "the load generator cannot be pinned to a core");
            Ok(Figures::of(&load::run(script, &self.plan(target, compares))?))
        };
        std::thread::scope(|scope| scope.spawn(work).join())
            .unwrap_or_else(|_| Err(anyhow!("the load generator has panicked")))
    }

    /// Sends the same requests by this protocol from an accelerated process on `core`.
    ///
    /// # Errors
    /// The process fails.
    pub fn in_process(
        &self,
        launcher: &Launcher,
        wire: Wire,
        port: u16,
        core: usize,
        folder: &Path,
    ) -> Result<Figures> {
        let itself = std::env::current_exe().context("this program has no path")?;
        let mut command = launcher.command(Mode::Accelerated, &itself);
        command.args(["bench", "kv-load"]);
        for (name, value) in self.options(wire, port) {
            command.arg(format!("--{name}={value}"));
        }
        if self.contents.are_counters {
            command.arg("--counters");
        }
        let name = "the load generator";
        let log = folder.join("client.log");
        let within = LONGEST + 4 * (self.warm_up + self.window);
        let said = Program::start(name, command, &[core], &log)?.finish(within)?.output;
        let last = said.lines().rev().find(|line| line.starts_with('{'));
        let last = last.with_context(|| format!("{name} has no figures: {said}"))?;
        serde_json::from_str(last).with_context(|| format!("the figures of {name}: {last}"))
    }

    /// The options of the process, which [`Arguments`] reads.
    fn options(&self, wire: Wire, port: u16) -> Vec<(&'static str, String)> {
        let Contents { key_bytes, value_bytes, pairs, .. } = self.contents;
        vec![
            ("wire", word(wire)),
            ("workload", word(self.workload)),
            ("spread", word(self.spread)),
            ("key-bytes", key_bytes.to_string()),
            ("value-bytes", value_bytes.to_string()),
            ("pairs", pairs.to_string()),
            ("port", port.to_string()),
            ("connections", self.connections.to_string()),
            ("pipeline", self.pipeline.to_string()),
            ("warm-up-ms", self.warm_up.as_millis().to_string()),
            ("window-ms", self.window.as_millis().to_string()),
        ]
    }
}

/// The word that the command line has for a value.
fn word(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().into())
}

/// Runs a load in this process, and prints its figures.
///
/// # Errors
/// A reply is missing or not what it has to be.
pub fn run(arguments: &Arguments) -> Result<Output> {
    let Arguments { key_bytes, value_bytes, pairs, counters, .. } = *arguments;
    let form = Form::Single(arguments.wire);
    let contents = Contents { form, key_bytes, value_bytes, pairs, are_counters: counters };
    contents.check()?;
    let load = Load {
        contents,
        workload: arguments.workload,
        spread: arguments.spread,
        connections: arguments.connections,
        pipeline: arguments.pipeline,
        warm_up: Duration::from_millis(arguments.warm_up_ms),
        window: Duration::from_millis(arguments.window_ms),
    };
    let target = Target::local(arguments.port);
    let outcome = load::run(&load.script(), &load.plan(&target, true))?;
    let text = serde_json::to_string(&Figures::of(&outcome))? + "\n";
    Ok(Output { text, ..Output::default() })
}

#[cfg(test)]
mod tests {
    use super::super::super::load::canned::Canned;
    use super::super::super::load::null::Null;
    use super::super::super::load::wire::Kind;
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn the_process_reads_its_options_and_its_figures_are_read() {
        let form = Form::Single(Wire::Meta);
        let contents =
            Contents { form, key_bytes: 8, value_bytes: 3, pairs: 100, are_counters: false };
        let load = Load {
            contents,
            workload: Workload::A,
            spread: Spread::Uniform,
            connections: 2,
            pipeline: 3,
            warm_up: Duration::ZERO,
            window: Duration::from_millis(20),
        };
        let key = b"00000001";
        let mut canned = Canned::new(&contents);
        // Not a value that was stored, which the process has to notice.
        let Canned::Single(single) = &mut canned else { panic!("not packets") };
        let reply = &mut single.replies[Kind::Read as usize];
        reply.clear();
        Wire::Meta.value(key, b"abc", reply);
        let null = Null::start(canned, None).expect("a server");
        let Target::Tcp(address) = null.target() else { panic!("a port") };
        let options = load.options(Wire::Meta, address.port());
        let words = options.iter().map(|(name, value)| format!("--{name}={value}"));
        let words = std::iter::once("load".to_owned()).chain(words);
        let arguments = Command::try_parse_from(words).expect("its options").arguments;
        let error = run(&arguments).expect_err("a wrong value").to_string();
        assert!(error.contains("a wrong value"), "{error}");
        let figures = Figures { requests: 10, rate: 2.5, p50_us: 1.0, p99_us: 2.0 };
        let text = serde_json::to_string(&figures).expect("plain data");
        assert_eq!(serde_json::from_str::<Figures>(&text).expect("its figures"), figures);
    }
}
