// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Joining of free blocks (KV-Direct, slab allocator): sort them by address, join neighbours into
//! runs, and cut the runs into the largest classes.

use crate::back::{Back, Stock};
use crate::entry::Line;
use crate::extent::Extent;
use crate::radix::{self, Distributed, PARTS, Scratch};
use std::ops::Range;
use std::sync::Mutex;
use std::thread;

/// Fewer entries than this are sorted by comparison, without parts.
const FEW: usize = 1 << 10;
/// Fewer entries than this are not worth a second thread.
const FEW_FOR_THREADS: usize = 1 << 15;

/// Runs of free units in the stacks, ascending, with a used unit or a bound between any two. No
/// block begins after the unit `last`.
///
/// Takes memory of about 5 bytes for each entry meanwhile, and 8 for each run.
pub(crate) fn runs(stock: &Stock, last: u32, threads: usize) -> Vec<Extent> {
    if stock.len() < FEW {
        return few_runs(stock);
    }
    let bits = radix::offset_bits(last);
    let chunks: Vec<&[Line]> = stock.stacks().iter().flat_map(Back::chunks).collect();
    let threads = if stock.len() < FEW_FOR_THREADS { 1 } else { threads.clamp(1, PARTS) };
    let distributed = in_threads(threads, 0..threads, |thread| {
        let chunks = chunks.iter().skip(thread).step_by(threads);
        Distributed::new(chunks.flat_map(|chunk| chunk.iter()), bits)
    });
    let shares = shares(&distributed, stock.len(), if threads == 1 { 1 } else { 4 * threads });
    let joined = in_threads(threads, shares.into_iter(), |parts| join(&distributed, parts, bits));
    let mut joined = joined.into_iter();
    let mut runs = joined.next().unwrap_or_default();
    joined.flatten().for_each(|run| append(&mut runs, run));
    runs
}

/// Stacks with the largest blocks that the runs hold.
pub(crate) fn cut(runs: &[Extent]) -> Stock {
    let mut stock = Stock::default();
    runs.iter().for_each(|&run| stock.push_cut(run));
    stock
}

/// As `runs`, for a few entries.
fn few_runs(stock: &Stock) -> Vec<Extent> {
    let lines = stock.stacks().iter().flat_map(Back::chunks).flatten();
    let mut blocks: Vec<Extent> = lines.flat_map(|line| line.entries().map(Extent::from)).collect();
    blocks.sort_unstable_by_key(|block| block.start);
    let mut runs = Vec::with_capacity(blocks.len());
    blocks.into_iter().for_each(|block| append(&mut runs, block));
    runs
}

/// Divides the parts into `shares` ranges with about the same number of blocks.
fn shares(distributed: &[Distributed], blocks: usize, shares: usize) -> Vec<Range<usize>> {
    let (mut ends, mut before) = (Vec::with_capacity(shares), 0);
    for part in 0..PARTS {
        before += distributed.iter().map(|distributed| distributed.part(part).len()).sum::<usize>();
        if before * shares > blocks * (ends.len() + 1) && ends.len() + 1 < shares {
            ends.push(part + 1);
        }
    }
    ends.push(PARTS);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends.iter().copied()).map(|(start, end)| start..end).collect()
}

/// Sorts the blocks of some parts, and joins neighbours.
fn join(distributed: &[Distributed], parts: Range<usize>, bits: u32) -> Vec<Extent> {
    let (mut scratch, mut runs) = (Scratch::default(), Vec::new());
    for part in parts {
        scratch.sort(distributed, part, bits, |blocks| append(&mut runs, blocks));
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

/// Results of `work` on each input, by this number of threads, or fewer if the system gives fewer.
fn in_threads<I: Send, T: Send>(
    threads: usize,
    inputs: impl Iterator<Item = I> + Send,
    work: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    let inputs = Mutex::new(inputs.enumerate());
    let results = Mutex::new(Vec::new());
    let run = || {
        let next = || inputs.lock().expect("no thread panics").next();
        while let Some((place, input)) = next() {
            let result = work(input);
            results.lock().expect("no thread panics").push((place, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            if thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    let mut results = results.into_inner().expect("no thread panics");
    results.sort_unstable_by_key(|&(place, _)| place);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;
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
            let last = expected.last().map_or(1, |run| run.end);
            for threads in [1, 2, 3, 8] {
                assert_eq!(runs(&stock, last, threads), expected, "seed {seed}, {threads} threads");
            }
        }
    }

    #[test]
    fn cut_runs_are_the_same_runs() {
        let (stock, expected) = shuffled(5, 1_000);
        let last = expected.last().expect("a run").end;
        let fewer = cut(&runs(&stock, last, 1));
        assert!(fewer.len() < stock.len());
        assert_eq!(runs(&fewer, last, 2), expected);
    }

    #[test]
    fn shares_are_equal() {
        let (stock, expected) = shuffled(6, 30_000);
        let bits = radix::offset_bits(expected.last().expect("a run").end);
        let lines = stock.stacks().iter().flat_map(Back::chunks).flatten();
        let distributed = [Distributed::new(lines, bits)];
        let shares = shares(&distributed, stock.len(), 4);
        assert_eq!((shares.len(), shares[0].start, shares[3].end), (4, 0, PARTS));
        for parts in shares {
            let blocks: usize = parts.map(|part| distributed[0].part(part).len()).sum();
            assert!(blocks.abs_diff(stock.len() / 4) < stock.len() / 40, "{blocks} blocks");
        }
    }
}
