// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random commands of all families, on the same few keys, and stores for them.

use fastrand::Rng;
use freeport_kv_engine::Options as EngineOptions;
use freeport_kv_keyspace::Options;
use freeport_kv_types::Limits;

use crate::harness::{Local, Templates};
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
pub struct Commands {
    generic: Templates,
    sorted_sets: Templates,
    places: Templates,
    /// Time of the latest entries of streams with ids of their own.
    stream_ms: u64,
}

impl Commands {
    /// A generator whose choices depend on the random numbers alone.
    pub fn new() -> Self {
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

    /// A random command.
    pub fn draw(&mut self, random: &mut Rng) -> Vec<Vec<u8>> {
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

/// A store whose values become large early. Only limits on which no result depends differ.
pub fn local(shards: usize, memory_bytes: usize, seed: u64) -> Local {
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
    let engine = EngineOptions { memory_bytes, seed, ..EngineOptions::default() };
    Local::with_options(shards, &Options { engine, limits })
}

/// `DEBUG DIGEST`.
pub fn digest(local: &mut Local) -> String {
    let reply = local.line("DEBUG DIGEST");
    String::from_utf8(reply).expect("digits")
}
