// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slabs: shared memory of a pair of processes, in slots of one connection each.
//!
//! A slab begins with a page for each slot:
//!
//! | offset | content | written by |
//! |---|---|---|
//! | 0, 128 | notes of the sender and the receiver of the ring to the second side | each its own |
//! | 512, 640 | notes of the sender and the receiver of the ring to the first side | each its own |
//! | 1024, 1152 | the [state](word) of the first and of the second side | each its own |
//! | 1280, 1408 | [counts](word::SENT_BYTES) of the first and of the second side | each its own |
//! | 2048 | the first area of the ring to the second side | first side |
//! | 3072 | the first area of the ring to the first side | second side |
//!
//! The pages are followed by one page for all slots, the [board](mod@board); then the second areas
//! of all slots; then, for each slot, the other areas of both rings and the [refund] areas
//! of both sides.
//!
//! A slot is zeroed before it is assigned, except for its bits on the board. Untouched pages take
//! no memory, so room to grow costs nothing. A connection with little data in flight stays in its
//! page. The pages of a slab are contiguous because page tables take memory too: one page table
//! covers the pages of eight slabs; it would cover only a tenth of a contiguous slot.

pub mod rest;

use freeport_ring::layout::NOTES_BYTES;

/// Number of slots of a slab.
pub const SLOTS: u32 = 64;
/// Size of a slot's page in bytes.
pub const PAGE_BYTES: usize = 4096;
/// Size of all slot pages of a slab. A slab is mapped at a multiple of it, so that the address of a
/// page determines its slot.
pub const PAGES_BYTES: usize = PAGE_BYTES * SLOTS as usize;
/// Number of areas of each ring.
pub const AREAS: u32 = CAPACITIES.len() as u32;
/// Sizes of the areas in bytes.
const CAPACITIES: [usize; 7] =
    [1 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20];
/// Size of the notices about a slab's slots: memory of the monitor that members map read-only, so
/// neither side can forge a notice.
pub const NOTICES_BYTES: usize = PAGE_BYTES;
/// Offset in its page of the slot's first area of the ring to the second side.
const FIRST_AREA: usize = 2048;
/// Size of all areas of one ring.
pub const DIRECTION_BYTES: usize = areas_bytes(0, AREAS);
/// Size of all areas from the third on.
const LARGE_BYTES: usize = areas_bytes(2, AREAS);
const LARGE: [usize; AREAS as usize] = large();
/// Maximum number of bytes that a side can give back after taking them from the kernel too early:
/// more than a kernel connection usually holds.
pub const REFUND_BYTES: usize = 8 << 20;
/// Offset in a slab of the parts that are separate for each slot.
const APART: usize = SECOND + 2 * CAPACITIES[1] * SLOTS as usize;
const APART_BYTES: usize = 2 * LARGE_BYTES + 2 * REFUND_BYTES;
/// Size of a slot, including all its parts.
pub const SLOT_BYTES: usize = PAGE_BYTES + 2 * CAPACITIES[1] + APART_BYTES;
/// Size of a slab.
pub const SLAB_BYTES: usize = PAGE_BYTES + SLOT_BYTES * SLOTS as usize;
/// Offset of the second areas.
const SECOND: usize = PAGES_BYTES + PAGE_BYTES;

/// Total size of the areas `first..end` of one ring.
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

/// One of the two sides of a connection. It determines only where a process writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Side {
    /// The side that the monitor lists first.
    First = 0,
    /// The other side.
    Second = 1,
}

impl Side {
    /// Returns the other side.
    pub const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    /// Returns the side with that number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::First),
            1 => Some(Self::Second),
            _ => None,
        }
    }
}

/// Offsets of the parts of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ring {
    /// The side that reads the ring.
    to: Side,
}

impl Ring {
    /// The ring that this side reads.
    pub const fn to(to: Side) -> Self {
        Self { to }
    }

    /// Offset in a slot's page of the sender's notes.
    pub const fn sender_notes(self) -> usize {
        512 * self.to.other() as usize
    }

    /// Offset in a slot's page of the receiver's notes.
    pub const fn receiver_notes(self) -> usize {
        self.sender_notes() + NOTES_BYTES
    }

    /// Offset in a slab of an area of a slot; `None` if there is no such slot or area.
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

    /// Capacity of an area in bytes; 0 if there is no such area.
    pub const fn capacity(area: u32) -> usize {
        if area < AREAS { CAPACITIES[area as usize] } else { 0 }
    }
}

