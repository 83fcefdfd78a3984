// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The machine in which requests move from stage to stage.

mod driven;
mod places;
mod results;

pub(crate) use results::{PORTS_IN, PORTS_OUT};

use super::events::{Event, Events};
use super::resources::{Core, Credits, NicCores, Servers};
use super::threads::{Next, Thread};
use super::{LinkCount, Load};
use crate::path::Path;
use crate::profile::Profile;
use crate::route::{Cores, Pool, Resource, Route, Stage, Time};
use fastrand::Rng;
use std::collections::VecDeque;

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
    /// The load, which is the number of the route.
    load: u32,
    by: Poster,
    /// The machine of the client that posted it.
    machine: u32,
    since: Time,
    /// The job of the whole request.
    job: u32,
    segments_left: u32,
}

/// The poster of a request.
#[derive(Clone, Copy, Debug)]
enum Poster {
    /// A thread of a load, which posts the next one when it is done.
    Thread(u32),
    /// A driver, which learns the number when it is done.
    Driver(u64),
}

impl Default for Poster {
    fn default() -> Self {
        Self::Thread(0)
    }
}

/// Counters of a load.
#[derive(Default, Debug)]
struct Count {
    latencies: Vec<Time>,
    completed_ever: u64,
}

pub(super) struct Machine {
    profile: Profile,
    loads: Vec<Load>,
    routes: Vec<Route>,
    is_plain: bool,
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
    /// Numbers of a driver's requests and times that are over, in order.
    pub(super) over: VecDeque<u64>,
}

impl Machine {
    /// Creates a machine with threads that post loads.
    pub(super) fn with_loads(
        profile: &Profile,
        loads: &[Load],
        routes: Vec<Route>,
        seed: u64,
    ) -> Self {
        let clients = loads.iter().map(|load| load.machines).max().unwrap_or(1);
        let is_plain = loads.iter().all(|load| load.request.path == Path::Rnic);
        let mut machine = Self::new(profile, clients, is_plain, seed);
        machine.routes = routes;
        machine.loads = loads.to_vec();
        machine.threads =
            loads.iter().enumerate().flat_map(|(number, load)| Thread::all(number, load)).collect();
        for thread in 0..machine.threads.len() as u32 {
            machine.events.schedule(0, Event::Posts(thread));
        }
        machine.counts = loads.iter().map(|_| Count::default()).collect();
        machine
    }

    /// Creates an idle machine with this number of machines of clients.
    pub(super) fn new(profile: &Profile, clients: u32, is_plain: bool, seed: u64) -> Self {
        let mut servers: Vec<Servers> =
            Resource::ALL.map(|resource| Servers::new(resource.servers(profile))).into();
        let mut add = |count: f64| {
            let at = servers.len();
            servers.extend((0..count as u32).map(|_| Servers::new(1)));
            at
        };
        let ports_at = add(2.0 * f64::from(clients));
        let banks_of = [&profile.host, &profile.soc].map(|end| end.channels * end.banks);
        let banks_at = banks_of.map(add);
        let nic = match is_plain {
            true => NicCores::new(profile.rnic.cores as u32, 0, 0),
            false => {
                let (host, soc) = (profile.nic.cores_for_host, profile.nic.cores_for_soc);
                let shared = profile.nic.cores - host - soc;
                NicCores::new(shared as u32, host as u32, soc as u32)
            }
        };
        Self {
            pools: Pool::ALL.map(|pool| Credits::new(pool.credits(profile))).into(),
            profile: profile.clone(),
            loads: vec![],
            routes: vec![],
            is_plain,
            now: 0,
            measured_since: 0,
            events: Events::default(),
            random: Rng::with_seed(seed),
            threads: vec![],
            servers,
            ports_at,
            banks_at,
            nic,
            links: vec![LinkCount::default(); Resource::ALL.len()],
            jobs: vec![],
            free_jobs: vec![],
            pending: vec![],
            free_pending: vec![],
            counts: vec![],
            ready: vec![],
            over: VecDeque::new(),
        }
    }

    pub(super) fn route(&self, number: usize) -> &Route {
        &self.routes[number]
    }

    /// Runs until each load has completed this number of requests since the last call of
    /// [`measure`](Self::measure), or until this number of events. Returns whether all loads have.
    pub(super) fn run(&mut self, goals: &[u64], events: u64) -> bool {
        let mut left = goals.len();
        let mut reached = vec![false; goals.len()];
        let last = self.events.scheduled() + events;
        loop {
            // All that happens at the time of the last completion belongs to it.
            let is_over = left == 0 || self.events.scheduled() >= last;
            let Some(time) = self.events.time_of_next() else { return left == 0 };
            if is_over && time > self.now {
                return left == 0;
            }
            self.step();
            for (number, goal) in goals.iter().enumerate() {
                if !reached[number] && self.counts[number].latencies.len() as u64 >= *goal {
                    reached[number] = true;
                    left -= 1;
                }
            }
        }
    }

    /// Lets the next event happen. Returns whether there was one.
    pub(super) fn step(&mut self) -> bool {
        let Some((time, event)) = self.events.next() else { return false };
        self.now = time;
        match event {
            Event::Posts(thread) => self.post(thread),
            Event::Posted(thread) => self.posted(thread),
            Event::Free(thread) => self.free(thread),
            Event::Due(number) => self.over.push_back(number),
            Event::Leaves(job) => {
                self.leave(job);
                self.advance_ready();
            }
        }
        true
    }

