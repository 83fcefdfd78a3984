// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slabs: shared memory of a pair of processes, in slots of one connection each.
//!
//! A slab begins with a page for each slot:
//!
//! | offset | what | written by |
//! |---|---|---|
//! | 0, 128 | notes of the sender and the receiver of the ring to the second side | each its own |
//! | 512, 640 | the same of the ring to the first side | each its own |
//! | 1024, 1152 | the [state](word) of the first and of the second side | each its own |
//! | 1280, 1408 | what each has [counted](word::SENT_BYTES) | each its own |
//! | 2048 | the first area of the ring to the second side | first side |
//! | 3072 | the first area of the ring to the first side | second side |
//!
//! Behind the pages of all slots is one for all of them, the [board](mod@board); behind that are
//! the second areas of all, and behind those, for each slot: the other areas of both rings, and
//! what each side [gives back](refund).
//!
//! A slot is zero when it is handed out, except on the board. Pages that nobody has touched take no
//! memory, so room to grow costs nothing. A connection that carries little at a time stays in its
//! page, and the pages of a slab are together, because the processor's tables of pages take memory
//! as well: one of those serves eight slabs, not the tenth of a slot.

pub mod rest;

use freeport_ring::layout::NOTES_BYTES;

/// Slots of a slab.
pub const SLOTS: u32 = 64;
/// The bytes of the page of a slot.
pub const PAGE_BYTES: usize = 4096;
/// The bytes of all those of a slab. Whoever maps it begins at a multiple of that, so that the
/// place of a page tells which one it is.
pub const PAGES_BYTES: usize = PAGE_BYTES * SLOTS as usize;
/// The areas of each ring.
pub const AREAS: u32 = CAPACITIES.len() as u32;
/// The bytes of each.
const CAPACITIES: [usize; 7] =
    [1 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20];
/// The bytes of what the monitor says of the slots of a slab: memory of its own, that members can
/// only read. So neither side can say it in the monitor's place.
pub const NOTICES_BYTES: usize = PAGE_BYTES;
/// Where in its page the first area of a slot is, the one of the ring to the second side.
const FIRST_AREA: usize = 2048;
/// The bytes of all areas of one ring.
pub const DIRECTION_BYTES: usize = areas_bytes(0, AREAS);
/// Those of the areas behind the second one, and where among them each begins.
const LARGE_BYTES: usize = areas_bytes(2, AREAS);
const LARGE: [usize; AREAS as usize] = large();
/// How many bytes a side can give back that it took from the kernel too early: more than a
/// connection of the kernel usually holds.
pub const REFUND_BYTES: usize = 8 << 20;
/// Where in a slab what lies apart for each slot begins, and how much that is.
const APART: usize = SECOND + 2 * CAPACITIES[1] * SLOTS as usize;
const APART_BYTES: usize = 2 * LARGE_BYTES + 2 * REFUND_BYTES;
/// The bytes of a slot, all in all.
pub const SLOT_BYTES: usize = PAGE_BYTES + 2 * CAPACITIES[1] + APART_BYTES;
/// The bytes of a slab.
pub const SLAB_BYTES: usize = PAGE_BYTES + SLOT_BYTES * SLOTS as usize;
/// Where the second areas begin.
const SECOND: usize = PAGES_BYTES + PAGE_BYTES;

/// The bytes of some areas of one ring.
const fn areas_bytes(first: u32, end: u32) -> usize {
    let (mut area, mut bytes) = (first, 0);
    while area < end {
        bytes += CAPACITIES[area as usize];
        area += 1;
    }
    bytes
}

const fn large() -> [usize; AREAS as usize] {
    let (mut starts, mut area) = ([0; AREAS as usize], 2);
    while area < AREAS {
        starts[area as usize] = areas_bytes(2, area);
        area += 1;
    }
    starts
}

/// Which of the two sides of a connection a process is. Nothing follows from it but where it
/// writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Side {
    /// The side that the monitor counts first.
    First = 0,
    /// The other one.
    Second = 1,
}

impl Side {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    /// The one with that number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::First),
            1 => Some(Self::Second),
            _ => None,
        }
    }
}

