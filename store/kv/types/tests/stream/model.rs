// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stream as plain as possible: one ordered map of entries, and one map of pending entries for
//! each group, which has the consumers' names in it.

use freeport_kv_types::stream::{ClaimTime, GroupInfo};
use freeport_kv_types::{StreamId, StreamRef};
use std::collections::BTreeMap;
use std::fmt::Write;

pub type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

#[derive(Default)]
pub struct Model {
    pub entries: BTreeMap<StreamId, Pairs>,
    pub last_id: StreamId,
    pub max_deleted: StreamId,
    pub added: u64,
    pub groups: BTreeMap<String, ModelGroup>,
}

#[derive(Default)]
pub struct ModelGroup {
    pub last_id: StreamId,
    pub read: Option<u64>,
    pub pending: BTreeMap<StreamId, ModelPending>,
    /// Seen time and active time by name.
    pub consumers: BTreeMap<String, (u64, Option<u64>)>,
}

#[derive(Clone)]
pub struct ModelPending {
    pub consumer: String,
    pub delivered: u64,
    pub deliveries: u64,
}

impl Model {
    pub fn delete(&mut self, ids: &[StreamId]) -> u64 {
        let mut deleted = 0;
        for id in ids {
            if self.entries.remove(id).is_some() {
                deleted += 1;
                self.max_deleted = self.max_deleted.max(*id);
            }
        }
        deleted
    }

    /// Removes this number of entries from the front.
    pub fn remove_front(&mut self, count: u64) {
        (0..count).for_each(|_| drop(self.entries.pop_first()));
    }

    pub fn first_id(&self) -> StreamId {
        self.entries.keys().next().copied().unwrap_or_default()
    }

    fn has_deleted_from(&self, id: StreamId) -> bool {
        let max_deleted = self.max_deleted;
        let behind_first = !self.entries.is_empty() && max_deleted >= self.first_id();
        max_deleted != StreamId::MIN && behind_first && max_deleted >= id
    }

    fn entries_up_to(&self, id: StreamId) -> Option<u64> {
        let length = self.entries.len() as u64;
        let first = self.first_id();
        if self.added == 0 {
            Some(0)
        } else if id == self.last_id || (length == 0 && id < self.last_id) {
            Some(self.added)
        } else if id > self.last_id
            || (self.max_deleted != StreamId::MIN && self.max_deleted >= first)
        {
            None
        } else if id < first {
            Some(self.added - length)
        } else {
            (id == first).then(|| self.added - length + 1)
        }
    }

    pub fn lag(&self, group: &ModelGroup) -> Option<i64> {
        if self.added == 0 {
            return Some(0);
        }
        let counted = if self.has_deleted_from(group.last_id) { None } else { group.read };
        let read = counted.or(self.entries_up_to(group.last_id))?;
        Some(self.added as i64 - read as i64)
    }

    fn see(&mut self, group: &str, consumer: &str, now: u64) -> Option<&mut ModelGroup> {
        let group = self.groups.get_mut(group)?;
        group.consumers.entry(consumer.to_string()).or_insert((now, None)).0 = now;
        Some(group)
    }

    pub fn read_new(
        &mut self,
        group_name: &str,
        consumer: &str,
        count: usize,
        acknowledged: bool,
        now: u64,
    ) -> Option<Vec<StreamId>> {
        let from = self.see(group_name, consumer, now)?.last_id;
        let ids: Vec<StreamId> = self.entries.keys().filter(|id| **id > from).copied().collect();
        let ids = ids[..count.min(ids.len())].to_vec();
        for id in &ids {
            let known = self.groups[group_name].read.filter(|_| !self.has_deleted_from(*id));
            let read = known.map(|read| read + 1).or_else(|| self.entries_up_to(*id));
            let group = self.groups.get_mut(group_name)?;
            group.read = read;
            group.last_id = *id;
            if !acknowledged {
                let consumer = consumer.to_string();
                group.consumers.get_mut(&consumer)?.1 = Some(now);
                let pending = ModelPending { consumer, delivered: now, deliveries: 1 };
                group.pending.insert(*id, pending);
            }
        }
        Some(ids)
    }

    /// Ids, each with whether its entry exists.
    pub fn read_pending(
        &mut self,
        group: &str,
        consumer: &str,
        after: StreamId,
        count: usize,
        now: u64,
    ) -> Option<Vec<(StreamId, bool)>> {
        self.see(group, consumer, now)?;
        let mut found = vec![];
        for (id, pending) in &mut self.groups.get_mut(group)?.pending {
            if *id > after && pending.consumer == consumer && found.len() < count {
                let exists = self.entries.contains_key(id);
                if exists {
                    pending.delivered = now;
                    pending.deliveries += 1;
                }
                found.push((*id, exists));
            }
        }
        Some(found)
    }

