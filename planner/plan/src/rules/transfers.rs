// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules about large transfers and about path 3: R3, R4, R6 and R8.

use super::{Effect, Review, Rule};
use crate::cost::Cost;
use crate::figures::{gbps, rate};
use crate::function::Action;
use freeport_plan_model::bounds::{path3_budget, ratio_for_path3, replicate_over_path3};
use freeport_plan_model::route::Request;
use freeport_plan_model::{Operation, Path, Side};

/// Largest transfer on path 3 in bytes (study, 3.4).
pub const CHUNK_BYTES: u64 = 256 << 10;

/// Returns the parts of a request of at most this size, and their number.
fn split(request: Request, most: u64) -> (Request, f64) {
    let parts = request.bytes.div_ceil(most.max(1)).max(1);
    (Request { bytes: request.bytes.div_ceil(parts), ..request }, parts as f64)
}

fn is_path3(path: Path) -> bool {
    matches!(path, Path::SocToHost | Path::HostToSoc)
}

/// Returns the DMA path between the same ends.
fn by_dma(path: Path) -> Option<Path> {
    match path {
        Path::SocToHost => Some(Path::DmaToHost),
        Path::HostToSoc => Some(Path::DmaToSoc),
        _ => None,
    }
}

impl Review<'_> {
    /// R3: the NIC keeps track of a part of a long read from the processor's memory only.
    pub(super) fn split_long_reads(&mut self) {
        let tracked = (self.profile.nic.tracked * 1e6) as u64;
        let is_long = |request: &Request| {
            let is_from_soc = !request.path.is_dma() && request.path.target() == Side::Soc;
            request.operation == Operation::Read && is_from_soc && request.bytes >= tracked
        };
        let Some(longest) =
            self.alternative.requests().filter(is_long).map(|request| request.bytes).max()
        else {
            return;
        };
        let most = tracked.saturating_sub(1).max(1);
        let changed = self.alternative.with_requests(|request| match is_long(&request) {
            true => split(request, most),
            false => (request, 1.0),
        });
        let old = self.cost().limit();
        if self.take(changed).is_none() {
            let new = self.cost().limit();
            let reason = format!(
                "reads of {longest} B from the SoC are split, because the NIC tracks {} MB and \
                 passes on the rest at {} Gbit/s: the limit is {} instead of {}",
                self.profile.nic.tracked,
                self.profile.nic.untracked,
                rate(new.rate),
                rate(old.rate),
            );
            self.add(Rule::R3, Effect::Changed, reason);
        }
    }

    /// R4 and R5: DMA replaces path 3 unless path 3 in chunks and batches is better.
    pub(super) fn choose_path3(&mut self) {
        let replaced = |request: Request| {
            by_dma(request.path)
                .filter(|path| path.has(request.operation))
                .map(|path| Request { path, ..request })
        };
        let has_dma = self.alternative.requests().any(|request| replaced(request).is_some());
        let declared = self.clone();
        self.split_path3();
        self.batch_doorbells();
        if !has_dma {
            return;
        }
        let mut other = declared;
        other.alternative =
            other.alternative.with_requests(|request| (replaced(request).unwrap_or(request), 1.0));
        other.best = other.cost().limit().rate;
        other.batch_doorbells();
        let (before, after) = (self.cost(), other.cost());
        if let Some(refused) = self.take(other.alternative) {
            let reason = format!("path 3 stays, because with DMA {refused}");
            return self.add(Rule::R4, Effect::Advice, reason);
        }
        self.findings = other.findings;
        self.add_dma(&before, &after);
    }

    fn add_dma(&mut self, before: &Cost, after: &Cost) {
        let [was, is] = [before, after]
            .map(|cost| format!("{} by {}", rate(cost.limit().rate), cost.limit().name));
        let limit = match was == is {
            true => format!("the limit stays {is}"),
            false => format!("the limit is {is} instead of {was}"),
        };
        let reason = format!(
            "DMA copies past the NIC cores and PCIe1: {limit}, with {:.0} instead of {:.0} packets \
             on PCIe a call",
            after.packets, before.packets,
        );
        self.add(Rule::R4, Effect::Changed, reason);
    }

    /// R4: path 3 gets small chunks.
    fn split_path3(&mut self) {
        let is_long = |request: &Request| is_path3(request.path) && request.bytes > CHUNK_BYTES;
        let longest = self.alternative.requests().filter(is_long).map(|request| request.bytes);
        let Some(longest) = longest.max() else { return };
        let changed = self.alternative.with_requests(|request| match is_long(&request) {
            true => split(request, CHUNK_BYTES),
            false => (request, 1.0),
        });
        let packets = self.profile.pcie.mtu_soc;
        let (effect, verb) = match self.take(changed) {
            None => (Effect::Changed, "are split".to_owned()),
            Some(refused) => (Effect::Advice, format!("are not split ({refused})")),
        };
        let reason = format!(
            "transfers of {longest} B on path 3 {verb} into chunks of {CHUNK_BYTES} B: they cross \
             PCIe1 twice, in packets of {packets} B at the SoC"
        );
        self.add(Rule::R4, effect, reason);
    }

    /// R6: path 3 leaves clients their bandwidth up to a budget.
    pub(super) fn watch_path3(&mut self) {
        let cost = self.cost();
        let (load, budget) =
            (gbps(cost.limit().rate, cost.path3_bytes), path3_budget(self.profile));
        if load > budget {
            let reason = format!(
                "at its limit it moves {load:.1} Gbit/s over path 3, more than P - N = {} - {} = \
                 {budget} Gbit/s: it slows down clients of a busy network",
                self.profile.pcie1.rate, self.profile.network.rate,
            );
            self.add(Rule::R6, Effect::Warning, reason);
        }
    }

    /// R8: compressed data cross PCIe1 a second time.
    pub(super) fn watch_compression(&mut self) {
        let alternative = &self.alternative;
        let is_read = |request: Request| {
            request.path == Path::SocToHost && request.operation == Operation::Read
        };
        let is_sent = alternative.steps.iter().any(|step| {
            let path = step.action.path().filter(|path| path.requester() == Side::Soc);
            step.is_compressed && path.is_some_and(|path| path.target() == Side::Peer)
        });
        let is_compressing = alternative
            .steps
            .iter()
            .any(|step| step.is_compressed && matches!(step.action, Action::Work { .. }));
        if !(alternative.requests().any(is_read) && is_sent && is_compressing) {
            return;
        }
        let (limit, ratio, network) =
            (ratio_for_path3(self.profile), self.ratio, self.profile.network.rate);
        let bound = replicate_over_path3(self.profile, ratio);
        let link = if bound < network / ratio { "PCIe1" } else { "the network" };
        let (effect, comparison) = match ratio < limit {
            true => (Effect::Advice, "below"),
            false => (Effect::Warning, "not below"),
        };
        let cost = self.cost();
        let all = cost.limit();
        let reached = gbps(all.rate, cost.path3_bytes);
        let next = match ratio < limit {
            true if reached > network => {
                "path 3 with compression is better than sending as it is".to_owned()
            }
            true => format!("but {} allows only {reached:.1} Gbit/s", all.name),
            false => "use DMA, or no compression".to_owned(),
        };
        let reason = format!(
            "r = {ratio} is {comparison} P/N - 1 = {limit:.2}: {link} allows {bound:.1} Gbit/s of \
             data beside {network} Gbit/s without compression; {next}"
        );
        self.add(Rule::R8, effect, reason);
    }
}