/// Where in a slot parts of a ring are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ring {
    /// The ring to that side.
    to: Side,
}

impl Ring {
    /// The ring that this side reads.
    pub const fn to(to: Side) -> Self {
        Self { to }
    }

    /// The notes of the sender.
    pub const fn sender_notes(self) -> usize {
        512 * self.to.other() as usize
    }

    /// The notes of the receiver.
    pub const fn receiver_notes(self) -> usize {
        self.sender_notes() + NOTES_BYTES
    }

    /// Where in a slab an area of a slot begins; `None` if there is none of that number.
    pub const fn area(self, slot: u32, area: u32) -> Option<usize> {
        if slot >= SLOTS || area >= AREAS {
            return None;
        }
        let (slot, ring) = (slot as usize, self.to.other() as usize);
        let capacity = Self::capacity(area);
        Some(match area {
            0 => slot * PAGE_BYTES + FIRST_AREA + ring * capacity,
            1 => SECOND + (2 * slot + ring) * capacity,
            _ => APART + slot * APART_BYTES + ring * LARGE_BYTES + LARGE[area as usize],
        })
    }

    /// How large an area is; 0 if there is none of that number.
    pub const fn capacity(area: u32) -> usize {
        if area < AREAS { CAPACITIES[area as usize] } else { 0 }
    }
}

/// Where in a slot the state of a side is.
pub const fn state(of: Side) -> usize {
    1024 + 128 * of as usize
}

/// Where in its notices the monitor says something of a side of a slot:
/// [`RECALLED`](flag::RECALLED) and [`GONE`](flag::GONE). `None` if there is no such slot.
pub const fn notice(slot: u32, of: Side) -> Option<usize> {
    if slot < SLOTS { Some(8 * (2 * slot as usize + of as usize)) } else { None }
}

/// Where in a slab a side of a slot gives bytes back that came through the kernel, for its peer to
/// send them again; `None` if there is no such slot.
pub const fn refund(slot: u32, of: Side) -> Option<usize> {
    if slot >= SLOTS {
        return None;
    }
    Some(APART + slot as usize * APART_BYTES + 2 * LARGE_BYTES + of as usize * REFUND_BYTES)
}

/// Where in a slab the board of a side is: what is said to it, and by it, of all slots at once.
pub const fn board(of: Side) -> usize {
    PAGES_BYTES + 512 * of as usize
}

/// Who has reason to write a word of a slab. Both processes can write all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writer {
    /// The side in whose state or board it is.
    Its,
    /// Both, in the state or board of each.
    Both,
    /// Both, in the state of the first side.
    BothInFirst,
}

/// The words of a side's board.
pub mod board {
    use super::Writer;

    /// All of them, with their names.
    pub const ALL: [(&str, usize, Writer); 4] = [
        ("MARKS", MARKS, Writer::Both),
        ("READER", READER, Writer::Both),
        ("IS_ENOUGH", IS_ENOUGH, Writer::Its),
        ("CORE", CORE, Writer::Its),
    ];

    /// A bit for each slot: something happened there for which the side is to be woken. The peer
    /// sets bits, and the side takes them.
    pub const MARKS: usize = 0;
    /// State of the reader of the marks: [`NOBODY`], [`AWAKE`], or the even number of its current
    /// sleep. The peer that rings during a sleep adds one to its number.
    pub const READER: usize = 128;
    /// [`READER`]: there is no reader.
    pub const NOBODY: u64 = 0;
    /// [`READER`]: the side reads the marks before it sleeps.
    pub const AWAKE: u64 = 1;
    /// A bit for each slot: the reader of the marks is the only one to wake. Only the side writes
    /// this word and the next.
    pub const IS_ENOUGH: usize = 136;
    /// On which core the side waited last that reads it, counted from 1.
    pub const CORE: usize = 144;
}

/// Where in a slab the page of a slot is; `None` if there is none of that number.
pub const fn page(slot: u32) -> Option<usize> {
    if slot < SLOTS { Some(slot as usize * PAGE_BYTES) } else { None }
}

