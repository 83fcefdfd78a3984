// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions and their alternatives: ways to serve a call, each a sequence of steps.
//!
//! A function is a TOML file (`docs/reference/functions.md`); [`built_in()`] has those of the
//! study. Sizes are of payload in bytes. Data after compression have their original size in a file,
//! and [`Function::resolved`] applies the ratio.

mod built_in;
mod read;

pub use built_in::{BUILT_IN, built_in, built_in_text};

use freeport_plan_model::route::{Request, Step, ns};
use freeport_plan_model::{Operation, Path, Profile, Side};
use std::fmt::{self, Display};
use std::str::FromStr;

/// A function with its alternatives.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Payload of a call in bytes.
    pub bytes: u64,
    /// Compressed by original size, above 0 and at most 1.
    pub ratio: f64,
    /// Criteria of the ranking, the most important first.
    pub criteria: Vec<Criterion>,
    /// Figures that differ by less than this share of the better one are equal in the ranking.
    pub tolerance: f64,
    /// Clients, each with calls one after the other; none for as many as the profile has threads.
    pub clients: Option<u32>,
    /// Calls that a client has in flight.
    pub in_flight: u32,
    /// Millions of calls per second that are offered; none for as many as possible.
    pub offered: Option<f64>,
    /// Limits that a plan has to keep.
    pub constraints: Constraints,
    /// The alternatives, in the order of their declaration.
    pub alternatives: Vec<Alternative>,
    /// Origins of figures, for explanations.
    pub notes: Vec<String>,
    /// The setting of a service that plans of the function are for, if there is one.
    pub service: Option<Service>,
}

/// A setting of a service that a plan is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Service {
    /// Replication of writes.
    Replication,
    /// Reads of a key-value store.
    Get,
}

impl Service {
    /// All of them, in the order of files.
    pub const ALL: [Self; 2] = [Self::Replication, Self::Get];

    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Replication => "replication",
            Self::Get => "get",
        }
    }
}

impl FromStr for Service {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|service| service.name() == name);
        found.ok_or_else(|| format!("there is no service {name}; use replication or get"))
    }
}

/// A way to serve calls.
#[derive(Clone, PartialEq, Debug)]
pub struct Alternative {
    /// Its name.
    pub name: String,
    /// A line about it.
    pub about: String,
    /// Steps of a call.
    pub steps: Vec<Repeated>,
    /// Share of calls that these steps serve: above 0, at most 1.
    pub covers: f64,
    /// Steps of the other calls.
    pub miss: Vec<Repeated>,
    /// Memory that it needs.
    pub memory: Vec<Memory>,
}

/// Memory that an alternative needs. Alternatives share memory of the same name and side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    /// The side: the host or the device's processor.
    pub side: Side,
    /// Its contents.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A step with its mean number of repetitions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Repeated {
    /// The step.
    pub action: Action,
    /// How often a call takes it in the mean.
    pub times: f64,
    /// Whether the step compresses, or moves what is compressed.
    pub is_compressed: bool,
}

/// A step of a function.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Action {
    /// A request.
    Request(Request),
    /// A message to a core of the path's target.
    Message {
        /// The path.
        path: Path,
        /// Payload in bytes.
        bytes: u64,
    },
    /// The answer to a message. The core that answers takes the time of the profile for a message
    /// and its answer.
    Answer {
        /// The path of the message.
        path: Path,
        /// Payload in bytes.
        bytes: u64,
    },
    /// Work of a core.
    Work {
        /// The side that has the core.
        side: Side,
        /// Its time in nanoseconds.
        ns: f64,
    },
}

/// A criterion of the ranking.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Criterion {
    /// Calls per second; more is better.
    Throughput,
    /// Time of a call on an idle machine; less is better.
    Latency,
    /// Time of the host's processor for a call; less is better.
    HostProcessor,
    /// Payload on the network for a call; less is better.
    NetworkBytes,
    /// Packets on PCIe for a call; less is better.
    Amplification,
    /// Round trips on the network for a call; less is better.
    RoundTrips,
}

/// Limits that a plan has to keep; none means no limit.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Constraints {
    /// Cores of the host that calls may keep busy; 0 allows none.
    pub host_cores: Option<f64>,
    /// Memory of the host in bytes.
    pub host_memory: Option<u64>,
    /// Memory of the device's processor in bytes.
    pub soc_memory: Option<u64>,
    /// Time of a call on an idle machine in microseconds.
    pub latency_us: Option<f64>,
}

impl Function {
    /// Returns the function with this ratio of compressed to original size.
    pub fn with_ratio(self, ratio: f64) -> Self {
        Self { ratio, ..self }
    }

    /// Returns the alternatives with the sizes after compression. With a ratio of 1, nothing is
    /// compressed.
    pub fn resolved(&self) -> Vec<Alternative> {
        let resolve = |steps: &[Repeated]| -> Vec<Repeated> {
            let kept = steps.iter().filter(|step| {
                let is_work = matches!(step.action, Action::Work { .. });
                !(is_work && step.is_compressed && self.ratio >= 1.0)
            });
            kept.map(|step| step.compressed(self.ratio)).collect()
        };
        let of = |alternative: &Alternative| Alternative {
            steps: resolve(&alternative.steps),
            miss: resolve(&alternative.miss),
            ..alternative.clone()
        };
        self.alternatives.iter().map(of).collect()
    }

    /// Returns whether clients do not make all the calls they could, because of an offered load or
    /// of the processor time that a constraint allows. The queueing model of a plan and its
    /// simulation know only clients that call as often as they can.
    pub fn is_throttled(&self) -> bool {
        self.offered.is_some() || self.constraints.host_cores.is_some_and(|cores| cores > 0.0)
    }

