// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Divides a snapshot and a log by slots: what concerns the slots that move, and among them what
//! each worker has to execute.
//!
//! Commands of a cluster have all their keys in one slot, so a record belongs to one slot. Units
//! are divided nevertheless: a script may have evicted keys of other slots, and a log may be older
//! than the cluster. A record of such times that needs keys of several slots cannot be divided; the
//! source then writes a snapshot, which has no such records behind it.

use std::sync::Arc;

use freeport_kv_commands::{Spec, Table};
use freeport_kv_keyspace::RawEntry;
use freeport_kv_protocol::slots::slot_of;
use thiserror::Error;

use crate::commands::Action;
use crate::persistence::record::{Reader, Record, write_pairs, write_time};
use crate::persistence::{PAIRS, RECORDS};

/// The database of a cluster. Others have keys from the time before it, which nobody can reach.
pub const DATABASE: u16 = 0;

/// A part of a log cannot be divided by slots.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DivisionError {
    /// A command needs keys of several slots.
    #[error("{0} in the log has keys of several slots, from a time before the cluster")]
    Mixed(String),
    /// There is something that this version does not know.
    #[error("the log cannot be read: {0}")]
    Unreadable(String),
}

/// A place of a record.
enum Place {
    Slot(u16),
    /// It removes all keys.
    All,
    /// It concerns no key of the cluster.
    None,
}

/// Parts of units by slots.
#[derive(Clone, Debug)]
pub struct Divider {
    table: Arc<Table<Action>>,
}

impl Divider {
    /// A divider of units with commands of this table.
    pub fn new(table: Arc<Table<Action>>) -> Self {
        Self { table }
    }

    /// Appends each record of a unit to the part that is chosen for its slot, if one is. So parts
    /// that are empty before are units of their own. Returns whether all keys were removed: then
    /// the parts have only what came after that.
    ///
    /// # Errors
    /// See [`DivisionError`].
    pub fn unit(
        &self,
        unit: &[u8],
        choose: impl Fn(u16) -> Option<usize>,
        parts: &mut [Vec<u8>],
    ) -> Result<bool, DivisionError> {
        let (mut reader, mut now_ms, mut is_cleared) = (Reader::new(unit), 0, false);
        let mut written_ms = vec![None; parts.len()];
        loop {
            let begin = unit.len() - reader.rest();
            let Some(record) = reader.next().map_err(DivisionError::Unreadable)? else {
                return Ok(is_cleared);
            };
            let place = match &record {
                Record::Time(time) => {
                    now_ms = *time;
                    continue;
                }
                Record::Pairs(pairs) => {
                    self.pairs(pairs, &choose, parts)?;
                    continue;
                }
                record => self.place(record, &choose)?,
            };
            match place {
                Place::None => {}
                Place::All => {
                    is_cleared = true;
                    parts.iter_mut().for_each(Vec::clear);
                    written_ms.fill(None);
                }
                Place::Slot(slot) => {
                    let Some(chosen) = choose(slot) else { continue };
                    if written_ms[chosen].replace(now_ms) != Some(now_ms) {
                        write_time(&mut parts[chosen], now_ms);
                    }
                    parts[chosen].extend_from_slice(&unit[begin..unit.len() - reader.rest()]);
                }
            }
        }
    }

    /// As [`Divider::unit`], for an entry of a snapshot, which becomes records of units.
    ///
    /// # Errors
    /// See [`DivisionError`].
    pub fn entry(
        &self,
        entry: &[u8],
        choose: impl Fn(u16) -> Option<usize>,
        parts: &mut [Vec<u8>],
    ) -> Result<(), DivisionError> {
        match entry.split_first() {
            Some((&PAIRS, pairs)) => self.pairs(pairs, &choose, parts),
            // Functions belong to each node, not to slots.
            Some((&RECORDS, _)) => Ok(()),
            kind => {
                let text = format!("an entry of an unknown kind, {:?}", kind.map(|it| it.0));
                Err(DivisionError::Unreadable(text))
            }
        }
    }

    /// Calls `visit` with each key of a unit.
    ///
    /// # Errors
    /// The unit cannot be read. Keys before that were visited.
    pub fn visit_keys(&self, unit: &[u8], mut visit: impl FnMut(&[u8])) -> Result<(), String> {
        let mut reader = Reader::new(unit);
        while let Some(record) = reader.next()? {
            match record {
                Record::Removal { key, .. } => visit(key),
                Record::Pairs(mut pairs) => {
                    let read = |pairs: &mut _| RawEntry::read(pairs).map_err(|it| it.to_string());
                    while let Some(entry) = read(&mut pairs)? {
                        visit(entry.key);
                    }
                }
                Record::Command { arguments, .. } => {
                    if let Some(spec) = self.spec(&arguments) {
                        // Those that exist are visited before the error.
                        let _ = spec.keys.visit(&arguments, |at| visit(arguments[at]));
                    }
                }
                Record::Time(_) | Record::Functions { .. } => {}
            }
        }
        Ok(())
    }

