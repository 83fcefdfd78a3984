// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key-value servers: ours and its peer have the same contents, get the same requests in turn, and
//! each has the same core. The load generator has another core, where there is one.
//!
//! The limit beside them is a server that stores nothing: where a server comes near it, the
//! generator and the kernel's sockets are measured.

mod cases;
pub mod client;
mod deployment;
mod groups;
mod server;
mod table;

use super::case::CaseName;
use super::load::canned::Canned;
use super::load::contents::{Contents, Form};
use super::load::null::Null;
use super::load::script::Script;
use super::load::target::Target;
use super::{Arguments, Pace};
use crate::harness::metrics::{Metric, MetricResult, Round, Series, cost, rate};
use crate::harness::report::Traffic;
use crate::sockets::launcher::Launcher;
use anyhow::{Context, Result};
use cases::Peer;
use client::Load;
use deployment::Deployment;
use groups::{Group, groups};
pub use server::Kind;
use server::{Over, Server, Starting};
use std::iter;
use std::rc::Rc;
use std::time::Duration;
pub use table::title;

/// Metrics of a server. Latencies are of requests from the beginning of their batch.
pub const OF_SERVERS: [Metric; 4] = [
    rate("ops", "op/s", "operations"),
    cost("latency_p50", "us", "median latency"),
    cost("latency_p99", "us", "99th percentile"),
    cost("server_cpu", "s/million requests", "processor time of the server"),
];
const MEMORY: [Metric; 1] = [cost("bytes_per_pair", "B", "memory per pair")];
const LIMIT: &str = "limit: null server";

/// Returns whether a result is one of the batched protocol.
pub fn is_batched(case: &str) -> bool {
    let of_case =
        |it: &&cases::Case| case.strip_prefix(it.title).is_some_and(|rest| rest.starts_with('-'));
    cases::CASES.iter().find(of_case).is_some_and(|it| matches!(it.form, Form::Packets { .. }))
}

/// Results of all servers.
#[derive(Default)]
pub struct Measured {
    pub results: Vec<MetricResult>,
    /// Cases that could not be measured because something is not installed, and other remarks.
    pub notes: Vec<String>,
    /// Servers that failed.
    pub failures: Vec<String>,
}