/// Where in a slab all that belongs to a slot is, and how many bytes that is in each place.
pub const fn places(slot: u32) -> Option<[(usize, usize); 3]> {
    let (Some(page), Some(second)) = (page(slot), Ring::to(Side::Second).area(slot, 1)) else {
        return None;
    };
    let apart = APART + slot as usize * APART_BYTES;
    Some([(page, PAGE_BYTES), (second, 2 * CAPACITIES[1]), (apart, APART_BYTES)])
}

/// The words of a side's state.
pub mod word {
    use super::Writer;

    /// All of them, with their names: what is believed of each is in `docs/internals/security.md`.
    pub const ALL: [(&str, usize, Writer); 26] = [
        ("FLAGS", FLAGS, Writer::Its),
        ("SWITCHED_AT", SWITCHED_AT, Writer::Its),
        ("CORE", CORE, Writer::Its),
        ("LEFT_AT", LEFT_AT, Writer::Its),
        ("STOPPED_AREA", STOPPED_AREA, Writer::Its),
        ("STOPPED", STOPPED[0], Writer::Its),
        ("STOPPED", STOPPED[1], Writer::Its),
        ("STOPPED", STOPPED[2], Writer::Its),
        ("STOPPED", STOPPED[3], Writer::Its),
        ("REFUNDED", REFUNDED, Writer::Its),
        ("DESCRIPTOR", DESCRIPTOR, Writer::Its),
        ("AGAIN", AGAIN, Writer::Both),
        ("AGAIN_BYTES", AGAIN_BYTES, Writer::Both),
        ("RECEIVING", RECEIVING, Writer::Its),
        ("REST", REST, Writer::BothInFirst),
        ("OPENED_AT", OPENED_AT, Writer::BothInFirst),
        ("SENT_BYTES", SENT_BYTES, Writer::Its),
        ("WRITING", WRITING, Writer::Its),
        ("RECEIVED_BYTES", RECEIVED_BYTES, Writer::Its),
        ("RECEIVES", RECEIVES, Writer::Its),
        ("DOORBELLS", DOORBELLS, Writer::Its),
        ("SLEEPS", SLEEPS, Writer::Its),
        ("REASON", REASON, Writer::Its),
        ("RINGING", RINGING, Writer::Its),
        ("RANG", RANG, Writer::Its),
        ("REUSED", REUSED, Writer::Its),
    ];
    /// [Flags](super::flag).
    pub const FLAGS: usize = 0;
    /// How many bytes it has sent through the kernel, once it has switched.
    pub const SWITCHED_AT: usize = 8;
    /// On which core it waited last, counted from 1.
    pub const CORE: usize = 16;
    /// Once it [leaves](super::flag::LEAVES) the ring: how many bytes it has sent through the
    /// kernel until then, doorbells included.
    pub const LEFT_AT: usize = 24;
    /// Once it has [stopped](super::flag::STOPS) reading: where, as the area, counted from 1, or 0
    /// if there is nothing behind it.
    pub const STOPPED_AREA: usize = 32;
    /// The four numbers of `freeport_ring::Stopped`.
    pub const STOPPED: [usize; 4] = [40, 48, 56, 64];
    /// How many bytes it gives back.
    pub const REFUNDED: usize = 72;
    /// The number of its descriptor, for a peer that has to do something in its place, counted
    /// from 1; in the upper half, the process that has it, in that one's namespace. Where several
    /// have one, it is that of the last child.
    pub const DESCRIPTOR: usize = 88;
    /// Whether the peer wants to have through the kernel what it has not read: see
    /// [`again`](super::again). Both sides write it.
    pub const AGAIN: usize = 80;
    /// How many bytes the peer has sent in its place so. Both sides write it.
    pub const AGAIN_BYTES: usize = 96;
    /// Calls that are about to receive through the kernel, or are there, although the side has the
    /// slot. They look at what the peer says behind counting themselves.
    pub const RECEIVING: usize = 104;
    /// Where a connection is between two that are made over the same stream of the kernel: see
    /// [`rest`](super::rest). In the words of the first side; both write it.
    pub const REST: usize = 112;
    /// When the connecting side has [opened](super::rest::OPENED) it last, in ticks. In the words
    /// of the first side; only the order among several follows from it.
    pub const OPENED_AT: usize = 120;
    /// How many bytes it has put into the ring. For people, as are those behind; far enough from
    /// what the peer looks at that counting does not take that from its cache.
    pub const SENT_BYTES: usize = 256;
    /// Twice with how many operations. Odd: it is just writing to the ring.
    pub const WRITING: usize = 264;
    /// How many bytes it has taken from the ring.
    pub const RECEIVED_BYTES: usize = 272;
    /// With how many operations.
    pub const RECEIVES: usize = 280;
    /// How many doorbells it has rung.
    pub const DOORBELLS: usize = 288;
    /// How often it has slept.
    pub const SLEEPS: usize = 296;
    /// Why it keeps the connection in the kernel or wants it back there, as the number of a
    /// [`Reason`](crate::Reason); 0: it does not.
    pub const REASON: usize = 304;
    /// How often it has begun to ring a doorbell.
    pub const RINGING: usize = 312;
    /// How often it has ended that, in the lower half. In the upper one, how many doorbells the
    /// kernel has taken from it, or takes just now.
    pub const RANG: usize = 320;
    /// How many connections it has made over this stream besides the first.
    pub const REUSED: usize = 328;
}

