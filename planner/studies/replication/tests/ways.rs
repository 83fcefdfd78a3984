// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ways of chunks: all lead to the same backups, in the order of the log.

use crate::cluster::{Cluster, Plain, all_places, small};
use freeport_plan_model::profile::built_in;
use freeport_study_replication::chunk::HEADER_BYTES;
use freeport_study_replication::model::machine::Run;
use freeport_study_replication::{
    Alternative, Backup, Client, Compression, Counters, Options, Policy, Primary, Processor,
    WriteError, history,
};
use freeport_study_verbs::simulated::{Simulated, World};
use freeport_study_verbs::{Place, Stable, Verbs};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// All places, and a task on the host.
struct Stage {
    world: World,
    primary: Primary<Simulated>,
    backups: Vec<(Simulated, Backup<Simulated>)>,
    host: Simulated,
}

impl Stage {
    fn new(options: &Options) -> Self {
        let profile = built_in("bluefield2").expect("the default").expect("a profile");
        let world = World::new(&profile, 1, false, 1);
        let begin = |place| world.begin(place, options.memory_bytes(place));
        let backup = |number| {
            let place = begin(Place::Peer(number));
            let backup = Backup::begin(&place, options).expect("the file works");
            (place, backup)
        };
        let backups = (0..options.backups).map(backup).collect();
        Processor::begin(&begin(Place::Soc), options);
        let host = begin(Place::Host);
        let primary = Primary::begin(&host, options).expect("the file works");
        Self { world, primary, backups, host }
    }

    /// Runs a task on the host until it has ended.
    fn run<T: 'static>(&mut self, task: impl Future<Output = T> + 'static) -> T {
        let result: Rc<RefCell<Option<T>>> = Rc::default();
        let into = Rc::clone(&result);
        self.host.spawn(async move { *into.borrow_mut() = Some(task.await) });
        assert!(self.world.run_until(|_| result.borrow().is_some()), "the task waits forever");
        result.take().expect("it has ended")
    }

    /// Returns the log of a backup.
    fn log(&self, number: usize) -> Vec<u8> {
        self.backups[number].0.stable().read().expect("the file works")
    }
}

/// Writes to two files, some of them longer than a chunk, and waits for the backups.
async fn write_all(client: Client<Simulated>) -> Result<(), WriteError> {
    let mut random = fastrand::Rng::with_seed(7);
    for number in 0..60 {
        let path = history::path(number % 2);
        let longest = if number % 10 == 0 { 9000 } else { 900 };
        let data: Vec<u8> = (0..random.usize(1..longest)).map(|at| (at / 50) as u8).collect();
        client.write(&path, random.u64(0..20_000), &data).await?;
    }
    client.fsync(&history::path(0)).await?;
    client.fsync(&history::path(1)).await
}

#[test]
fn all_alternatives_give_identical_backups() {
    let options = Options { backups: 3, ..small() };
    let logs = Policy::ALL.map(|policy| {
        let mut stage = Stage::new(&options);
        let client = stage.primary.client(policy);
        stage.run(write_all(client)).expect("the file works");
        for (_, backup) in &stage.backups {
            assert_eq!(backup.files(), stage.primary.files(), "{policy:?}");
        }
        let all = stage.primary.counters();
        assert!(all.all().chunks > 20, "{all:?}");
        if let Policy::Always(alternative) = policy {
            assert_eq!(all.of(alternative), all.all(), "no chunk takes another way");
        }
        [0, 1, 2].map(|number| stage.log(number))
    });
    let first = &logs[0][0];
    assert!(first.len() > 20_000);
    assert!(logs.iter().flatten().all(|log| log == first));
}

/// Data that do not become smaller are sent as they are: no more than the header is added.
#[test]
fn incompressible_data_are_sent_raw() {
    let saved = |data: Vec<u8>, compression| {
        let options = Options { compression, ..small() };
        let mut stage = Stage::new(&options);
        let client = stage.primary.client(Policy::Always(Alternative::A2));
        let bytes = data.len() as u64;
        let counters: Counters = stage.run({
            let primary = stage.primary.clone();
            async move {
                client.write("file", 0, &data).await.expect("the file works");
                primary.sync().await.expect("the file works");
                primary.counters()
            }
        });
        let all = counters.all();
        assert!(all.raw_bytes >= bytes + all.chunks * HEADER_BYTES as u64);
        (all, counters.saving())
    };
    let mut random = fastrand::Rng::with_seed(1);
    let noise: Vec<u8> = (0..50_000).map(|_| random.u8(..)).collect();
    let (all, _) = saved(noise, Compression::Lz4);
    assert_eq!(all.network_bytes, all.raw_bytes);
    let (_, saving) = saved(vec![1; 50_000], Compression::Lz4);
    assert!(saving > 0.9, "{saving}");
    let (_, saving) = saved(vec![1; 50_000], Compression::None);
    assert_eq!(saving, 0.0);
}

