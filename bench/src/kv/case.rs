// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cases of one setting: stores are filled once, and then do the work of each case in turn.

use super::Pace;
use super::draws::{Draws, Spread};
use super::stores::{Batches, Lines, OneAtATime, StandardMap, Store};
use crate::harness::metrics::{Metric, MetricResult, Series, cost, rate};
use crate::harness::report::Traffic;
use anyhow::{Context, Result, ensure};
use freeport_kv_engine::{Engine, Options, Request};
use freeport_kv_study::workload::{Keys, Mix};
use std::fmt;
use std::time::{Duration, Instant};

/// A kind of measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum CaseName {
    /// Gets of keys that are there
    EngineGet,
    /// Puts of values of the same size
    EnginePut,
    /// Fetch-and-add on drawn keys, and on one key
    EngineAdd,
    /// The mixes A, B and F of YCSB
    EngineMix,
    /// Updates and sums of whole vectors
    EngineVector,
    /// The same by compiled functions of a user, beside the built-in ones
    EngineFunction,
    /// Memory accesses per operation, beside the published ones
    Accesses,
    /// A server with the protocol of Redis, beside redis
    Resp,
    /// The same, servers and clients under `freeport exec`
    RespExec,
    /// The same; servers keep a log that they sync once a second
    RespEverysec,
    /// The same; servers sync their log before they acknowledge a change
    RespAlways,
    /// A node of a cluster, beside the same server alone, and redis in cluster mode
    Cluster,
    /// A server with a replica, beside redis with one
    Replica,
    /// The same; clients wait until the replica has each change
    ReplicaWait,
    /// A server with memcached's text protocol, beside memcached
    Memcached,
    /// The same with memcached's meta commands
    MemcachedMeta,
    /// A server with the batched protocol over the fabric, beside redis and memcached
    Fabric,
    /// The same over TCP
    BatchTcp,
    /// The same over UDP
    BatchUdp,
}

impl CaseName {
    /// All cases.
    pub const ALL: [Self; 19] = [
        Self::EngineGet,
        Self::EnginePut,
        Self::EngineAdd,
        Self::EngineMix,
        Self::EngineVector,
        Self::EngineFunction,
        Self::Accesses,
        Self::Resp,
        Self::RespExec,
        Self::RespEverysec,
        Self::RespAlways,
        Self::Cluster,
        Self::Replica,
        Self::ReplicaWait,
        Self::Memcached,
        Self::MemcachedMeta,
        Self::Fabric,
        Self::BatchTcp,
        Self::BatchUdp,
    ];

    /// Returns whether it is measured in this process.
    pub fn is_in_process(self) -> bool {
        matches!(
            self,
            Self::EngineGet
                | Self::EnginePut
                | Self::EngineAdd
                | Self::EngineMix
                | Self::EngineVector
                | Self::EngineFunction
                | Self::Accesses
        )
    }
}

/// The contents of the stores, and the choice of keys.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Bytes per key.
    pub key_bytes: usize,
    /// Bytes per value.
    pub value_bytes: usize,
    /// How operations choose keys.
    pub spread: Spread,
    /// Memory of the engine.
    pub memory_bytes: usize,
    /// Operations in a batch.
    pub batch: usize,
}

impl fmt::Display for Setting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key_bytes, value_bytes, spread, memory_bytes, .. } = self;
        let mib = memory_bytes >> 20;
        write!(formatter, "{key_bytes} + {value_bytes} B, {}, {mib} MiB", spread.name())
    }
}

/// Operations per second.
pub const OPS: [Metric; 1] = [rate("ops", "M operations/s", "operations")];
const MEMORY: [Metric; 1] = [cost("bytes_per_pair", "B", "memory per pair")];
/// Pairs at most of the store with a growing index.
const GROWING_PAIRS: usize = 1_000_000;

/// An operation of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Get,
    Put,
    Add,
    AddToOne,
    Mix(Mix),
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Get => "engine-get",
            Self::Put => "engine-put",
            Self::Add => "engine-add",
            Self::AddToOne => "engine-add-one-key",
            Self::Mix(Mix::A) => "engine-ycsb-a",
            Self::Mix(Mix::B) => "engine-ycsb-b",
            Self::Mix(_) => "engine-ycsb-f",
        }
    }

    fn of(case: CaseName) -> &'static [Self] {
        match case {
            CaseName::EngineGet => &[Self::Get],
            CaseName::EnginePut => &[Self::Put],
            CaseName::EngineAdd => &[Self::Add, Self::AddToOne],
            CaseName::EngineMix => &[Self::Mix(Mix::A), Self::Mix(Mix::B), Self::Mix(Mix::F)],
            _ => &[],
        }
    }

    /// Appends the operations on keys, the first of which is number `at`. A read-modify-write is a
    /// get and then a put.
    fn append<'a>(
        self,
        at: usize,
        keys: impl Iterator<Item = &'a [u8]>,
        value: &'a [u8],
        requests: &mut Vec<Request<'a>>,
    ) {
        match self {
            Self::Get => requests.extend(keys.map(Request::Get)),
            Self::Put => requests.extend(keys.map(|key| Request::Put(key, value))),
            Self::Add | Self::AddToOne => requests.extend(keys.map(Request::Update)),
            Self::Mix(mix) => {
                let shares = mix.shares();
                for (number, key) in keys.enumerate() {
                    // A permutation of the percents, so that kinds alternate.
                    let percent = ((at + number) * 37 % 100) as u8;
                    if percent >= shares.updates {
                        requests.push(Request::Get(key));
                    }
                    if percent < shares.updates || percent < shares.read_modify_writes {
                        requests.push(Request::Put(key, value));
                    }
                }
            }
        }
    }
}