/// Offset in a slot's page of the state of a side.
pub const fn state(of: Side) -> usize {
    1024 + 128 * of as usize
}

/// Offset in the notices of the monitor's word about a side of a slot, with
/// [`RECALLED`](flag::RECALLED) and [`GONE`](flag::GONE). `None` if there is no such slot.
pub const fn notice(slot: u32, of: Side) -> Option<usize> {
    if slot < SLOTS { Some(8 * (2 * slot as usize + of as usize)) } else { None }
}

/// Offset in a slab of the area in which a side gives back bytes that came through the kernel, for
/// its peer to send again; `None` if there is no such slot.
pub const fn refund(slot: u32, of: Side) -> Option<usize> {
    if slot >= SLOTS {
        return None;
    }
    Some(APART + slot as usize * APART_BYTES + 2 * LARGE_BYTES + of as usize * REFUND_BYTES)
}

/// Offset in a slab of a side's board: words that concern all slots at once.
pub const fn board(of: Side) -> usize {
    PAGES_BYTES + 512 * of as usize
}

/// The side or sides that have reason to write a word of a slab. Both processes can write all of
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writer {
    /// The side whose state or board contains the word.
    Its,
    /// Both, in the state or board of each.
    Both,
    /// Both, in the state of the first side.
    BothInFirst,
}

/// The words of a side's board.
pub mod board {
    use super::Writer;

    /// All words, with their names.
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
    /// A bit for each slot: only the reader of the marks has to be woken. Only the side itself
    /// writes this word and the next.
    pub const IS_ENOUGH: usize = 136;
    /// Core on which the side's reader last waited, counted from 1.
    pub const CORE: usize = 144;
}

/// Offset in a slab of a slot's page; `None` if there is no such slot.
pub const fn page(slot: u32) -> Option<usize> {
    if slot < SLOTS { Some(slot as usize * PAGE_BYTES) } else { None }
}

/// Offsets in a slab of all parts of a slot, each with its size in bytes.
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

    /// All words, with their names. `docs/internals/security.md` describes how far each is trusted.
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
    /// Number of bytes it has sent through the kernel, set when it switches.
    pub const SWITCHED_AT: usize = 8;
    /// Core on which it last waited, counted from 1.
    pub const CORE: usize = 16;
    /// Number of bytes it has sent through the kernel when it [leaves](super::flag::LEAVES) the
    /// ring, doorbells included.
    pub const LEFT_AT: usize = 24;
    /// Where it [stopped](super::flag::STOPS) reading: the area, counted from 1, or 0 if nothing
    /// follows.
    pub const STOPPED_AREA: usize = 32;
    /// The four numbers of `freeport_ring::Stopped`.
    pub const STOPPED: [usize; 4] = [40, 48, 56, 64];
    /// Number of bytes it gives back.
    pub const REFUNDED: usize = 72;
    /// Number of its descriptor, counted from 1, for a peer that has to act in its place; in the
    /// upper half, the process that holds it, as numbered in that process's namespace. If several
    /// processes hold one, it is that of the last child.
    pub const DESCRIPTOR: usize = 88;
    /// Whether the peer requests its unread bytes through the kernel: see [`again`](super::again).
    /// Both sides write it.
    pub const AGAIN: usize = 80;
    /// Number of bytes that the peer has sent in its place for that. Both sides write it.
    pub const AGAIN_BYTES: usize = 96;
    /// Number of calls that receive through the kernel, or are about to, although the side has the
    /// slot. They count themselves first, and then check the peer's words.
    pub const RECEIVING: usize = 104;
    /// State between two connections over the same kernel stream: see [`rest`](super::rest). In the
    /// words of the first side; both write it.
    pub const REST: usize = 112;
    /// Time in ticks at which the connecting side last [opened](super::rest::OPENED) a connection.
    /// In the words of the first side; used only to order several.
    pub const OPENED_AT: usize = 120;
    /// Number of bytes it has put into the ring. This word and the following ones are statistics;
    /// they are far enough from the words that the peer polls that counting does not evict those
    /// from its cache.
    pub const SENT_BYTES: usize = 256;
    /// Twice the number of its operations that sent. Odd while it writes to the ring.
    pub const WRITING: usize = 264;
    /// Number of bytes it has taken from the ring.
    pub const RECEIVED_BYTES: usize = 272;
    /// Number of its operations that received.
    pub const RECEIVES: usize = 280;
    /// Number of doorbells it has rung.
    pub const DOORBELLS: usize = 288;
    /// Number of times it has slept.
    pub const SLEEPS: usize = 296;
    /// Reason for which it keeps the connection in the kernel or returns it there, as the number of
    /// a [`Reason`](crate::Reason); 0: none.
    pub const REASON: usize = 304;
    /// Number of doorbells it has started to ring.
    pub const RINGING: usize = 312;
    /// Lower half: number of doorbells it has finished ringing. Upper half: number of doorbells
    /// that the kernel has taken from it or is about to take.
    pub const RANG: usize = 320;
    /// Number of connections it has made over this stream, not counting the first.
    pub const REUSED: usize = 328;
}

