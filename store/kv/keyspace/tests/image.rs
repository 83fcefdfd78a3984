// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Images of keyspaces that change while the images are written: what is loaded from one is what
//! was there when it began, whatever happened since.

use std::collections::BTreeMap;

use freeport_kv_functions::{Element, Registry, Update};
use freeport_kv_keyspace::{
    Expiry, ImageEntry, ImageStep, Keyspace, Kind, Options, Type, ValueRef,
};
use freeport_kv_types::list::End;
use freeport_kv_types::stream::{GroupRead, GroupStart, NewId, ReadFrom};
use freeport_kv_types::zset::AddOptions;
use freeport_kv_types::{Hash, Limits, List, Set, Stream, ZSet};
use freeport_testbed::{seed, usual_or_long};

/// Contents of a value, in an order that does not depend on its form.
fn contents(value: ValueRef<'_>) -> (Kind, Vec<Vec<u8>>) {
    let mut parts: Vec<Vec<u8>> = match value {
        ValueRef::String(text) => vec![text.to_vec()],
        ValueRef::List(list) => list.iter().map(|element| element.to_vec()).collect(),
        ValueRef::Set(set) => set.iter().map(|member| member.to_vec()).collect(),
        ValueRef::Hash(hash) => {
            hash.iter().map(|pair| pair.map(|part| part.to_vec()).join(&b"="[..])).collect()
        }
        ValueRef::SortedSet(set) => set
            .iter()
            .map(|(member, score)| [&score.to_le_bytes()[..], &member.to_vec()].concat())
            .collect(),
        ValueRef::Stream(stream) => {
            let info = stream.full_info(0);
            let counters = (
                info.stream.last_generated_id,
                info.stream.max_deleted_entry_id,
                info.stream.entries_added,
            );
            let entries = info.entries.iter().map(|entry| {
                let fields = entry.fields.map(|(name, value)| (name, value.to_vec()));
                (entry.id, fields.collect::<Vec<_>>())
            });
            let text = format!("{counters:?} {:?} {:?}", entries.collect::<Vec<_>>(), info.groups);
            vec![text.into_bytes()]
        }
    };
    if matches!(value.kind(), Kind::Set | Kind::Hash) {
        parts.sort();
    }
    (value.kind(), parts)
}

type Contents = BTreeMap<Vec<u8>, (Option<u64>, Kind, Vec<Vec<u8>>)>;

/// All pairs, also those whose time has passed: no time has passed at time 0.
fn all(keyspace: &Keyspace) -> Contents {
    let (mut all, mut cursor) = (Contents::new(), 0);
    loop {
        cursor = keyspace.scan(cursor, 0, |key, _| {
            let (kind, parts) = contents(keyspace.value(key, 0).expect("it was found"));
            let expires_ms = keyspace.expires_ms(key, 0).expect("it was found");
            all.insert(key.to_vec(), (expires_ms, kind, parts));
        });
        if cursor == 0 {
            return all;
        }
    }
}

fn options(seed: u64) -> Options {
    let engine = freeport_kv_engine::Options { memory_bytes: 64 << 20, seed, ..Default::default() };
    let limits = Limits {
        hash_entries: 6,
        set_entries: 6,
        zset_entries: 6,
        list_node_bytes: 60,
        stream_node_entries: 4,
        hash_seed: seed,
        ..Limits::default()
    };
    Options { engine, limits }
}

fn load(mut bytes: &[u8], database: u16, seed: u64) -> Keyspace {
    let options = options(seed);
    let mut keyspace = Keyspace::new(options.clone()).expect("options are sound");
    while let Some(entry) = ImageEntry::read(&mut bytes, &options.limits).expect("it was written") {
        assert_eq!(entry.database, database);
        assert!(keyspace.kind(entry.key, 0).is_none(), "a pair is in an image once");
        keyspace.insert(entry.key, entry.value, 0).expect("there is memory");
    }
    keyspace
}

/// Changes the value of a key that has this type, or none.
fn change<T: Type>(
    keyspace: &mut Keyspace,
    key: &[u8],
    now_ms: u64,
    change: impl FnOnce(&mut T, &Limits),
) {
    // A value of another type is refused, which is a case too.
    let _ = keyspace.change(key, now_ms, change);
}