    /// Returns the number of clients on a machine.
    pub fn clients_on(&self, profile: &Profile) -> u32 {
        let all = (profile.client.machines * profile.client.threads) as u32;
        self.clients.unwrap_or(all).max(1)
    }
}

impl Alternative {
    /// Returns the most steps of the model that a call takes.
    pub fn steps_of_call(&self, profile: &Profile) -> u64 {
        let count = |steps: &[Repeated]| -> u64 {
            let of = |step: &Repeated| {
                step.times.ceil() as u64 * step.action.steps(profile).count() as u64
            };
            steps.iter().map(of).fold(0, u64::saturating_add)
        };
        count(&self.steps).max(count(&self.miss))
    }

    /// Returns its sequences of steps, with the share of calls that take each.
    pub fn sequences(&self) -> impl Iterator<Item = (&[Repeated], f64)> {
        let both = [(&self.steps[..], self.covers), (&self.miss[..], 1.0 - self.covers)];
        both.into_iter().filter(|(_, share)| *share > 0.0)
    }

    /// Returns all requests of the alternative.
    pub fn requests(&self) -> impl Iterator<Item = Request> {
        self.steps.iter().chain(&self.miss).filter_map(|step| match step.action {
            Action::Request(request) => Some(request),
            _ => None,
        })
    }

    /// Replaces requests; the function returns the replacement and how many take the place of one.
    pub fn with_requests(&self, replace: impl Fn(Request) -> (Request, f64)) -> Self {
        let map = |steps: &[Repeated]| -> Vec<Repeated> {
            let of = |step: &Repeated| match step.action {
                Action::Request(request) => {
                    let (request, each) = replace(request);
                    Repeated { action: Action::Request(request), times: step.times * each, ..*step }
                }
                _ => *step,
            };
            steps.iter().map(of).collect()
        };
        Self { steps: map(&self.steps), miss: map(&self.miss), ..self.clone() }
    }
}

impl Repeated {
    /// Returns the step with its size after compression.
    fn compressed(self, ratio: f64) -> Self {
        let size = |bytes: u64| (bytes as f64 * ratio).ceil() as u64;
        let action = match self.action {
            _ if !self.is_compressed => self.action,
            Action::Request(request) => {
                Action::Request(Request { bytes: size(request.bytes), ..request })
            }
            Action::Message { path, bytes } => Action::Message { path, bytes: size(bytes) },
            Action::Answer { path, bytes } => Action::Answer { path, bytes: size(bytes) },
            work @ Action::Work { .. } => work,
        };
        Self { action, ..self }
    }
}

impl Action {
    /// Returns the steps of the model.
    pub fn steps(&self, profile: &Profile) -> impl Iterator<Item = Step> {
        let (first, second) = match *self {
            Self::Request(request) => (Step::Request(request), None),
            Self::Message { path, bytes } => (Step::Message { path, bytes }, None),
            Self::Work { side, ns: time } => (Step::Work { side, time: ns(time) }, None),
            Self::Answer { path, bytes } => {
                let side = path.target();
                let echo = if side == Side::Soc { profile.soc.echo } else { profile.host.echo };
                (Step::Work { side, time: ns(echo) }, Some(Step::Answer { path, bytes }))
            }
        };
        std::iter::once(first).chain(second)
    }

    /// Returns the payload in bytes; 0 for work.
    pub fn bytes(&self) -> u64 {
        match *self {
            Self::Request(Request { bytes, .. })
            | Self::Message { bytes, .. }
            | Self::Answer { bytes, .. } => bytes,
            Self::Work { .. } => 0,
        }
    }

    /// Returns the path, if the step has one.
    pub fn path(&self) -> Option<Path> {
        match *self {
            Self::Request(Request { path, .. })
            | Self::Message { path, .. }
            | Self::Answer { path, .. } => Some(path),
            Self::Work { .. } => None,
        }
    }
}

impl Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(Request { path, operation, bytes, batch, .. }) => {
                write!(f, "{operation} {bytes} B on path {path}")?;
                if *batch > 1 { write!(f, " in batches of {batch}") } else { Ok(()) }
            }
            Self::Message { path, bytes } => write!(f, "message of {bytes} B on path {path}"),
            Self::Answer { bytes, .. } => write!(f, "answer of {bytes} B"),
            Self::Work { side, ns } => write!(f, "{ns} ns on the {}", side_name(*side)),
        }
    }
}

/// Returns the name of a side in files and texts.
pub fn side_name(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Host => "host",
        Side::Soc => "soc",
        Side::Peer => "peer",
    }
}

impl Criterion {
    /// All criteria.
    pub const ALL: [Self; 6] = [
        Self::Throughput,
        Self::Latency,
        Self::HostProcessor,
        Self::NetworkBytes,
        Self::Amplification,
        Self::RoundTrips,
    ];

    /// Returns the name in files and texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::HostProcessor => "host-processor",
            Self::NetworkBytes => "network-bytes",
            Self::Amplification => "amplification",
            Self::RoundTrips => "round-trips",
        }
    }
}

impl FromStr for Criterion {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|criterion| criterion.name() == name);
        found.ok_or_else(|| format!("there is no criterion {name}; the criteria are {names}"))
    }
}

/// Returns whether a path has the operation of a request of a function.
fn is_possible(path: Path, operation: Operation) -> bool {
    path != Path::Rnic && path.has(operation)
}