    fn pairs(
        &self,
        mut pairs: &[u8],
        choose: &impl Fn(u16) -> Option<usize>,
        parts: &mut [Vec<u8>],
    ) -> Result<(), DivisionError> {
        let mut divided = vec![vec![]; parts.len()];
        while let Some(RawEntry { database, key, bytes }) = RawEntry::read(&mut pairs)
            .map_err(|error| DivisionError::Unreadable(error.to_string()))?
        {
            if database == DATABASE
                && let Some(chosen) = choose(slot_of(key))
            {
                divided[chosen].extend_from_slice(bytes);
            }
        }
        let some = parts.iter_mut().zip(&divided).filter(|(_, divided)| !divided.is_empty());
        some.for_each(|(part, divided)| write_pairs(part, divided));
        Ok(())
    }

    /// The command of a record, if its number of arguments is right.
    fn spec(&self, arguments: &[&[u8]]) -> Option<&Spec> {
        let spec = &self.table.get(arguments[0])?.spec;
        spec.check_arity(arguments.len()).is_ok().then_some(spec)
    }

    fn place(
        &self,
        record: &Record<'_>,
        choose: &impl Fn(u16) -> Option<usize>,
    ) -> Result<Place, DivisionError> {
        match record {
            Record::Removal { database: DATABASE, key } => Ok(Place::Slot(slot_of(key))),
            Record::Command { database, arguments, .. } => {
                self.place_of_command(*database, arguments, choose)
            }
            _ => Ok(Place::None),
        }
    }

