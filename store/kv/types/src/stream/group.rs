// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Consumer groups: the position of each group in the log, and its consumers.

use super::large::{Large, slot_bytes};
use super::pending::Pending;
use super::{Stream, StreamError, StreamId, StreamRef};
use std::collections::{BTreeMap, BTreeSet};

/// Groups of a stream, by name.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    by_name: BTreeMap<Box<[u8]>, Group>,
    /// Bytes of all groups together.
    bytes: usize,
}

/// A consumer group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The last delivered id.
    pub last_id: StreamId,
    /// Number of entries read up to `last_id`, if it is known.
    pub entries_read: Option<u64>,
    /// Entries that were delivered and not acknowledged.
    pub pending: BTreeMap<StreamId, Pending>,
    /// Number of each consumer.
    by_name: BTreeMap<Box<[u8]>, ConsumerNumber>,
    /// Consumers by number.
    consumers: Vec<Option<Consumer>>,
    /// Numbers without a consumer.
    free: Vec<ConsumerNumber>,
    /// Bytes of the names of all consumers together.
    name_bytes: usize,
}

/// Place of a consumer in its group.
pub type ConsumerNumber = u32;

/// A consumer.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// Its name.
    pub name: Box<[u8]>,
    /// Time of its last command, in milliseconds.
    pub seen_ms: u64,
    /// Time at which it last received or claimed an entry, in milliseconds.
    pub active_ms: Option<u64>,
    /// Its pending entries.
    pub pending: BTreeSet<StreamId>,
}

/// Position in the log after which a new group reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupStart {
    /// `$`: only entries that are added later.
    Last,
    /// Entries with larger ids.
    After(StreamId),
}

impl GroupStart {
    /// Reads the id argument of `XGROUP CREATE`.
    ///
    /// # Errors
    /// `InvalidId`
    pub fn parse(text: &[u8]) -> Result<GroupStart, StreamError> {
        match text {
            b"$" => Ok(GroupStart::Last),
            _ => StreamId::parse_strict(text, 0).map(GroupStart::After),
        }
    }

    /// Reads the id argument of `XGROUP SETID`, which may also be `-` or `+`.
    ///
    /// # Errors
    /// `InvalidId`
    pub fn parse_any(text: &[u8]) -> Result<GroupStart, StreamError> {
        match text {
            b"$" => Ok(GroupStart::Last),
            _ => StreamId::parse(text, 0).map(GroupStart::After),
        }
    }

    fn id(self, last_id: StreamId) -> StreamId {
        match self {
            GroupStart::Last => last_id,
            GroupStart::After(id) => id,
        }
    }
}

impl StreamRef<'_> {
    /// Returns whether a group of this name exists.
    pub fn has_group(self, name: &[u8]) -> bool {
        self.group(name).is_ok()
    }

    /// Returns whether a group has a consumer of this name.
    pub fn has_consumer(self, group: &[u8], name: &[u8]) -> bool {
        self.group(group).is_ok_and(|group| group.number_of(name).is_some())
    }
}

impl Stream {
    /// Creates a group. `entries_read` is the number of entries up to its start, if it is known.
    ///
    /// # Errors
    /// `GroupExists`
    pub fn create_group(
        &mut self,
        name: &[u8],
        start: GroupStart,
        entries_read: Option<u64>,
    ) -> Result<(), StreamError> {
        if self.view().has_group(name) {
            return Err(StreamError::GroupExists);
        }
        let last_id = start.id(self.view().last_id());
        let group = Group::new(last_id, entries_read);
        self.enlarge().groups.insert(name, group);
        Ok(())
    }

    /// Sets the position of a group.
    ///
    /// # Errors
    /// `NoGroup`
    pub fn set_group(
        &mut self,
        name: &[u8],
        start: GroupStart,
        entries_read: Option<u64>,
    ) -> Result<(), StreamError> {
        let last_id = start.id(self.view().last_id());
        self.edit_group(name, |group, _| {
            group.last_id = last_id;
            group.entries_read = entries_read;
        })
    }

    /// Removes a group with its consumers. Returns whether it existed.
    pub fn destroy_group(&mut self, name: &[u8]) -> bool {
        match self {
            Stream::Packed(_) => false,
            Stream::Large(large) => large.groups.remove(name),
        }
    }

    /// Creates a consumer. Returns whether it is new.
    ///
    /// # Errors
    /// `NoGroup`
    pub fn create_consumer(
        &mut self,
        group: &[u8],
        name: &[u8],
        now_ms: u64,
    ) -> Result<bool, StreamError> {
        self.edit_group(group, |group, _| {
            let is_new = group.number_of(name).is_none();
            if is_new {
                group.create_consumer(name, now_ms);
            }
            is_new
        })
    }

