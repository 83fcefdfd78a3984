// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Throughput of every function for every type of elements, in gigabytes of the value per second.
//!
//! It asserts nothing; run it alone, optimized, and read the table:
//!
//!     cargo test --release -p freeport-kv-functions speed -- --ignored --nocapture

use freeport_kv_functions::{Deltas, Element, Filter, Reduce, Update};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Length of a value in bytes: one that fits into the first cache, and one that fits into none.
const LENGTHS: [usize; 2] = [1 << 10, 64 << 20];

#[test]
#[ignore = "long: a measurement, for a machine without other load"]
fn speed() {
    for length in LENGTHS {
        let best = if length > 1 << 20 {
            Best { rounds: 3, least_time: Duration::ZERO }
        } else {
            Best { rounds: 5, least_time: Duration::from_micros(200) }
        };
        let mut value = vec![1; length];
        // Half of the elements of each type are greater than the others.
        fastrand::Rng::with_seed(1).fill(&mut value);
        heading(&format!("update, same delta, {length} B"));
        for update in Update::ALL {
            row(update.name(), length, |element| {
                let delta = vec![1; update.operands().len() * element.width()];
                best.time(|| {
                    let same = Deltas::Same(black_box(&delta));
                    update.vector(element, black_box(&mut value), same, None).unwrap();
                })
            });
        }
        heading(&format!("update, own deltas, {length} B"));
        for update in Update::ALL {
            row(update.name(), length, |element| {
                let deltas = vec![1; update.operands().len() * length];
                best.time(|| {
                    let each = Deltas::Each(black_box(&deltas));
                    update.vector(element, black_box(&mut value), each, None).unwrap();
                })
            });
        }
        fastrand::Rng::with_seed(1).fill(&mut value);
        heading(&format!("reduction, {length} B"));
        for reduce in Reduce::ALL {
            row(reduce.name(), length, |element| {
                best.time(|| {
                    let sigma = [0; 8];
                    black_box(reduce.fold(element, black_box(&value), &sigma).unwrap());
                })
            });
        }
        heading(&format!("filter, half of the elements, {length} B"));
        for filter in Filter::ALL {
            let mut kept = Vec::with_capacity(length);
            row(filter.name(), length, |element| {
                let operand = vec![64; filter.operands().len() * element.width()];
                best.time(|| {
                    kept.clear();
                    filter.keep(element, black_box(&value), &operand, &mut kept).unwrap();
                    black_box(&kept);
                })
            });
        }
    }
}

/// The shortest of several measurements.
struct Best {
    rounds: u32,
    least_time: Duration,
}

impl Best {
    /// Returns the time of one call in seconds.
    fn time(&self, mut call: impl FnMut()) -> f64 {
        let mut best = f64::INFINITY;
        for _ in 0..self.rounds {
            let (start, mut calls) = (Instant::now(), 0);
            while calls == 0 || start.elapsed() < self.least_time {
                for _ in 0..if self.least_time.is_zero() { 1 } else { 100 } {
                    call();
                    calls += 1;
                }
            }
            best = best.min(start.elapsed().as_secs_f64() / f64::from(calls));
        }
        best
    }
}

fn heading(title: &str) {
    print!("\n{title:38}");
    Element::ALL.iter().for_each(|element| print!("{element:>7}"));
    println!("  GB/s");
}

fn row(name: &str, length: usize, mut time: impl FnMut(Element) -> f64) {
    print!("{name:38}");
    Element::ALL.iter().for_each(|element| print!("{:7.1}", length as f64 / time(*element) / 1e9));
    println!();
}