/// Measures the chosen cases of a setting.
///
/// # Errors
/// Memory is missing, or a key that was stored is.
pub fn measure(
    setting: &Setting,
    cases: &[CaseName],
    pace: Pace,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<MetricResult>> {
    let works: Vec<Work> = cases.iter().flat_map(|&case| Work::of(case)).copied().collect();
    if works.is_empty() {
        return Ok(vec![]);
    }
    progress("filling");
    let keys = Keys::Binary(setting.key_bytes);
    let pair_bytes = setting.key_bytes + setting.value_bytes;
    let pairs = (setting.memory_bytes / 2 / pair_bytes).max(1);
    let mut engine = Batches::new(setting.memory_bytes, pair_bytes)?;
    let mut map = StandardMap::default();
    let (mut key, value) = (vec![], vec![7; setting.value_bytes]);
    for rank in 0..pairs as u64 {
        keys.write(rank, &mut key);
        engine.engine.put(&key, &value).with_context(|| format!("pair {rank} of {pairs}"))?;
        map.fill(&key, &value);
    }
    let mut lines = Lines::new(engine.engine.statistics().used_bytes());
    let draws = Draws::new(setting.spread, keys, pairs as u64);
    let mut results = vec![memory(setting, pairs, &engine.engine)?];
    for work in works {
        progress(work.name());
        let mut series: Vec<Series> = vec![];
        for round in 0..=pace.rounds {
            let rates = [
                rate_of(&mut engine, work, &draws, setting, pace.window)?,
                rate_of(&mut OneAtATime(&mut engine.engine), work, &draws, setting, pace.window)?,
                rate_of(&mut map, work, &draws, setting, pace.window)?,
                rate_of(&mut lines, work, &draws, setting, pace.window)?,
            ];
            if round == 0 {
                let names = rates.map(|(name, _)| Series { name, rounds: vec![] });
                series.extend(names);
                continue;
            }
            for (series, (_, rate)) in series.iter_mut().zip(rates) {
                series.rounds.push(vec![rate]);
            }
        }
        results.push(MetricResult {
            bench: "kv",
            case: work.name().into(),
            traffic: traffic(setting, pairs),
            metrics: &OPS,
            series,
            note: None,
        });
    }
    Ok(results)
}

fn traffic(setting: &Setting, pairs: usize) -> Traffic {
    Traffic::Pairs {
        key_bytes: setting.key_bytes,
        value_bytes: setting.value_bytes,
        pairs,
        distribution: setting.spread.name(),
        batch: setting.batch,
    }
}

/// Millions of operations a second of a store in one window.
fn rate_of(
    store: &mut dyn Store,
    work: Work,
    draws: &Draws,
    setting: &Setting,
    window: Duration,
) -> Result<(&'static str, f64)> {
    let value = vec![7; setting.value_bytes];
    let one = draws.batch(0, 1).next().context("there are draws")?;
    let (mut requests, mut place, mut operations) = (vec![], 0, 0_u64);
    let start = Instant::now();
    loop {
        // The clock is read once in a while.
        for _ in 0..16 {
            requests.clear();
            match work {
                Work::AddToOne => requests.resize(setting.batch, Request::Update(one)),
                _ => {
                    let keys = draws.batch(place, setting.batch);
                    work.append(place, keys, &value, &mut requests);
                }
            }
            place += setting.batch;
            let hits = store.run(&requests);
            ensure!(hits == requests.len() as u64, "a key that was stored is missing");
            operations += hits;
        }
        let elapsed = start.elapsed();
        if elapsed >= window {
            return Ok((store.name(), operations as f64 / elapsed.as_secs_f64() / 1e6));
        }
    }
}

/// Memory per pair, with a growing index and with the fixed one that the cases use.
fn memory(setting: &Setting, pairs: usize, fixed: &Engine) -> Result<MetricResult> {
    let options = Options { memory_bytes: setting.memory_bytes, ..Options::default() };
    let mut growing = Engine::new(options)?;
    let (keys, value) = (Keys::Binary(setting.key_bytes), vec![7; setting.value_bytes]);
    let mut key = vec![];
    for rank in 0..(pairs / 2).clamp(1, GROWING_PAIRS) as u64 {
        keys.write(rank, &mut key);
        growing.put(&key, &value).with_context(|| format!("pair {rank} of a growing index"))?;
    }
    let series = |name, engine: &Engine| {
        let bytes = engine.statistics().used_bytes() as f64 / engine.len() as f64;
        Series { name, rounds: vec![vec![bytes]] }
    };
    Ok(MetricResult {
        bench: "kv",
        case: "engine-memory".into(),
        traffic: traffic(setting, pairs),
        metrics: &MEMORY,
        series: vec![series("freeport", &growing), series("freeport, fixed index", fixed)],
        note: None,
    })
}