    fn place_of_command(
        &self,
        database: u16,
        arguments: &[&[u8]],
        choose: &impl Fn(u16) -> Option<usize>,
    ) -> Result<Place, DivisionError> {
        let name = || String::from_utf8_lossy(arguments[0]).to_ascii_uppercase();
        let Some(spec) = self.spec(arguments) else {
            return Err(DivisionError::Unreadable(format!("an unknown command, {}", name())));
        };
        let is_copy_of = |word: &&[u8]| word.eq_ignore_ascii_case(b"db");
        match (spec.name, database) {
            ("flushall", _) | ("flushdb", DATABASE) => return Ok(Place::All),
            // They bring keys from other databases, which a cluster refuses.
            ("swapdb" | "move", _) => return Err(DivisionError::Mixed(name())),
            ("copy", _) if arguments.iter().skip(3).any(is_copy_of) => {
                return Err(DivisionError::Mixed(name()));
            }
            (_, DATABASE) => {}
            _ => return Ok(Place::None),
        }
        if spec.keys.needs_all(arguments) {
            return Err(DivisionError::Mixed(name()));
        }
        let mut slots = vec![];
        let visited = spec.keys.visit(arguments, |at| slots.push(slot_of(arguments[at])));
        visited.map_err(|error| DivisionError::Unreadable(error.text().to_owned()))?;
        let Some(&first) = slots.first() else { return Ok(Place::None) };
        let is_one = slots.iter().all(|slot| *slot == first);
        let is_chosen = slots.iter().any(|slot| choose(*slot).is_some());
        match is_one || !is_chosen {
            true => Ok(Place::Slot(first)),
            false => Err(DivisionError::Mixed(name())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::LazyLock;

    use freeport_kv_commands::{Call, Effects, FAMILIES, Run, Session, Shard, ShardOptions, Store};
    use freeport_kv_keyspace::{ImageStep, Options};

    use super::*;
    use crate::commands::table;
    use crate::persistence::Applier;
    use crate::persistence::record::{write_command, write_functions, write_removal};

    const NOW_MS: u64 = 1_000_000;

    fn divider() -> Divider {
        Divider::new(Arc::new(table()))
    }

    fn store() -> Store {
        Store::of(Shard::new(ShardOptions { databases: 2, keyspace: Options::default() }))
    }

    fn words(line: &str) -> Vec<&[u8]> {
        line.split(' ').map(str::as_bytes).collect()
    }

    /// The entries of an image.
    fn image(store: &mut Store) -> Vec<u8> {
        let mut bytes = vec![];
        let shard = store.shard_mut(0);
        shard.begin_image();
        while shard.image_some(100, &mut bytes) == ImageStep::More {}
        bytes
    }

    /// All entries of an image by their keys.
    fn entries(image: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let (mut rest, mut entries) = (image, BTreeMap::new());
        while let Some(entry) = RawEntry::read(&mut rest).expect("entries") {
            entries.insert(entry.key.to_vec(), entry.bytes.to_vec());
        }
        entries
    }

    /// Executes a command as a server does; appends its record, if it has changed something.
    /// Returns the reply.
    fn execute(store: &mut Store, line: &str, unit: &mut Vec<u8>) -> Vec<u8> {
        static TABLE: LazyLock<Table<Run>> =
            LazyLock::new(|| Table::new(FAMILIES.iter().copied().flatten().copied()));
        let arguments = words(line);
        let command = TABLE.get(arguments[0]).expect("there is such a command");
        let (mut effects, mut reply) = (Effects { records: true, ..Effects::default() }, vec![]);
        let session = Session { may_block: false, ..Session::new(0) };
        let mut call = Call::new(&arguments, session, (store, &mut effects), NOW_MS, &mut reply);
        let has_succeeded = command.execute(&mut call);
        if effects.changes > 0 {
            match effects.logged {
                Some(words) => write_command(unit, 0, &words, has_succeeded),
                None => write_command(unit, 0, &arguments, has_succeeded),
            }
        }
        reply
    }

    /// Digests of the values of all keys. Their order in memory does not matter.
    fn digests(store: &mut Store) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let image = image(store);
        let keys = entries(&image).into_keys();
        keys.map(|key| {
            let line = format!("DEBUG DIGEST-VALUE {}", String::from_utf8_lossy(&key));
            let digest = execute(store, &line, &mut vec![]);
            (key, digest)
        })
        .collect()
    }

    fn random_command(random: &mut fastrand::Rng, tag: u8) -> String {
        let (number, key) = (random.u16(..300), random.u8(..3));
        match random.u8(..14) {
            0 => format!("SET {{{tag}}}s{key} {number}"),
            1 => format!("INCRBY {{{tag}}}s{key} {number}"),
            2 => format!("MSET {{{tag}}}s0 {number} {{{tag}}}s1 {number}"),
            3 => format!("LPUSH {{{tag}}}l{key} {number} x"),
            4 => format!("LMOVE {{{tag}}}l{key} {{{tag}}}l0 LEFT RIGHT"),
            5 => format!("SADD {{{tag}}}m{key} {number} a b c"),
            6 => format!("SPOP {{{tag}}}m{key}"),
            7 => format!("HSET {{{tag}}}h{key} f{number} {number}"),
            8 => format!("ZADD {{{tag}}}z{key} {number} {number}"),
            9 => format!("ZUNIONSTORE {{{tag}}}z0 2 {{{tag}}}z1 {{{tag}}}z2"),
            10 => format!("XADD {{{tag}}}x{key} MAXLEN ~ 20 {number}-1 f {number}"),
            11 => format!("PEXPIRE {{{tag}}}h{key} {}", 1 + number),
            12 => format!("RENAME {{{tag}}}l{key} {{{tag}}}l1"),
            _ => format!("DEL {{{tag}}}s{key} {{{tag}}}l{key}"),
        }
    }

    /// A log is divided in two, whose results have all keys of the whole.
    #[test]
    fn both_parts_of_a_log_have_everything() {
        let divider = divider();
        let choose = |slot: u16| Some(usize::from(slot.is_multiple_of(3)));
        let mut random = fastrand::Rng::with_seed(freeport_testbed::seed());
        let (mut whole, mut parts) = (store(), [store(), store()]);
        let mut appliers = [Applier::new(2), Applier::new(2)];
        for round in 0..5_000 {
            let mut unit = vec![];
            write_time(&mut unit, NOW_MS);
            let tag = random.u8(..40);
            for _ in 0..random.u8(1..4) {
                let line = random_command(&mut random, tag);
                execute(&mut whole, &line, &mut unit);
            }
            match round % 1_000 {
                // A script has evicted a key of another slot.
                10 => {
                    let key = format!("{{{}}}s0", random.u8(..40));
                    execute(&mut whole, &format!("DEL {key}"), &mut vec![]);
                    write_removal(&mut unit, 0, key.as_bytes());
                }
                500 => drop(execute(&mut whole, "FLUSHALL", &mut unit)),
                _ => {}
            }
            let mut divided = vec![vec![], vec![]];
            let is_cleared = divider.unit(&unit, choose, &mut divided).expect("it is divided");
            for ((applier, store), unit) in appliers.iter_mut().zip(&mut parts).zip(&divided) {
                if is_cleared {
                    *store = self::store();
                }
                applier.apply((store, &mut Effects::default()), unit).expect("the same results");
            }
        }
        let whole = digests(&mut whole);
        let [one, other] = parts.map(|mut store| digests(&mut store));
        assert!(one.keys().all(|key| choose(slot_of(key)) == Some(0)) && !one.is_empty());
        assert!(other.keys().all(|key| choose(slot_of(key)) == Some(1)) && !other.is_empty());
        let both: BTreeMap<_, _> = one.into_iter().chain(other).collect();
        let differing: Vec<_> = whole
            .keys()
            .filter(|key| whole.get(*key) != both.get(*key))
            .map(|key| String::from_utf8_lossy(key))
            .collect();
        assert!(differing.is_empty() && whole.len() == both.len(), "{differing:?}");
    }

    #[test]
    fn entries_of_a_snapshot_are_divided() {
        let mut store = store();
        (0..100).for_each(|number| {
            execute(&mut store, &format!("SET {number} {number}"), &mut vec![]);
        });
        let all = image(&mut store);
        let entry = [&[PAIRS][..], &all].concat();
        let mut parts = vec![vec![], vec![]];
        let choose = |slot| (slot < 9_000).then_some(usize::from(slot < 3_000));
        divider().entry(&entry, choose, &mut parts).expect("it is divided");
        let mut keys = vec![];
        for (number, part) in parts.iter().enumerate() {
            divider()
                .visit_keys(part, |key| {
                    assert_eq!(choose(slot_of(key)), Some(number));
                    keys.push(key.to_vec());
                })
                .expect("it is a unit");
        }
        let expected = entries(&all).into_keys().filter(|key| slot_of(key) < 9_000);
        keys.sort();
        assert_eq!(keys, expected.collect::<Vec<_>>());
        // Functions stay where they are.
        let mut functions = vec![RECORDS];
        write_functions(&mut functions, 1, b"dump");
        let mut parts = vec![vec![]];
        divider().entry(&functions, |_| Some(0), &mut parts).expect("it is divided");
        assert!(parts[0].is_empty());
        assert!(divider().entry(&[7], |_| None, &mut []).is_err());
    }

    /// The bytes come from another server.
    #[test]
    fn damaged_units_are_no_panic() {
        let (mut random, mut store) = (fastrand::Rng::with_seed(freeport_testbed::seed()), store());
        let (divider, mut refused) = (divider(), 0);
        for _ in 0..3_000 {
            let mut unit = vec![];
            let line = random_command(&mut random, 1);
            execute(&mut store, &line, &mut unit);
            write_pairs(&mut unit, &image(&mut store)[..]);
            for _ in 0..random.u8(1..4) {
                let at = random.usize(..unit.len());
                unit[at] = random.u8(..);
            }
            let mut parts = vec![vec![]];
            refused += usize::from(divider.unit(&unit, |_| Some(0), &mut parts).is_err());
            let _ = divider.visit_keys(&unit, |_| ());
        }
        assert!(refused > 0);
    }

    #[test]
    fn commands_from_before_the_cluster_are_refused() {
        let divide = |database: u16, line: &str| {
            let mut unit = vec![];
            write_command(&mut unit, database, &words(line), true);
            let choose = |slot| (slot == slot_of(b"foo")).then_some(0);
            let mut parts = vec![vec![]];
            divider()
                .unit(&unit, choose, &mut parts)
                .map(|is_cleared| (is_cleared, parts.remove(0)))
        };
        for line in ["MSET foo 1 bar 2", "SWAPDB 0 1", "MOVE bar 1", "COPY a b DB 1"] {
            let name = line.split(' ').next().expect("a name").to_owned();
            assert_eq!(divide(0, line), Err(DivisionError::Mixed(name)), "{line}");
        }
        let nothing = || Ok((false, vec![]));
        for line in ["MSET bar 1 baz 2", "SET bar foo"] {
            assert_eq!(divide(0, line), nothing(), "{line}");
        }
        assert_eq!(divide(1, "SET foo 1"), nothing());
        assert_eq!(divide(1, "FLUSHDB"), nothing());
        assert_eq!(divide(1, "FLUSHALL"), Ok((true, vec![])));
        assert!(matches!(divide(0, "NOSUCH foo"), Err(DivisionError::Unreadable(_))));
        assert!(divide(0, "MSET foo 1 {foo}bar 2").expect("one slot").1.len() > 10);
    }
}
