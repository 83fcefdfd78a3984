// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All places of replicated files on the simulated machine, with writers on the host.

use freeport_plan_model::profile::built_in;
use freeport_study_replication::history::{self, Writer};
use freeport_study_replication::log::LogError;
use freeport_study_replication::{Backup, Options, Policy, Primary, Processor};
use freeport_study_verbs::simulated::{Simulated, World};
use freeport_study_verbs::{Place, Stable, Verbs};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A kind of places: plain ones, or some that do something wrong.
pub trait Kind {
    /// A place.
    type Verbs: Verbs;

    /// Returns a place that uses a simulated one.
    fn of(place: Simulated) -> Self::Verbs;
}

/// Plain places.
pub struct Plain;

impl Kind for Plain {
    type Verbs = Simulated;

    fn of(place: Simulated) -> Simulated {
        place
    }
}

/// Findings of the writers.
#[derive(Default)]
pub struct Found {
    /// The last acknowledged write to each file.
    pub acknowledged: RefCell<BTreeMap<u32, u64>>,
    /// Writes that were acknowledged, and that a backup did not have at that time.
    pub missing: RefCell<Vec<String>>,
    /// Errors of places that could not begin, and of writers.
    pub failed: RefCell<Vec<String>>,
    is_over: Cell<bool>,
    /// Number of writers that have not ended well.
    pub writing: Cell<u32>,
}

/// All places.
pub struct Cluster<K: Kind> {
    pub world: World,
    pub options: Options,
    pub found: Rc<Found>,
    pub primary: Option<Primary<K::Verbs>>,
    pub backups: BTreeMap<Place, Backup<K::Verbs>>,
    /// Files of all places, which outlive them.
    places: Rc<RefCell<BTreeMap<Place, Simulated>>>,
    policies: Vec<Policy>,
    files: u32,
    seed: u64,
    dead: BTreeSet<Place>,
}

/// Settings with small chunks, so that much happens in few bytes.
pub fn small() -> Options {
    Options {
        chunk_bytes: 2048,
        log_slots: 16,
        receive_slots: 6,
        processor_queue: 4,
        ..Options::default()
    }
}

pub fn all_places(options: &Options) -> Vec<Place> {
    let backups = (0..options.backups).map(Place::Peer);
    backups.chain([Place::Soc, Place::Host]).collect()
}

impl<K: Kind> Cluster<K> {
    /// Begins all places, with a writer for each file that uses clients with these policies.
    pub fn new(options: Options, policies: &[Policy], files: u32, seed: u64) -> Self {
        options.check().expect("they make sense");
        let profile = built_in("bluefield2").expect("the default").expect("a profile");
        let mut cluster = Self {
            world: World::new(&profile, 1, false, seed),
            options,
            found: Rc::default(),
            primary: None,
            backups: BTreeMap::new(),
            places: Rc::default(),
            policies: policies.to_vec(),
            files,
            seed,
            dead: BTreeSet::new(),
        };
        all_places(&options).into_iter().for_each(|place| cluster.begin(place));
        cluster
    }

    /// Begins a place, with its file. If it cannot, that is found.
    pub fn begin(&mut self, place: Place) {
        let simulated = self.world.begin(place, self.options.memory_bytes(place));
        self.places.borrow_mut().insert(place, simulated.clone());
        self.dead.remove(&place);
        let verbs = K::of(simulated);
        let begun = match place {
            Place::Host => self.begin_host(&verbs),
            Place::Soc => {
                Processor::begin(&verbs, &self.options);
                Ok(())
            }
            _ => Backup::begin(&verbs, &self.options).map(|backup| {
                self.backups.insert(place, backup);
            }),
        };
        let failed = begun.err().map(|error| error.to_string());
        self.found.failed.borrow_mut().extend(failed);
    }

    pub fn kill(&mut self, place: Place) {
        self.world.kill(place);
        self.dead.insert(place);
    }

    pub fn is_alive(&self, place: Place) -> bool {
        !self.dead.contains(&place)
    }