fn change_collection(random: &mut fastrand::Rng, keyspace: &mut Keyspace, key: &[u8], now: u64) {
    let word = vec![random.u8(b'a'..=b'z'); random.usize(1..12)];
    match random.u8(0..10) {
        0 => change(keyspace, key, now, |hash: &mut Hash, limits| {
            hash.set(limits, &word, b"value");
        }),
        1 => change(keyspace, key, now, |hash: &mut Hash, _| {
            hash.remove(&word);
        }),
        2 => change(keyspace, key, now, |list: &mut List, limits| {
            list.push(limits, End::Back, &word);
        }),
        3 => change(keyspace, key, now, |list: &mut List, limits| {
            list.pop(limits, End::Front);
        }),
        4 => change(keyspace, key, now, |set: &mut Set, limits| {
            set.add(limits, &word);
        }),
        5 => change(keyspace, key, now, |set: &mut Set, _| {
            set.remove(&word);
        }),
        6 => change(keyspace, key, now, |set: &mut ZSet, limits| {
            let score = f64::from(word[0]);
            set.add(limits, &word, score, AddOptions::default()).expect("a number");
        }),
        7 => change(keyspace, key, now, |stream: &mut Stream, limits| {
            // Ids that do not ascend are refused.
            let _ = stream.add(limits, NewId::Auto, &[b"field", &word], now);
        }),
        8 => change(keyspace, key, now, |stream: &mut Stream, _| {
            let start = GroupStart::parse(b"0").expect("an id");
            let _ = stream.create_group(b"group", start, None);
            let read =
                GroupRead { from: ReadFrom::New, count: 3, now_ms: now, is_acknowledged: false };
            let _ = stream.read_group(b"group", &word[..1], &read, |_, _| ());
        }),
        _ => {
            let _ = keyspace.shrink(key, now, |list: &mut List, limits| {
                list.pop(limits, End::Back);
            });
        }
    }
}

fn change_key(random: &mut fastrand::Rng, keyspace: &mut Keyspace, keys: [&[u8]; 2], now: u64) {
    let [key, other] = keys;
    match random.u8(0..9) {
        0 | 1 => {
            let value = vec![random.u8(..); random.usize(0..100)];
            let expiry = match random.u8(0..3) {
                0 => Expiry::AtMs(now + random.u64(0..300)),
                1 => Expiry::Keep,
                _ => Expiry::Never,
            };
            keyspace.set_string(key, &value, expiry, now).expect("there is memory");
        }
        2 => {
            let _ = keyspace.update_string(key, now, |bytes| bytes.fill(random.u8(..)));
        }
        3 => {
            let _ = keyspace.lengthen_string(key, now, random.usize(0..120));
        }
        4 => {
            keyspace.remove(key, now);
        }
        5 => {
            let at = random.bool().then(|| now + random.u64(0..300));
            keyspace.set_expiry(key, at, now).expect("there is memory");
        }
        6 => {
            keyspace.rename(key, other, now).expect("there is memory");
        }
        7 => {
            if let Some(copy) = keyspace.copy(key, now) {
                keyspace.insert(other, copy, now).expect("there is memory");
            }
        }
        _ => {
            let registry = Registry::built_in();
            let add = registry.update(Update::Add.id()).expect("built in");
            keyspace.set_string(key, &[7; 8], Expiry::Keep, now).expect("there is memory");
            keyspace
                .update_scalar(key, now, &add, (Element::U64, &1_u64.to_le_bytes()))
                .expect("a counter");
        }
    }
}

/// Two keyspaces between which keys move.
struct Pair {
    both: [Keyspace; 2],
    now_ms: u64,
    /// Keys are numbers below this.
    keys: u32,
}

impl Pair {
    fn key(&self, random: &mut fastrand::Rng) -> Vec<u8> {
        let number = random.u32(0..self.keys);
        // Some keys are too long for the index.
        format!("{number}{}", ".".repeat(number as usize % 40)).into_bytes()
    }

    fn step(&mut self, random: &mut fastrand::Rng) {
        self.now_ms += random.u64(0..3);
        let (now, key, other) = (self.now_ms, self.key(random), self.key(random));
        let [one, two] = &mut self.both;
        let (one, two) = if random.bool() { (one, two) } else { (two, one) };
        match random.u8(0..24) {
            0 => {
                one.move_to(&key, (two, &other), now).expect("there is memory");
            }
            1 => {
                one.expire_some(now, 20, |_| ());
            }
            2..14 => change_collection(random, one, &key, now),
            _ => change_key(random, one, [&key, &other], now),
        }
    }
}

