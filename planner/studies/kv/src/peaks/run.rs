// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A run of the store on the simulated machine.

use super::Sizes;
use crate::alternative::Alternative;
use crate::client::Client;
use crate::error::KvError;
use crate::item::item_bytes;
use crate::layout::{LimitError, Options, VALUE_MAX};
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
/// Most keys of a run, and most bytes of all items: all of them are in memory, several times.
const KEYS_MAX: u64 = 1 << 20;
const ITEMS_MAX: u64 = 512 << 20;

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
    /// Share of the answers of A5 that were addresses; zero without answers.
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
    /// # Errors
    /// There are no keys or more than 2^20, all items have more than 512 MiB, or the sizes or the
    /// skew exceed a limit of [`Options`] or [`Workload`].
    pub fn new(profile: &'a Profile, sizes: &'a Sizes) -> Result<Self, LimitError> {
        let Sizes { keys, value_bytes, skew, .. } = *sizes;
        let limit = |option, value, wanted| Err(LimitError::Option { option, value, wanted });
        if !(1..=KEYS_MAX).contains(&keys) {
            return limit("keys", keys, "1 to 2^20");
        }
        if !(1..=VALUE_MAX).contains(&value_bytes) {
            return limit("value_bytes", value_bytes as u64, "1 to 2^20 B");
        }
        let uniform = Workload::new(keys, value_bytes, 0.0);
        // The same keys with their skew show that it is possible.
        let (Some(workload), Some(_)) = (uniform, Workload::new(keys, value_bytes, skew)) else {
            return Err(LimitError::Skew(skew.to_string()));
        };
        let item = item_bytes(&workload.key(0), &workload.value(0));
        if item * keys > ITEMS_MAX {
            return limit("bytes of all items (keys, value_bytes)", item * keys, "at most 2^29");
        }
        let defaults = Options::default();
        let options = Options {
            buckets: sizes.keys.saturating_mul(sizes.buckets_per_key),
            bucket_entries: 1,
            item_memory: 2 * item * sizes.keys,
            cache_memory: item * sizes.keys * defaults.item_copies,
            cached_item_max: item,
            ..defaults
        };
        options.layout()?;
        let client = &profile.client;
        let clients = (client.machines * client.threads * client.window) as usize;
        Ok(Self { profile, sizes, workload, options, is_plain: false, clients })
    }

    /// Returns the same on a machine with a plain NIC.
    pub fn on_plain_nic(&self) -> Self {
        Self { is_plain: true, ..self.clone() }
    }

    /// Returns the same with some keys more popular than others.
    pub fn skewed(&self) -> Self {
        let Sizes { keys, value_bytes, skew, .. } = *self.sizes;
        let workload = Workload::new(keys, value_bytes, skew).expect("checked by `new`");
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
    ///
    /// # Errors
    /// Too many keys are neighbours in the index.
    fn begin(&self) -> Result<Machines, KvError> {
        let machines = self.profile.client.machines as u16;
        let world = World::new(self.profile, machines.into(), self.is_plain, SEED);
        let layout = self.options.layout()?;
        let host = world.begin(Place::Host, layout.host_bytes as usize);
        let soc = world.begin(Place::Soc, layout.soc_bytes as usize);
        let server = Server::new(soc.clone(), self.options.clone())?;
        let mut ranks: Vec<u64> = (0..self.workload.keys()).collect();
        // Popular keys are not those that were stored first and are found first.
        fastrand::Rng::with_seed(SEED).shuffle(&mut ranks);
        for rank in ranks {
            let (key, value) = (self.workload.key(rank), self.workload.value(rank));
            server.load(host.memory(), &key, &value)?;
        }
        soc.spawn(server.serve());
        let clients = (0..machines).map(|number| {
            let verbs = world.begin(Place::Client(number), 0);
            let client = Client::new(verbs.clone(), self.options.clone(), number.into())?;
            Ok((verbs, Rc::new(client)))
        });
        Ok(Machines { clients: clients.collect::<Result<_, LimitError>>()?, world })
    }

    /// Runs all clients, each with its alternative, and returns the results of gets after those at
    /// the beginning.
    ///
    /// # Errors
    /// The store is full: too many keys are neighbours in the index.
    pub fn rate(&self, alternative: impl Fn(usize) -> Alternative) -> Result<Usage, KvError> {
        let mut machines = self.begin()?;
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
        let (from, before) = (done.get(), machines.misses());
        let end = until(&mut machines, from + MEASURED);
        let outcome = machines.world.outcome();
        let busiest = outcome.uses.first().map_or(("nothing", 0.0), |busy| (busy.name, busy.share));
        let cores = Resource::HostCores.name();
        let host_cores = outcome.uses.iter().find(|busy| busy.name == cores);
        let after = machines.misses();
        let (answers, misses) = (after.0 - before.0, after.1 - before.1);
        Ok(Usage {
            rate: (done.get() - from) as f64 * 1000.0 / (end - begin),
            busiest,
            misses: misses as f64 / answers.max(1) as f64,
            host_cores: host_cores.map_or(0.0, |busy| busy.share),
        })
    }

    /// Returns the mean latency of single gets in microseconds.
    ///
    /// # Errors
    /// The store is full: too many keys are neighbours in the index.
    pub fn latency(&self, alternative: Alternative) -> Result<f64, KvError> {
        let mut machines = self.begin()?;
        let done: Rc<Cell<u64>> = Rc::default();
        let (verbs, client) = machines.clients[0].clone();
        let (workload, counter) = (self.workload.clone(), Rc::clone(&done));
        verbs.spawn(async move {
            let each = || counter.set(counter.get() + 1);
            let random = fastrand::Rng::with_seed(SEED);
            workload.gets(&client, alternative, random, each).await.expect("all places work");
        });
        assert!(machines.world.run_until(|_| done.get() == SINGLE), "the client never stops");
        Ok(machines.world.now().as_nanos() as f64 / 1000.0 / SINGLE as f64)
    }
}

impl Machines {
    /// Returns the numbers of answers of A5 and of those that were addresses.
    fn misses(&self) -> (u64, u64) {
        let clients = || self.clients.iter().map(|(_, client)| client);
        (clients().map(|it| it.answers()).sum(), clients().map(|it| it.misses()).sum())
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
