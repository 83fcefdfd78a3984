// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random changes of values of several types under a few keys, while time passes, on a keyspace and
//! on plain maps: every result is equal, and so is what is left.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use freeport_kv_keyspace::{Error, Expiry, Keyspace, Kind, Options};
use freeport_kv_types::list::End;
use freeport_kv_types::{Hash, Limits, List, Set};
use freeport_testbed::{seed, usual_or_long};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Plain {
    String(Vec<u8>),
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    List(VecDeque<Vec<u8>>),
    Set(BTreeSet<Vec<u8>>),
}

impl Plain {
    fn kind(&self) -> Kind {
        match self {
            Self::String(_) => Kind::String,
            Self::Hash(_) => Kind::Hash,
            Self::List(_) => Kind::List,
            Self::Set(_) => Kind::Set,
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::String(_) => false,
            Self::Hash(hash) => hash.is_empty(),
            Self::List(list) => list.is_empty(),
            Self::Set(set) => set.is_empty(),
        }
    }
}

#[derive(Default)]
struct Model {
    values: HashMap<Vec<u8>, (Plain, Option<u64>)>,
}

impl Model {
    fn pass(&mut self, now_ms: u64) {
        self.values.retain(|_, (_, expires)| expires.is_none_or(|at| at > now_ms));
    }

    /// Applies a change to the value of a key that is of the type, or new.
    fn change<R>(
        &mut self,
        key: &[u8],
        empty: Plain,
        change: impl FnOnce(&mut Plain) -> R,
    ) -> Result<R, Error> {
        let kind = empty.kind();
        let (value, _) = self.values.entry(key.to_vec()).or_insert((empty, None));
        if value.kind() != kind {
            return Err(Error::WrongType);
        }
        let result = change(value);
        if value.is_empty() {
            self.values.remove(key);
        }
        Ok(result)
    }
}

struct Both {
    ours: Keyspace,
    model: Model,
    now_ms: u64,
}

fn word(random: &mut fastrand::Rng) -> Vec<u8> {
    let length = if random.u8(0..20) == 0 { 90 } else { random.usize(1..6) };
    vec![random.u8(b'a'..b'j'); length]
}

impl Both {
    fn step(&mut self, random: &mut fastrand::Rng, key: &[u8]) {
        let now = self.now_ms;
        let (one, other) = (word(random), word(random));
        match random.u8(0..13) {
            0 | 1 => {
                let expiry = match random.u8(0..3) {
                    0 => Expiry::Never,
                    1 => Expiry::AtMs(now + random.u64(1..300)),
                    _ => Expiry::Keep,
                };
                self.ours.set_string(key, &one, expiry, now).expect("there is memory");
                let kept = self.model.values.get(key).and_then(|(_, expires)| *expires);
                let expires = match expiry {
                    Expiry::Never => None,
                    Expiry::AtMs(at) => Some(at),
                    Expiry::Keep => kept,
                };
                self.model.values.insert(key.to_vec(), (Plain::String(one), expires));
            }
            2..5 => {
                let set = |hash: &mut Hash, limits: &Limits| hash.set(limits, &one, &other);
                let is_new = self.ours.change(key, now, set);
                let expected = self.model.change(key, Plain::Hash(BTreeMap::new()), |value| {
                    let Plain::Hash(hash) = value else { unreachable!() };
                    hash.insert(one.clone(), other.clone()).is_none()
                });
                assert_eq!(is_new, expected);
            }
            5 => {
                let removed = self.ours.change(key, now, |hash: &mut Hash, _| hash.remove(&one));
                let expected = self.model.change(key, Plain::Hash(BTreeMap::new()), |value| {
                    let Plain::Hash(hash) = value else { unreachable!() };
                    hash.remove(&one).is_some()
                });
                assert_eq!(removed, expected);
            }
            6 | 7 => {
                let push = |list: &mut List, limits: &Limits| {
                    list.push(limits, End::Back, &one);
                    list.len()
                };
                let length = self.ours.change(key, now, push);
                let expected = self.model.change(key, Plain::List(VecDeque::new()), |value| {
                    let Plain::List(list) = value else { unreachable!() };
                    list.push_back(one.clone());
                    list.len()
                });
                assert_eq!(length, expected);
            }
            8 => {
                let pop = |list: &mut List, limits: &Limits| list.pop(limits, End::Front);
                let popped = self.ours.change(key, now, pop);
                let expected = self.model.change(key, Plain::List(VecDeque::new()), |value| {
                    let Plain::List(list) = value else { unreachable!() };
                    list.pop_front()
                });
                assert_eq!(popped, expected);
            }
            9 => {
                let add = |set: &mut Set, limits: &Limits| set.add(limits, &one);
                let is_new = self.ours.change(key, now, add);
                let expected = self.model.change(key, Plain::Set(BTreeSet::new()), |value| {
                    let Plain::Set(set) = value else { unreachable!() };
                    set.insert(one.clone())
                });
                assert_eq!(is_new, expected);
            }
            10 => {
                let at = random.bool().then(|| (now + random.u64(0..200)).saturating_sub(5));
                let is_there = self.ours.set_expiry(key, at, now).expect("there is memory");
                let value = self.model.values.get_mut(key);
                assert_eq!(is_there, value.is_some());
                if let Some((_, expires)) = value {
                    *expires = at;
                }
            }
            11 => {
                let is_there = self.ours.remove(key, now);
                assert_eq!(is_there, self.model.values.remove(key).is_some());
            }
            _ => {
                let to = [key, b"'"].concat();
                let to = if random.bool() { &to[..] } else { &key[..1] };
                let is_there = self.ours.rename(key, to, now).expect("there is memory");
                assert_eq!(is_there, self.model.values.contains_key(key));
                if let Some(value) = self.model.values.remove(key) {
                    self.model.values.insert(to.to_vec(), value);
                }
            }
        }
    }

