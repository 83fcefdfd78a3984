// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The counts of a load, and its place in the script.

use super::script::Script;
use super::{Outcome, Plan, Span};
use crate::harness::histogram::Histogram;
use std::ops::Range;
use std::time::Instant;

/// The place in a script that all connections share.
pub struct Cursor {
    next: usize,
    end: usize,
    pipeline: usize,
    /// Whether batches are packets, which cannot be cut.
    is_packed: bool,
    /// Requests that remain to be sent.
    rest: u64,
}

impl Cursor {
    /// Begins a script.
    pub fn new(script: &Script, plan: &Plan<'_>) -> Self {
        let rest = match plan.span {
            Span::Once => script.len() as u64,
            Span::Requests(requests) => requests,
            Span::Time { .. } => u64::MAX,
        };
        let packet = script.packet();
        let (is_packed, pipeline) = (packet.is_some(), packet.unwrap_or(plan.pipeline).max(1));
        Self { next: 0, end: script.len(), pipeline, is_packed, rest }
    }

    /// The next batch; none if all requests are sent.
    pub fn next(&mut self) -> Option<Range<usize>> {
        if self.rest == 0 {
            return None;
        }
        if self.next == self.end {
            self.next = 0;
        }
        let mut length = self.pipeline.min(self.end - self.next);
        if !self.is_packed {
            length = length.min(usize::try_from(self.rest).unwrap_or(usize::MAX));
        }
        let batch = self.next..self.next + length;
        self.next = batch.end;
        self.rest = self.rest.saturating_sub(length as u64);
        (!batch.is_empty()).then_some(batch)
    }
}

/// Counts, and reads the clock.
pub struct Tally {
    begin: Instant,
    end: Option<Instant>,
    /// When replies arrived last, or nothing did.
    pub now: Instant,
    /// Requests that were sent.
    pub requests: u64,
    /// Requests without a reply.
    pub lost: u64,
    measured: u64,
    latencies: Histogram,
}

impl Tally {
    /// Begins now.
    pub fn new(span: Span) -> Self {
        let now = Instant::now();
        let (begin, end) = match span {
            Span::Once | Span::Requests(_) => (now, None),
            Span::Time { warm_up, window } => (now + warm_up, Some(now + warm_up + window)),
        };
        let latencies = Histogram::default();
        Self { begin, end, now, requests: 0, lost: 0, measured: 0, latencies }
    }

    /// Counts replies to a batch that was begun at `asked`.
    #[inline]
    pub fn count(&mut self, replies: u64, asked: Instant) {
        self.now = Instant::now();
        if replies == 0 || self.now < self.begin || self.is_over() {
            return;
        }
        self.measured += replies;
        self.latencies.add_times(self.now - asked, replies);
        // On a busy machine, nothing may have been answered in the window.
        self.end = self.end.map(|end| end.max(self.now));
    }

    /// Returns whether the measured time is over.
    pub fn is_over(&self) -> bool {
        self.measured > 0 && self.end.is_some_and(|end| self.now >= end)
    }

    /// Requests that were answered in the measured time, so far.
    pub fn measured(&self) -> u64 {
        self.measured
    }

    /// The result, also of a load that was ended before its time.
    pub fn outcome(self) -> Outcome {
        let end = self.end.map_or(self.now, |end| end.min(self.now));
        let elapsed = end.saturating_duration_since(self.begin);
        let Self { requests, lost, measured, latencies, .. } = self;
        Outcome { requests, lost, measured, elapsed, latencies }
    }
}
