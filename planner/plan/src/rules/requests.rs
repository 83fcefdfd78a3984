// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules about small requests and messages: R1, R2, R5 and R7.

use super::{Effect, Review, Rule};
use crate::cost::Cost;
use crate::figures::rate;
use crate::function::{Action, Memory};
use freeport_plan_model::bounds::{shares, step_shares};
use freeport_plan_model::route::{Request, Resource, Step};
use freeport_plan_model::{Load, Operation, Path, Profile, Side};

/// Size of requests from which on the network limits all paths alike (study, 3.1).
const SMALL_BYTES: u64 = 512;
/// Numbers of requests with one doorbell that are tried.
const BATCHES: [u32; 5] = [2, 4, 8, 16, 32];
/// Gain from which on a batch is worth its wait.
const GAIN_MIN: f64 = 1.01;
/// Most copies of hot items.
const COPIES_MAX: u64 = 1024;
/// The resource of a small range of addresses.
const BANKS: &str = "banks of the SoC's memory";

/// Returns the greatest rate of requests in millions per second, from all their requesters.
fn full_rate(profile: &Profile, request: Request) -> f64 {
    let all = shares(profile, &Load::full(profile, request));
    1.0 / all.into_iter().map(|(_, share)| share).fold(0.0, f64::max)
}

/// Returns the greatest rate of both requests together, the second filled up with the first.
fn together(profile: &Profile, first: Request, second: Request) -> f64 {
    let of =
        |request| step_shares(profile, &Step::Request(request), profile.client.machines as u32);
    let (first, second) = (of(first), of(second));
    let limit = |shares: &[(&str, f64)]| 1.0 / shares.iter().map(|it| it.1).fold(0.0, f64::max);
    let rate = limit(&first);
    let used = |name: &str| first.iter().find(|it| it.0 == name).map_or(0.0, |it| it.1 * rate);
    let more = second.iter().map(|(name, share)| (1.0 - used(name)).max(0.0) / share);
    rate + more.fold(f64::INFINITY, f64::min)
}

