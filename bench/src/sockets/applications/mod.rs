// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Unmodified servers and their clients: a cell of the table for each setting. All have private
//! folders, ports and configurations.

mod bulk;
pub mod memcached;
mod nginx;
mod php;
pub mod redis;

use super::launcher::{Launcher, Mode};
use super::programs::{Program, does_answer, free_port, is_installed, until};
use crate::harness::metrics::{Metric, MetricResult, Round, Series, cost, rate};
use crate::harness::report::Traffic;
use anyhow::{Context, Error, Result, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A server and its client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Application {
    RedisSet,
    RedisGet,
    Nginx,
    /// nginx with php-fpm as its backend.
    Php,
    Memcached,
    Bulk,
}

/// Cores of the server and the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// One core each.
    Across,
    /// Both on one core.
    Same,
    /// Chosen by the system.
    Anywhere,
}

/// One setting of an application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    pub application: Application,
    /// Bytes of the requested value.
    pub value_bytes: usize,
    pub connections: usize,
    /// Outstanding requests per connection.
    pub pipeline: usize,
    /// Threads or processes of the server.
    pub workers: usize,
    pub spread: Spread,
}

/// Amount of work of a round, and latencies of requests; NaN where they are not reported.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figures {
    /// Requests, or bytes where there are none.
    pub amount: f64,
    pub seconds: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// Processor time of the client.
    pub processor_time: Duration,
}

/// Metrics of requests.
pub const OF_REQUESTS: [Metric; 5] = [
    rate("requests", "requests/s", "requests"),
    cost("latency_p50", "us", "median latency"),
    cost("latency_p99", "us", "99th percentile"),
    cost("server_cpu", "s/million requests", "processor time of the server"),
    cost("client_cpu", "s/million requests", "processor time of the client"),
];
/// Metrics of bulk transfers.
pub const OF_BYTES: [Metric; 3] = [
    rate("throughput", "GB/s", "throughput"),
    cost("server_cpu", "s/GB", "processor time of the server"),
    cost("client_cpu", "s/GB", "processor time of the sender"),
];

/// Time limit for the start of a server.
const BEGINNING: Duration = Duration::from_secs(20);
/// Number of attempts to start a server.
const ATTEMPTS: usize = 3;
/// Time that a client may take beyond the length of a round.
const LONGEST: Duration = Duration::from_secs(60);
/// Memory of memcached.
const MEMCACHED_MIB: usize = 64;
/// Initial requests per second, where their number must be given in advance.
const FIRST_RATE: f64 = 4_000.0;

/// Number and length of rounds, and the launcher.
pub struct Measuring<'a> {
    pub launcher: &'a Launcher,
    pub rounds: u32,
    pub seconds: u32,
    pub cores: &'a [usize],
    /// Folder for the bench's files.
    pub folder: &'a Path,
}

impl Application {
    fn name(self) -> &'static str {
        match self {
            Self::RedisSet => "redis-set",
            Self::RedisGet => "redis-get",
            Self::Nginx => "nginx",
            Self::Php => "nginx-php-fpm",
            Self::Memcached => "memcached",
            Self::Bulk => "bulk",
        }
    }

    /// Returns the programs that it needs.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::RedisSet | Self::RedisGet => &redis::PROGRAMS,
            Self::Nginx | Self::Php => &nginx::PROGRAMS,
            Self::Memcached => &memcached::PROGRAMS,
            Self::Bulk => &bulk::PROGRAMS,
        }
    }

    fn metrics(self) -> &'static [Metric] {
        if self == Self::Bulk { &OF_BYTES } else { &OF_REQUESTS }
    }
}

impl Cell {
    /// Returns its title in tables.
    pub fn title(&self) -> String {
        let mut title = self.application.name().replace('-', " ");
        if matches!(self.application, Application::Nginx) && self.value_bytes >= 1 << 20 {
            title += " 1 MiB";
        }
        title += &format!(", {} conn.", self.connections);
        if self.pipeline > 1 {
            title += &format!(" of {} deep", self.pipeline);
        }
        if self.workers > 1 {
            title += &format!(", {} workers", self.workers);
        }
        title + ", " + self.spread.word()
    }

