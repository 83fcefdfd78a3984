// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The machine in which requests move from stage to stage.

use super::events::{Event, Events};
use super::outcome::latencies;
use super::resources::{Core, Credits, NicCores, Servers};
use super::threads::{Next, Thread};
use super::{Flow, LinkCount, Load, Outcome, Use};
use crate::path::{Path, Side};
use crate::profile::Profile;
use crate::route::{Cores, Pool, Resource, Route, Stage, Time};
use fastrand::Rng;

/// Part of a route.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Phase {
    #[default]
    Before,
    Each,
    After,
}

/// A request or a segment of one.
#[derive(Clone, Copy, Default, Debug)]
struct Job {
    /// The request that it belongs to.
    request: u32,
    segment: u32,
    phase: Phase,
    stage: u16,
    core: Core,
    bank: u32,
}

/// A request.
#[derive(Clone, Copy, Default, Debug)]
struct Pending {
    load: u32,
    thread: u32,
    since: Time,
    /// The job of the whole request.
    job: u32,
    segments_left: u32,
}

/// Counters of a load.
#[derive(Default, Debug)]
struct Count {
    latencies: Vec<Time>,
    completed_ever: u64,
}

pub(super) struct Machine<'a> {
    profile: &'a Profile,
    loads: &'a [Load],
    routes: Vec<Route>,
    now: Time,
    measured_since: Time,
    events: Events,
    random: Rng,
    threads: Vec<Thread>,
    servers: Vec<Servers>,
    /// Servers of client ports and banks, behind those of the resources.
    ports_at: usize,
    banks_at: [usize; 2],
    nic: NicCores,
    pools: Vec<Credits>,
    links: Vec<LinkCount>,
    jobs: Vec<Job>,
    free_jobs: Vec<u32>,
    pending: Vec<Pending>,
    free_pending: Vec<u32>,
    counts: Vec<Count>,
    ready: Vec<u32>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(
        profile: &'a Profile,
        loads: &'a [Load],
        routes: Vec<Route>,
        seed: u64,
    ) -> Self {
        let mut servers: Vec<Servers> =
            Resource::ALL.map(|resource| Servers::new(resource.servers(profile))).into();
        let mut add = |count: f64| {
            let at = servers.len();
            servers.extend((0..count as u32).map(|_| Servers::new(1)));
            at
        };
        let machines = loads.iter().map(|load| load.machines).max().unwrap_or(1);
        let ports_at = add(2.0 * f64::from(machines));
        let banks_of = [&profile.host, &profile.soc].map(|end| end.channels * end.banks);
        let banks_at = banks_of.map(add);
        let nic = match loads.iter().all(|load| load.request.path == Path::Rnic) {
            true => NicCores::new(profile.rnic.cores as u32, 0, 0),
            false => {
                let (host, soc) = (profile.nic.cores_for_host, profile.nic.cores_for_soc);
                let shared = profile.nic.cores - host - soc;
                NicCores::new(shared as u32, host as u32, soc as u32)
            }
        };
        let threads: Vec<Thread> =
            loads.iter().enumerate().flat_map(|(number, load)| Thread::all(number, load)).collect();
        let mut events = Events::default();
        for thread in 0..threads.len() as u32 {
            events.schedule(0, Event::Posts(thread));
        }
        Self {
            profile,
            loads,
            routes,
            now: 0,
            measured_since: 0,
            events,
            random: Rng::with_seed(seed),
            threads,
            servers,
            ports_at,
            banks_at,
            nic,
            pools: Pool::ALL.map(|pool| Credits::new(pool.credits(profile))).into(),
            links: vec![LinkCount::default(); Resource::ALL.len()],
            jobs: vec![],
            free_jobs: vec![],
            pending: vec![],
            free_pending: vec![],
            counts: loads.iter().map(|_| Count::default()).collect(),
            ready: vec![],
        }
    }

    pub(super) fn route(&self, number: usize) -> &Route {
        &self.routes[number]
    }

    /// Runs until each load has completed this number of requests since the last call of
    /// [`measure`](Self::measure), or until this number of events.
    pub(super) fn run(&mut self, goals: &[u64], events: u64) {
        let mut left = goals.len();
        let mut reached = vec![false; goals.len()];
        let last = self.events.scheduled() + events;
        while left > 0 && self.events.scheduled() < last {
            let Some((time, event)) = self.events.next() else { return };
            self.now = time;
            match event {
                Event::Posts(thread) => self.post(thread),
                Event::Posted(thread) => self.posted(thread),
                Event::Free(thread) => {
                    self.threads[thread as usize].is_free();
                    self.post(thread);
                }
                Event::Leaves(job) => {
                    self.leave(job);
                    self.advance_ready();
                }
            }
            for (number, goal) in goals.iter().enumerate() {
                if !reached[number] && self.counts[number].latencies.len() as u64 >= *goal {
                    reached[number] = true;
                    left -= 1;
                }
            }
        }
    }

    /// Forgets what was measured so far.
    pub(super) fn measure(&mut self) {
        self.measured_since = self.now;
        self.counts.iter_mut().for_each(|count| count.latencies.clear());
        self.servers.iter_mut().for_each(|servers| servers.busy = 0);
        self.threads.iter_mut().for_each(|thread| thread.busy = 0);
        self.nic.busy = 0;
        for pool in &mut self.pools {
            pool.account(self.now);
            pool.held = 0;
        }
    }

    fn post(&mut self, thread: u32) {
        let this = &mut self.threads[thread as usize];
        let load = &self.loads[this.load];
        match this.next(self.now, load) {
            Next::Wait => {}
            Next::Until(time) => self.events.schedule(time, Event::Posts(thread)),
            Next::Post => {
                let Route { post, doorbell, .. } = self.routes[this.load];
                this.begin_posting(load.request.batch, post + doorbell);
                self.events.schedule(self.now + post, Event::Posted(thread));
                self.events.schedule(self.now + post + doorbell, Event::Free(thread));
            }
        }
    }

    fn posted(&mut self, thread: u32) {
        let number = self.threads[thread as usize].load;
        let load = &self.loads[number];
        let since = self.now - self.routes[number].post;
        for _ in 0..load.request.batch {
            let pending = Pending { load: number as u32, thread, since, job: 0, segments_left: 0 };
            let request = insert(&mut self.pending, &mut self.free_pending, pending);
            let job = self.new_job(Job { request, ..Job::default() });
            self.pending[request as usize].job = job;
            self.ready.push(job);
        }
        self.advance_ready();
    }

    fn new_job(&mut self, job: Job) -> u32 {
        insert(&mut self.jobs, &mut self.free_jobs, job)
    }

    fn stage(&self, job: u32) -> Option<Stage> {
        let job = &self.jobs[job as usize];
        let route = &self.routes[self.pending[job.request as usize].load as usize];
        let stages = match job.phase {
            Phase::Before => &route.before,
            Phase::Each => &route.each,
            Phase::After => &route.after,
        };
        stages.get(job.stage as usize).copied()
    }

    fn advance_ready(&mut self) {
        while let Some(job) = self.ready.pop() {
            self.advance(job);
        }
    }

    /// Moves a job on until it waits, takes time, or is done.
    fn advance(&mut self, job: u32) {
        loop {
            let Some(stage) = self.stage(job) else {
                if self.next_phase(job) {
                    continue;
                }
                return;
            };
            let time = match stage {
                Stage::Delay(time) => Some(time),
                Stage::Nic(cores, time) => self.nic.enter(cores, job, time).map(|core| {
                    self.jobs[job as usize].core = core;
                    time
                }),
                Stage::Take(pool, credits) => {
                    if !self.pools[pool as usize].take(self.now, job, credits) {
                        return;
                    }
                    Some(0)
                }
                Stage::Give(pool, credits) => {
                    let from = self.ready.len();
                    self.pools[pool as usize].give(self.now, credits, &mut self.ready);
                    for woken in &self.ready[from..] {
                        self.jobs[*woken as usize].stage += 1;
                    }
                    Some(0)
                }
                Stage::Track { tracked, untracked } => {
                    let time = if self.is_tracked(job) { tracked } else { untracked };
                    let server = &mut self.servers[Resource::Tracking as usize];
                    server.enter(job, time).then_some(time)
                }
                Stage::Serve(_, time)
                | Stage::Bank(_, time)
                | Stage::ClientPort { time, .. }
                | Stage::Transfer { time, .. } => match self.server(job, stage) {
                    None => Some(0),
                    Some(server) => self.servers[server].enter(job, time).then_some(time),
                },
            };
            match time {
                None => return,
                Some(0) if !self.holds(job, stage) => self.jobs[job as usize].stage += 1,
                Some(time) => return self.events.schedule(self.now + time, Event::Leaves(job)),
            }
        }
    }

    /// Returns whether a job in a stage occupies something, even for no time.
    fn holds(&self, job: u32, stage: Stage) -> bool {
        match stage {
            Stage::Nic(..) | Stage::Serve(..) | Stage::Transfer { .. } => true,
            Stage::Track { .. } | Stage::ClientPort { .. } => true,
            Stage::Bank(..) => self.jobs[job as usize].bank != NO_BANK,
            Stage::Delay(_) | Stage::Take(..) | Stage::Give(..) => false,
        }
    }

    fn is_tracked(&self, job: u32) -> bool {
        let job = &self.jobs[job as usize];
        let route = &self.routes[self.pending[job.request as usize].load as usize];
        job.segment < route.tracked
    }

    /// Returns the server of a stage, and counts and chooses what belongs to it.
    fn server(&mut self, job: u32, stage: Stage) -> Option<usize> {
        let pending = &self.pending[self.jobs[job as usize].request as usize];
        match stage {
            Stage::Transfer { link, bytes, packets, .. } => {
                let count = &mut self.links[link as usize];
                count.bytes += bytes;
                count.packets += packets;
                Some(link as usize)
            }
            Stage::Bank(side, _) => {
                let load = &self.loads[pending.load as usize];
                let of_target = side == load.request.path.target();
                let banks = match of_target {
                    true => self.routes[pending.load as usize].banks,
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
    fn occupied(&self, job: u32, stage: Stage) -> Option<usize> {
        let this = &self.jobs[job as usize];
        match stage {
            Stage::Serve(resource, _) | Stage::Transfer { link: resource, .. } => {
                Some(resource as usize)
            }
            Stage::Track { .. } => Some(Resource::Tracking as usize),
            Stage::ClientPort { inbound, .. } => {
                let thread = self.pending[this.request as usize].thread;
                let machine = self.threads[thread as usize].machine as usize;
                Some(self.ports_at + 2 * machine + usize::from(inbound))
            }
            Stage::Bank(_, _) if this.bank == NO_BANK => None,
            Stage::Bank(side, _) => {
                Some(self.banks_at[usize::from(side == Side::Soc)] + this.bank as usize)
            }
            Stage::Delay(_) | Stage::Nic(..) | Stage::Take(..) | Stage::Give(..) => None,
        }
    }

    /// Ends the stage of a job, starts who waited for its resource, and moves the job on.
    fn leave(&mut self, job: u32) {
        let Some(stage) = self.stage(job) else { return };
        let next = match stage {
            Stage::Nic(cores, _) => self.leave_core(job, cores),
            _ => self.occupied(job, stage).and_then(|server| self.servers[server].leave()),
        };
        if let Some((next, time)) = next {
            self.events.schedule(self.now + time, Event::Leaves(next));
        }
        self.jobs[job as usize].stage += 1;
        self.advance(job);
    }

    fn leave_core(&mut self, job: u32, cores: Cores) -> Option<(u32, Time)> {
        let core = self.jobs[job as usize].core;
        let next = self.nic.leave(cores, core);
        if let Some((next, _)) = next {
            self.jobs[next as usize].core = core;
        }
        next
    }

    /// Moves a job to the next part of its route. Returns whether it has stages there now.
    fn next_phase(&mut self, job: u32) -> bool {
        let Job { request, phase, .. } = self.jobs[job as usize];
        let pending = &mut self.pending[request as usize];
        let segments = self.routes[pending.load as usize].segments;
        let this = &mut self.jobs[job as usize];
        match phase {
            Phase::Before if segments == 1 => (this.phase, this.stage) = (Phase::Each, 0),
            Phase::Each if segments == 1 => (this.phase, this.stage) = (Phase::After, 0),
            Phase::Before => {
                pending.segments_left = segments;
                let each = Job { request, phase: Phase::Each, ..Job::default() };
                // The last one that is made ready moves first.
                for segment in (0..segments).rev() {
                    let part = self.new_job(Job { segment, ..each });
                    self.ready.push(part);
                }
                return false;
            }
            Phase::Each => {
                pending.segments_left -= 1;
                let (whole, is_last) = (pending.job, pending.segments_left == 0);
                self.free_jobs.push(job);
                if is_last {
                    let whole_job = &mut self.jobs[whole as usize];
                    (whole_job.phase, whole_job.stage) = (Phase::After, 0);
                    self.ready.push(whole);
                }
                return false;
            }
            Phase::After => {
                self.complete(job, request);
                return false;
            }
        }
        true
    }

    fn complete(&mut self, job: u32, request: u32) {
        let Pending { load, thread, since, .. } = self.pending[request as usize];
        self.free_jobs.push(job);
        self.free_pending.push(request);
        let count = &mut self.counts[load as usize];
        count.latencies.push(self.now - since);
        count.completed_ever += 1;
        self.threads[thread as usize].completed();
        self.post(thread);
    }

    pub(super) fn outcome(mut self) -> Outcome {
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

/// Names of the ports of clients' machines, in each direction.
pub(crate) const PORTS_OUT: &str = "ports of clients, sending";
pub(crate) const PORTS_IN: &str = "ports of clients, receiving";

/// Mark of a job whose memory access ends in a cache.
const NO_BANK: u32 = u32::MAX;

/// Puts an item into a free place, or behind all others.
fn insert<T>(items: &mut Vec<T>, free: &mut Vec<u32>, item: T) -> u32 {
    match free.pop() {
        Some(place) => {
            items[place as usize] = item;
            place
        }
        None => {
            items.push(item);
            (items.len() - 1) as u32
        }
    }
}