impl Measured {
    /// Formats every result as a table.
    pub fn tables(&self) -> impl Iterator<Item = String> {
        self.results.iter().map(|result| match result.metrics.len() {
            1 => result.text(),
            _ => table::of_rates(result),
        })
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Measures the chosen cases, on the given cores.
///
/// # Errors
/// Nothing can be started. A server that fails is reported with the results.
pub fn measure(
    arguments: &Arguments,
    cases: &[CaseName],
    pace: Pace,
    cores: &[usize],
    progress: &mut dyn FnMut(&str),
) -> Result<Measured> {
    let mut measured = Measured::default();
    let groups = groups(arguments, cases, pace);
    if groups.is_empty() {
        return Ok(measured);
    }
    let folder = tempfile::tempdir().context("no temporary folder can be created for servers")?;
    let needs_launcher = groups.iter().any(|group| group.case.is_accelerated);
    let launcher = needs_launcher.then(|| Launcher::new(None, folder.path())).transpose()?;
    let core = *cores.first().context("there is no core")?;
    for group in &groups {
        let launcher = launcher.as_ref().filter(|_| group.case.is_accelerated);
        if let Some(why) = launcher.and_then(Launcher::missing) {
            measured.note(format!("{}: {why}", group.case.title));
            continue;
        }
        let client_core = *cores.get(1).unwrap_or(&core);
        let starting = Starting {
            launcher,
            core,
            memory_mib: arguments.memory,
            command: arguments.server.as_deref(),
            folder: folder.path(),
            sync: group.case.sync,
            name: Kind::Ours.name(),
            deployment: group.case.deployment,
            replica_core: client_core,
        };
        let rounds = pace.rounds;
        let mut place = Place { arguments, starting, client_core, rounds, measured: &mut measured };
        place.measure(group, progress);
    }
    if let Some(command) = &arguments.server {
        measured.note(format!("freeport stands for the server of --server: {command}"));
    }
    if groups.iter().any(|group| group.case.deployment == Deployment::Replicated) {
        measured.note("replicas have the core of the load generator".into());
    }
    if cores.len() < 2 {
        measured.note("servers and the load generator share the only core".into());
    }
    Ok(measured)
}

/// A subject in a group.
struct Subject {
    name: &'static str,
    target: Target,
    /// None: it gets the requests that ours gets.
    peer: Option<Peer>,
    what: What,
}

enum What {
    Server(Server),
    Null(Null),
}

impl Subject {
    fn server(server: Server, peer: Option<Peer>) -> Self {
        let (name, target) = (server.name, server.target.clone());
        Self { name, target, peer, what: What::Server(server) }
    }

    fn null(null: Null) -> Self {
        Self { name: LIMIT, target: null.target().clone(), peer: None, what: What::Null(null) }
    }

    fn processor_time(&self) -> Option<Duration> {
        match &self.what {
            What::Server(server) => Some(server.processor_time()),
            What::Null(_) => None,
        }
    }
}

/// The scripts of one workload. Those without packets serve all pipelines.
#[derive(Default)]
struct Scripts(Vec<(Contents, Option<usize>, Rc<Script>)>);

impl Scripts {
    fn of(&mut self, load: &Load) -> Rc<Script> {
        let key = (load.contents, load.contents.packet(load.pipeline));
        if let Some((.., script)) = self.0.iter().find(|it| (it.0, it.1) == key) {
            return Rc::clone(script);
        }
        let script = Rc::new(load.script());
        self.0.push((key.0, key.1, Rc::clone(&script)));
        script
    }
}

/// Where servers and clients run, and what has been measured there.
struct Place<'a> {
    arguments: &'a Arguments,
    starting: Starting<'a>,
    client_core: usize,
    rounds: usize,
    measured: &'a mut Measured,
}

impl Place<'_> {
    /// Starts the servers of a group, fills them, and measures all its loads.
    fn measure(&mut self, group: &Group, progress: &mut dyn FnMut(&str)) {
        if let Err(error) = group.contents.check() {
            self.measured.failures.push(format!("{}: {error}", group.title()));
            return;
        }
        progress(&format!("{}: filling", group.title()));
        let mut subjects = vec![];
        let mut memory = self.nothing(group, "memory", &MEMORY, None);
        let peers = group.case.peers.iter().map(|peer| (peer.kind, Some(*peer)));
        for (number, (kind, peer)) in iter::once((Kind::Ours, None)).chain(peers).enumerate() {
            if let Some(why) = kind.missing() {
                self.measured.note(why);
                continue;
            }
            match self.filled(kind, peer, group) {
                Ok((server, bytes)) => {
                    memory.series[number].rounds.push(vec![bytes]);
                    subjects.push(Subject::server(server, peer));
                }
                Err(error) => {
                    let name = peer.map_or(kind.name(), |peer| peer.name);
                    self.fail(&group.title(), name, &error);
                }
            }
        }
        if group.case.has_memory() {
            self.measured.results.push(memory);
        }
        match self.limit(group) {
            Ok(null) => subjects.extend(null.map(Subject::null)),
            Err(error) => self.fail(&group.title(), LIMIT, &error),
        }
        for loads in &group.loads {
            let mut scripts = Scripts::default();
            for load in loads {
                let result = self.rounds(group, load, &mut scripts, &subjects, progress);
                self.measured.results.push(result);
            }
        }
        for subject in subjects {
            let What::Null(null) = subject.what else { continue };
            if let Err(error) = null.end() {
                self.fail(&group.title(), LIMIT, &error);
            }
        }
    }

    fn filled(&self, kind: Kind, peer: Option<Peer>, group: &Group) -> Result<(Server, f64)> {
        let starting = self.starting;
        let (form, over, starting) = match peer {
            Some(Peer { name, form, deployment, .. }) => {
                (form, Over::Tcp, Starting { name, deployment, ..starting })
            }
            None => (group.case.form, group.case.over, starting),
        };
        let server = Server::start(kind, form, over, &starting)?;
        let contents = group.contents.in_form(form);
        let bytes = server.fill(&contents).map_err(|error| server.blame(error))?;
        Ok((server, bytes))
    }

    /// The server that stores nothing, if the case has one.
    fn limit(&self, group: &Group) -> Result<Option<Null>> {
        let (canned, core) = (Canned::new(&group.contents), Some(self.starting.core));
        match group.case.over {
            _ if !group.case.has_limit() => Ok(None),
            Over::Fabric => {
                // The folder is removed with the one that it is in.
                let folder = tempfile::tempdir_in(self.starting.folder)?.keep();
                Null::start_on_fabric(&folder.join("fabric"), canned, core).map(Some)
            }
            Over::Tcp | Over::Udp => Null::start(canned, core).map(Some),
        }
    }

    fn fail(&mut self, title: &str, subject: &str, error: &anyhow::Error) {
        self.measured.failures.push(format!("{title}: {subject}: {error:#}"));
    }

