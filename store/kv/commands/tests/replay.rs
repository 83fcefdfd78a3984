// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands that are executed again from a log: on an empty store, and on one that was loaded from
//! an image. The data are the same afterwards, although keys lie in other shards and chains, and
//! values in other forms.

use std::collections::BTreeMap;

use fastrand::Rng;
use freeport_kv_engine::Options as EngineOptions;
use freeport_kv_keyspace::{ImageEntry, ImageStep, Options};
use freeport_kv_protocol::resp::Value;
use freeport_kv_types::Limits;
use freeport_testbed::{seed, usual_or_long};

use crate::harness::{Local, Templates, parsed, shown};
use crate::{collections, geo_redis, sorted_sets_redis, streams_random, strings_random};

/// Commands on keys of any type, and those that choose at random or depend on forms.
const TEMPLATES: &str = "
DEL KEY KEY?
UNLINK KEY
EXPIRE KEY T [ nx? gt? ]
PEXPIRE KEY MS
PEXPIRE KEY MS
PEXPIREAT KEY MS
PERSIST KEY
SET KEY W px MS
SET KEY W keepttl
GETEX KEY px MS
GETEX KEY persist
GETDEL KEY
RENAME KEY KEY
RENAMENX KEY KEY
COPY KEY KEY replace?
COPY KEY KEY db D replace?
MOVE KEY D
SWAPDB D D
TOUCH KEY
SPOP KEY
SPOP KEY N
SPOP SET N
SADD SET W W W
SRANDMEMBER SET N
SORT KEY [ by W* ] [ limit 0 N ] alpha? [ store KEY ]
SORT SET [ by WW* ] [ limit 0 N ] alpha store KEY
SORT SET by nosort [ limit 0 N ] store KEY
SORT SET by W* get # get WW* store KEY
MSET WW1 W WW2 W WW3 W
XADD STREAM * W W
XADD STREAM * W W
XADD STREAM maxlen ~ N * W W
XADD STREAM minid ~ 1000050 * W W
XADD STREAM maxlen ~ N limit N * W W
XTRIM STREAM maxlen ~ N
XTRIM STREAM minid ~ 1000100 [ limit N ]
XREADGROUP group g W STREAMS STREAM >
XREADGROUP group g W block 0 STREAMS STREAM >
XGROUP create STREAM g 0 mkstream?
XAUTOCLAIM STREAM g W 0 0 count N
XDEL STREAM 1000000-0
PFCOUNT KEY
PFADD KEY W W
OBJECT encoding KEY
";

const CHOICES: &[(&str, &[&str])] = &[
    ("KEY", &["a", "b", "c", "d", "k0", "k1", "k2", "{a}e", "to", "set", "list", "hll1", "s1"]),
    ("SET", &["set", "k4"]),
    ("STREAM", &["s1", "s2"]),
    ("W", &["1", "22", "-3", "x", "yy", "z", "text of some length", "4.5", "w1", "w2", "w3"]),
    ("T", &["1", "100", "-1", "0"]),
    ("MS", &["1", "5", "30", "300", "20000"]),
    ("N", &["1", "2", "3", "5", "9", "14"]),
    ("D", &["0", "1", "2"]),
];

/// Draws commands of all families.
struct Commands {
    generic: Templates,
    sorted_sets: Templates,
    places: Templates,
    /// Time of the latest entries of streams with ids of their own.
    stream_ms: u64,
}

impl Commands {
    fn new() -> Self {
        let mut choices = geo_redis::CHOICES.to_vec();
        choices.extend([
            ("M", &["m1", "m2", "m3", "m4", "m5"][..]),
            ("LON", &["9", "9.5", "10", "11.25", "12", "-170"]),
            ("LAT", &["1", "2", "3", "-3.5", "45"]),
        ]);
        Self {
            generic: Templates::new(TEMPLATES, CHOICES),
            sorted_sets: Templates::new(sorted_sets_redis::TEMPLATES, sorted_sets_redis::CHOICES),
            places: Templates::new(geo_redis::TEMPLATES, &choices),
            stream_ms: 20,
        }
    }

    fn draw(&mut self, random: &mut Rng) -> Vec<Vec<u8>> {
        match random.u16(0..1_000) {
            0 => vec![[&b"FLUSHDB"[..], b"FLUSHALL"][random.usize(0..2)].to_vec()],
            1..150 => collections::random_command([0, 40][random.usize(0..2)], random),
            150..300 => {
                let command = strings_random::random_command(random);
                // Digests of long strings take long.
                let is_long = command.iter().any(|word| word == b"500000");
                if is_long { vec![b"DBSIZE".to_vec()] } else { command }
            }
            300..450 => self.sorted_sets.command(random),
            450..500 => self.places.command(random),
            500..700 => {
                let mut generator = streams_random::Generator { random, ms: self.stream_ms };
                let line = generator.line();
                self.stream_ms = generator.ms;
                line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
            }
            _ => self.generic.command(random),
        }
    }
}

/// A command in the log.
struct Record {
    database: u16,
    now_ms: u64,
    words: Vec<Vec<u8>>,
}

/// A store whose values become large early. Only limits on which no result depends differ.
fn local(shards: usize, seed: u64) -> Local {
    let mut random = Rng::with_seed(seed);
    let mut entries = || random.usize(2..30);
    let limits = Limits {
        hash_entries: entries(),
        set_integers: entries(),
        set_entries: entries(),
        zset_entries: entries(),
        list_node_bytes: entries() * 8,
        stream_node_entries: entries(),
        hash_seed: seed,
        ..Limits::default()
    };
    let engine = EngineOptions { memory_bytes: 256 << 20, seed, ..EngineOptions::default() };
    Local::with_options(shards, &Options { engine, limits })
}

fn digest(local: &mut Local) -> String {
    let reply = local.line("DEBUG DIGEST");
    String::from_utf8(reply).expect("digits")
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
    idle: BTreeMap<Vec<u8>, u32>,
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
                *self.idle.entry(words[0].to_ascii_lowercase()).or_default() += 1;
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

fn try_once(seed: u64, steps: usize) -> BTreeMap<Vec<u8>, u32> {
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut original = Original {
        local: local(3, seed),
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
    let mut again = local(1, seed + 1);
    replay(&mut again, &original.log);
    again.now_ms = Some(original.now_ms);
    assert_eq!(digest(&mut again), expected, "seed {seed}: from the start");
    let (start, bytes) = original.complete.expect("an image was completed");
    assert!(start > 0 && start < original.log.len());
    let mut loaded = local(2, seed + 2);
    load(&mut loaded, &bytes);
    replay(&mut loaded, &original.log[start..]);
    loaded.now_ms = Some(original.now_ms);
    assert_eq!(digest(&mut loaded), expected, "seed {seed}: from an image");
    original.idle
}

#[test]
fn commands_of_a_log_have_the_same_result_again() {
    let first = seed();
    let mut idle = BTreeMap::<Vec<u8>, u32>::new();
    for seed in first..first + usual_or_long(10, 200) {
        for (name, count) in try_once(seed, 2_000) {
            *idle.entry(name).or_default() += count;
        }
    }
    for (name, count) in idle {
        println!("{}: {count}", name.escape_ascii());
    }
}
