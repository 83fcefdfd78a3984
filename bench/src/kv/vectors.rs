// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations on whole vectors: an atomic add of one number to all elements of a value, with and
//! without the original, and the sum of all elements (KV-Direct, vector operations). The
//! limit does the same on an array, without keys.

use super::Pace;
use super::draws::{Draws, Spread};
use crate::harness::metrics::{Metric, MetricResult, Series, rate};
use crate::harness::report::Traffic;
use anyhow::{Context, Result, ensure};
use freeport_kv_engine::{
    Engine, Index, Options, OutOfMemory, Replies, Request, Stored, Value, ValueMut,
};
use freeport_kv_functions::{Deltas, Element, Reduce, Update};
use freeport_kv_study::workload::Keys;
use std::time::Instant;

const SIZES: [usize; 4] = [64, 256, 1024, 16_384];
const QUICK_SIZES: [usize; 1] = [1024];
/// Bytes of all vectors together: more than the caches hold, and less.
const BYTES: [(&str, usize); 2] = [("memory", 512 << 20), ("cache", 256 << 10)];
const ELEMENT: Element = Element::U32;
const KEY_BYTES: usize = 8;
const BATCH: usize = 64;

const THROUGHPUT: [Metric; 1] = [rate("throughput", "GB/s", "bytes of vectors")];

/// Work on each vector.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Add,
    AddAndReturn,
    Sum,
}

impl Work {
    const ALL: [Self; 3] = [Self::Add, Self::AddAndReturn, Self::Sum];

    fn name(self, place: &str) -> String {
        let work = match self {
            Self::Add => "add",
            Self::AddAndReturn => "add-and-return",
            Self::Sum => "sum",
        };
        format!("engine-vector-{work}-{place}")
    }

    /// GB/s that the publication reports (table of vector operations); its labels are exchanged.
    fn published(self, vector_bytes: usize) -> Option<f64> {
        match (self, vector_bytes) {
            (Self::Add, 64..=1024) => Some(11.52),
            (Self::AddAndReturn, 64) => Some(4.37),
            (Self::AddAndReturn, 256) => Some(4.62),
            (Self::AddAndReturn, 1024) => Some(4.68),
            _ => None,
        }
    }
}

/// Measures all sizes, in memory and in the caches.
///
/// # Errors
/// Memory is missing, or a vector is.
pub fn measure(pace: Pace, is_quick: bool) -> Result<Vec<MetricResult>> {
    let sizes = if is_quick { &QUICK_SIZES[..] } else { &SIZES };
    let mut results = vec![];
    for &vector_bytes in sizes {
        for (place, bytes) in BYTES {
            let mut vectors = Vectors::new(vector_bytes, bytes.max(4 * vector_bytes))?;
            for work in Work::ALL {
                results.push(vectors.result(work, place, pace)?);
            }
        }
    }
    Ok(results)
}

/// Vectors in an engine, and the same in an array.
struct Vectors {
    engine: Engine,
    array: Vec<u8>,
    vector_bytes: usize,
    draws: Draws,
    next: usize,
}

impl Vectors {
    fn new(vector_bytes: usize, bytes: usize) -> Result<Self> {
        let count = bytes / vector_bytes;
        let options = Options {
            memory_bytes: (2 * bytes).max(1 << 20),
            index: Index::Growing { fill: 0.7 },
            inline_threshold: 20,
            seed: 4,
        };
        let mut engine = Engine::new(options)?;
        let (keys, mut key, value) = (Keys::Binary(KEY_BYTES), vec![], vec![1; vector_bytes]);
        for rank in 0..count as u64 {
            keys.write(rank, &mut key);
            engine.put(&key, &value).context("a vector")?;
        }
        let draws = Draws::new(Spread::Uniform, keys, count as u64);
        Ok(Self { engine, array: vec![1; count * vector_bytes], vector_bytes, draws, next: 0 })
    }