    /// Measures all subjects in turn, round after round. The first round does not count. A subject
    /// that fails is left out from then on.
    fn rounds(
        &mut self,
        group: &Group,
        load: &Load,
        scripts: &mut Scripts,
        subjects: &[Subject],
        progress: &mut dyn FnMut(&str),
    ) -> MetricResult {
        let name = load.workload.name();
        let title = format!("{}, {name}, {} deep", group.title(), load.pipeline);
        progress(&title);
        let mut result = self.nothing(group, name, &OF_SERVERS, Some(load));
        let before = self.starting.launcher.and_then(Launcher::accelerated);
        let mut working = vec![];
        for subject in subjects {
            let load = match &subject.peer {
                Some(peer) => Group::of_peer(peer, load, self.arguments),
                None => *load,
            };
            working.push((subject, load, scripts.of(&load)));
        }
        for round in 0..=self.rounds {
            working.retain(|(subject, load, script)| match self.round(load, script, subject) {
                Ok(_) if round == 0 => true,
                Ok(values) => {
                    let series = result.series.iter_mut().find(|it| it.name == subject.name);
                    series.expect("all subjects have a series").rounds.push(values);
                    true
                }
                Err(error) => {
                    self.fail(&title, subject.name, &error);
                    false
                }
            });
        }
        let doubt = self.starting.launcher.and_then(|launcher| launcher.doubt_since(before));
        result.note = doubt.or_else(|| group.of_peers(load, self.arguments));
        result
    }

    fn round(&self, load: &Load, script: &Script, subject: &Subject) -> Result<Round> {
        let Starting { launcher, folder, .. } = self.starting;
        let (target, core) = (&subject.target, self.client_core);
        let before = subject.processor_time();
        let figures = match (launcher, load.contents.form, target) {
            (Some(launcher), Form::Single(wire), Target::Tcp(address)) => {
                load.in_process(launcher, wire, address.port(), core, folder)
            }
            // The null server has no values that could be compared.
            _ => {
                let compares = matches!(subject.what, What::Server(_));
                load.in_thread(script, target, core, compares)
            }
        };
        let figures = figures.map_err(|error| match &subject.what {
            What::Server(server) => server.blame(error),
            What::Null(_) => error,
        })?;
        let used = before.zip(subject.processor_time());
        let processor = used.map_or(f64::NAN, |(before, after)| {
            after.saturating_sub(before).as_secs_f64() / figures.requests as f64 * 1e6
        });
        Ok(vec![figures.rate, figures.p50_us, figures.p99_us, processor])
    }

    /// A result without values.
    fn nothing(
        &self,
        group: &Group,
        name: &str,
        metrics: &'static [Metric],
        load: Option<&Load>,
    ) -> MetricResult {
        let peers = group.case.peers.iter().map(|peer| peer.name);
        let mut names: Vec<_> = iter::once(Kind::Ours.name()).chain(peers).collect();
        if load.is_some() && group.case.has_limit() {
            names.push(LIMIT);
        }
        let contents = group.contents;
        MetricResult {
            bench: "kv",
            case: format!("{}-{name}", group.case.title),
            traffic: Traffic::Operations {
                key_bytes: contents.key_bytes,
                value_bytes: contents.value_bytes,
                pairs: contents.pairs as usize,
                distribution: group.spread.name(),
                connections: load.map_or(1, |load| load.connections),
                pipeline: load.map_or(1, |load| load.pipeline),
            },
            metrics,
            series: names.into_iter().map(|name| Series { name, rounds: vec![] }).collect(),
            note: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn measured(cases: &[CaseName], words: &[&str]) -> Measured {
        let usual = ["kv", "--quick", "--memory", "16", "--connections", "3"];
        let words = usual.iter().chain(words);
        let arguments = Command::try_parse_from(words).expect("valid options").arguments;
        let pace = Pace { rounds: 2, window: Duration::from_millis(20) };
        let cores = crate::harness::machine::allowed_cores();
        measure(&arguments, cases, pace, &cores, &mut |_| {}).expect("servers are optional")
    }

    #[test]
    fn a_server_that_fails_is_reported_and_the_others_are_measured() {
        let measured = measured(&[CaseName::Resp], &["--server", "false"]);
        let [failure] = &measured.failures[..] else { panic!("{:?}", measured.failures) };
        assert!(failure.starts_with("resp, 8 + 92 B: freeport: "), "{failure}");
        let [memory, rates] = &measured.results[..] else { panic!("two results") };
        assert_eq!((&memory.case[..], &rates.case[..]), ("resp-memory", "resp-ycsb-a"));
        let [ours, _, limit] = &rates.series[..] else { panic!("three subjects") };
        assert_eq!((ours.rounds.len(), limit.rounds.len(), limit.name), (0, 2, LIMIT));
        let says = |text: &str| measured.notes.iter().any(|note| note.contains(text));
        assert!(says("--server: false"), "{:?}", measured.notes);
        assert_eq!(says("apt-get"), Kind::Redis.missing().is_some(), "{:?}", measured.notes);
    }

    #[test]
    fn keys_that_are_too_short_are_a_failure_and_nothing_is_started() {
        let measured = measured(&[CaseName::Resp], &["--key", "4", "--server", "false"]);
        let [failure] = &measured.failures[..] else { panic!("{:?}", measured.failures) };
        assert!(failure.contains("too short") && measured.results.is_empty(), "{failure}");
    }
}
