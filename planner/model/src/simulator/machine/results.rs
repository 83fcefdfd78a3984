// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results of a simulation that has ended.

use super::{Count, Machine};
use crate::route::{Pool, Resource};
use crate::simulator::outcome::latencies;
use crate::simulator::resources::Servers;
use crate::simulator::{Flow, Load, Outcome, Use};

/// Names of the ports of clients' machines, in each direction.
pub(crate) const PORTS_OUT: &str = "ports of clients, sending";
pub(crate) const PORTS_IN: &str = "ports of clients, receiving";

impl Machine<'_> {
    pub(in crate::simulator) fn outcome(mut self) -> Outcome {
        let time = (self.now - self.measured_since) as f64;
        let since_start = self.now as f64;
        let flow = |count: &mut Count, load: &Load| {
            let completed = count.latencies.len() as u64;
            let (mean, median, p99) = latencies(&mut count.latencies);
            // Requests per picosecond, as millions per second.
            let rate = completed as f64 / time * 1e6;
            let rate_from_start = count.completed_ever as f64 / since_start * 1e6;
            let goodput = rate * load.request.bytes as f64 * 8.0 / 1000.0;
            Flow { completed, rate, goodput, mean, median, p99, rate_from_start }
        };
        let counts = std::mem::take(&mut self.counts);
        let flows =
            counts.into_iter().zip(self.loads).map(|(mut c, load)| flow(&mut c, load)).collect();
        let uses = self.uses(time);
        let links = Resource::ALL
            .into_iter()
            .zip(&self.links)
            .filter(|(_, count)| count.bytes > 0)
            .map(|(link, count)| (link.name(), *count))
            .collect();
        Outcome {
            flows,
            uses,
            links,
            time: time / 1000.0,
            from_start: since_start / 1000.0,
            events: self.events.scheduled(),
        }
    }

    fn uses(&mut self, time: f64) -> Vec<Use> {
        let now = self.now;
        let share_of = |busy: u128, count: u32| (busy as f64 / f64::from(count) / time).min(1.0);
        let mut uses: Vec<Use> = Resource::ALL
            .into_iter()
            .map(|resource| {
                let servers = &self.servers[resource as usize];
                Use { name: resource.name(), share: share_of(servers.busy, servers.count) }
            })
            .collect();
        uses.push(Use { name: "NIC cores", share: share_of(self.nic.busy, self.nic.count) });
        for (pool, kind) in self.pools.iter_mut().zip(Pool::ALL) {
            pool.account(now);
            uses.push(Use { name: kind.name(), share: share_of(pool.held, pool.count) });
        }
        // Of many equal ones, the busiest counts.
        let busiest = |servers: &[Servers]| {
            servers.iter().map(|servers| share_of(servers.busy, 1)).fold(0.0, f64::max)
        };
        let [host, soc] = self.banks_at;
        let ports = &self.servers[self.ports_at..host];
        let of = |inbound: usize| {
            let some = ports.iter().skip(inbound).step_by(2);
            some.map(|servers| share_of(servers.busy, 1)).fold(0.0, f64::max)
        };
        uses.push(Use { name: PORTS_OUT, share: of(0) });
        uses.push(Use { name: PORTS_IN, share: of(1) });
        uses.push(Use {
            name: "banks of the host's memory",
            share: busiest(&self.servers[host..soc]),
        });
        uses.push(Use { name: "banks of the SoC's memory", share: busiest(&self.servers[soc..]) });
        let posting =
            self.threads.iter().map(|thread| share_of(thread.busy, 1)).fold(0.0, f64::max);
        uses.push(Use { name: "posting by the requester", share: posting });
        uses.sort_by(|a, b| b.share.total_cmp(&a.share));
        uses
    }
}