    fn result(&mut self, work: Work, place: &str, pace: Pace) -> Result<MetricResult> {
        let mut ours = Series { name: "freeport", rounds: vec![] };
        let mut limit = Series { name: "limit: an array", rounds: vec![] };
        for round in 0..=pace.rounds {
            let rates = [self.in_engine(work, pace)?, self.in_array(work, pace)?];
            if round > 0 {
                ours.rounds.push(vec![rates[0]]);
                limit.rounds.push(vec![rates[1]]);
            }
        }
        let note = work.published(self.vector_bytes).map(|published| {
            format!("published for a NIC: {published} GB/s, one key per element 2.09 GB/s")
        });
        Ok(MetricResult {
            bench: "kv",
            case: work.name(place),
            traffic: Traffic::Pairs {
                key_bytes: KEY_BYTES,
                value_bytes: self.vector_bytes,
                pairs: self.engine.len(),
                distribution: Spread::Uniform.name(),
                batch: BATCH,
            },
            metrics: &THROUGHPUT,
            series: vec![ours, limit],
            note,
        })
    }

    fn in_engine(&mut self, work: Work, pace: Pace) -> Result<f64> {
        let mut client = Client { work, original: vec![], hits: 0, sum: 0 };
        let (start, mut requests, mut operations) = (Instant::now(), vec![], 0);
        loop {
            requests.clear();
            requests.extend(self.draws.batch(self.next, BATCH).map(|key| match work {
                Work::Sum => Request::Get(key),
                _ => Request::Update(key),
            }));
            self.next += BATCH;
            self.engine.run(&requests, &mut client);
            operations += requests.len();
            let elapsed = start.elapsed();
            if elapsed >= pace.window {
                ensure!(client.hits == operations, "a vector is missing");
                std::hint::black_box(client.sum);
                return Ok((operations * self.vector_bytes) as f64 / elapsed.as_secs_f64() / 1e9);
            }
        }
    }

    fn in_array(&mut self, work: Work, pace: Pace) -> Result<f64> {
        let mut client = Client { work, original: vec![], hits: 0, sum: 0 };
        let (start, mut operations) = (Instant::now(), 0);
        let count = self.array.len() / self.vector_bytes;
        loop {
            for key in self.draws.batch(self.next, BATCH) {
                let word = key.first_chunk::<8>().context("keys have eight bytes")?;
                let place = u64::from_le_bytes(*word) as usize % count * self.vector_bytes;
                client.apply(&mut self.array[place..place + self.vector_bytes]);
                operations += 1;
            }
            self.next += BATCH;
            let elapsed = start.elapsed();
            if elapsed >= pace.window {
                std::hint::black_box(client.sum);
                return Ok((operations * self.vector_bytes) as f64 / elapsed.as_secs_f64() / 1e9);
            }
        }
    }
}

/// Applies the function to each vector.
struct Client {
    work: Work,
    original: Vec<u8>,
    hits: usize,
    sum: u64,
}

const ONE: [u8; 4] = 1_u32.to_le_bytes();

impl Client {
    fn apply(&mut self, vector: &mut [u8]) {
        let original = match self.work {
            Work::Add => None,
            Work::AddAndReturn => {
                self.original.clear();
                Some(&mut self.original)
            }
            Work::Sum => return self.add_up(vector),
        };
        let done = Update::Add.vector(ELEMENT, vector, Deltas::Same(&ONE), original);
        self.hits += usize::from(done.is_ok());
    }

    fn add_up(&mut self, vector: &[u8]) {
        if let Ok(sum) = Reduce::Sum.fold(ELEMENT, vector, &[0; 8]) {
            self.sum = self.sum.wrapping_add(sum.bits());
            self.hits += 1;
        }
    }
}

impl Replies for Client {
    fn get(&mut self, _: usize, value: Option<Value<'_>>) {
        if let Some(value) = value {
            self.add_up(value.bytes);
        }
    }

    fn put(&mut self, _: usize, _: Result<Stored, OutOfMemory>) {}

    fn delete(&mut self, _: usize, _: bool) {}

    fn update(&mut self, _: usize, value: Option<ValueMut<'_>>) {
        if let Some(value) = value {
            self.apply(value.bytes);
        }
    }
}