    fn traffic(&self) -> Traffic {
        Traffic::Requests {
            value_bytes: self.value_bytes,
            connections: self.connections,
            pipeline: self.pipeline,
            workers: self.workers,
            placement: self.spread.word(),
        }
    }

    /// Returns a result without values.
    pub fn nothing(&self) -> MetricResult {
        let empty = |mode: Mode| Series { name: mode.name(), rounds: vec![] };
        MetricResult {
            bench: "sockets",
            case: self.application.name().into(),
            traffic: self.traffic(),
            metrics: self.application.metrics(),
            series: Mode::ALL.map(empty).into(),
            note: None,
        }
    }

    /// Measures plain and accelerated in turn, round after round. If a program is not installed,
    /// the result says so.
    ///
    /// # Errors
    /// An installed program fails.
    pub fn measure(&self, with: &Measuring<'_>) -> Result<MetricResult> {
        let mut result = self.nothing();
        let missing = |program: &&&str| !is_installed(program);
        if let Some(program) = self.application.programs().iter().find(missing) {
            result.note = Some(format!("{program} is not installed"));
            return Ok(result);
        }
        if self.application == Application::Php && php::program().is_none() {
            result.note = Some("php-fpm is not installed".into());
            return Ok(result);
        }
        if !self.spread.is_possible(with.cores.len()) {
            result.note = Some("there is only one core".into());
            return Ok(result);
        }
        let before = with.launcher.accelerated();
        let start = |mode: &Mode| Service::start(self, *mode, with);
        let mut services: Vec<Service> =
            with.launcher.modes().iter().map(start).collect::<Result<_>>()?;
        for _ in 0..with.rounds {
            for service in &mut services {
                let round = service.round(self, with);
                let round = round.map_err(|error| service.blame(error));
                let round = round.context(service.mode.name())?;
                let series = result.series.iter_mut().find(|it| it.name == service.mode.name());
                series.context("a mode has no series")?.rounds.push(round);
            }
        }
        result.note = with.launcher.doubt_since(before);
        Ok(result)
    }
}

impl Spread {
    pub fn word(self) -> &'static str {
        match self {
            Self::Across => "across",
            Self::Same => "same",
            Self::Anywhere => "anywhere",
        }
    }

    /// Returns whether there are enough cores.
    pub fn is_possible(self, cores: usize) -> bool {
        self != Self::Across || cores > 1
    }

    /// Returns the cores of the server and of the client.
    fn cores(self, allowed: &[usize]) -> [&[usize]; 2] {
        match self {
            Self::Across => [&allowed[..1], &allowed[1..2]],
            Self::Same => [&allowed[..1]; 2],
            Self::Anywhere => [allowed; 2],
        }
    }
}

/// A running server.
pub struct Service {
    pub mode: Mode,
    pub port: u16,
    program: Program,
    /// Its backend, if it has one.
    backend: Option<Program>,
    /// Requests per second in the last round.
    rate: f64,
}

/// The folder of a server's files, and the port it listens on.
pub struct Site<'a> {
    pub folder: &'a Path,
    pub port: u16,
}

impl Service {
    fn start(cell: &Cell, mode: Mode, with: &Measuring<'_>) -> Result<Self> {
        let mut begun = Self::try_start(cell, mode, with);
        for _ in 1..ATTEMPTS {
            // Another process may have taken the port before the server could.
            if begun.is_err() {
                begun = Self::try_start(cell, mode, with);
            }
        }
        begun
    }

