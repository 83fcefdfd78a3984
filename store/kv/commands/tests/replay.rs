// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands that are executed again from a log: on an empty store, and on one that was loaded from
//! an image. The data are the same afterwards, although keys lie in other shards and chains, and
//! values in other forms.

use std::collections::BTreeMap;

use fastrand::Rng;
use freeport_kv_keyspace::{ImageEntry, ImageStep};
use freeport_kv_protocol::resp::Value;
use freeport_kv_types::Limits;
use freeport_testbed::{seed, usual_or_long};

use crate::harness::{Local, parsed, shown};
use crate::random_commands::{Commands, digest, local};

/// Memory of each database of a shard.
const MEMORY_BYTES: usize = 256 << 20;

/// A command in the log.
struct Record {
    database: u16,
    now_ms: u64,
    words: Vec<Vec<u8>>,
}

/// A store that keeps a log, and writes an image now and then.
struct Original {
    local: Local,
    now_ms: u64,
    log: Vec<Record>,
    /// Place in the log, and entries, of the latest image that is complete.
    complete: Option<(usize, Vec<u8>)>,
    /// The image that is being written.
    begun: Option<(usize, Vec<u8>)>,
    /// Executions that were noted as changes, although the data were the same afterwards.
    idle: BTreeMap<String, u32>,
}

impl Original {
    fn record(&mut self, words: Vec<Vec<u8>>) {
        let database = self.local.session.database;
        self.log.push(Record { database, now_ms: self.now_ms, words });
    }

    /// Notes the removals of keys whose time had passed.
    fn record_removed(&mut self) {
        for (database, key) in std::mem::take(&mut self.local.effects.removed) {
            let words = vec![b"DEL".to_vec(), key];
            self.log.push(Record { database, now_ms: self.now_ms, words });
        }
    }

    fn call(&mut self, words: Vec<Vec<u8>>) {
        let before = digest(&mut self.local);
        let changes = self.local.effects.changes;
        let slices: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let reply = self.local.call(&slices);
        self.local.effects.block = None;
        let has_changed = self.local.effects.changes > changes;
        let is_same = digest(&mut self.local) == before;
        assert!(has_changed || is_same, "{} is no change", shown(&slices));
        assert!(!has_changed || !reply.starts_with(b"-"), "{} changed and failed", shown(&slices));
        self.record_removed();
        let logged = self.local.effects.logged.take();
        if has_changed {
            if is_same {
                let name = words[0].escape_ascii().to_string();
                *self.idle.entry(name).or_default() += 1;
            }
            self.record(logged.unwrap_or(words));
        }
    }

    /// A copy of a value under another key.
    fn restore(&mut self, random: &mut Rng) {
        let keys = ["a", "b", "s1", "s2", "set", "k0", "k1"];
        let mut key = || keys[random.usize(..keys.len())].as_bytes();
        let (from, to) = (key(), key());
        let Value::Bulk(payload) = parsed(&self.local.call(&[b"DUMP", from])) else { return };
        let ttl = random.u8(0..50).to_string();
        let words = [b"RESTORE", to, ttl.as_bytes(), &payload, b"REPLACE"];
        self.call(words.map(<[u8]>::to_vec).to_vec());
    }

    fn step_image(&mut self, random: &mut Rng) {
        let Some((start, mut bytes)) = self.begun.take() else {
            self.local.store.shards_mut().for_each(|shard| shard.begin_image());
            self.begun = Some((self.log.len(), vec![]));
            return;
        };
        let mut all = ImageStep::Done;
        for shard in self.local.store.shards_mut() {
            match shard.image_some(random.usize(0..20), &mut bytes) {
                ImageStep::Done => {}
                other => all = other,
            }
        }
        match all {
            ImageStep::More => self.begun = Some((start, bytes)),
            ImageStep::Done => self.complete = Some((start, bytes)),
            ImageStep::Broken => {
                self.local.store.shards_mut().for_each(|shard| shard.end_image());
            }
        }
    }
}

fn replay(local: &mut Local, log: &[Record]) {
    local.session.may_block = false;
    for Record { database, now_ms, words } in log {
        (local.session.database, local.now_ms) = (*database, Some(*now_ms));
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let reply = local.call(&words);
        assert!(!reply.starts_with(b"-"), "{}: {}", shown(&words), reply.escape_ascii());
    }
}

fn load(local: &mut Local, mut bytes: &[u8]) {
    while let Some(entry) = ImageEntry::read(&mut bytes, &Limits::default()).expect("sound") {
        let shard = local.store.shard_of(entry.key);
        local.store.shard_mut(shard).load(entry).expect("there is memory");
    }
}

fn try_once(seed: u64, steps: usize) -> BTreeMap<String, u32> {
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut original = Original {
        local: local(3, MEMORY_BYTES, seed),
        now_ms: 1_000_000,
        log: vec![],
        complete: None,
        begun: None,
        idle: BTreeMap::new(),
    };
    original.local.effects.records = true;
    let mut commands = Commands::new();
    for step in 0..steps {
        original.now_ms += random.u64(0..4);
        original.local.now_ms = Some(original.now_ms);
        original.local.session.database = random.u16(0..30) / 10;
        match random.u8(0..40) {
            0 => original.restore(&mut random),
            1 => {
                let Local { store, effects, .. } = &mut original.local;
                store.expire_some(original.now_ms, 100, effects);
                original.record_removed();
            }
            _ => original.call(commands.draw(&mut random)),
        }
        if step > steps / 3 {
            original.step_image(&mut random);
        }
    }
    let expected = digest(&mut original.local);
    let mut again = local(1, MEMORY_BYTES, seed + 1);
    replay(&mut again, &original.log);
    again.now_ms = Some(original.now_ms);
    assert_eq!(digest(&mut again), expected, "seed {seed}: from the start");
    let (start, bytes) = original.complete.expect("an image was completed");
    assert!(start > 0 && start < original.log.len());
    let mut loaded = local(2, MEMORY_BYTES, seed + 2);
    load(&mut loaded, &bytes);
    replay(&mut loaded, &original.log[start..]);
    loaded.now_ms = Some(original.now_ms);
    assert_eq!(digest(&mut loaded), expected, "seed {seed}: from an image");
    original.idle
}

#[test]
fn commands_of_a_log_have_the_same_result_again() {
    let first = seed();
    let mut idle = BTreeMap::<String, u32>::new();
    let seeds = usual_or_long(6, 200);
    for seed in first..first + seeds {
        for (name, count) in try_once(seed, 2_000) {
            *idle.entry(name).or_default() += count;
        }
    }
    // A log of commands that change nothing would grow without use.
    let idle_commands: u32 = idle.values().sum();
    assert!(idle_commands < 20 * seeds as u32, "{idle:?}");
}