/// What is agreed on about what a side has put into its ring, when the connection comes back. It
/// changes once from nothing, which decides between two that do it at the same time.
pub mod again {
    /// The peer has stopped reading, and wants the rest through the kernel.
    pub const WANTED: u64 = 1;
    /// The side is done with the connection's rings, and sends nothing again.
    pub const REFUSED: u64 = 2;
    /// It was wanted, and is being sent by the side, or was sent.
    pub const SENT: u64 = 3;
    /// It was wanted, and is being sent by the peer, with a copy of the side's socket.
    pub const TAKEN: u64 = 4;
    /// The peer is about to say what it wants.
    pub const PREPARED: u64 = 5;
}

/// What a side says of itself.
pub mod flag {
    /// It has mapped the slot, and sees what is written there.
    pub const ATTACHED: u64 = 1;
    /// It sends through the ring.
    pub const SWITCHED: u64 = 2;
    /// It has closed its end and looks no more.
    pub const CLOSED: u64 = 4;
    /// It will not attach.
    pub const DECLINED: u64 = 8;
    /// It writes nothing more. What it wrote before it said so is there.
    pub const ENDED: u64 = 16;
    /// It has closed its end as one that resets the connection: something was not read, or it was
    /// to linger for no time. Any other reset is of doorbells that nobody took.
    pub const RESET: u64 = 32;
    /// It writes no more to the ring and rings no doorbells: its stream is the kernel's again. For
    /// good: a connection that leaves the kernel again gets another slot.
    pub const LEAVES: u64 = 64;
    /// It reads no more from the ring either, and wants to have through the kernel what is behind
    /// that.
    pub const STOPS: u64 = 128;
    /// It takes nothing from the kernel any more without having seen that it is a doorbell.
    pub const LOOKS: u64 = 256;
    /// It reads nothing more, so that its peer must not send: with Unix sockets, and with TCP if it
    /// writes nothing more either.
    pub const DEAF: u64 = 512;
    /// The monitor wants the connection back in the kernel. It says so of both sides, in its
    /// [notices](super::notice).
    pub const RECALLED: u64 = 1024;
    /// Said by the monitor in its notices: the process that has claimed it is gone. The kernel
    /// knows whether others have it still.
    pub const GONE: u64 = 2048;
    /// All its calls that receive through the kernel are counted in
    /// [`RECEIVING`](super::word::RECEIVING): none is left from before it had the slot.
    pub const COUNTS: u64 = 4096;
    /// It would keep the stream of the kernel for another connection when this one is closed.
    pub const REUSES: u64 = 1 << 13;
    /// It has closed the connection, and keeps the stream. Said with [`CLOSED`].
    pub const RESTS: u64 = 1 << 14;
    /// It had ended its stream before it reset the connection.
    pub const RESET_LATE: u64 = 1 << 16;
    /// It has sent something after its peer had shut both directions of a TCP connection, which is
    /// reset by that.
    pub const SENT_LATE: u64 = 1 << 17;
    /// What only the monitor says.
    pub const OF_MONITOR: u64 = RECALLED | GONE;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn no_two_parts_of_a_slab_overlap_and_all_are_inside() {
        let mut parts = Vec::new();
        for slot in 0..SLOTS {
            let page = page(slot).unwrap();
            for side in [Side::First, Side::Second] {
                parts.push((page + state(side), 128));
                parts.push((page + state(side) + word::SENT_BYTES, 128));
                let ring = Ring::to(side);
                parts.push((page + ring.sender_notes(), NOTES_BYTES));
                parts.push((page + ring.receiver_notes(), NOTES_BYTES));
                for area in 0..AREAS {
                    parts.push((ring.area(slot, area).unwrap(), Ring::capacity(area)));
                }
                assert_eq!(ring.area(slot, AREAS), None);
                parts.push((refund(slot, side).unwrap(), REFUND_BYTES));
            }
        }
        for side in [Side::First, Side::Second] {
            parts.push((board(side), 256));
        }
        parts.sort_unstable();
        for pair in parts.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
        }
        let (at, bytes) = parts[parts.len() - 1];
        assert_eq!(at + bytes, SLAB_BYTES);
        let last = notice(SLOTS - 1, Side::Second).unwrap();
        assert!(last + 8 <= NOTICES_BYTES && notice(SLOTS, Side::First).is_none());
        assert!(SLAB_BYTES.is_multiple_of(PAGE_BYTES), "notices are mapped behind it");
        assert_eq!((page(SLOTS), refund(SLOTS, Side::First)), (None, None));
        assert_eq!((Ring::to(Side::First).area(SLOTS, 0), Ring::capacity(AREAS)), (None, 0));
    }

    #[test]
    fn words_are_apart_and_each_of_them_is_listed_once() {
        let source = include_str!("slab.rs");
        let model = include_str!("../../../docs/internals/security.md");
        let module = |begin: &str| {
            let (_, behind) = source.split_once(begin).expect("it is a module of this file");
            behind.split_once("\n}").expect("it ends").0
        };
        for (begin, all) in
            [("pub mod word {", word::ALL.as_slice()), ("pub mod board {", board::ALL.as_slice())]
        {
            let mut places: Vec<usize> = all.iter().map(|(_, at, _)| *at).collect();
            places.sort_unstable();
            assert!(places.windows(2).all(|pair| pair[0] + 8 <= pair[1]), "{places:?}");
            let names = module(begin).lines().filter_map(|line| {
                let (name, kind) = line.trim().strip_prefix("pub const ")?.split_once(": ")?;
                kind.contains("usize = ")
                    .then_some(name)
                    .or(kind.contains("usize; 4]").then_some(name))
            });
            for name in names.filter(|name| *name != "ALL") {
                assert!(all.iter().any(|(listed, ..)| *listed == name), "{name} is not listed");
            }
            for (name, ..) in all {
                let is_told_of = model.contains(&std::format!("`{name}`"));
                assert!(is_told_of, "{name} is not in the threat model");
            }
        }
    }

    #[test]
    fn all_of_a_slot_is_in_its_places_and_nothing_of_another() {
        for slot in 0..SLOTS {
            let places = places(slot).unwrap();
            assert_eq!(places.iter().map(|(_, bytes)| bytes).sum::<usize>(), SLOT_BYTES);
            let is_there = |at: usize, bytes: usize| {
                places.iter().any(|(start, length)| *start <= at && at + bytes <= start + length)
            };
            for other in 0..SLOTS {
                let is_own = other == slot;
                for side in [Side::First, Side::Second] {
                    for area in 0..AREAS {
                        let at = Ring::to(side).area(other, area).unwrap();
                        assert_eq!(is_there(at, Ring::capacity(area)), is_own);
                    }
                    let at = refund(other, side).unwrap();
                    assert_eq!(is_there(at, REFUND_BYTES), is_own);
                }
            }
            for (at, bytes) in places {
                assert!(at % PAGE_BYTES == 0 && bytes % PAGE_BYTES == 0);
            }
        }
        assert_eq!(places(SLOTS), None);
    }
}