/// Chunks of A3 overtake those of A2, and a backup holds them until their turn.
#[test]
fn chunks_that_come_early_are_held_in_bounds() {
    use Alternative::{A2, A3};
    let mut options = small();
    options.costs.process.each = Duration::from_micros(200);
    let policies = [Policy::Always(A2), Policy::Always(A3)];
    let mut cluster = Cluster::<Plain>::new(options, &policies, 8, 3);
    cluster.run(40_000);
    let early = cluster.backups[&Place::Peer(0)].early_most();
    let most = options.receive_slots - 1 + options.processor_queue - 1;
    assert!((2..=most).contains(&early), "{early} of {most}");
    assert_eq!(cluster.backups[&Place::Peer(1)].early_most(), 0, "backups send in order");
    cluster.end().unwrap();
}

/// A dead backup holds up writers: the host has no more chunks on their way than it has slots.
#[test]
fn chunks_on_their_way_are_bounded() {
    let options = small();
    let mut cluster = Cluster::<Plain>::new(options, &Policy::ALL, 40, 3);
    cluster.run(3000);
    cluster.kill(Place::Peer(1));
    cluster.run(20_000);
    let chunks = |place| freeport_study_replication::log::Log::read(&cluster.log(place), 0).last;
    let ahead = chunks(Place::Host) - chunks(Place::Peer(1));
    assert!((options.log_slots as u64 - 2..=options.log_slots as u64).contains(&ahead), "{ahead}");
    cluster.end().unwrap();
}

/// More clients than slots write, and nobody calls `fsync`: all writes return.
#[test]
fn clients_without_fsync_do_not_wait_for_each_other() {
    let options = Options { log_slots: 2, ..small() };
    let mut stage = Stage::new(&options);
    let clients = [(); 6].map(|()| stage.primary.client(Policy::Auto));
    let writes = clients.into_iter().zip(0..).map(|(client, number)| async move {
        client.write(&history::path(number), 0, &[1]).await.expect("the file works");
    });
    let writes = futures::future::join_all(writes);
    assert_eq!(stage.run(writes).len(), 6);
    let sync = stage.primary.clone();
    stage.run(async move { sync.sync().await.expect("the file works") });
    assert!(stage.backups.iter().all(|(_, backup)| backup.files() == stage.primary.files()));
}

/// The processor's queue is filled first; the host sends the rest.
#[test]
fn the_greedy_policy_fills_the_processor_first() {
    let carried = |tasks: u32| {
        let mut stage = Stage::new(&small());
        for task in 0..tasks {
            let client = stage.primary.client(Policy::Auto);
            stage.host.spawn(async move {
                for _ in 0..50 {
                    let path = history::path(task);
                    client.write(&path, 0, &[1; 1000]).await.expect("the file works");
                    client.fsync(&path).await.expect("the file works");
                }
            });
        }
        assert!(!stage.world.run_until(|_| false), "all tasks end");
        let counters = stage.primary.counters();
        [Alternative::A2, Alternative::A3].map(|alternative| counters.of(alternative).chunks)
    };
    let queue = small().processor_queue as u32;
    assert_eq!(carried(queue), [50 * u64::from(queue), 0], "the queue suffices");
    let [by_processor, by_host] = carried(3 * queue);
    assert_eq!(by_processor + by_host, 150 * u64::from(queue));
    assert!(by_host > 50 && by_processor > 50, "{by_processor} {by_host}");
}

/// A client's `fsync` includes the writes of others to the file, in the order of their return.
#[test]
fn clients_share_files() {
    let mut stage = Stage::new(&small());
    let [one, other] =
        [Policy::Auto, Policy::Always(Alternative::A3)].map(|policy| stage.primary.client(policy));
    stage.run(async move {
        one.write("file", 0, b"first").await.expect("the file works");
        other.write("file", 1, b"other").await.expect("the file works");
        one.write("file", 3, b"x").await.expect("the file works");
        other.fsync("file").await.expect("the file works");
    });
    let expected = b"fotxer".as_slice();
    assert_eq!(stage.primary.read("file").as_deref(), Some(expected));
    assert!(stage.backups.iter().all(|(_, backup)| backup.files().get("file") == Some(expected)));
    let client = stage.primary.client(Policy::Auto);
    let refused = stage.run(async move {
        client.fsync("another").await.expect("nothing was written to it");
        [client.write("", 0, &[1]).await, client.write("file", u64::MAX, &[1]).await]
    });
    let reasons = refused.map(|result| result.expect_err("impossible").to_string());
    assert!(reasons[0].contains("give it 1 to 255 B"), "{reasons:?}");
    assert!(reasons[1].contains("ends behind the largest file"), "{reasons:?}");
}

#[test]
fn equal_seeds_give_equal_runs() {
    let run = || {
        let mut cluster = Cluster::<Plain>::new(small(), &Policy::ALL, 3, 9);
        cluster.run(2000);
        all_places(&small()).into_iter().for_each(|place| {
            cluster.kill(place);
            cluster.begin(place);
        });
        cluster.run(2000);
        (cluster.world.now(), cluster.log(Place::Host), cluster.log(Place::Peer(1)))
    };
    assert!(run() == run());
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let measure = || Run { chunks: [4, 8], ..Run::new(2, Policy::Auto) }.measure(&profile);
    assert!(measure().is_ok());
    assert_eq!(measure(), measure());
}
