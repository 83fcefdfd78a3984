// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory as a log of changes to bytes, and the part of the log that matters to a place.
//!
//! Two logs that differ only in the order of writes that cannot overlap have the same
//! [views](Views). A view therefore represents the contents of memory, independent of the order of
//! writes.

use super::values::{Id, Leaf, Node, Values};
use freeport_ebpf::analysis::{Access, Space};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::rc::Rc;

/// Memory to which an address belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Region {
    Context,
    Packet,
    /// A frame, numbered from the first function.
    Stack(usize),
    /// Values of maps.
    Element,
    /// All memory other than frames.
    Outside,
    Unknown,
}

impl Region {
    fn is_apart_from(self, other: Self) -> bool {
        use Region::{Outside, Stack, Unknown};
        match (self, other) {
            (Unknown, _) | (_, Unknown) => false,
            (Outside, other) | (other, Outside) => matches!(other, Stack(_)),
            _ => self != other,
        }
    }

    /// Returns the region of an address, from the terms of its sum.
    fn of(values: &Values, base: Id) -> Self {
        let (terms, _) = values.terms(base);
        let mut found = None;
        for (term, factor) in terms {
            let Node::Leaf(leaf) = *values.node(term) else { continue };
            let region = match leaf {
                Leaf::Context => Self::Context,
                Leaf::Frame(number) => Self::Stack(number),
                Leaf::Field(..) => Self::Packet,
                Leaf::MapValue(_) | Leaf::Result(_) => Self::Element,
                _ => Self::Unknown,
            };
            if found.is_some() || factor != 1 {
                return Self::Unknown;
            }
            found = Some(region);
        }
        found.unwrap_or(Self::Unknown)
    }

    /// Returns the region of an access, as the analysis reports it, in a frame.
    fn of_access(access: &Access, frame: usize) -> Self {
        match access.space {
            Space::Context => Self::Context,
            Space::Packet | Space::Metadata => Self::Packet,
            Space::MapValue(_) | Space::Record(_) | Space::Key(_) => Self::Element,
            Space::Stack { calls_up: Some(0) } => Self::Stack(frame),
            Space::Stack { .. } | Space::Unknown(_) => Self::Unknown,
        }
    }
}

/// A range of bytes of memory.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Its start, if there is an address: the part of it that is not constant, and the constant
    /// offset.
    pub address: Option<(Id, i64)>,
    /// Number of bytes, if known.
    pub bytes: Option<u64>,
    pub region: Region,
    /// Accesses that the analysis reports for it.
    pub accesses: Rc<[Access]>,
    /// Frame, and number of moves of the packet, for which these accesses hold.
    pub moment: (usize, usize),
}

impl Place {
    /// Returns the place at an address.
    pub fn at(
        values: &mut Values,
        address: Id,
        bytes: Option<u64>,
        accesses: Rc<[Access]>,
        moment: (usize, usize),
    ) -> Self {
        let (base, offset) = values.split(address);
        let mut regions = accesses.iter().map(|access| Region::of_access(access, moment.0));
        let region = match Region::of(values, base) {
            Region::Unknown => {
                let first = regions.next().unwrap_or(Region::Unknown);
                if regions.all(|region| region == first) { first } else { Region::Unknown }
            }
            region => region,
        };
        Self { address: Some((base, offset as i64)), bytes, region, accesses, moment }
    }

    /// Returns a place without an address, from an access of the analysis.
    pub fn of_access(access: &Access, moment: (usize, usize)) -> Self {
        let (region, accesses) = (Region::of_access(access, moment.0), Rc::new([*access]));
        Self { address: None, bytes: access.size, region, accesses, moment }
    }

    /// Returns the whole of a region.
    pub fn all_of(region: Region) -> Self {
        let accesses = Rc::new([]);
        Self { address: None, bytes: None, region, accesses, moment: (0, 0) }
    }

    /// Returns one of its bytes.
    pub fn byte(&self, at: u64) -> Self {
        let address = self.address.map(|(base, offset)| (base, offset.wrapping_add(at as i64)));
        Self { address, bytes: Some(1), ..self.clone() }
    }

    fn may_touch(&self, other: &Self) -> bool {
        if let (Some((one, from)), Some((another, other_from))) = (self.address, other.address)
            && one == another
        {
            let end = |from: i64, bytes: Option<u64>| {
                bytes.map_or(i64::MAX, |bytes| from.saturating_add_unsigned(bytes))
            };
            return from < end(other_from, other.bytes) && other_from < end(from, self.bytes);
        }
        if self.region.is_apart_from(other.region) {
            return false;
        }
        let is_known = !self.accesses.is_empty() && !other.accesses.is_empty();
        let is_now = self.moment == other.moment;
        let touch = |one: &Access, another: &Access| {
            let lasts = is_lasting(one) && is_lasting(another);
            !is_now && !lasts || one.may_touch(another)
        };
        let touches = |one: &Access| other.accesses.iter().any(|another| touch(one, another));
        !is_known || self.accesses.iter().any(touches)
    }
}