    /// Removes a consumer and its pending entries. Returns their number.
    ///
    /// # Errors
    /// `NoGroup`
    pub fn delete_consumer(&mut self, group: &[u8], name: &[u8]) -> Result<u64, StreamError> {
        self.edit_group(group, |group, _| group.delete_consumer(name))
    }

    /// Acknowledges entries. Returns how many were pending.
    ///
    /// # Errors
    /// `NoGroup`, for which `XACK` replies 0
    pub fn acknowledge(&mut self, group: &[u8], ids: &[StreamId]) -> Result<u64, StreamError> {
        self.edit_group(group, |group, _| {
            ids.iter().filter(|id| group.acknowledge(**id)).count() as u64
        })
    }

    /// Changes a group. The closure gets the entries beside it.
    pub(super) fn edit_group<T>(
        &mut self,
        name: &[u8],
        edit: impl FnOnce(&mut Group, StreamRef<'_>) -> T,
    ) -> Result<T, StreamError> {
        let Stream::Large(large) = self else { return Err(StreamError::NoGroup) };
        let Large { head, log, groups } = &mut **large;
        let group = groups.by_name.get_mut(name).ok_or(StreamError::NoGroup)?;
        let before = group.memory_bytes();
        let result = edit(group, log.view(*head));
        groups.bytes = groups.bytes - before + group.memory_bytes();
        Ok(result)
    }
}

impl Groups {
    /// Adds a group that does not exist yet.
    pub fn insert(&mut self, name: &[u8], group: Group) {
        self.bytes += name.len() + group.memory_bytes();
        self.by_name.insert(name.into(), group);
    }

    fn remove(&mut self, name: &[u8]) -> bool {
        let group = self.by_name.remove(name);
        self.bytes -= group.as_ref().map_or(0, |group| name.len() + group.memory_bytes());
        group.is_some()
    }

    /// The group of this name.
    pub fn get(&self, name: &[u8]) -> Option<&Group> {
        self.by_name.get(name)
    }

    /// All groups in the order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> {
        self.by_name.iter().map(|(name, group)| (&**name, group))
    }

    /// Bytes of memory, without this struct.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

impl Group {
    /// A group without consumers.
    pub fn new(last_id: StreamId, entries_read: Option<u64>) -> Group {
        Group { last_id, entries_read, ..Group::default() }
    }

    /// Number of the consumer with this name.
    pub fn number_of(&self, name: &[u8]) -> Option<ConsumerNumber> {
        self.by_name.get(name).copied()
    }

    /// The consumer of this number.
    pub fn consumer(&self, number: ConsumerNumber) -> &Consumer {
        self.consumers[number as usize].as_ref().expect("pending entries have a consumer")
    }

    /// The consumer of this number.
    pub fn consumer_mut(&mut self, number: ConsumerNumber) -> &mut Consumer {
        self.consumers[number as usize].as_mut().expect("pending entries have a consumer")
    }

    /// Ids of a consumer's pending entries, and all pending entries of the group.
    pub fn pending_of(
        &mut self,
        number: ConsumerNumber,
    ) -> (&BTreeSet<StreamId>, &mut BTreeMap<StreamId, Pending>) {
        let consumer = self.consumers[number as usize].as_ref();
        (&consumer.expect("the number is in use").pending, &mut self.pending)
    }

    /// All consumers in the order of their names.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = &Consumer> {
        self.by_name.values().map(|number| self.consumer(*number))
    }

    /// Adds a consumer that does not exist yet.
    pub fn create_consumer(&mut self, name: &[u8], now_ms: u64) -> ConsumerNumber {
        let pending = BTreeSet::new();
        let consumer = Consumer { name: name.into(), seen_ms: now_ms, active_ms: None, pending };
        let number = self.free.pop().unwrap_or(self.consumers.len() as ConsumerNumber);
        match self.consumers.get_mut(number as usize) {
            Some(place) => *place = Some(consumer),
            None => self.consumers.push(Some(consumer)),
        }
        self.by_name.insert(name.into(), number);
        self.name_bytes += 2 * name.len();
        number
    }

    /// Returns the consumer of this name, which is created if necessary, and notes its command.
    pub fn see_consumer(&mut self, name: &[u8], now_ms: u64) -> ConsumerNumber {
        let known = self.number_of(name);
        let number = known.unwrap_or_else(|| self.create_consumer(name, now_ms));
        self.consumer_mut(number).seen_ms = now_ms;
        number
    }