    fn try_start(cell: &Cell, mode: Mode, with: &Measuring<'_>) -> Result<Self> {
        let folder = with.folder.join(format!("{}-{}", cell.application.name(), mode.name()));
        std::fs::create_dir_all(&folder).context("no folder can be created for a server")?;
        let site = Site { folder: &folder, port: free_port()? };
        let new = |program: &str| with.launcher.command(mode, program);
        let [cores, _] = cell.spread.cores(with.cores);
        let (mut backend, backend_port) = (None, free_port()?);
        if cell.application == Application::Php {
            let command = php::backend(new, &site, backend_port)?;
            let log = folder.join("backend.log");
            let mut program = Program::start("php-fpm", command, cores, &log)?;
            until(BEGINNING, || Ok(does_answer(backend_port)), &mut program)?;
            backend = Some(program);
        }
        let command = match cell.application {
            Application::RedisSet | Application::RedisGet => redis::server(new, &site),
            Application::Nginx => nginx::server(new, &site, cell)?,
            Application::Php => php::server(new, &site, cell, backend_port)?,
            Application::Memcached => memcached::server(new, &site, cell.workers, MEMCACHED_MIB),
            Application::Bulk => bulk::server(new, &site),
        };
        let name = cell.application.programs()[0];
        let mut program = Program::start(name, command, cores, &folder.join("server.log"))?;
        let port = site.port;
        until(BEGINNING, || Ok(does_answer(port)), &mut program).with_context(|| mode.name())?;
        if cell.application == Application::Memcached {
            memcached::fill(port, cell)?;
        }
        let mut service = Self { mode, port, program, backend, rate: FIRST_RATE };
        if matches!(cell.application, Application::RedisSet | Application::RedisGet) {
            service.rate = redis::first_rate(&service, cell, with)?;
        }
        Ok(service)
    }

    /// Returns the processor time of the server and its backend.
    fn processor_time(&self) -> Duration {
        let programs = [Some(&self.program), self.backend.as_ref()].into_iter().flatten();
        programs.map(Program::processor_time).sum()
    }

    /// Returns the error of the client, or of the server if that has exited.
    fn blame(&self, error: Error) -> Error {
        match self.program.end() {
            Some(end) => error.context(end),
            None => error,
        }
    }

    /// Measures one round; returns a value for each metric.
    fn round(&mut self, cell: &Cell, with: &Measuring<'_>) -> Result<Round> {
        let before = self.processor_time();
        let figures = match cell.application {
            Application::RedisSet | Application::RedisGet => {
                let requests = (self.rate * f64::from(with.seconds)) as u64;
                redis::ask(self, cell, with, requests)?
            }
            Application::Nginx => nginx::ask(self, cell, with)?,
            Application::Php => nginx::ask_for(php::PAGE, self, cell, with)?,
            Application::Memcached => memcached::ask(self, cell, with)?,
            Application::Bulk => bulk::send(self, cell, with)?,
        };
        let server = self.processor_time().saturating_sub(before);
        ensure!(figures.amount > 0.0 && figures.seconds > 0.0, "no request was answered");
        self.rate = figures.amount / figures.seconds;
        let unit = if cell.application == Application::Bulk { 1e9 } else { 1e6 };
        let cost = |time: Duration| time.as_secs_f64() / figures.amount * unit;
        let [server, client] = [server, figures.processor_time].map(cost);
        Ok(match cell.application {
            Application::Bulk => vec![self.rate / 1e9, server, client],
            _ => vec![self.rate, figures.p50_us, figures.p99_us, server, client],
        })
    }

    /// Runs a client until it exits; returns its output and processor time.
    fn client(
        &self,
        cell: &Cell,
        with: &Measuring<'_>,
        program: &str,
        arguments: &[String],
    ) -> Result<(String, Duration)> {
        let mut command = with.launcher.command(self.mode, program);
        command.args(arguments);
        self.run(cell, with, program, command)
    }

    fn run(
        &self,
        cell: &Cell,
        with: &Measuring<'_>,
        name: &str,
        command: Command,
    ) -> Result<(String, Duration)> {
        let [_, cores] = cell.spread.cores(with.cores);
        let output = with.folder.join("client.log");
        let within = LONGEST + Duration::from_secs(with.seconds.into()) * 4;
        let ended = Program::start(name, command, cores, &output)?.finish(within)?;
        Ok((ended.output, ended.processor_time))
    }
}
