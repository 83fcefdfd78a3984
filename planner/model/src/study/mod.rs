// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The published results of the off-path SmartNIC study, beside those of the model.
//!
//! The study states most results as ranges over payloads, without the curves. A row is reached if
//! all results of the model are inside the published range, or within 10 % of a published value.

mod latency;
mod throughput;
mod together;

use crate::path::{Operation, Path};
use crate::profile::Profile;
use crate::route::Request;
use crate::simulator::{Load, Outcome, simulate};
use std::cell::RefCell;
use std::collections::HashMap;
use std::thread;

/// A row of the study's table of results.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Its number.
    pub number: u32,
    /// The measured quantity.
    pub metric: &'static str,
    /// The published result.
    pub published: &'static str,
    /// The accepted results: the published range, or 10 % around a published value.
    pub accepted: (f64, f64),
    /// Smallest and largest result of the model.
    pub ours: (f64, f64),
    /// Unit of both.
    pub unit: &'static str,
    /// How the model was asked, or why it was not.
    pub how: &'static str,
}

impl Row {
    /// Returns whether the model's results are accepted.
    pub fn is_reached(&self) -> bool {
        self.distance() == 0.0
    }

    /// Returns how far the model's results are from the accepted ones, in relation to these; zero
    /// if all are accepted, and none for a row without results.
    pub fn distance(&self) -> f64 {
        let (least, most) = self.accepted;
        let (low, high) = self.ours;
        if low.is_nan() || high.is_nan() {
            return f64::INFINITY;
        }
        let scale = least.abs().max(most.abs()).clamp(f64::MIN_POSITIVE, 1e6);
        ((least - low).max(0.0) + (high - most).max(0.0)) / scale
    }

    /// Returns the model's results as a text.
    pub fn ours_text(&self) -> String {
        let (low, high) = self.ours;
        match (low.is_nan(), (high - low).abs() < 0.005) {
            (true, _) => "-".into(),
            (_, true) => format!("{} {}", number(low), self.unit),
            _ => format!("{} to {} {}", number(low), number(high), self.unit),
        }
    }
}

/// How the model is asked for rows, and the unit of its answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Unit of its answers.
    pub unit: &'static str,
    /// How it is asked.
    pub how: &'static str,
}

impl Asked {
    /// Returns a row with the published results that are accepted, and the model's.
    pub fn row(
        self,
        number: u32,
        metric: &'static str,
        published: &'static str,
        accepted: (f64, f64),
        ours: (f64, f64),
    ) -> Row {
        let Self { unit, how } = self;
        Row { number, metric, published, accepted, ours, unit, how }
    }
}

/// Relation of a row to the parameters of a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    /// A published parameter states the result, and the model returns it.
    Given,
    /// A parameter was fitted to the row.
    Fitted,
    /// No parameter names the row.
    Follows,
}

impl Basis {
    /// Returns the relation of a row to a profile, by the sources of its parameters, such as
    /// `study, rows 13 and 15`.
    pub fn of(profile: &Profile, row: u32) -> Self {
        let names = |source: &str| {
            let Some((_, behind)) = source.split_once("row") else { return false };
            let list = behind.split(':').next().unwrap_or_default();
            list.split(|it: char| !it.is_ascii_digit()).any(|it| it.parse() == Ok(row))
        };
        let mut found = Self::Follows;
        for origin in profile.origins.values().filter(|origin| names(&origin.source)) {
            if !origin.fitted {
                return Self::Given;
            }
            found = Self::Fitted;
        }
        found
    }

    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Fitted => "fitted",
            Self::Follows => "follows",
        }
    }
}

/// Writes a number with three digits at least where it has decimals.
fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Returns rows 1 to 31 for a profile.
pub fn rows(profile: &Profile) -> Vec<Row> {
    type Part = fn(&Model<'_>) -> Vec<Row>;
    let parts: [Part; 3] = [throughput::rows, together::rows, latency::rows];
    let mut rows: Vec<Row> = thread::scope(|scope| {
        let running = parts.map(|part| scope.spawn(move || part(&Model::new(profile))));
        running.into_iter().flat_map(|part| part.join().expect("it does not panic")).collect()
    });
    rows.sort_by_key(|row| row.number);
    rows
}

/// Payloads for which the network is not the limit of any path. The study says "below 512 B"; at
/// 200 Gbit/s, 256 B fit at most 87 million times per second, which is less than a plain NIC
/// processes, so that paths cannot differ there.
const SMALL: [u64; 5] = [8, 16, 32, 64, 128];
/// Payloads of latencies.
const LATENCY: [u64; 5] = [8, 64, 512, 1024, 4096];
/// Payloads that come with a request inside the machine.
const INLINE: [u64; 4] = [8, 64, 128, 512];
/// Seed of all simulations.
const SEED: u64 = 1;

/// The model, with the results so far.
struct Model<'a> {
    profile: &'a Profile,
    known: RefCell<HashMap<(Path, Operation, u64, bool), f64>>,
}

impl<'a> Model<'a> {
    fn new(profile: &'a Profile) -> Self {
        Self { profile, known: RefCell::default() }
    }

    fn run(&self, loads: &[Load]) -> Outcome {
        simulate(self.profile, loads, SEED).expect("the study's paths have their operations")
    }

    fn once(&self, key: (Path, Operation, u64, bool), find: impl FnOnce(Request) -> f64) -> f64 {
        if let Some(known) = self.known.borrow().get(&key) {
            return *known;
        }
        let found = find(Request::new(key.0, key.1, key.2));
        self.known.borrow_mut().insert(key, found);
        found
    }

    /// Median latency of single requests in nanoseconds.
    fn latency(&self, path: Path, operation: Operation, bytes: u64) -> f64 {
        self.once((path, operation, bytes, false), |request| {
            self.run(&[Load::single(request)]).flows[0].median
        })
    }

    /// Greatest rate in millions per second.
    fn rate(&self, path: Path, operation: Operation, bytes: u64) -> f64 {
        self.once((path, operation, bytes, true), |request| {
            self.run(&[Load::full(self.profile, request)]).flows[0].rate
        })
    }

    /// Greatest payload in Gbit/s.
    fn goodput(&self, path: Path, operation: Operation, bytes: u64) -> f64 {
        self.rate(path, operation, bytes) * bytes as f64 * 8.0 / 1000.0
    }
}

/// A quantity that the model has for requests of one kind: latency or rate.
type Quantity<'a> = fn(&Model<'a>, Path, Operation, u64) -> f64;

impl<'a> Model<'a> {
    /// Returns the growth of a quantity from one path to another in per cent, over payloads.
    fn grows(
        &self,
        quantity: Quantity<'a>,
        operation: Operation,
        [to, from]: [Path; 2],
        payloads: &[u64],
    ) -> (f64, f64) {
        span(payloads.iter().map(|&bytes| {
            growth(quantity(self, to, operation, bytes), quantity(self, from, operation, bytes))
        }))
    }
}

/// Returns the smallest and the largest of some results.
pub fn span(results: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let wider = |(low, high): (f64, f64), result: f64| (low.min(result), high.max(result));
    results.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), wider)
}

/// Returns the growth in per cent.
pub fn growth(to: f64, from: f64) -> f64 {
    100.0 * (to / from - 1.0)
}

/// Returns the accepted results around a published value: 10 % on both sides.
pub fn around(value: f64) -> (f64, f64) {
    span([0.9 * value, 1.1 * value])
}

/// Returns one result as a range.
pub fn one(value: f64) -> (f64, f64) {
    (value, value)
}