    fn check(&self, key: &[u8]) {
        let now = self.now_ms;
        let expected = self.model.values.get(key);
        assert_eq!(self.ours.kind(key, now), expected.map(|(value, _)| value.kind()));
        assert_eq!(self.ours.expires_ms(key, now), expected.map(|(_, expires)| *expires));
        match expected.map(|(value, _)| value) {
            Some(Plain::Hash(hash)) => {
                let ours = self.ours.read::<Hash>(key, now).expect("a hash").expect("it is there");
                let fields = ours.iter().map(|[field, value]| (field.to_vec(), value.to_vec()));
                assert_eq!(fields.collect::<BTreeMap<_, _>>(), *hash);
                assert_eq!(self.ours.string(key, now), Err(Error::WrongType));
            }
            Some(Plain::List(list)) => {
                let ours = self.ours.read::<List>(key, now).expect("a list").expect("it is there");
                assert_eq!(ours.iter().map(|it| it.to_vec()).collect::<VecDeque<_>>(), *list);
            }
            Some(Plain::Set(set)) => {
                let ours = self.ours.read::<Set>(key, now).expect("a set").expect("it is there");
                assert_eq!(ours.iter().map(|it| it.to_vec()).collect::<BTreeSet<_>>(), *set);
            }
            Some(Plain::String(text)) => {
                assert_eq!(self.ours.string(key, now), Ok(Some(&text[..])));
                assert!(matches!(self.ours.read::<Hash>(key, now), Err(Error::WrongType)));
            }
            None => assert_eq!(self.ours.string(key, now), Ok(None)),
        }
    }
}

#[test]
fn every_result_is_that_of_plain_maps() {
    for (number, hash_entries) in [4, 128].into_iter().enumerate() {
        let seed = seed() + number as u64;
        let mut random = fastrand::Rng::with_seed(seed);
        let limits = Limits {
            hash_entries,
            set_entries: hash_entries,
            list_node_bytes: 64 * hash_entries / 4,
            hash_seed: seed,
            ..Limits::default()
        };
        let ours = Keyspace::new(Options { limits, ..Options::default() }).expect("sound");
        let mut both = Both { ours, model: Model::default(), now_ms: 1_000 };
        let keys: Vec<Vec<u8>> = (0..12).map(|number| format!("{number:x}").into_bytes()).collect();
        for step in 0..usual_or_long(40_000, 1_000_000) {
            let key = &keys[random.usize(..keys.len())];
            both.step(&mut random, key);
            both.model.pass(both.now_ms);
            both.check(key);
            if step % 5 == 0 {
                both.now_ms += random.u64(0..20);
                both.model.pass(both.now_ms);
            }
            if step % 97 == 0 {
                let now = both.now_ms;
                both.ours.expire_some(now, 30, |_| ());
            }
        }
        let mut left = vec![];
        let mut cursor = 0;
        loop {
            cursor = both.ours.scan(cursor, both.now_ms, |key, _| left.push(key.to_vec()));
            if cursor == 0 {
                break;
            }
        }
        left.sort();
        let mut expected: Vec<Vec<u8>> = both.model.values.keys().cloned().collect();
        expected.sort();
        assert_eq!(left, expected, "seed {seed}");
        for key in left {
            both.check(&key);
            assert!(both.ours.remove(&key, both.now_ms), "seed {seed}");
        }
        // Values that expired meanwhile are found too.
        both.ours.expire_some(u64::MAX, 4_096, |_| ());
        assert_eq!((both.ours.len(), both.ours.expiring(), both.ours.large_values()), (0, 0, 0));
    }
}
