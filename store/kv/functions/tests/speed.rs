// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Speed of every function for every type of elements: nanoseconds for a single element, and
//! gigabytes of the value per second for vectors.
//!
//! It asserts nothing; run it alone, optimized, and read the table:
//!
//!     cargo test --release -p freeport-kv-functions speed -- --ignored --nocapture

use freeport_kv_functions::{Deltas, Element, Filter, Reduce, Registry, Update};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Lengths of values in bytes: one that fits into the first cache, and one that fits into none.
const LENGTHS: [usize; 2] = [1 << 10, 64 << 20];

#[test]
#[ignore = "a measurement, of a minute"]
fn speed() {
    scalars();
    for length in LENGTHS {
        updates_with_same_delta(length, false);
        updates_with_same_delta(length, true);
        updates_with_own_deltas(length);
        reductions(length);
        filters(length);
    }
}

/// An update by id, as a request names it.
fn scalars() {
    let registry = Registry::built_in();
    heading("ns", "update of a scalar");
    for update in Update::ALL {
        row(update.name(), |element| {
            let (mut value, id) = (vec![1; element.width()], update.id());
            let delta = operand(1, update.operands().len() * element.width());
            1e9 * seconds(1, || {
                let update = registry.update(black_box(id)).unwrap();
                let (element, value) = (black_box(element), black_box(&mut value));
                black_box(update.scalar(element, value, black_box(&delta)).unwrap());
            })
        });
    }
}

fn updates_with_same_delta(length: usize, returns: bool) {
    let mut value = value(length);
    let mut original = Vec::with_capacity(length);
    let form = if returns { "same delta, original returned" } else { "same delta" };
    heading("GB/s", &format!("update, {form}, {length} B"));
    for update in Update::ALL {
        row(update.name(), |element| {
            let delta = operand(1, update.operands().len() * element.width());
            gigabytes_per_second(length, || {
                let same = Deltas::Same(black_box(&delta));
                original.clear();
                let original = returns.then_some(&mut original);
                update.vector(element, black_box(&mut value), same, original).unwrap();
            })
        });
    }
}

fn updates_with_own_deltas(length: usize) {
    let mut value = value(length);
    heading("GB/s", &format!("update, own deltas, {length} B"));
    for update in Update::ALL {
        row(update.name(), |element| {
            let deltas = operand(1, update.operands().len() * length);
            gigabytes_per_second(length, || {
                let own = Deltas::Each(black_box(&deltas));
                update.vector(element, black_box(&mut value), own, None).unwrap();
            })
        });
    }
}

fn reductions(length: usize) {
    let value = value(length);
    heading("GB/s", &format!("reduction, {length} B"));
    for reduce in Reduce::ALL {
        row(reduce.name(), |element| {
            gigabytes_per_second(length, || {
                let sigma = black_box([0; 8]);
                black_box(reduce.fold(element, black_box(&value), &sigma).unwrap());
            })
        });
    }
}

fn filters(length: usize) {
    let value = value(length);
    let mut kept = Vec::with_capacity(length);
    heading("GB/s", &format!("filter, {length} B"));
    for filter in Filter::ALL {
        row(filter.name(), |element| {
            // Comparisons are true for about half of the elements.
            let operand = operand(64, filter.operands().len() * element.width());
            gigabytes_per_second(length, || {
                kept.clear();
                filter.keep(element, black_box(&value), black_box(&operand), &mut kept).unwrap();
                black_box(&kept);
            })
        });
    }
}

/// Random bytes.
fn value(length: usize) -> Vec<u8> {
    let mut value = vec![0; length];
    fastrand::Rng::with_seed(1).fill(&mut value);
    value
}

fn operand(byte: u8, length: usize) -> Vec<u8> {
    vec![byte; length]
}

fn gigabytes_per_second(length: usize, call: impl FnMut()) -> f64 {
    length as f64 / seconds(length, call) / 1e9
}

/// Returns the time of a call for `length` bytes, the shortest of several measurements.
fn seconds(length: usize, mut call: impl FnMut()) -> f64 {
    let calls = (1 << 19) / length.max(64) + 1;
    let mut measure = || {
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        start.elapsed()
    };
    (0..5)
        .map(|_| measure())
        .min()
        .map_or(0.0, |shortest: Duration| shortest.as_secs_f64() / calls as f64)
}

fn heading(unit: &str, title: &str) {
    print!("\n{unit:5}{title:48}");
    Element::ALL.iter().for_each(|element| print!("{element:>7}"));
    println!();
}

fn row(name: &str, mut measure: impl FnMut(Element) -> f64) {
    print!("     {name:48}");
    Element::ALL.iter().for_each(|element| print!("{:7.1}", measure(*element)));
    println!();
}