    fn begin_host(&mut self, verbs: &K::Verbs) -> Result<(), LogError> {
        let primary = Primary::begin(verbs, &self.options)?;
        let log = verbs.stable().read().expect("the file works");
        self.found.writing.set(self.files);
        for file in 0..self.files {
            let clients = self.policies.iter().map(|policy| primary.client(*policy)).collect();
            let seed = self.seed ^ u64::from(file) << 32 ^ self.world.steps();
            let writer = Writer::new(&log, clients, file, seed);
            let places = Rc::clone(&self.places);
            verbs.spawn(writes(writer, file, Rc::clone(&self.found), places));
        }
        self.primary = Some(primary);
        Ok(())
    }

    /// Returns the contents of a place's file.
    pub fn log(&self, place: Place) -> Vec<u8> {
        self.places.borrow()[&place].stable().read().expect("the file works")
    }

    /// Ends all places, puts other contents into the file of one, and begins all anew.
    pub fn exchange(&mut self, place: Place, contents: Vec<u8>) {
        let places = all_places(&self.options);
        places.iter().for_each(|place| self.kill(*place));
        let alone = self.world.begin(place, 0);
        alone.stable().truncate(0).expect("the file works");
        let (file, is_done) = (alone.stable().clone(), Rc::new(Cell::new(false)));
        let done = Rc::clone(&is_done);
        alone.spawn(async move {
            file.append(contents).await.expect("the file works");
            done.set(true);
        });
        assert!(self.world.run_until(|_| is_done.get()), "an append ends");
        places.into_iter().for_each(|place| self.begin(place));
    }

    /// Begins a place anew with an empty file.
    pub fn empty(&mut self, place: Place) {
        self.places.borrow()[&place].stable().truncate(0).expect("the file works");
        self.begin(place);
    }

    /// Lets time pass for a number of steps.
    pub fn run(&mut self, steps: u64) {
        let until = self.world.steps() + steps;
        self.world.run_until(|world| world.steps() >= until);
    }

    /// Begins dead places, ends all writers, and checks what they wrote.
    pub fn end(&mut self) -> Result<(), String> {
        std::mem::take(&mut self.dead).into_iter().for_each(|place| self.begin(place));
        self.found.is_over.set(true);
        let found = Rc::clone(&self.found);
        const STEPS: u64 = 300_000;
        let until = self.world.steps() + STEPS;
        self.world.run_until(|world| {
            let has_failed = !found.failed.borrow().is_empty();
            found.writing.get() == 0 || has_failed || world.steps() > until
        });
        let reasons = [&found.missing, &found.failed].map(|found| found.borrow().first().cloned());
        if let Some(reason) = reasons.into_iter().flatten().next() {
            return Err(reason);
        }
        if found.writing.get() > 0 {
            return Err(format!("writers wait forever: {:?}", found.acknowledged.borrow()));
        }
        let hosts = [Place::Host].into_iter().chain((0..self.options.backups).map(Place::Peer));
        let logs: Vec<Vec<u8>> = hosts.map(|place| self.log(place)).collect();
        history::check(&logs, &found.acknowledged.borrow(), self.options.chunk_bytes)?;
        let files = self.primary.as_ref().expect("it began").files();
        let is_equal = |backup: &Backup<_>| backup.files().hash() == files.hash();
        match self.backups.values().all(is_equal) {
            true => Ok(()),
            false => Err("backups have other files".into()),
        }
    }
}

/// Writes until it is told to end, and then until all is acknowledged.
async fn writes<V: Verbs>(
    mut writer: Writer<V>,
    file: u32,
    found: Rc<Found>,
    places: Rc<RefCell<BTreeMap<Place, Simulated>>>,
) {
    let mut rounds = 0;
    while !found.is_over.get() || rounds == 0 {
        let last = match writer.round().await {
            Ok(last) => last,
            Err(error) => return found.failed.borrow_mut().push(error.to_string()),
        };
        rounds += 1;
        found.acknowledged.borrow_mut().insert(file, last);
        for (place, simulated) in places.borrow().iter() {
            let log = simulated.stable().read().expect("the file works");
            if !matches!(place, Place::Soc) && !history::has(&log, file, last) {
                let missing = format!("{place} does not have write {last} to file {file}");
                found.missing.borrow_mut().push(missing);
            }
        }
    }
    found.writing.set(found.writing.get() - 1);
}