/// Agreement on a side's bytes in its ring when the connection returns to the kernel. The word
/// changes once from zero, which decides between two simultaneous attempts.
pub mod again {
    /// The peer has stopped reading, and requests the rest through the kernel.
    pub const WANTED: u64 = 1;
    /// The side has finished with the connection's rings, and sends nothing again.
    pub const REFUSED: u64 = 2;
    /// The request is being carried out by the side, or was.
    pub const SENT: u64 = 3;
    /// The request is being carried out by the peer, with a copy of the side's socket.
    pub const TAKEN: u64 = 4;
    /// The peer is about to make its request.
    pub const PREPARED: u64 = 5;
}

/// Flags that a side publishes about itself.
pub mod flag {
    /// It has mapped the slot, and sees writes to it.
    pub const ATTACHED: u64 = 1;
    /// It sends through the ring.
    pub const SWITCHED: u64 = 2;
    /// It has closed its end and no longer looks.
    pub const CLOSED: u64 = 4;
    /// It declines to attach.
    pub const DECLINED: u64 = 8;
    /// It writes nothing more. Everything it wrote before it set the flag is visible.
    pub const ENDED: u64 = 16;
    /// It has closed its end with a reset: data was unread, or the linger time was zero. Other
    /// resets are caused by doorbells that were never read.
    pub const RESET: u64 = 32;
    /// It no longer writes to the ring or rings doorbells: it sends through the kernel again, for
    /// good. A connection that leaves the kernel once more gets another slot.
    pub const LEAVES: u64 = 64;
    /// It no longer reads from the ring either, and requests the rest through the kernel.
    pub const STOPS: u64 = 128;
    /// It takes bytes from the kernel only after checking that they are doorbells.
    pub const LOOKS: u64 = 256;
    /// It reads nothing more, so its peer must not send: with Unix sockets, and with TCP if it
    /// writes nothing more either.
    pub const DEAF: u64 = 512;
    /// The monitor requires the connection to return to the kernel. Set for both sides in its
    /// [notices](super::notice).
    pub const RECALLED: u64 = 1024;
    /// Set by the monitor in its notices: the process that claimed the end has exited. Only the
    /// kernel knows whether other processes still hold it.
    pub const GONE: u64 = 2048;
    /// All its calls that receive through the kernel are counted in
    /// [`RECEIVING`](super::word::RECEIVING): none is left from before it had the slot.
    pub const COUNTS: u64 = 4096;
    /// It would keep the kernel stream for another connection when this one is closed.
    pub const REUSES: u64 = 1 << 13;
    /// It has closed the connection and keeps the stream. Set together with [`CLOSED`].
    pub const RESTS: u64 = 1 << 14;
    /// It had ended its stream before it reset the connection.
    pub const RESET_LATE: u64 = 1 << 16;
    /// It has sent data after its peer had shut both directions of a TCP connection, which resets
    /// the connection.
    pub const SENT_LATE: u64 = 1 << 17;
    /// Flags that only the monitor sets.
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
            let exists = |at: usize, bytes: usize| {
                places.iter().any(|(start, length)| *start <= at && at + bytes <= start + length)
            };
            for other in 0..SLOTS {
                let is_own = other == slot;
                for side in [Side::First, Side::Second] {
                    for area in 0..AREAS {
                        let at = Ring::to(side).area(other, area).unwrap();
                        assert_eq!(exists(at, Ring::capacity(area)), is_own);
                    }
                    let at = refund(other, side).unwrap();
                    assert_eq!(exists(at, REFUND_BYTES), is_own);
                }
            }
            for (at, bytes) in places {
                assert!(at % PAGE_BYTES == 0 && bytes % PAGE_BYTES == 0);
            }
        }
        assert_eq!(places(SLOTS), None);
    }
}