    /// Forgets what was measured so far.
    pub(super) fn measure(&mut self) {
        self.measured_since = self.now;
        self.counts.iter_mut().for_each(|count| count.latencies.clear());
        self.links.fill(LinkCount::default());
        let now = self.now;
        self.servers.iter_mut().for_each(|servers| servers.in_use.reset(now));
        self.threads.iter_mut().for_each(|thread| thread.posting.reset(now));
        self.pools.iter_mut().for_each(|pool| pool.in_use.reset(now));
        self.nic.in_use.reset(now);
    }

    fn post(&mut self, thread: u32) {
        let this = &mut self.threads[thread as usize];
        let load = &self.loads[this.load];
        match this.next(self.now, load) {
            Next::Wait => {}
            Next::Until(time) => self.events.schedule(time, Event::Posts(thread)),
            Next::Post => {
                let Route { post, doorbell, poster, .. } = self.routes[this.load];
                this.begin_posting(self.now, load.request.batch);
                let time = post + doorbell;
                let has_core = poster.is_none_or(|cores| {
                    self.servers[cores as usize].enter(self.now, POSTER | thread, time)
                });
                if has_core {
                    self.begin_posting(thread);
                }
            }
        }
    }

    fn begin_posting(&mut self, thread: u32) {
        let this = &mut self.threads[thread as usize];
        this.has_core(self.now);
        let Route { post, doorbell, .. } = self.routes[this.load];
        self.events.schedule(self.now + post, Event::Posted(thread));
        self.events.schedule(self.now + post + doorbell, Event::Free(thread));
    }

    fn free(&mut self, thread: u32) {
        let this = &mut self.threads[thread as usize];
        this.is_free(self.now);
        if let Some(cores) = self.routes[this.load].poster {
            let next = self.servers[cores as usize].leave(self.now);
            self.start(next);
        }
        self.post(thread);
    }

    /// Starts what a resource has chosen next: a job, or a thread that posts.
    fn start(&mut self, next: Option<(u32, Time)>) {
        match next {
            None => {}
            Some((thread, _)) if thread & POSTER != 0 => self.begin_posting(thread & !POSTER),
            Some((job, time)) => self.events.schedule(self.now + time, Event::Leaves(job)),
        }
    }

    fn posted(&mut self, thread: u32) {
        let number = self.threads[thread as usize].load;
        let load = &self.loads[number];
        let since = self.threads[thread as usize].due;
        for _ in 0..load.request.batch {
            let machine = self.threads[thread as usize].machine;
            let by = Poster::Thread(thread);
            let load = number as u32;
            self.add_request(Pending { load, by, machine, since, ..Pending::default() });
        }
        self.advance_ready();
    }

    fn add_request(&mut self, pending: Pending) {
        let request = insert(&mut self.pending, &mut self.free_pending, pending);
        let job = self.new_job(Job { request, ..Job::default() });
        self.pending[request as usize].job = job;
        self.ready.push(job);
    }

    fn new_job(&mut self, job: Job) -> u32 {
        insert(&mut self.jobs, &mut self.free_jobs, job)
    }

    fn stage(&self, job: u32) -> Option<Stage> {
        let job = &self.jobs[job as usize];
        let route = &self.routes[self.pending[job.request as usize].load as usize];
        let stages = match job.phase {
            Phase::Before => &route.before,
            Phase::Each if job.segment + 1 == route.segments => &route.last,
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
                Stage::Nic(cores, time) => self.nic.enter(self.now, cores, job, time).map(|core| {
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
                    server.enter(self.now, job, time).then_some(time)
                }
                Stage::Serve(_, time)
                | Stage::Bank(_, time)
                | Stage::ClientPort { time, .. }
                | Stage::Transfer { time, .. } => match self.server(job, stage) {
                    None => Some(0),
                    Some(server) => self.servers[server].enter(self.now, job, time).then_some(time),
                },
            };
            match time {
                None => return,
                Some(0) if !self.holds(job, stage) => self.jobs[job as usize].stage += 1,
                Some(time) => return self.events.schedule(self.now + time, Event::Leaves(job)),
            }
        }
    }

    /// Ends the stage of a job, starts the next one that waits for its resource, and moves the job
    /// on.
    fn leave(&mut self, job: u32) {
        let Some(stage) = self.stage(job) else { return };
        let next = match stage {
            Stage::Nic(cores, _) => self.leave_core(job, cores),
            _ => self.occupied(job, stage).and_then(|server| self.servers[server].leave(self.now)),
        };
        self.start(next);
        self.jobs[job as usize].stage += 1;
        self.advance(job);
    }

    fn leave_core(&mut self, job: u32, cores: Cores) -> Option<(u32, Time)> {
        let core = self.jobs[job as usize].core;
        let next = self.nic.leave(self.now, cores, core);
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
        let Pending { load, by, since, .. } = self.pending[request as usize];
        self.free_jobs.push(job);
        self.free_pending.push(request);
        let thread = match by {
            Poster::Thread(thread) => thread,
            Poster::Driver(number) => return self.over.push_back(number),
        };
        let count = &mut self.counts[load as usize];
        count.latencies.push(self.now - since);
        count.completed_ever += 1;
        self.threads[thread as usize].completed();
        self.post(thread);
    }
}

/// Mark of a thread that waits for a core to post, among jobs.
const POSTER: u32 = 1 << 31;

/// Puts an item into a free place, or appends it.
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
