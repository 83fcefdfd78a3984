// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results of a simulation that has ended.

use super::{Count, Machine};
use crate::route::{Cores, Pool, Resource};
use crate::simulator::outcome::latencies;
use crate::simulator::resources::{InUse, Servers};
use crate::simulator::{Flow, Load, Outcome, Use};

/// Names of the ports of clients' machines, in each direction.
pub(crate) const PORTS_OUT: &str = "ports of clients, sending";
pub(crate) const PORTS_IN: &str = "ports of clients, receiving";

impl Machine {
    pub(in crate::simulator) fn outcome(mut self, is_steady: bool) -> Outcome {
        let time = (self.now - self.measured_since) as f64;
        let since_start = self.now as f64;
        let flow = |count: &mut Count, load: &Load| {
            let completed = count.latencies.len() as u64;
            let (mean, median, p99) = latencies(&mut count.latencies);
            // Requests per picosecond, as millions per second.
            let rate = if time > 0.0 { completed as f64 / time * 1e6 } else { 0.0 };
            let rate_from_start = count.completed_ever as f64 / since_start * 1e6;
            let goodput = rate * load.request.bytes as f64 * 8.0 / 1000.0;
            let offered = load.offered;
            Flow { completed, rate, goodput, mean, median, p99, offered, rate_from_start }
        };
        let counts = std::mem::take(&mut self.counts);
        let flows =
            counts.into_iter().zip(&self.loads).map(|(mut c, load)| flow(&mut c, load)).collect();
        Outcome { flows, is_steady, ..self.use_so_far() }
    }

    /// Returns the use of resources and links in the measured time so far, without flows.
    pub(in crate::simulator) fn use_so_far(&self) -> Outcome {
        let time = (self.now - self.measured_since) as f64;
        let links = Resource::ALL
            .into_iter()
            .zip(&self.links)
            .filter(|(_, count)| count.bytes > 0)
            .map(|(link, count)| (link.name(), *count))
            .collect();
        Outcome {
            flows: vec![],
            uses: self.uses(time),
            links,
            time: time / 1000.0,
            is_steady: true,
            events: self.events.scheduled(),
        }
    }

    fn uses(&self, time: f64) -> Vec<Use> {
        let share = |in_use: &InUse, count: u32| in_use.until(self.now) / f64::from(count) / time;
        let of = |servers: &Servers| share(&servers.in_use, servers.count);
        let busiest =
            |servers: &mut dyn Iterator<Item = &Servers>| servers.map(of).fold(0.0, f64::max);
        let mut uses: Vec<Use> = Resource::ALL
            .into_iter()
            .map(|resource| Use {
                name: resource.name(),
                share: of(&self.servers[resource as usize]),
            })
            .collect();
        let pools = self.pools.iter().zip(Pool::ALL);
        uses.extend(
            pools.map(|(pool, kind)| Use {
                name: kind.name(),
                share: share(&pool.in_use, pool.count),
            }),
        );
        // The busiest of many equal ones counts.
        let [host, soc] = self.banks_at;
        let ports = &self.servers[self.ports_at..host];
        let posting =
            self.threads.iter().map(|thread| share(&thread.posting, 1)).fold(0.0, f64::max);
        let mut add = |name, share| uses.push(Use { name, share });
        add("NIC cores", share(&self.nic.in_use, self.usable_cores()));
        add(PORTS_OUT, busiest(&mut ports.iter().step_by(2)));
        add(PORTS_IN, busiest(&mut ports.iter().skip(1).step_by(2)));
        add("banks of the host's memory", busiest(&mut self.servers[host..soc].iter()));
        add("banks of the SoC's memory", busiest(&mut self.servers[soc..].iter()));
        add("posting by the requester", posting);
        uses.sort_by(|a, b| b.share.total_cmp(&a.share));
        uses
    }

    /// Returns the number of NIC cores that at least one load may use.
    fn usable_cores(&self) -> u32 {
        let is_used = |cores| self.routes.iter().any(|route| route.nic_cores() == Some(cores));
        let nic = &self.profile.nic;
        let idle = [(Cores::Host, nic.cores_for_host), (Cores::Soc, nic.cores_for_soc)]
            .into_iter()
            .filter(|(end, _)| !is_used(*end))
            .map(|(_, cores)| cores as u32)
            .sum::<u32>();
        if self.is_plain { self.nic.count } else { self.nic.count - idle }
    }
}
