// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file system on the simulated machine, with clients that write chunks.

use crate::backup::Backup;
use crate::codec::Compression;
use crate::options::{Options, Policy};
use crate::primary::{Client, Counters, Primary};
use crate::processor::Processor;
use freeport_plan_model::Profile;
use freeport_study_verbs::simulated::{Simulated, World};
use freeport_study_verbs::{Place, Verbs};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// A run of clients that each write chunks to a few files, and wait for each chunk until all
/// backups hold it before they write the next one to its file.
#[derive(Clone, Debug)]
pub struct Run {
    /// The policies of the clients.
    pub clients: Vec<Policy>,
    /// Files of each client, which is the number of its chunks in flight.
    pub window: u32,
    /// Whether cores of the host do other work.
    pub is_busy: bool,
    /// Settings of all places.
    pub options: Options,
    /// Chunks after which measuring begins, and the number of those measured.
    pub chunks: [u64; 2],
}

/// Results of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// Acknowledged data in Gbit/s.
    pub goodput: f64,
    /// Mean time from the completion of a chunk until its acknowledgement, in microseconds.
    pub wait: f64,
    /// Counts of chunks and bytes since the beginning.
    pub counters: Counters,
}

/// Other work on the host, fitted to row 36: tasks that each occupy a core again and again, for
/// this time in the mean. There are more of them than cores, so that the file system waits.
const BUSY_TASKS: u32 = 48;
const BUSY_SLICE: Duration = Duration::from_nanos(1100);
const SEED: u64 = 1;

/// Counts of all clients together.
#[derive(Default)]
struct Counts {
    chunks: Cell<u64>,
    bytes: Cell<u64>,
    waits: RefCell<Duration>,
}

impl Run {
    /// Describes clients of one policy, with chunks of 256 KiB that are not compressed.
    pub fn new(clients: u32, policy: Policy) -> Self {
        let options = Options { backups: 1, compression: Compression::None, ..Options::default() };
        Self {
            clients: vec![policy; clients as usize],
            window: 2,
            is_busy: false,
            options,
            chunks: [32, 96],
        }
    }

    /// Runs it on a machine.
    pub fn measure(&self, profile: &Profile) -> Measured {
        let mut world = World::new(profile, 1, false, SEED);
        let begin = |place| world.begin(place, self.options.memory_bytes(place));
        let backups: Vec<Simulated> =
            (0..self.options.backups).map(Place::Peer).map(begin).collect();
        let (soc, host) = (begin(Place::Soc), begin(Place::Host));
        for backup in backups {
            Backup::begin(&backup, &self.options).expect("a simulated file works");
        }
        Processor::begin(&soc, &self.options);
        let primary = Primary::begin(&host, &self.options).expect("a simulated file works");
        if self.is_busy {
            (0..BUSY_TASKS).for_each(|task| host.spawn(work(host.clone(), task)));
        }
        let counts: Rc<Counts> = Rc::default();
        for (number, policy) in self.clients.iter().enumerate() {
            for file in 0..self.window {
                let client = primary.client(*policy);
                let path = format!("{number}-{file}");
                host.spawn(write(host.clone(), client, path, Rc::clone(&counts)));
            }
        }
        let [before, measured] = self.chunks;
        assert!(world.run_until(|_| counts.chunks.get() >= before), "clients wait forever");
        let (bytes, begin) = (counts.bytes.get(), world.now());
        *counts.waits.borrow_mut() = Duration::ZERO;
        assert!(world.run_until(|_| counts.chunks.get() >= before + measured));
        let time = (world.now() - begin).as_nanos() as f64;
        let wait = counts.waits.borrow().as_nanos() as f64 / 1000.0 / measured as f64;
        let goodput = (counts.bytes.get() - bytes) as f64 * 8.0 / time;
        Measured { goodput, wait, counters: primary.counters() }
    }
}

/// Occupies cores of the host.
async fn work(host: Simulated, task: u32) {
    let mut random = fastrand::Rng::with_seed(task.into());
    loop {
        host.work(BUSY_SLICE.mul_f64(2.0 * random.f64())).await;
    }
}

/// Writes chunks to a file.
async fn write(host: Simulated, client: Client<Simulated>, path: String, counts: Rc<Counts>) {
    let period: Vec<u8> = (0..4096).map(|index| (index % 251) as u8).collect();
    let data: Vec<u8> = period.into_iter().cycle().take(client.piece_bytes(&path)).collect();
    loop {
        client.write(&path, 0, &data).await.expect("a simulated file works");
        let begin = host.now();
        client.fsync(&path).await.expect("a simulated file works");
        *counts.waits.borrow_mut() += host.now() - begin;
        counts.chunks.set(counts.chunks.get() + 1);
        counts.bytes.set(counts.bytes.get() + data.len() as u64);
    }
}
