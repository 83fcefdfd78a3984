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
use thiserror::Error;

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
    /// Share of random bytes in the data, 0 to 1; the rest is zero. LZ4 leaves about this share.
    pub noise: f64,
    /// Chunks after which measuring begins, and the number of those measured.
    pub chunks: [u64; 2],
}

/// Most memory of a run in bytes.
pub const MEMORY_MAX: u64 = 4 << 30;

/// A run that cannot be measured.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum RunError {
    /// A setting makes no sense.
    #[error("{0}")]
    Setting(String),
    /// The run needs too much memory on the machine that simulates it.
    #[error(
        "chunks in flight and files need {needed} MiB of memory, and a run may need {most} MiB; \
         use shorter chunks, a smaller window, fewer clients or fewer backups",
        needed = .0 >> 20, most = MEMORY_MAX >> 20
    )]
    Memory(u64),
    /// No chunk was acknowledged for a long simulated time.
    #[error("no chunk was acknowledged for {PATIENCE:?} of simulated time; use shorter chunks")]
    Stalled,
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
/// Simulated time without an acknowledgement that ends a run.
const PATIENCE: Duration = Duration::from_secs(1);
/// Length of data in bytes in which noise and zeros alternate once.
const BLOCK: usize = 4096;

/// Counts of all clients together.
#[derive(Default)]
struct Counts {
    chunks: Cell<u64>,
    bytes: Cell<u64>,
    waits: RefCell<Duration>,
    /// Time of the last acknowledgement.
    last: Cell<Duration>,
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
            noise: 1.0,
            chunks: [32, 96],
        }
    }

    /// Runs it on a machine.
    ///
    /// # Errors
    /// A setting makes no sense, or needs more than [`MEMORY_MAX`].
    pub fn measure(&self, profile: &Profile) -> Result<Measured, RunError> {
        self.check()?;
        let mut world = World::new(profile, 1, false, SEED);
        world.forget_appends();
        let (primary, counts) = self.begin(&world);
        let [before, measured] = self.chunks;
        wait_for(&mut world, &counts, before)?;
        let (bytes, begin) = (counts.bytes.get(), world.now());
        *counts.waits.borrow_mut() = Duration::ZERO;
        wait_for(&mut world, &counts, before.saturating_add(measured))?;
        let time = (world.now() - begin).as_nanos() as f64;
        let wait = counts.waits.borrow().as_nanos() as f64 / 1000.0 / measured as f64;
        let goodput = (counts.bytes.get() - bytes) as f64 * 8.0 / time;
        Ok(Measured { goodput, wait, counters: primary.counters() })
    }

    /// Begins all places, and the clients' tasks.
    fn begin(&self, world: &World) -> (Primary<Simulated>, Rc<Counts>) {
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
        let data = Rc::new(self.data());
        for (number, policy) in self.clients.iter().enumerate() {
            for file in 0..self.window {
                let client = primary.client(*policy);
                let path = format!("{number}-{file}");
                let (data, counts) = (Rc::clone(&data), Rc::clone(&counts));
                host.spawn(write(host.clone(), client, path, data, counts));
            }
        }
        (primary, counts)
    }

    /// Returns data for a chunk.
    fn data(&self) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(SEED);
        let noise = (BLOCK as f64 * self.noise).round() as usize;
        let byte = |at: usize| if at % BLOCK < noise { random.u8(..) } else { 0 };
        (0..self.options.chunk_bytes).map(byte).collect()
    }

    fn check(&self) -> Result<(), RunError> {
        let setting = |reason: &str| Err(RunError::Setting(reason.into()));
        self.options.check().map_err(RunError::Setting)?;
        if self.clients.is_empty() || self.window == 0 || self.chunks[1] == 0 {
            return setting("a run needs a client, a chunk in flight and a chunk to measure");
        }
        if !(0.0..=1.0).contains(&self.noise) {
            return setting("the share of noise in the data has to be between 0 and 1");
        }
        let needed = self.memory();
        if needed > MEMORY_MAX { Err(RunError::Memory(needed)) } else { Ok(()) }
    }

    /// Returns about how much memory all places need in bytes: their memories, and for each place
    /// the clients' files, and two copies of each chunk in flight.
    fn memory(&self) -> u64 {
        let options = &self.options;
        let places = u64::from(options.backups) + 1;
        let files = self.clients.len() as u64 * u64::from(self.window);
        let in_flight = files.min(options.log_slots as u64);
        let (log, receive) = (options.log_slots as u64, options.receive_slots as u64);
        // The first backup receives from the host and from the processor.
        let slots = receive.saturating_mul(places).saturating_add(log);
        let chunks = places.saturating_mul(files + 2 * in_flight).saturating_add(slots);
        chunks.saturating_mul(options.slot_bytes() as u64)
    }
}

/// Lets time pass until this number of chunks is acknowledged.
fn wait_for(world: &mut World, counts: &Counts, chunks: u64) -> Result<(), RunError> {
    let is_done = || counts.chunks.get() >= chunks;
    world.run_until(|world| is_done() || world.now() > counts.last.get() + PATIENCE);
    if is_done() { Ok(()) } else { Err(RunError::Stalled) }
}

/// Occupies cores of the host.
async fn work(host: Simulated, task: u32) {
    let mut random = fastrand::Rng::with_seed(task.into());
    loop {
        host.work(BUSY_SLICE.mul_f64(2.0 * random.f64())).await;
    }
}

/// Writes chunks to a file.
async fn write(
    host: Simulated,
    client: Client<Simulated>,
    path: String,
    data: Rc<Vec<u8>>,
    counts: Rc<Counts>,
) {
    let data = &data[..client.piece_bytes(&path)];
    loop {
        client.write(&path, 0, data).await.expect("a simulated file works");
        let begin = host.now();
        client.fsync(&path).await.expect("a simulated file works");
        *counts.waits.borrow_mut() += host.now() - begin;
        counts.last.set(host.now());
        counts.chunks.set(counts.chunks.get() + 1);
        counts.bytes.set(counts.bytes.get() + data.len() as u64);
    }
}
