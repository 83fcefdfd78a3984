// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random commands on a stream and on the plain model, whose results and states must agree.

use super::limits;
use super::model::{Model, Pairs, dump, text};
use freeport_kv_types::stream::{
    AutoClaim, Claim, ClaimTime, GroupRead, GroupStart, NewId, PendingQuery, ReadFrom, Trim,
};
use freeport_kv_types::{Limits, Stream, StreamError, StreamId};
use freeport_testbed::usual_or_long;

struct Walk {
    random: fastrand::Rng,
    limits: Limits,
    stream: Stream,
    model: Model,
    now: u64,
    /// Whether groups are created, which makes the stream large.
    has_groups: bool,
}

const GROUPS: [&str; 3] = ["g", "group", "h"];
const CONSUMERS: [&str; 4] = ["alice", "bob", "c", ""];

fn walk(seed: u64, limits: Limits, has_groups: bool, steps: usize) {
    let random = fastrand::Rng::with_seed(seed);
    let (stream, model) = (Stream::default(), Model::default());
    let mut walk = Walk { random, limits, stream, model, now: 1_000, has_groups };
    for step in 0..steps {
        walk.now += walk.random.u64(0..4);
        let name = walk.step();
        let (found, expected) = (dump(walk.stream.view()), walk.model.dump());
        assert!(found == expected, "seed {seed}, step {step}, {name}:\n{found}\n---\n{expected}");
        if walk.random.u8(..) < 16 {
            walk.reload();
        }
    }
}

