// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A run of the store on the simulated machine.

use super::Sizes;
use crate::alternative::Alternative;
use crate::client::Client;
use crate::item::item_bytes;
use crate::layout::Options;
use crate::server::Server;
use crate::workload::Workload;
use freeport_plan_model::Profile;
use freeport_plan_model::route::Resource;
use freeport_study_verbs::simulated::{Simulated, World};
use freeport_study_verbs::{Place, Verbs};
use std::cell::Cell;
use std::rc::Rc;

/// Gets before a rate is measured, and those that are measured.
const WARM: u64 = 6_000;
const MEASURED: u64 = 12_000;
/// Gets of which a latency is the mean.
const SINGLE: u64 = 400;
/// Seed of all runs.
const SEED: u64 = 1;

/// How the store is run.
#[derive(Clone)]
pub struct Run<'a> {
    profile: &'a Profile,
    sizes: &'a Sizes,
    workload: Workload,
    options: Options,
    is_plain: bool,
    clients: usize,
}

/// Results of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Usage {
    /// Rate in millions of gets per second.
    pub rate: f64,
    /// The resource that was used most, and its share.
    pub busiest: (&'static str, f64),
    /// Share of gets that A5 answered with an address.
    pub misses: f64,
    /// Use of the host's cores, as a share.
    pub host_cores: f64,
}

/// A store with its clients, of which each does nothing yet.
struct Machines {
    world: World,
    clients: Vec<(Simulated, Rc<Client<Simulated>>)>,
}

impl<'a> Run<'a> {
    /// Prepares runs with all items cached and keys that are asked for equally often.
    ///
    /// # Panics
    /// The sizes have no keys, or more than the limits of [`Options`] allow.
    pub fn new(profile: &'a Profile, sizes: &'a Sizes) -> Self {
        let workload = Workload::new(sizes.keys, sizes.value_bytes, 0.0).expect("there are keys");
        let item = item_bytes(&workload.key(0), &workload.value(0));
        let defaults = Options::default();
        let options = Options {
            buckets: sizes.keys * sizes.buckets_per_key,
            bucket_entries: 1,
            item_memory: 2 * item * sizes.keys,
            cache_memory: item * sizes.keys * defaults.item_copies,
            cached_item_max: item,
            ..defaults
        };
        options.layout().expect("the sizes are within the limits");
        let client = &profile.client;
        let clients = (client.machines * client.threads * client.window) as usize;
        Self { profile, sizes, workload, options, is_plain: false, clients }
    }

    /// Returns the same on a machine with a plain NIC.
    pub fn on_plain_nic(&self) -> Self {
        Self { is_plain: true, ..self.clone() }
    }

    /// Returns the same with some keys more popular than others.
    pub fn skewed(&self) -> Self {
        let Sizes { keys, value_bytes, skew, .. } = *self.sizes;
        let workload = Workload::new(keys, value_bytes, skew).expect("there are keys");
        Self { workload, ..self.clone() }
    }

    /// Returns the number of clients: at first, those of all threads of all machines.
    pub fn clients(&self) -> usize {
        self.clients
    }

    /// Returns the same with another number of clients: at least one.
    pub fn with_clients(&self, clients: usize) -> Self {
        Self { clients: clients.max(1), ..self.clone() }
    }

    /// Begins all places and loads all keys.
    fn begin(&self) -> Machines {
        let machines = self.profile.client.machines as u16;
        let world = World::new(self.profile, machines.into(), self.is_plain, SEED);
        let layout = self.options.layout().expect("the sizes are possible");
        let host = world.begin(Place::Host, layout.host_bytes as usize);
        let soc = world.begin(Place::Soc, layout.soc_bytes as usize);
        let server = Server::new(soc.clone(), self.options.clone()).expect("possible");
        let mut ranks: Vec<u64> = (0..self.workload.keys()).collect();
        // Popular keys are not those that were stored first and are found first.
        fastrand::Rng::with_seed(SEED).shuffle(&mut ranks);
        for rank in ranks {
            let (key, value) = (self.workload.key(rank), self.workload.value(rank));
            server.load(host.memory(), &key, &value).expect("all keys fit");
        }
        soc.spawn(server.serve());
        let clients = (0..machines).map(|number| {
            let verbs = world.begin(Place::Client(number), 0);
            let client = Client::new(verbs.clone(), self.options.clone(), number.into());
            (verbs, Rc::new(client.expect("possible")))
        });
        Machines { clients: clients.collect(), world }
    }

    /// Runs all clients, each with its alternative, and returns the results of gets after those at
    /// the beginning.
    pub fn rate(&self, alternative: impl Fn(usize) -> Alternative) -> Usage {
        let mut machines = self.begin();
        let done: Rc<Cell<u64>> = Rc::default();
        let count = machines.clients.len();
        let of_machine = (self.clients() / count).max(1);
        for client in 0..self.clients() {
            // Neighbours are on different machines.
            let (verbs, connection) = machines.clients[client % count].clone();
            let (workload, done) = (self.workload.clone(), Rc::clone(&done));
            let alternative = alternative(client);
            let random = fastrand::Rng::with_seed(client as u64);
            verbs.spawn(async move {
                if alternative == Alternative::CacheReads {
                    learn(&workload, &connection, client / count, of_machine).await;
                }
                let each = || done.set(done.get() + 1);
                let ended = workload.gets(&connection, alternative, random, each).await;
                ended.expect("all places work");
            });
        }
        let until = |machines: &mut Machines, goal: u64| {
            assert!(machines.world.run_until(|_| done.get() >= goal), "clients never stop");
            machines.world.now().as_nanos() as f64
        };
        let begin = until(&mut machines, WARM);
        machines.world.measure();
        let from = done.get();
        let end = until(&mut machines, from + MEASURED);
        let outcome = machines.world.outcome();
        let busiest = outcome.uses.first().map_or(("nothing", 0.0), |busy| (busy.name, busy.share));
        let cores = Resource::HostCores.name();
        let host_cores = outcome.uses.iter().find(|busy| busy.name == cores);
        let misses: u64 = machines.clients.iter().map(|(_, client)| client.misses()).sum();
        Usage {
            rate: (done.get() - from) as f64 * 1000.0 / (end - begin),
            busiest,
            misses: misses as f64 / done.get() as f64,
            host_cores: host_cores.map_or(0.0, |busy| busy.share),
        }
    }

    /// Returns the mean latency of single gets in microseconds.
    pub fn latency(&self, alternative: Alternative) -> f64 {
        let mut machines = self.begin();
        let done: Rc<Cell<u64>> = Rc::default();
        let (verbs, client) = machines.clients[0].clone();
        let (workload, counter) = (self.workload.clone(), Rc::clone(&done));
        verbs.spawn(async move {
            let each = || counter.set(counter.get() + 1);
            let random = fastrand::Rng::with_seed(SEED);
            workload.gets(&client, alternative, random, each).await.expect("all places work");
        });
        assert!(machines.world.run_until(|_| done.get() == SINGLE), "the client never stops");
        machines.world.now().as_nanos() as f64 / 1000.0 / SINGLE as f64
    }
}

/// Learns the addresses of cached copies. The clients of a machine share the keys among them, and
/// know what each has learned.
async fn learn(workload: &Workload, client: &Client<Simulated>, number: usize, count: usize) {
    let mine = (0..workload.keys()).skip(number).step_by(count);
    for rank in mine {
        let value = client.get(Alternative::CacheReads, &workload.key(rank)).await;
        value.expect("all places work");
    }
}