impl Review<'_> {
    /// R1: small reads reach more on path 2, and more still on both paths.
    pub(super) fn compare_small_reads(&mut self) {
        let is_small = |request: &Request| {
            let Request { path, operation, bytes, .. } = *request;
            path == Path::Host && operation == Operation::Read && bytes < SMALL_BYTES
        };
        let Some(request) = self.alternative.requests().find(is_small) else { return };
        let other = Request { path: Path::Soc, ..request };
        let [host, soc] = [request, other].map(|request| full_rate(self.profile, request));
        if soc <= GAIN_MIN * host {
            return;
        }
        let both =
            together(self.profile, request, other).max(together(self.profile, other, request));
        let reason = format!(
            "reads of {} B reach {} on path 2 and {} on path 1, and {} on both together: put what \
             fits into the SoC's memory",
            request.bytes,
            rate(soc),
            rate(host),
            rate(both),
        );
        self.add(Rule::R1, Effect::Advice, reason);
    }

    /// R2: a small range of addresses uses few banks of the processor's memory.
    pub(super) fn spread_addresses(&mut self) {
        let before = self.cost().limit();
        if before.name != BANKS {
            return;
        }
        let hot = |request: &Request| {
            let alone = step_shares(self.profile, &Step::Request(*request), 1);
            request.path.end() == Side::Soc && alone.iter().any(|(name, _)| *name == BANKS)
        };
        let Some(range) =
            self.alternative.requests().filter(hot).map(|request| request.range).min()
        else {
            return;
        };
        let copied = |copies: u64| {
            let changed = self.alternative.with_requests(|request| {
                let is_hot = hot(&request) && request.range == range;
                let range = if is_hot { range.saturating_mul(copies) } else { request.range };
                (Request { range, ..request }, 1.0)
            });
            let limit = Cost::of(self.profile, &changed).limit();
            (copies, changed, limit)
        };
        let mut copies = std::iter::successors(Some(2), |copies| Some(copies * 2))
            .take_while(|copies| *copies <= COPIES_MAX)
            .map(copied);
        let Some((copies, mut changed, after)) = copies.find(|(.., limit)| limit.name != BANKS)
        else {
            return;
        };
        let name = format!("copies of {range} B");
        let bytes = range.saturating_mul(copies - 1);
        changed.memory.push(Memory { side: Side::Soc, name, bytes });
        if let Some(refused) = self.take(changed) {
            let reason = format!(
                "{range} B of hot items lie in few banks, which allow {}: {copies} copies of them \
                 would allow {}, but {refused}",
                rate(before.rate),
                rate(after.rate),
            );
            return self.add(Rule::R2, Effect::Advice, reason);
        }
        let reason = format!(
            "{range} B of hot items lie in few of {} banks, which allow {}: {copies} copies of \
             them allow {}, by {}",
            self.profile.soc.channels * self.profile.soc.banks,
            rate(before.rate),
            rate(after.rate),
            after.name,
        );
        self.add(Rule::R2, Effect::Changed, reason);
    }

    /// R5: doorbells for batches, where the requester posts too slowly.
    pub(super) fn batch_doorbells(&mut self) {
        let inside = self
            .alternative
            .requests()
            .filter(|request| request.batch == 1 && request.path.requester() != Side::Client);
        let mut seen: Vec<Request> = vec![];
        for request in inside.collect::<Vec<_>>() {
            if !seen.contains(&request) {
                seen.push(request);
                self.batch(request);
            }
        }
    }

    fn batch(&mut self, request: Request) {
        let of = |batch| full_rate(self.profile, Request { batch, ..request });
        let single = of(1);
        let rates = BATCHES.map(|batch| (batch, of(batch)));
        let best = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let side = if request.path.requester() == Side::Soc { "SoC" } else { "host" };
        if best <= GAIN_MIN * single {
            if request.bytes < SMALL_BYTES && side == "host" {
                let reason = format!(
                    "the host rings a doorbell for each request of {} B: batches reach {} at most \
                     instead of {}",
                    request.bytes,
                    rate(best),
                    rate(single)
                );
                self.add(Rule::R5, Effect::Advice, reason);
            }
            return;
        }
        let is_enough = |(_, rate): &(u32, f64)| *rate >= best / GAIN_MIN;
        let (batch, reached) = rates.into_iter().find(is_enough).expect("the best is enough");
        let changed = self.alternative.with_requests(|other| match other == request {
            true => (Request { batch, ..request }, 1.0),
            false => (other, 1.0),
        });
        if self.take(changed).is_none() {
            let reason = format!(
                "the {side} posts {}s of {} B in batches of {batch}: it rings a doorbell of {} ns \
                 less often, and reaches {} instead of {}",
                request.operation,
                request.bytes,
                if side == "SoC" { self.profile.soc.doorbell } else { self.profile.host.doorbell },
                rate(reached),
                rate(single),
            );
            self.add(Rule::R5, Effect::Changed, reason);
        }
    }

    /// R7: messages to the processor have its capacity as limit.
    pub(super) fn watch_messages(&mut self) {
        let is_message = self.alternative.steps.iter().any(|step| match step.action {
            Action::Message { path, .. } => path == Path::Soc,
            Action::Request(Request { path, operation, .. }) => {
                path == Path::Soc && operation == Operation::Send
            }
            _ => false,
        });
        let cost = self.cost();
        let cores = Resource::SocCores.name();
        let share = cost.shares.iter().find(|(name, _)| *name == cores);
        let Some((_, share)) = share.filter(|_| is_message) else { return };
        let reason = format!(
            "{} cores of the SoC answer {}: send them no more, and the other calls to an \
             alternative without messages",
            self.profile.soc.cores,
            rate(1.0 / share),
        );
        self.add(Rule::R7, Effect::Advice, reason);
    }
}