impl Walk {
    fn step(&mut self) -> &'static str {
        match self.random.u8(0..30) {
            0..8 => self.add(),
            8 | 9 => self.delete(),
            10 => self.trim(),
            11 => self.set_id(),
            12 | 13 if self.has_groups => self.edit_groups(),
            14 | 15 => self.edit_consumers(),
            16..19 => self.read_new(),
            19 => self.read_pending(),
            20 | 21 => self.acknowledge(),
            22..24 => self.claim(),
            24 | 25 => self.claim_idle(),
            26 | 27 => self.list_pending(),
            _ => self.list_entries(),
        }
    }

    /// An id near those of the stream.
    fn id(&mut self) -> StreamId {
        let known = self.model.entries.len();
        match self.random.u8(0..4) {
            0 => StreamId::new(self.random.u64(900..self.now + 3), self.random.u64(0..3)),
            _ if known == 0 => self.model.last_id,
            _ => *self.model.entries.keys().nth(self.random.usize(..known)).unwrap(),
        }
    }

    fn name(&mut self) -> (&'static str, &'static str) {
        (GROUPS[self.random.usize(..3)], CONSUMERS[self.random.usize(..4)])
    }

    fn add(&mut self) -> &'static str {
        let id = match self.random.u8(0..6) {
            0 => NewId::AutoSeq(self.random.u64(900..self.now + 3)),
            1 => NewId::Exact(self.id()),
            2 => NewId::Exact(StreamId::new(self.now, self.random.u64(..))),
            _ => NewId::Auto,
        };
        let last = self.model.last_id;
        let expected = match id {
            NewId::Auto if self.now > last.ms => Some(StreamId::new(self.now, 0)),
            NewId::Auto => last.next(),
            NewId::AutoSeq(ms) if ms == last.ms => last.next().filter(|id| id.ms == ms),
            NewId::AutoSeq(ms) => Some(StreamId::new(ms, 0)),
            NewId::Exact(id) => Some(id),
        };
        let pairs: Pairs = match self.random.u8(0..5) {
            4 => vec![(b"a".into(), self.random.i64(..).to_string().into())],
            0 => vec![(vec![b'x'; self.random.usize(..9)], vec![b'y'; self.random.usize(..200)])],
            1 => vec![(b"other".into(), b"1".into()), (b"other".into(), vec![])],
            _ => vec![(b"a".into(), self.now.to_string().into()), (b"b".into(), b"2".into())],
        };
        let fields: Vec<&[u8]> = pairs.iter().flat_map(|(a, b)| [&a[..], &b[..]]).collect();
        let found = self.stream.add(&self.limits, id, &fields, self.now);
        assert_eq!(found.ok(), expected.filter(|id| *id > last), "{id:?} after {last}");
        if let Ok(id) = found {
            self.model.entries.insert(id, pairs);
            self.model.last_id = id;
            self.model.added += 1;
        }
        "add"
    }

    fn delete(&mut self) -> &'static str {
        let ids = [self.id(), self.id()];
        assert_eq!(self.stream.delete(&ids), self.model.delete(&ids));
        "delete"
    }

    fn trim(&mut self) -> &'static str {
        let entries = &self.model.entries;
        let length = entries.len() as u64;
        let kept = self.random.u64(0..length + 2);
        let id = self.id();
        let (trim, removable) = if self.random.bool() {
            (Trim::to_length(kept), length.saturating_sub(kept))
        } else {
            (Trim::to_id(id), self.model.entries.range(..id).count() as u64)
        };
        match self.random.u8(0..4) {
            0 => {
                let most = self.random.u64(0..10);
                let removed = self.stream.trim(&trim.approximately(most));
                assert!(removed <= removable && (most == 0 || removed <= most));
                self.model.remove_front(removed);
            }
            _ => {
                assert_eq!(self.stream.trim(&trim), removable, "{trim:?}");
                self.model.remove_front(removable);
            }
        }
        "trim"
    }

    fn set_id(&mut self) -> &'static str {
        let id = self.id();
        let added = self.random.bool().then(|| self.random.u64(0..80));
        let deleted = self.random.bool().then(|| self.id());
        let model = &mut self.model;
        let top = model.entries.keys().next_back().copied().unwrap_or_default();
        let length = model.entries.len() as u64;
        let expected = if deleted.is_some_and(|deleted| id < deleted) {
            Err(StreamError::BelowGivenDeleted)
        } else if id < model.max_deleted {
            Err(StreamError::BelowDeleted)
        } else if id < top {
            Err(StreamError::BelowTop)
        } else if added.is_some_and(|added| added < length) {
            Err(StreamError::AddedBelowLength)
        } else {
            model.last_id = id;
            model.added = added.unwrap_or(model.added);
            let deleted = deleted.filter(|id| *id != StreamId::MIN);
            model.max_deleted = deleted.unwrap_or(model.max_deleted);
            Ok(())
        };
        assert_eq!(self.stream.set_id(id, added, deleted), expected);
        "set_id"
    }

    fn edit_groups(&mut self) -> &'static str {
        let (name, _) = self.name();
        let exists = self.model.groups.contains_key(name);
        let start =
            if self.random.bool() { GroupStart::Last } else { GroupStart::After(self.id()) };
        let id = match start {
            GroupStart::Last => self.model.last_id,
            GroupStart::After(id) => id,
        };
        let read = self.random.bool().then(|| self.random.u64(0..9));
        match self.random.u8(0..8) {
            0 => {
                assert_eq!(self.stream.destroy_group(name.as_bytes()), exists);
                self.model.groups.remove(name);
                "destroy_group"
            }
            1 => {
                let found = self.stream.set_group(name.as_bytes(), start, read);
                assert_eq!(found.is_ok(), exists);
                if let Some(group) = self.model.groups.get_mut(name) {
                    (group.last_id, group.read) = (id, read);
                }
                "set_group"
            }
            _ => {
                let found = self.stream.create_group(name.as_bytes(), start, read);
                assert_eq!(found, if exists { Err(StreamError::GroupExists) } else { Ok(()) });
                let group = self.model.groups.entry(name.to_string());
                let group = group.or_default();
                if !exists {
                    (group.last_id, group.read) = (id, read);
                }
                "create_group"
            }
        }
    }

    fn edit_consumers(&mut self) -> &'static str {
        let (name, consumer) = self.name();
        let group = self.model.groups.get_mut(name).ok_or(StreamError::NoGroup);
        let (name_bytes, bytes) = (name.as_bytes(), consumer.as_bytes());
        if self.random.bool() {
            let found = self.stream.create_consumer(name_bytes, bytes, self.now);
            let expected = group.map(|group| {
                let is_new = !group.consumers.contains_key(consumer);
                group.consumers.entry(consumer.to_string()).or_insert((self.now, None));
                is_new
            });
            assert_eq!(found, expected);
            return "create_consumer";
        }
        let found = self.stream.delete_consumer(name_bytes, bytes);
        let expected = group.map(|group| {
            group.consumers.remove(consumer);
            let before = group.pending.len();
            group.pending.retain(|_, pending| pending.consumer != consumer);
            (before - group.pending.len()) as u64
        });
        assert_eq!(found, expected);
        "delete_consumer"
    }

    fn read_new(&mut self) -> &'static str {
        let (name, consumer) = self.name();
        let (count, is_acknowledged) = (self.random.u64(0..5), self.random.u8(0..5) == 0);
        let read = GroupRead { from: ReadFrom::New, count, is_acknowledged, now_ms: self.now };
        let mut found = vec![];
        let result =
            self.stream.read_group(name.as_bytes(), consumer.as_bytes(), &read, |id, fields| {
                let pairs: Pairs = fields.unwrap().map(|(a, b)| (a.into(), b.to_vec())).collect();
                found.push((id, pairs));
            });
        let most = if count == 0 { usize::MAX } else { count as usize };
        let ids = self.model.read_new(name, consumer, most, is_acknowledged, self.now);
        assert_eq!(result.is_ok(), ids.is_some());
        let expected = ids.unwrap_or_default().into_iter();
        let expected: Vec<_> = expected.map(|id| (id, self.model.entries[&id].clone())).collect();
        assert_eq!(found, expected);
        assert_eq!(result.unwrap_or(0), found.len() as u64);
        "read_new"
    }

    fn read_pending(&mut self) -> &'static str {
        let (name, consumer) = self.name();
        let (after, count) = (self.id(), self.random.u64(0..5));
        let from = ReadFrom::After(after);
        let read = GroupRead { from, count, is_acknowledged: false, now_ms: self.now };
        let mut found = vec![];
        let (group, bytes) = (name.as_bytes(), consumer.as_bytes());
        let result = self
            .stream
            .read_group(group, bytes, &read, |id, fields| found.push((id, fields.is_some())));
        let most = if count == 0 { usize::MAX } else { count as usize };
        let expected = self.model.read_pending(name, consumer, after, most, self.now);
        assert_eq!(result.ok().map(|_| found), expected);
        "read_pending"
    }

    fn acknowledge(&mut self) -> &'static str {
        let (name, _) = self.name();
        let ids = [self.id(), self.id(), self.id()];
        let found = self.stream.acknowledge(name.as_bytes(), &ids);
        let expected =
            self.model.groups.get_mut(name).map(|group| {
                ids.iter().filter(|id| group.pending.remove(id).is_some()).count() as u64
            });
        assert_eq!(found.ok(), expected);
        "acknowledge"
    }

    fn claim(&mut self) -> &'static str {
        let (name, consumer) = self.name();
        let ids = [self.id(), self.id()];
        let delivered = match self.random.u8(0..4) {
            0 => ClaimTime::Idle(self.random.i64(-5..1_200)),
            1 => ClaimTime::At(self.random.i64(-5..self.now as i64 + 20)),
            _ => ClaimTime::Now,
        };
        let claim = Claim {
            min_idle_ms: self.random.u64(0..12),
            delivered,
            deliveries: (self.random.u8(0..4) == 0).then(|| self.random.u64(0..9)),
            is_forced: self.random.bool(),
            is_silent: self.random.bool(),
            last_id: (self.random.u8(0..8) == 0).then(|| self.id()),
            now_ms: self.now,
        };
        let mut found = vec![];
        let (group, bytes) = (name.as_bytes(), consumer.as_bytes());
        let result = self.stream.claim(group, bytes, &ids, &claim, |entry| found.push(entry.id));
        assert_eq!(result.is_ok(), self.model.groups.contains_key(name));
        if let Some(group) = self.model.groups.get_mut(name) {
            group.last_id = group.last_id.max(claim.last_id.unwrap_or_default());
        }
        let Claim { min_idle_ms, deliveries, is_forced, is_silent, .. } = claim;
        let flags = (is_forced, is_silent);
        let model = &mut self.model;
        let now = self.now;
        let mut is_claimed = |id: &StreamId| {
            model.claim(name, consumer, *id, min_idle_ms, delivered, deliveries, flags, now)
        };
        let expected: Vec<StreamId> = ids.into_iter().filter(|id| is_claimed(id)).collect();
        assert_eq!(found, expected);
        "claim"
    }

    fn claim_idle(&mut self) -> &'static str {
        let (name, consumer) = self.name();
        let (start, count, now) = (self.id(), self.random.u64(1..4), self.now);
        let (min_idle_ms, is_silent) = (self.random.u64(0..12), self.random.bool());
        let claim = AutoClaim { min_idle_ms, start, count, is_silent, now_ms: now };
        let mut found = vec![];
        let (group, bytes) = (name.as_bytes(), consumer.as_bytes());
        let result = self.stream.claim_idle(group, bytes, &claim, |entry| found.push(entry.id));
        let Some(group) = self.model.groups.get_mut(name) else {
            assert_eq!(result, Err(StreamError::NoGroup));
            return "claim_idle";
        };
        group.consumers.entry(consumer.to_string()).or_insert((now, None)).0 = now;
        let pending: Vec<StreamId> = group.pending.range(start..).map(|(id, _)| *id).collect();
        let (mut expected, mut deleted, mut looked_at) = (vec![], vec![], 0);
        for id in &pending {
            let taken = (expected.len() + deleted.len()) as u64;
            if taken == count || looked_at == 10 * count {
                break;
            }
            looked_at += 1;
            let exists = self.model.entries.contains_key(id);
            let flags = (false, is_silent);
            let time = ClaimTime::Now;
            if self.model.claim(name, consumer, *id, min_idle_ms, time, None, flags, now) {
                expected.push(*id);
            } else if !exists {
                deleted.push(*id);
            }
        }
        let next = pending.get(looked_at as usize).copied().unwrap_or_default();
        let result = result.expect("the group exists");
        assert_eq!((found, result.deleted, result.next), (expected, deleted, next));
        "claim_idle"
    }

    fn list_pending(&mut self) -> &'static str {
        let (name, consumer) = self.name();
        let (first, last, min_idle_ms) = (self.id(), self.id(), self.random.u64(0..12));
        let consumer = self.random.bool().then_some(consumer);
        let consumer_bytes = consumer.map(str::as_bytes);
        let query = PendingQuery { first, last, min_idle_ms, consumer: consumer_bytes };
        let view = self.stream.view();
        let Some(group) = self.model.groups.get(name) else {
            assert!(view.pending(name.as_bytes(), &query, self.now).is_err());
            assert!(view.pending_summary(name.as_bytes()).is_err());
            return "list_pending";
        };
        let found = view.pending(name.as_bytes(), &query, self.now).unwrap();
        let found: Vec<_> = found.map(|it| (it.id, text(it.consumer), it.deliveries)).collect();
        let all = group.pending.iter().filter(|(id, _)| first <= **id && **id <= last);
        let expected: Vec<_> = all
            .filter(|(_, it)| consumer.is_none_or(|name| it.consumer == name))
            .filter(|(_, it)| it.delivered + min_idle_ms <= self.now || min_idle_ms == 0)
            .map(|(id, it)| (*id, it.consumer.as_str(), it.deliveries))
            .collect();
        assert_eq!(found, expected);
        let summary = view.pending_summary(name.as_bytes()).unwrap();
        assert_eq!(summary.count, group.pending.len() as u64);
        let count_of = |name: &&String| {
            group.pending.values().filter(|it| it.consumer == **name).count() as u64
        };
        let counts = group.consumers.keys().map(|name| (name.as_bytes(), count_of(&name)));
        let expected: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
        assert_eq!(summary.consumers, expected);
        "list_pending"
    }

    fn list_entries(&mut self) -> &'static str {
        let (first, last) = (self.id(), self.id());
        let view = self.stream.view();
        let inside = |id: &&StreamId| first <= **id && **id <= last;
        let mut expected: Vec<StreamId> =
            self.model.entries.keys().filter(inside).copied().collect();
        let found: Vec<StreamId> = view.range(first, last).map(|entry| entry.id).collect();
        assert_eq!(found, expected);
        expected.reverse();
        let found: Vec<StreamId> = view.range_reversed(first, last).map(|entry| entry.id).collect();
        assert_eq!(found, expected);
        let top = self.model.entries.keys().next_back().copied();
        assert_eq!(view.has_after(first), top.is_some_and(|top| top > first));
        assert_eq!(view.get(first).is_some(), self.model.entries.contains_key(&first));
        "list_entries"
    }

    /// Takes the stream through a snapshot.
    fn reload(&mut self) {
        let mut bytes = vec![];
        self.stream.view().serialize(&mut bytes);
        self.stream = Stream::deserialize(&bytes, &self.limits).expect("a snapshot is read again");
    }
}

#[test]
fn streams_agree_with_the_model_in_nodes_of_any_size() {
    for seed in 0..usual_or_long(20, 1_000) {
        for has_groups in [true, false] {
            walk(seed, limits(3, 0), has_groups, 300);
            walk(seed, limits(0, 300), has_groups, 300);
            walk(seed, limits(100, 4096), has_groups, 300);
            walk(seed, limits(1, 0), has_groups, 100);
        }
    }
}
