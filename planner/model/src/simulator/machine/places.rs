// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places that jobs occupy in their stages: servers of resources, ports of clients, banks.

use super::Machine;
use crate::path::Side;
use crate::route::{Resource, Stage};

/// Mark of a job whose memory access ends in a cache.
const NO_BANK: u32 = u32::MAX;

impl Machine {
    /// Returns whether a job in a stage occupies something, even for no time.
    pub(super) fn holds(&self, job: u32, stage: Stage) -> bool {
        match stage {
            Stage::Nic(..) | Stage::Serve(..) | Stage::Transfer { .. } => true,
            Stage::Track { .. } | Stage::ClientPort { .. } => true,
            Stage::Bank(..) => self.jobs[job as usize].bank != NO_BANK,
            Stage::Delay(_) | Stage::Take(..) | Stage::Give(..) => false,
        }
    }

    pub(super) fn is_tracked(&self, job: u32) -> bool {
        let job = &self.jobs[job as usize];
        let route = &self.routes[self.pending[job.request as usize].load as usize];
        job.segment < route.tracked
    }

    /// Returns the server of a stage, and counts and chooses what belongs to it.
    pub(super) fn server(&mut self, job: u32, stage: Stage) -> Option<usize> {
        let pending = &self.pending[self.jobs[job as usize].request as usize];
        match stage {
            Stage::Transfer { link, bytes, packets, .. } => {
                let count = &mut self.links[link as usize];
                count.bytes += bytes;
                count.packets += packets;
                Some(link as usize)
            }
            Stage::Bank(side, _) => {
                let route = &self.routes[pending.load as usize];
                let banks = match route.banked == Some(side) {
                    true => route.banks,
                    // The requester's own buffers are spread.
                    false if side == Side::Soc => {
                        (self.profile.soc.channels * self.profile.soc.banks) as u32
                    }
                    false => 0,
                };
                let bank = if banks == 0 { NO_BANK } else { self.random.u32(..banks) };
                self.jobs[job as usize].bank = bank;
                self.occupied(job, stage)
            }
            _ => self.occupied(job, stage),
        }
    }

    /// Returns the server that a job in a stage occupies.
    pub(super) fn occupied(&self, job: u32, stage: Stage) -> Option<usize> {
        let this = &self.jobs[job as usize];
        match stage {
            Stage::Serve(resource, _) | Stage::Transfer { link: resource, .. } => {
                Some(resource as usize)
            }
            Stage::Track { .. } => Some(Resource::Tracking as usize),
            Stage::ClientPort { inbound, .. } => {
                let machine = self.pending[this.request as usize].machine as usize;
                Some(self.ports_at + 2 * machine + usize::from(inbound))
            }
            Stage::Bank(_, _) if this.bank == NO_BANK => None,
            Stage::Bank(side, _) => {
                Some(self.banks_at[usize::from(side == Side::Soc)] + this.bank as usize)
            }
            Stage::Delay(_) | Stage::Nic(..) | Stage::Take(..) | Stage::Give(..) => None,
        }
    }
}
