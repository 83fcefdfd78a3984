// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Joining of free blocks (KV-Direct 5.3.3): sort them by address, join neighbours into runs, and
//! cut the runs into the largest classes.
//!
//! With several threads, a sample of the addresses gives ranges of about as many blocks each. Every
//! thread distributes a part of the lines over the ranges, then sorts and joins one range.

use crate::class::Class;
use crate::entry::Line;
use crate::extent::Extent;
use crate::radix;
use crate::stack::Stock;
use std::thread;

/// Fewer entries than this are not worth a second thread.
const FEW: usize = 1 << 15;
/// Lines that a thread takes at a time.
const PART_LINES: usize = 1 << 10;
/// Number of sampled addresses for each range.
const SAMPLES: usize = 64;

/// Runs of free units in the stacks, ascending, with a used unit or a bound between any two.
///
/// The threads need 16 bytes for each entry meanwhile.
pub(crate) fn runs(stock: &Stock, threads: usize) -> Vec<Extent> {
    let parts: Vec<&[Line]> =
        stock.stacks().iter().flat_map(|stack| stack.lines().chunks(PART_LINES)).collect();
    if threads <= 1 || stock.len() < FEW {
        let mut keys = Vec::with_capacity(stock.len());
        keys.extend(parts.iter().flat_map(|part| keys_of(part)));
        return sorted_and_joined(keys);
    }
    let bounds = bounds(&parts, threads);
    let distributed = thread::scope(|scope| {
        let start = |thread| {
            let (parts, bounds) = (&parts, &bounds);
            scope.spawn(move || distribute(parts.iter().skip(thread).step_by(threads), bounds))
        };
        let started: Vec<_> = (0..threads).map(start).collect();
        joined(started)
    });
    let mut ranges: Vec<Vec<Vec<u64>>> = vec![Vec::new(); threads];
    for (range, keys) in distributed.into_iter().flat_map(|keys| keys.into_iter().enumerate()) {
        ranges[range].push(keys);
    }
    let parts = thread::scope(|scope| {
        let start = |keys: Vec<Vec<u64>>| scope.spawn(move || sorted_and_joined(keys.concat()));
        let started: Vec<_> = ranges.into_iter().map(start).collect();
        joined(started)
    });
    let mut runs: Vec<Extent> = Vec::with_capacity(parts.iter().map(Vec::len).sum());
    for run in parts.into_iter().flatten() {
        append(&mut runs, run);
    }
    runs
}

/// Stacks with the largest blocks that the runs hold.
pub(crate) fn cut(runs: &[Extent]) -> Stock {
    let mut stock = Stock::default();
    runs.iter().for_each(|&run| stock.push_cut(run));
    stock
}

/// Keys of the entries: the address above eight bits of the class.
fn keys_of(lines: &[Line]) -> impl Iterator<Item = u64> + '_ {
    let key = |unit: u32, class: Class| u64::from(unit) << 8 | u64::from(class.code());
    lines.iter().flat_map(move |line| line.entries().map(move |e| key(e.unit, e.class)))
}

/// First addresses of all ranges but the first, so that each range has about as many entries.
fn bounds(parts: &[&[Line]], ranges: usize) -> Vec<u64> {
    let lines: usize = parts.iter().map(|part| part.len()).sum();
    let step = (lines / (ranges * SAMPLES)).max(1);
    let lines = parts.iter().flat_map(|part| part.iter()).step_by(step);
    let mut sample: Vec<u64> =
        lines.flat_map(|line| line.units().first().copied()).map(u64::from).collect();
    sample.sort_unstable();
    (1..ranges).map(|range| sample[range * sample.len() / ranges] << 8).collect()
}

/// The keys of some parts, for each range.
fn distribute<'a>(parts: impl Iterator<Item = &'a &'a [Line]>, bounds: &[u64]) -> Vec<Vec<u64>> {
    let mut ranges = vec![Vec::new(); bounds.len() + 1];
    for key in parts.flat_map(|part| keys_of(part)) {
        ranges[bounds.partition_point(|&bound| bound <= key)].push(key);
    }
    ranges
}

fn sorted_and_joined(mut keys: Vec<u64>) -> Vec<Extent> {
    radix::sort(&mut keys, 8);
    let mut runs = Vec::new();
    for key in keys {
        let class = Class::from_code(key as u8).expect("the key of a class");
        let start = (key >> 8) as u32;
        append(&mut runs, Extent { start, end: start + class.units() });
    }
    runs
}

/// Appends units that lie after the runs, joined to the last run if they follow it.
fn append(runs: &mut Vec<Extent>, next: Extent) {
    match runs.last_mut() {
        Some(last) if last.end == next.start => last.end = next.end,
        last => {
            debug_assert!(last.is_none_or(|last| last.end < next.start), "blocks are disjoint");
            runs.push(next);
        }
    }
}

fn joined<T>(started: Vec<thread::ScopedJoinHandle<'_, T>>) -> Vec<T> {
    started.into_iter().map(|thread| thread.join().expect("sorting does not panic")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Entry;

    /// Disjoint runs, cut into random blocks, which are put into the stacks in random order.
    fn shuffled(seed: u64, runs: usize) -> (Stock, Vec<Extent>) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut expected, mut entries, mut unit) = (Vec::new(), Vec::new(), 1);
        for _ in 0..runs {
            let start = unit + random.u32(1..50);
            unit = start;
            for _ in 0..random.u32(1..6) {
                let class = Class::from_code(random.u8(1..20)).expect("a class");
                entries.push(Entry { unit, class });
                unit += class.units();
            }
            expected.push(Extent { start, end: unit });
        }
        random.shuffle(&mut entries);
        let mut stock = Stock::default();
        entries.into_iter().for_each(|entry| stock.push(entry));
        (stock, expected)
    }

    #[test]
    fn neighbours_are_joined_with_any_number_of_threads() {
        for (seed, count) in [(1, 0), (2, 1), (3, 100), (4, 30_000)] {
            let (stock, expected) = shuffled(seed, count);
            for threads in [1, 2, 3, 8] {
                assert_eq!(runs(&stock, threads), expected, "seed {seed}, {threads} threads");
            }
        }
    }

    #[test]
    fn cut_runs_are_the_same_runs() {
        let (stock, expected) = shuffled(5, 1_000);
        let fewer = cut(&runs(&stock, 1));
        assert!(fewer.len() < stock.len());
        assert_eq!(runs(&fewer, 1), expected);
    }

    #[test]
    fn ranges_are_balanced_and_end_between_blocks() {
        let (stock, _) = shuffled(6, 30_000);
        let parts: Vec<&[Line]> = stock.stacks().iter().map(|stack| stack.lines()).collect();
        let bounds = bounds(&parts, 4);
        let ranges = distribute(parts.iter(), &bounds);
        let even = stock.len() / 4;
        for keys in ranges {
            assert!(keys.len() > even / 2 && keys.len() < even * 2, "{} of {even}", keys.len());
        }
    }
}