/// Returns whether the offset of an access is also valid in other functions, and after the packet
/// was moved.
fn is_lasting(access: &Access) -> bool {
    matches!(access.space, Space::MapValue(_) | Space::Record(_) | Space::Context)
}

/// Change of a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Change {
    /// A byte is set to this value.
    Byte(Id),
    /// A call writes unknown values; with the number of the call.
    Call(usize),
}

/// A change with its place.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub place: Place,
    pub change: Change,
}

/// A change in the form of views.
pub(super) type Seen = (Option<(Id, i64)>, Option<u64>, Change);

impl Event {
    fn seen(&self) -> Seen {
        (self.place.address, self.place.bytes, self.change)
    }

    fn is_byte(&self) -> bool {
        matches!(self.change, Change::Byte(_))
    }
}

/// All views, each stored once.
#[derive(Default)]
pub(super) struct Views {
    numbers: HashMap<Rc<[Seen]>, u32>,
    changes: Vec<Rc<[Seen]>>,
}

impl Views {
    /// Returns the view that a log gives of a place.
    pub fn of(&mut self, values: &Values, log: &[Event], place: &Place) -> u32 {
        let relevant = log.iter().filter(|event| event.place.may_touch(place)).collect();
        self.number(values, relevant)
    }

    /// Returns a byte of memory: the last value written, or an unknown value after all possible
    /// writes.
    pub fn byte(&mut self, values: &mut Values, log: &[Event], place: &Place) -> Id {
        let mut relevant = vec![];
        for event in log.iter().rev().filter(|event| event.place.may_touch(place)) {
            match event.change {
                Change::Byte(value) if event.place.address == place.address => {
                    if relevant.is_empty() {
                        return value;
                    }
                    relevant.push(event);
                    break;
                }
                _ => relevant.push(event),
            }
        }
        let (base, offset) = place.address.unwrap_or_default();
        let is_frame = matches!(values.node(base), Node::Leaf(Leaf::Frame(_)));
        if relevant.is_empty() && is_frame {
            return values.constant(0);
        }
        relevant.reverse();
        let view = self.number(values, relevant);
        values.of(Node::Memory { base, offset: offset as u64, view })
    }

    /// Returns the changes of a view.
    pub fn changes(&self, view: u32) -> Rc<[Seen]> {
        self.changes[view as usize].clone()
    }

    fn number(&mut self, values: &Values, mut events: Vec<&Event>) -> u32 {
        let mut written = HashSet::new();
        let mut lasts: Vec<_> = events
            .iter()
            .rev()
            .map(|event| !event.is_byte() || written.insert(event.place.address))
            .collect();
        events.retain(|_| lasts.pop().unwrap_or(true));
        let changes: Rc<[Seen]> = normal_form(&without_first_zeros(values, events)).into();
        let next = u32::try_from(self.changes.len()).expect("paths end long before");
        let number = *self.numbers.entry(changes.clone()).or_insert(next);
        if number == next {
            self.changes.push(changes);
        }
        number
    }
}

/// Drops zeros that are written to unused bytes of frames.
fn without_first_zeros<'e>(values: &Values, events: Vec<&'e Event>) -> Vec<&'e Event> {
    let is_zero = |event: &Event| {
        let frame = event.place.address.map(|(base, _)| values.node(base));
        let is_frame = matches!(frame, Some(Node::Leaf(Leaf::Frame(_))));
        is_frame
            && matches!(event.change, Change::Byte(value) if values.as_constant(value) == Some(0))
    };
    let mut kept: Vec<&Event> = vec![];
    for event in events {
        let is_first = || !kept.iter().any(|earlier| earlier.place.may_touch(&event.place));
        if !(is_zero(event) && is_first()) {
            kept.push(event);
        }
    }
    kept
}

/// Returns the least order of events in which those that may overlap keep their order.
fn normal_form(events: &[&Event]) -> Vec<Seen> {
    let mut waits = vec![0_u32; events.len()];
    let mut followers = vec![vec![]; events.len()];
    for (at, event) in events.iter().enumerate() {
        for (before, earlier) in events[..at].iter().enumerate() {
            if earlier.place.may_touch(&event.place) {
                waits[at] += 1;
                followers[before].push(at);
            }
        }
    }
    let seen = |at: usize| Reverse((events[at].seen(), at));
    let mut ready: BinaryHeap<_> =
        (0..events.len()).filter(|at| waits[*at] == 0).map(seen).collect();
    let mut ordered = vec![];
    while let Some(Reverse((event, at))) = ready.pop() {
        ordered.push(event);
        for &follower in &followers[at] {
            waits[follower] -= 1;
            if waits[follower] == 0 {
                ready.push(seen(follower));
            }
        }
    }
    ordered
}