    fn delete_consumer(&mut self, name: &[u8]) -> u64 {
        let Some(number) = self.by_name.remove(name) else { return 0 };
        let consumer = self.consumers[number as usize].take().expect("its name is known");
        for id in &consumer.pending {
            self.pending.remove(id);
        }
        self.free.push(number);
        self.name_bytes -= 2 * name.len();
        consumer.pending.len() as u64
    }

    /// Bytes of memory: this struct in its map, and all that it owns.
    fn memory_bytes(&self) -> usize {
        // Each pending entry is in the map of the group and in the set of its consumer.
        const PENDING_BYTES: usize =
            slot_bytes(size_of::<(StreamId, Pending)>()) + slot_bytes(size_of::<StreamId>());
        const NAME_BYTES: usize = slot_bytes(size_of::<(Box<[u8]>, ConsumerNumber)>());
        slot_bytes(size_of::<(Box<[u8]>, Group)>())
            + self.pending.len() * PENDING_BYTES
            + self.by_name.len() * NAME_BYTES
            + self.name_bytes
            + self.consumers.capacity() * size_of::<Option<Consumer>>()
            + self.free.capacity() * size_of::<ConsumerNumber>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ms: u64) -> StreamId {
        StreamId::new(ms, 0)
    }

    #[test]
    fn groups_have_the_consumers_that_read() {
        let mut stream = Stream::default();
        assert!(!stream.view().has_consumer(b"g", b"c"));
        stream.create_group(b"g", GroupStart::Last, None).unwrap();
        assert!(!stream.view().has_consumer(b"g", b"c"));
        stream.create_consumer(b"g", b"c", 0).unwrap();
        assert!(stream.view().has_consumer(b"g", b"c") && !stream.view().has_consumer(b"h", b"c"));
    }

    #[test]
    fn memory_returns_to_its_start() {
        let mut stream = Stream::default();
        stream.enlarge();
        let before = stream.view().memory_bytes();
        for group in [&b"group"[..], b"other"] {
            stream.create_group(group, GroupStart::Last, None).unwrap();
            for number in 0..20 {
                let name = format!("consumer {number}");
                assert_eq!(stream.create_consumer(group, name.as_bytes(), 5), Ok(true));
                assert_eq!(stream.create_consumer(group, name.as_bytes(), 5), Ok(false));
            }
        }
        assert!(stream.view().memory_bytes() > before + 40 * 11);
        assert!(stream.destroy_group(b"group"));
        assert!(!stream.destroy_group(b"group"));
        assert_eq!(stream.delete_consumer(b"other", b"consumer 3"), Ok(0));
        assert!(stream.destroy_group(b"other"));
        assert_eq!(stream.view().memory_bytes(), before);
    }

    #[test]
    fn consumers_that_come_and_go_take_no_memory() {
        let mut stream = Stream::default();
        stream.create_group(b"g", GroupStart::Last, None).unwrap();
        let sizes = [0; 5].map(|_| {
            stream.create_consumer(b"g", &[b'x'; 100], 0).unwrap();
            stream.delete_consumer(b"g", &[b'x'; 100]).unwrap();
            stream.view().memory_bytes()
        });
        assert_eq!(sizes, [sizes[0]; 5]);
    }

    #[test]
    fn numbers_of_deleted_consumers_are_used_again() {
        let mut group = Group::new(id(0), None);
        let [a, b] = [b"a", b"b"].map(|name| group.create_consumer(name, 0));
        group.assign(id(1), Pending { delivered_ms: 0, deliveries: 1, consumer: a });
        group.assign(id(2), Pending { delivered_ms: 0, deliveries: 1, consumer: b });
        assert_eq!(group.delete_consumer(b"a"), 1);
        assert_eq!(group.delete_consumer(b"a"), 0);
        assert_eq!(group.create_consumer(b"c", 0), a);
        assert!(group.consumer(a).pending.is_empty());
        assert!(group.pending.keys().eq([&id(2)]));
        let names: Vec<&[u8]> = group.consumers().map(|consumer| &*consumer.name).collect();
        assert_eq!(names, [b"b", b"c"]);
    }

    #[test]
    fn starts_of_groups_are_read() {
        let after = |ms| Ok(GroupStart::After(id(ms)));
        assert_eq!(GroupStart::parse(b"$"), Ok(GroupStart::Last));
        assert_eq!(GroupStart::parse(b"0"), after(0));
        assert_eq!(GroupStart::parse(b"-"), Err(StreamError::InvalidId));
        assert_eq!(GroupStart::parse_any(b"$"), Ok(GroupStart::Last));
        assert_eq!(GroupStart::parse_any(b"-"), after(0));
        assert_eq!(GroupStart::parse_any(b"+"), Ok(GroupStart::After(StreamId::MAX)));
    }
}