/// Steps before and during the image, and chains of a step of the image. Returns whether the index
/// grew meanwhile.
fn try_once(seed: u64, [before, steps, chains]: [usize; 3]) -> bool {
    let mut random = fastrand::Rng::with_seed(seed);
    let both = [seed, seed + 1].map(|seed| Keyspace::new(options(seed)).expect("sound"));
    let mut pair = Pair { both, now_ms: 1_000, keys: before as u32 / 4 + 10 };
    (0..before).for_each(|_| pair.step(&mut random));
    // The index grows during the image.
    pair.keys *= 4;
    let expected = [all(&pair.both[0]), all(&pair.both[1])];
    let mut bytes = [vec![], vec![]];
    let mut is_done = [false; 2];
    for (keyspace, database) in pair.both.iter_mut().zip([3, 9]) {
        keyspace.begin_image(database);
    }
    let buckets = pair.both[0].engine().buckets();
    let mut step = 0;
    while is_done != [true; 2] {
        (0..random.usize(0..steps)).for_each(|_| pair.step(&mut random));
        let at = step % 2;
        if !is_done[at] {
            let keyspace = &mut pair.both[at];
            // A bit for each bucket, in a vector that doubles.
            let bitmap_bytes = keyspace.engine().buckets() / 4 + 64;
            let most = bitmap_bytes + 2 * keyspace.pending_image_bytes() + 64;
            assert!(keyspace.image_memory_bytes() <= most, "seed {seed}");
            let progress = keyspace.image_some(chains, &mut bytes[at]);
            assert_ne!(progress, ImageStep::Broken);
            is_done[at] = progress == ImageStep::Done;
            assert_eq!(keyspace.pending_image_bytes(), 0);
        }
        step += 1;
    }
    for ((bytes, expected), database) in bytes.iter().zip(expected).zip([3, 9]) {
        let loaded = load(bytes, database, seed + 77);
        let expiring = expected.values().filter(|(expires, ..)| expires.is_some()).count();
        assert_eq!((loaded.len(), loaded.expiring()), (expected.len(), expiring), "seed {seed}");
        assert!(all(&loaded) == expected, "seed {seed}: the pairs of database {database} differ");
    }
    pair.both[0].engine().buckets() > buckets
}

#[test]
fn a_loaded_image_is_the_keyspace_at_its_beginning() {
    for round in 0..usual_or_long(30, 2_000) {
        try_once(seed() + round, [400, 12, 3]);
        try_once(seed() + round, [30, 40, 1]);
    }
    for round in 0..usual_or_long(2, 40) {
        assert!(try_once(seed() + round, [20_000, 30, 4]), "the index grows");
        try_once(seed() + round, [20_000, 3, 500]);
    }
}

#[test]
fn a_fixed_index_has_images_too() {
    let index = freeport_kv_engine::Index::Fixed { ratio: 0.01 };
    let mut options = options(5);
    options.engine.index = index;
    let mut keyspace = Keyspace::new(options).expect("options are sound");
    let set = |keyspace: &mut Keyspace, number: u32, value: &[u8]| {
        keyspace
            .set_string(&number.to_le_bytes(), value, Expiry::Never, 0)
            .expect("there is memory");
    };
    // There are more keys than slots, so that chains are long.
    (0..150_000).for_each(|number| set(&mut keyspace, number, b"value"));
    keyspace.begin_image(0);
    let mut bytes = vec![];
    let mut number = 0;
    while keyspace.image_some(50, &mut bytes) == ImageStep::More {
        set(&mut keyspace, number, b"other");
        set(&mut keyspace, 200_000 + number, b"new");
        number += 1;
    }
    assert!(number > 100);
    let loaded = load(&bytes, 0, 6);
    assert_eq!(loaded.len(), 150_000);
    for number in 0..150_000_u32 {
        assert_eq!(loaded.string(&number.to_le_bytes(), 0), Ok(Some(&b"value"[..])));
    }
}

#[test]
fn an_image_can_be_given_up_and_begun_again() {
    let mut keyspace = Keyspace::new(options(1)).expect("options are sound");
    let mut bytes = vec![];
    assert_eq!(keyspace.image_some(1, &mut bytes), ImageStep::Done);
    for number in 0..1_000_u32 {
        let key = number.to_le_bytes();
        keyspace.set_string(&key, b"value", Expiry::Never, 0).expect("there is memory");
    }
    keyspace.begin_image(0);
    assert_eq!(keyspace.image_some(1, &mut bytes), ImageStep::More);
    keyspace.end_image();
    assert_eq!((keyspace.image_memory_bytes(), bytes.is_empty()), (0, false));
    bytes.clear();
    assert_eq!(keyspace.image_some(1, &mut bytes), ImageStep::Done);
    keyspace.begin_image(0);
    keyspace.clear();
    keyspace.set_string(b"key", b"value", Expiry::Never, 0).expect("there is memory");
    assert_eq!(keyspace.image_some(1, &mut bytes), ImageStep::Broken);
    assert_eq!(keyspace.pending_image_bytes(), 0);
    keyspace.begin_image(0);
    while keyspace.image_some(1, &mut bytes) == ImageStep::More {}
    assert_eq!(load(&bytes, 0, 2).len(), 1);
}
