// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations on whole vectors: an atomic add of one number to all elements of a value, with and
//! without the original, and the sum of all elements (KV-Direct, vector operations). The
//! limit does the same on an array, without keys. Functions of a user that do the same are compiled
//! from ClickNP, and take turns with the built-in ones.

use super::Pace;
use super::case::CaseName;
use super::draws::{Draws, Spread};
use crate::harness::metrics::{Metric, MetricResult, Series, rate};
use crate::harness::report::Traffic;
use anyhow::{Context, Result, ensure};
use freeport_kv_compiled::{Options as CompileOptions, compile_text};
use freeport_kv_engine::{
    Engine, Index, Options, OutOfMemory, Replies, Request, Stored, Value, ValueMut,
};
use freeport_kv_functions::{Deltas, Element, Function, Reduce, Registry, Update};
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

    fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::AddAndReturn => "add-and-return",
            Self::Sum => "sum",
        }
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

/// The functions of a user.
const TEXT: &str = "uint increase(uint v, uint delta) { return v + delta; }
ulong total(uint v, ulong sigma) { return sigma + v; }
";

/// Functions that do the work.
#[derive(Clone, Copy)]
struct Functions<'a> {
    add: Function<'a, Update>,
    sum: Function<'a, Reduce>,
}

impl<'a> Functions<'a> {
    fn new(registry: &'a Registry, add: u8, sum: u8) -> Result<Self> {
        Ok(Self { add: registry.update(add)?, sum: registry.reduce(sum)? })
    }
}

/// Functions that take turns, under one name in results.
struct Kind<'a> {
    name: &'static str,
    subjects: Vec<(&'static str, Functions<'a>)>,
    note: Option<String>,
}

/// Measures all sizes of the chosen cases, in memory and in the caches.
///
/// # Errors
/// Memory is missing, a vector is, or a function cannot be compiled.
pub fn measure(cases: &[CaseName], pace: Pace, is_quick: bool) -> Result<Vec<MetricResult>> {
    let compiled = compile_text("bench.cnp", TEXT, &CompileOptions::default())?;
    let registry = &compiled.registry;
    let built_in = Functions::new(registry, Update::Add.id(), Reduce::Sum.id())?;
    let first = Registry::FIRST_USER_ID;
    let of_user = Functions::new(registry, first, first + 1)?;
    let kinds = [
        (
            CaseName::EngineVector,
            Kind { name: "engine-vector", subjects: vec![("freeport", built_in)], note: None },
        ),
        (
            CaseName::EngineFunction,
            Kind {
                name: "engine-function",
                subjects: vec![("freeport: compiled", of_user), ("freeport: built in", built_in)],
                note: compiled.interpreted_because.map(|why| format!("not compiled: {why}")),
            },
        ),
    ];
    let kinds: Vec<_> = kinds.into_iter().filter(|(case, _)| cases.contains(case)).collect();
    let sizes = if is_quick { &QUICK_SIZES[..] } else { &SIZES };
    let mut results = vec![];
    for &vector_bytes in sizes {
        for (place, bytes) in BYTES {
            let mut vectors = Vectors::new(vector_bytes, bytes.max(4 * vector_bytes))?;
            for (_, kind) in &kinds {
                for work in Work::ALL {
                    results.push(vectors.result(kind, work, place, pace)?);
                }
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

    fn result(
        &mut self,
        kind: &Kind<'_>,
        work: Work,
        place: &str,
        pace: Pace,
    ) -> Result<MetricResult> {
        let series = |name| Series { name, rounds: vec![] };
        let mut all: Vec<_> = kind.subjects.iter().map(|(name, _)| series(name)).collect();
        all.push(series("limit: an array"));
        // All kinds have the built-in functions last, with which the array is changed.
        let (_, built_in) = *kind.subjects.last().context("there are functions")?;
        for round in 0..=pace.rounds {
            let mut rates = vec![];
            for (_, functions) in &kind.subjects {
                rates.push(self.in_engine(work, *functions, pace)?);
            }
            rates.push(self.in_array(work, built_in, pace)?);
            if round > 0 {
                all.iter_mut().zip(rates).for_each(|(series, rate)| series.rounds.push(vec![rate]));
            }
        }
        let published = work.published(self.vector_bytes).map(|published| {
            format!("published for a NIC: {published} GB/s, one key per element 2.09 GB/s")
        });
        let name = work.name();
        Ok(MetricResult {
            bench: "kv",
            case: format!("{}-{name}-{place}", kind.name),
            traffic: Traffic::Pairs {
                key_bytes: KEY_BYTES,
                value_bytes: self.vector_bytes,
                pairs: self.engine.len(),
                distribution: Spread::Uniform.name(),
                batch: BATCH,
            },
            metrics: &THROUGHPUT,
            series: all,
            note: kind.note.clone().or(published),
        })
    }

    fn in_engine(&mut self, work: Work, functions: Functions<'_>, pace: Pace) -> Result<f64> {
        let mut client = Client { work, functions, original: vec![], hits: 0, sum: 0 };
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

    fn in_array(&mut self, work: Work, functions: Functions<'_>, pace: Pace) -> Result<f64> {
        let mut client = Client { work, functions, original: vec![], hits: 0, sum: 0 };
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
struct Client<'a> {
    work: Work,
    functions: Functions<'a>,
    original: Vec<u8>,
    hits: usize,
    sum: u64,
}

const ONE: [u8; 4] = 1_u32.to_le_bytes();

impl Client<'_> {
    fn apply(&mut self, vector: &mut [u8]) {
        let original = match self.work {
            Work::Add => None,
            Work::AddAndReturn => {
                self.original.clear();
                Some(&mut self.original)
            }
            Work::Sum => return self.add_up(vector),
        };
        let done = self.functions.add.vector(ELEMENT, vector, Deltas::Same(&ONE), original);
        self.hits += usize::from(done.is_ok());
    }

    fn add_up(&mut self, vector: &[u8]) {
        if let Ok(sum) = self.functions.sum.fold(ELEMENT, vector, &[0; 8]) {
            self.sum = self.sum.wrapping_add(sum.bits());
            self.hits += 1;
        }
    }
}

impl Replies for Client<'_> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_functions_do_what_the_built_in_ones_do() {
        let compiled = compile_text("bench.cnp", TEXT, &CompileOptions::default());
        let registry = compiled.unwrap_or_else(|error| panic!("{error}")).registry;
        let first = Registry::FIRST_USER_ID;
        let of_user = Functions::new(&registry, first, first + 1).expect("they are registered");
        let built_in = Functions::new(&registry, Update::Add.id(), Reduce::Sum.id());
        let built_in = built_in.expect("they are built in");
        for work in Work::ALL {
            let results = [of_user, built_in].map(|functions| {
                let mut client = Client { work, functions, original: vec![], hits: 0, sum: 0 };
                let mut vector: Vec<u8> = (0..=255).collect();
                client.apply(&mut vector);
                (vector, client.original, client.hits, client.sum)
            });
            assert_eq!(results[0], results[1], "{}", work.name());
            assert_eq!(results[0].2, 1);
        }
    }
}
