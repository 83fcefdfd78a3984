// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which points are measured: those that parameters are fitted to, and others, which lie between
//! them, for the check.

use crate::error::Error;
use crate::host::Host;
use crate::point::{BATCH_MAX, Kind, Mode, Point};
use std::collections::BTreeSet;

/// Payloads of fitted copies, in bytes.
const FITTED: [u64; 7] = [8, 128, 512, 2048, 8192, 65_536, PAYLOAD_MAX];
/// Payloads of checked copies, in bytes.
const CHECKED: [u64; 6] = [32, 256, 1024, 4096, 16_384, 262_144];
/// Payloads that are measured in batches as well, in bytes.
const BATCHED: [u64; 2] = [8, 512];
/// Largest payload, in bytes.
pub const PAYLOAD_MAX: u64 = 1 << 20;
/// Payloads of messages, in bytes: fitted ones and checked ones.
const MESSAGES: [[u64; 4]; 2] = [[8, 1024, 4096, 16_384], [64, 256, 2048, 8192]];
/// Batches of messages: fitted ones and checked ones. The longest batch is fitted as well, with
/// few bytes.
const MESSAGE_BATCHES: [[u32; 2]; 2] = [[1, 16], [1, 4]];
/// Most threads that are measured.
const THREADS_MAX: usize = 8;
/// Largest range of addresses, in bytes.
const RANGE_MAX: u64 = 1 << 30;
/// Largest range without a limit of the caller, in bytes.
const RANGE_USUAL: u64 = 512 << 20;
/// Part of the available memory that may be used.
const MEMORY_SHARE: u64 = 8;
/// Smallest value of the largest range, in bytes.
const RANGE_MIN: u64 = 4 * PAYLOAD_MAX;

/// Points of a measurement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Points {
    /// Points that parameters are fitted to.
    pub fitted: Vec<Point>,
    /// Other points, which estimates are held against.
    pub checked: Vec<Point>,
}

/// Chooses points by the caches of a machine. `largest` limits the ranges of addresses, in bytes.
///
/// # Errors
/// `largest` is too small or too large, or needs more memory than is available.
pub fn points(host: &Host, largest: Option<u64>) -> Result<Points, Error> {
    let threads = host.cores.len().min(THREADS_MAX) as u32;
    let usual = (host.memory / MEMORY_SHARE / u64::from(threads)).clamp(RANGE_MIN, RANGE_USUAL);
    let largest = largest.unwrap_or(usual);
    if !(RANGE_MIN..=RANGE_MAX).contains(&largest) {
        return Err(Error::Range { value: largest, least: RANGE_MIN, most: RANGE_MAX });
    }
    // If the system does not say how much memory is available, any range is accepted.
    if host.memory > 0 && largest.saturating_mul(threads.into()) > host.memory {
        return Err(Error::Memory { threads, range: largest, available: host.memory });
    }
    let fitted = ranges(host, largest);
    let between: Vec<u64> = fitted.windows(2).map(|pair| between(pair[0], pair[1])).collect();
    Ok(Points {
        fitted: fitted_points(&fitted, threads),
        checked: checked_points(&between, threads),
    })
}

/// Returns the ranges of fitted points: in each cache, and beyond, up to the largest.
fn ranges(host: &Host, largest: u64) -> Vec<u64> {
    let Host { near, middle, .. } = *host;
    let mut ranges = vec![near / 2, middle / 2, 4 * middle, 32 * middle, largest];
    ranges.retain(|range| *range <= largest);
    ranges.sort_unstable();
    // Neighbours differ, so that there is something between them.
    ranges.dedup_by(|next, previous| *next < 2 * *previous);
    if let Some(last) = ranges.last_mut() {
        *last = largest;
    }
    ranges.into_iter().map(|range| range & !4095).filter(|range| *range > 0).collect()
}

/// Returns the range in the middle of two, by their ratio.
fn between(low: u64, high: u64) -> u64 {
    ((low as f64 * high as f64).sqrt() as u64) & !4095
}

fn point(kind: Kind, mode: Mode, bytes: u64, batch: u32, range: u64) -> Point {
    Point { kind, mode, bytes, batch, range, threads: 1 }
}

fn fitted_points(ranges: &[u64], threads: u32) -> Vec<Point> {
    let mut points = vec![];
    for range in ranges.iter().copied() {
        let fits = |bytes: &u64| 2 * bytes <= range;
        for kind in [Kind::Read, Kind::Write] {
            let single = FITTED.into_iter().filter(fits);
            points.extend(single.map(|bytes| point(kind, Mode::Rate, bytes, 1, range)));
            let batched = BATCHED.into_iter().filter(fits);
            points.extend(batched.map(|bytes| point(kind, Mode::Rate, bytes, BATCH_MAX, range)));
        }
        let lone = BATCHED.into_iter().filter(fits);
        points.extend(lone.map(|bytes| point(Kind::Read, Mode::Latency, bytes, 1, range)));
        for batch in [1, BATCH_MAX] {
            points.push(point(Kind::FetchAdd, Mode::Rate, 8, batch, range));
        }
        let bytes = if 4 * 4096 <= range { 4096 } else { 512 };
        points.push(point(Kind::Read, Mode::Rate, bytes, 1, range));
        if threads > 1 {
            // Two payloads, so that a disturbed point is not the only one of its range.
            let read = |bytes| Point { threads, ..point(Kind::Read, Mode::Rate, bytes, 1, range) };
            points.extend([512, bytes].map(read));
        }
    }
    points.extend(messages(0));
    points.push(point(Kind::Send, Mode::Rate, 8, BATCH_MAX, 4096));
    points.push(Point { threads, ..point(Kind::Send, Mode::Rate, 8, MESSAGE_BATCHES[0][1], 4096) });
    let mut seen = BTreeSet::new();
    points.retain(|point| seen.insert(*point));
    points
}

fn checked_points(ranges: &[u64], threads: u32) -> Vec<Point> {
    let mut points = vec![];
    for range in ranges.iter().copied() {
        let fits = |bytes: &u64| 2 * bytes <= range;
        let sizes = || CHECKED.into_iter().filter(fits);
        points.extend(sizes().map(|bytes| point(Kind::Read, Mode::Latency, bytes, 1, range)));
        for kind in [Kind::Read, Kind::Write] {
            points.extend(sizes().map(|bytes| point(kind, Mode::Rate, bytes, 1, range)));
            let batched = sizes().take(BATCHED.len());
            points.extend(batched.map(|bytes| point(kind, Mode::Rate, bytes, 8, range)));
            if threads > 1 {
                points.push(Point { threads, ..point(kind, Mode::Rate, 1024, 1, range) });
            }
        }
        for (kind, batch) in [(Kind::FetchAdd, 1), (Kind::FetchAdd, 8), (Kind::CompareSwap, 1)] {
            points.push(point(kind, Mode::Rate, 8, batch, range));
        }
    }
    points.extend(messages(1));
    if threads > 1 {
        points.push(Point { threads, ..point(Kind::Send, Mode::Rate, 64, 32, 4096) });
    }
    points
}

/// Returns the points of messages of one thread: the fitted ones (0) or the checked ones (1).
fn messages(which: usize) -> impl Iterator<Item = Point> {
    MESSAGE_BATCHES[which].into_iter().flat_map(move |batch| {
        let of =
            move |bytes: u64| point(Kind::Send, Mode::Rate, bytes, batch, bytes * u64::from(batch));
        MESSAGES[which].into_iter().map(of)
    })
}
