// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Settings of a file system that is replicated.

use crate::chunk::HEADER_BYTES;
use crate::codec::Compression;
use freeport_study_verbs::Place;
use std::str::FromStr;
use std::time::Duration;

/// The way of a chunk to the first backup (off-path SmartNIC study, 3.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Alternative {
    /// The processor reads it through the NIC cores, compresses and sends it.
    A1,
    /// The processor reads it by DMA, compresses and sends it.
    A2,
    /// The host sends it itself, without compression.
    A3,
}

impl Alternative {
    /// All of them, by their numbers.
    pub const ALL: [Self; 3] = [Self::A1, Self::A2, Self::A3];
}

/// The choice of alternatives for a client's chunks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Policy {
    /// Always this one. A chunk waits while the processor that it needs is dead.
    Always(Alternative),
    /// A2 until the processor's queue is full or the processor is dead, and A3 for the rest.
    Auto,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Always(Alternative::A1),
        Self::Always(Alternative::A2),
        Self::Always(Alternative::A3),
        Self::Auto,
    ];
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "a1" => Ok(Self::Always(Alternative::A1)),
            "a2" => Ok(Self::Always(Alternative::A2)),
            "a3" => Ok(Self::Always(Alternative::A3)),
            "auto" => Ok(Self::Auto),
            _ => Err(format!("there is no policy {name}; use a1, a2, a3 or auto")),
        }
    }
}

/// Work of a core for a chunk. Only simulated places take this time; on real ones the work itself
/// takes its time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Work {
    /// Time for each chunk or write.
    pub each: Duration,
    /// Time for each KiB of it.
    pub kib: Duration,
}

impl Work {
    /// Returns the time for this number of bytes.
    pub fn of(self, bytes: usize) -> Duration {
        let picoseconds = self.kib.as_nanos() as u64 * 1000 / 1024 * bytes as u64;
        self.each + Duration::from_nanos(picoseconds / 1000)
    }
}

/// Times of simulated cores. Nobody has published them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// The host's file system, for a write by a client.
    pub write: Work,
    /// The host, for appending a chunk to its log.
    pub append: Work,
    /// The host, for sending a chunk itself.
    pub send: Work,
    /// The processor, for a chunk: its notification, validation and publication.
    pub process: Work,
    /// The processor, for compressing a chunk.
    pub compress: Work,
    /// A backup, for a chunk: its check and decompression.
    pub check: Work,
}

impl Default for Costs {
    /// The time of the processor is fitted to row 34 of the study, and that of an append to rows 35
    /// and 36. The others are assumed.
    fn default() -> Self {
        let us = Duration::from_micros;
        let ns = Duration::from_nanos;
        Self {
            write: Work { each: us(2), kib: ns(0) },
            append: Work { each: ns(500), kib: ns(0) },
            send: Work { each: us(1), kib: ns(0) },
            process: Work { each: us(15), kib: ns(0) },
            compress: Work { each: us(0), kib: ns(400) },
            check: Work { each: us(1), kib: ns(20) },
        }
    }
}

/// Settings, which are the same at all places.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// Number of backups in the chain: `Peer(0)` to `Peer(backups - 1)`.
    pub backups: u16,
    /// Longest chunk in bytes, without its header. The study's is 256 KiB; 16 MiB is what the file
    /// system had before, and is slow through the NIC cores.
    pub chunk_bytes: usize,
    /// Chunks of the host that not all backups hold.
    pub log_slots: usize,
    /// Chunks that a sender has on their way to a backup.
    pub receive_slots: usize,
    /// Chunks that the processor has at the same time. If all are taken, it is saturated.
    pub processor_queue: usize,
    /// Compression by the processor.
    pub compression: Compression,
    /// Times of simulated cores.
    pub costs: Costs,
    /// Wait before an operation that failed is tried again.
    pub retry: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            backups: 2,
            chunk_bytes: 256 << 10,
            log_slots: 64,
            receive_slots: 32,
            processor_queue: 8,
            compression: Compression::Lz4,
            costs: Costs::default(),
            retry: Duration::from_micros(50),
        }
    }
}

impl Options {
    /// Returns the size of a slot for a chunk with its header.
    pub fn slot_bytes(&self) -> usize {
        (HEADER_BYTES + self.chunk_bytes).next_multiple_of(8)
    }

    /// Returns the memory that a place needs, in bytes.
    pub fn memory_bytes(&self, place: Place) -> usize {
        match place {
            Place::Host => self.log_slots * self.slot_bytes(),
            // From the host, and from the processor.
            Place::Peer(0) => 2 * self.receive_slots * self.slot_bytes(),
            Place::Peer(_) => self.receive_slots * self.slot_bytes(),
            Place::Soc | Place::Client(_) => 0,
        }
    }

    /// Returns the number of chunks from one sender that a backup holds while earlier ones are
    /// missing. It is less than what the sender may have on its way, so that earlier ones always
    /// find a slot.
    pub(crate) fn early(&self, sender: Place) -> usize {
        let on_their_way = match sender {
            Place::Soc => self.receive_slots.min(self.processor_queue),
            _ => self.receive_slots,
        };
        on_their_way - 1
    }

    /// Returns whether the settings make sense, with the reason if they do not.
    ///
    /// # Errors
    /// Names the setting.
    pub fn check(&self) -> Result<(), String> {
        let least = [
            ("backups", usize::from(self.backups), 1),
            ("chunk_bytes", self.chunk_bytes, 1024),
            ("log_slots", self.log_slots, 2),
            ("receive_slots", self.receive_slots, 2),
            ("processor_queue", self.processor_queue, 2),
        ];
        match least.into_iter().find(|(_, value, least)| value < least) {
            Some((name, value, least)) => Err(format!("{name} is {value}, and at least {least}")),
            None if self.chunk_bytes > 1 << 30 => Err("chunk_bytes is at most 1 GiB".into()),
            None => Ok(()),
        }
    }
}