    #[allow(clippy::too_many_arguments)]
    pub fn claim(
        &mut self,
        group: &str,
        consumer: &str,
        id: StreamId,
        min_idle: u64,
        delivered: ClaimTime,
        deliveries: Option<u64>,
        (force, silent): (bool, bool),
        now: u64,
    ) -> bool {
        let exists = self.entries.contains_key(&id);
        let Some(group) = self.see(group, consumer, now) else { return false };
        if !exists {
            group.pending.remove(&id);
            return false;
        }
        let old = match group.pending.get(&id) {
            Some(old) if min_idle > 0 && old.delivered + min_idle > now => return false,
            Some(old) => old.deliveries,
            None if force => 1,
            None => return false,
        };
        let given = match delivered {
            ClaimTime::Now => now as i64,
            ClaimTime::Idle(ms) => now as i64 - ms,
            ClaimTime::At(ms) => ms,
        };
        let delivered = if given < 0 || given > now as i64 { now } else { given as u64 };
        let deliveries = deliveries.unwrap_or(if silent { old } else { old + 1 });
        let pending = ModelPending { consumer: consumer.to_string(), delivered, deliveries };
        group.pending.insert(id, pending);
        group.consumers.get_mut(consumer).expect("it was seen").1 = Some(now);
        true
    }

    /// All there is to know, as text.
    pub fn dump(&self) -> String {
        let mut out = String::new();
        let Model { entries, last_id, max_deleted, added, groups } = self;
        let first = self.first_id();
        write!(out, "{} {last_id} {max_deleted} {added} {first}", entries.len()).unwrap();
        entries.iter().for_each(|(id, pairs)| write!(out, "\n{id} {pairs:?}").unwrap());
        for (name, group) in groups {
            let ModelGroup { last_id, read, pending, consumers } = group;
            let lag = self.lag(group);
            write!(out, "\ngroup {name} {last_id} {read:?} {lag:?} {}", pending.len()).unwrap();
            for (id, it) in pending {
                let ModelPending { consumer, delivered, deliveries } = it;
                write!(out, "\n {id} {consumer} {delivered} {deliveries}").unwrap();
            }
            for (name, (seen, active)) in consumers {
                write!(out, "\n consumer {name} {seen} {active:?}").unwrap();
                pending.iter().filter(|(_, it)| it.consumer == *name).for_each(|(id, it)| {
                    write!(out, "\n  {id} {} {}", it.delivered, it.deliveries).unwrap();
                });
            }
        }
        out
    }
}

/// All there is to know about a stream, as text.
pub fn dump(stream: StreamRef<'_>) -> String {
    let mut out = String::new();
    let info = stream.full_info(0);
    let counters = &info.stream;
    let (last, deleted) = (counters.last_generated_id, counters.max_deleted_entry_id);
    let (added, first) = (counters.entries_added, counters.recorded_first_entry_id);
    write!(out, "{} {last} {deleted} {added} {first}", counters.length).unwrap();
    for entry in &info.entries {
        let pairs: Pairs = entry.fields.map(|(a, b)| (a.to_vec(), b.to_vec())).collect();
        write!(out, "\n{} {pairs:?}", entry.id).unwrap();
    }
    for group in &info.groups {
        let GroupInfo { name, last_delivered_id, entries_read, lag, pending, .. } = group.group;
        let name = text(name);
        write!(out, "\ngroup {name} {last_delivered_id} {entries_read:?} {lag:?} {pending}")
            .unwrap();
        for it in &group.pending {
            let consumer = text(it.consumer);
            write!(out, "\n {} {consumer} {} {}", it.id, it.delivered_ms, it.deliveries).unwrap();
        }
        for consumer in &group.consumers {
            let (name, active) = (text(consumer.name), consumer.active_ms);
            write!(out, "\n consumer {name} {} {active:?}", consumer.seen_ms).unwrap();
            assert_eq!(consumer.pending_count, consumer.pending.len() as u64);
            for it in &consumer.pending {
                assert_eq!(it.consumer, consumer.name);
                write!(out, "\n  {} {} {}", it.id, it.delivered_ms, it.deliveries).unwrap();
            }
        }
    }
    out
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("tests use texts")
}
