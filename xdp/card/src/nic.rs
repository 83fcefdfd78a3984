// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The simulated card from the perspective of host and network.

use crate::{Card, Stamp, Tags};
use freeport_xdp::Arrival;
use std::path::Path;
use thiserror::Error;

/// Cycles within which an access of the host must be answered; otherwise the card hangs.
const ACCESS_CYCLES: u64 = 100_000;
/// Polls within which a command must be done: the longest commands walk through a full map.
const COMMAND_POLLS: u64 = 1_000_000;

/// Addresses on the host's bus, see `docs/internals/sephirot.md`.
pub mod address {
    /// Number of lanes, rows and bytes of map memory.
    pub const IDENTITY: u32 = 0;
    /// Enables reception of packets, and emission of all packets.
    pub const CONTROL: u32 = 0x08;
    /// First row and number of rows of the program.
    pub const ENTRY: u32 = 0x10;
    /// Cycles after which a program is stopped.
    pub const WATCHDOG: u32 = 0x18;
    /// Time in nanoseconds.
    pub const TIME: u32 = 0x20;
    /// State of the random generator.
    pub const RANDOM: u32 = 0x28;
    /// Whether the card holds no packet.
    pub const IDLE: u32 = 0x30;
    /// Number of cores in use.
    pub const CORES: u32 = 0x38;
    /// The first counter.
    pub const COUNTERS: u32 = 0x100;
    /// Number of completed packets, beginning with the first core's.
    pub const PACKETS_BY_CORE: u32 = 0x200;
    /// Instruction memory.
    pub const ROWS: u32 = 0x1000_0000;
    /// Table of maps.
    pub const TABLE: u32 = 0x2000_0000;
    /// Commands.
    pub const COMMANDS: u32 = 0x3000_0000;
    /// Map memory.
    pub const MAPS: u32 = 0x4000_0000;
}

/// Bits of `control`.
pub mod control {
    /// Receive packets.
    pub const RUN: u64 = 1;
    /// Emit packets whatever their verdict.
    pub const EMIT_ALL: u64 = 2;
    /// Run the clock.
    pub const CLOCK: u64 = 4;
}

/// Base of map memory in addresses of programs and helpers.
pub const MAP_REGION: u64 = 0x4000_0000;
/// Base of map handles in these addresses.
pub const MAP_HANDLES: u64 = 0x5000_0000;

/// Names of counters, in the order of their addresses.
pub const COUNTERS: [&str; 25] = [
    "cycles",
    "packets",
    "aborted",
    "dropped",
    "passed",
    "sent_back",
    "redirected",
    "other_verdicts",
    "stopped_memory",
    "stopped_watchdog",
    "stopped_row",
    "stopped_instruction",
    "stopped_helper",
    "stopped_depth",
    "",
    "",
    "busy_cycles",
    "rows",
    "memory_wait_cycles",
    "helper_wait_cycles",
    "long_wait_cycles",
    "jumps",
    "receive_wait_cycles",
    "oversized",
    "calls",
];

/// Counters of cycles by their use, with the names of the uses.
pub const SPENT: [(&str, &str); 5] = [
    ("rows", "rows"),
    ("jumps", "jumps taken"),
    ("helper_wait_cycles", "waits for helpers"),
    ("memory_wait_cycles", "for memory"),
    ("long_wait_cycles", "for long arithmetic"),
];

/// Error of the card.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NicError {
    /// The card does not answer.
    #[error("the card does not answer: {what}")]
    Stuck {
        /// The operation.
        what: String,
    },
    /// The card does not have the requested size.
    #[error("{what} requested, but the card has {has}")]
    TooLarge {
        /// The request.
        what: String,
        /// The card's size.
        has: String,
    },
    /// This build has no card.
    #[error(
        "this build has no simulated card: build freeport with its feature `card`, for which \
         Verilator and a C++ compiler are needed"
    )]
    NotBuilt,
}

/// Identity of the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Operations in a row.
    pub lanes: u8,
    /// Number of cores, including those not in use.
    pub cores: u8,
    /// Number of rows of the instruction memory.
    pub rows: usize,
    /// Size of map memory in bytes.
    pub map_bytes: u64,
}

/// A simulated card. Its clock only advances in methods that say so, and in accesses of the host.
pub struct Nic {
    card: Card,
}

impl Nic {
    /// Maximum number of cores of a card.
    pub const CORES_MAX: u8 = 4;

    /// Creates a card with one core and resets it, with zeros in its memories.
    ///
    /// # Errors
    /// This build has no card.
    pub fn new() -> Result<Self, NicError> {
        Ok(Self { card: Card::new(1)? })
    }

    /// Creates a card with this number of cores in use: one with four cores if it is more than one.
    ///
    /// # Errors
    /// There is no card that large, the card does not answer, or this build has none.
    pub fn with_cores(cores: u8) -> Result<Self, NicError> {
        let mut nic = Self { card: Card::new(cores)? };
        nic.set_cores(cores)?;
        Ok(nic)
    }

    /// Sets the number of cores in use, from the next packet on that finds the card empty: until
    /// then no packet begins.
    ///
    /// # Errors
    /// The card has fewer cores, or does not answer.
    pub fn set_cores(&mut self, cores: u8) -> Result<(), NicError> {
        let most = self.identity()?.cores;
        if !(1..=most).contains(&cores) {
            let (what, has) = (format!("{cores} cores"), format!("1 to {most}"));
            return Err(NicError::TooLarge { what, has });
        }
        self.host_write(address::CORES, &[cores.into()])
    }

    /// Returns the verilated card.
    pub(crate) fn card_mut(&mut self) -> &mut Card {
        &mut self.card
    }

    /// Resets the card. Memories keep their contents; packets are lost.
    pub fn reset(&mut self) {
        self.card.reset();
    }

    /// Returns the number of cycles since the card was created.
    pub fn cycles(&self) -> u64 {
        self.card.cycles()
    }

    /// Advances the clock, while packets that were sent arrive.
    pub fn step(&mut self, cycles: u64) {
        self.card.step(cycles);
    }

    /// Writes words to consecutive addresses.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn host_write(&mut self, address: u32, words: &[u64]) -> Result<(), NicError> {
        let done = self.card.host_write(address, words, ACCESS_CYCLES);
        self.answered("a write to", address, done, words.len())
    }

    /// Reads words from consecutive addresses.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn host_read(&mut self, address: u32, words: &mut [u64]) -> Result<(), NicError> {
        let done = self.card.host_read(address, words, ACCESS_CYCLES);
        self.answered("a read of", address, done, words.len())
    }

    fn answered(&self, what: &str, address: u32, done: usize, all: usize) -> Result<(), NicError> {
        let at = u64::from(address) + 8 * done as u64;
        if done == all {
            Ok(())
        } else {
            Err(NicError::Stuck { what: format!("{what} {at:#010x}") })
        }
    }

    /// Reads a word.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn read(&mut self, address: u32) -> Result<u64, NicError> {
        let mut words = [0];
        self.host_read(address, &mut words)?;
        Ok(words[0])
    }

    /// Reads the identity of the card.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn identity(&mut self) -> Result<Identity, NicError> {
        let word = self.read(address::IDENTITY)?;
        Ok(Identity {
            lanes: word as u8,
            cores: (word >> 8) as u8,
            rows: usize::from((word >> 16) as u16) * 16,
            map_bytes: word >> 32,
        })
    }

    /// Writes encoded rows to the instruction memory, from its start.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn load_rows(&mut self, bytes: &[u8]) -> Result<(), NicError> {
        self.host_write(address::ROWS, &words_of(bytes))
    }

    /// Reads bytes of map memory, from a multiple of 8.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn read_memory(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, NicError> {
        let mut words = vec![0; length.div_ceil(8)];
        self.host_read(memory_address(offset), &mut words)?;
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Writes bytes to map memory from a multiple of 8 on; the rest of the last word is unchanged.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn write_memory(&mut self, offset: u64, bytes: &[u8]) -> Result<(), NicError> {
        let mut words = words_of(bytes);
        let rest = bytes.len() % 8;
        if let (Some(last), true) = (words.last_mut(), rest != 0) {
            let at = offset + (bytes.len() - rest) as u64;
            *last |= self.read(memory_address(at))? & (u64::MAX << (8 * rest));
        }
        self.host_write(memory_address(offset), &words)
    }

    /// Calls a helper on the card, and returns its result.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn command(&mut self, helper: u64, arguments: &[u64]) -> Result<u64, NicError> {
        let mut words = vec![helper];
        words.extend(arguments);
        words.resize(6, 0);
        words.push(1);
        self.host_write(address::COMMANDS, &words)?;
        for _ in 0..COMMAND_POLLS {
            let mut state = [0; 2];
            self.host_read(address::COMMANDS + 0x30, &mut state)?;
            if state[0] == 0 {
                return Ok(state[1]);
            }
        }
        Err(NicError::Stuck { what: format!("a call of helper {helper}") })
    }

    /// Sends a packet after those that were sent before.
    pub fn send(&mut self, arrival: &Arrival<'_>) {
        self.card.send(arrival.bytes, arrival.ingress_ifindex, arrival.rx_queue_index);
    }

    /// Advances the clock until a packet has left, and stores its bytes, with the metadata first,
    /// in `bytes`.
    pub fn receive(&mut self, cycles_max: u64, bytes: &mut Vec<u8>) -> Option<Tags> {
        self.card.run_until_left(1, cycles_max);
        self.card.take(bytes)
    }

    /// Advances the clock until this many packets are done since the last [`forget`](Self::forget);
    /// returns their number.
    pub fn run_until_done(&mut self, packets: u64, cycles_max: u64) -> u64 {
        self.card.run_until_done(packets, cycles_max)
    }

    /// Returns the times of the first packets since the last [`forget`](Self::forget). The time of
    /// an event that has not happened yet is 0.
    pub fn stamps(&self, packets: usize) -> Vec<Stamp> {
        self.card.stamps(packets)
    }

    /// Forgets stamps.
    pub fn forget(&mut self) {
        self.card.forget();
    }

    /// Makes the buses pause at random: in this number of cycles of 256.
    pub fn set_pauses(&mut self, seed: u64, receive: u8, transmit: u8) {
        self.card.set_pauses(seed, receive.into(), transmit.into());
    }

    /// Reads a counter by its name, one of [`COUNTERS`].
    ///
    /// # Errors
    /// The card does not answer, or has no such counter.
    pub fn counter(&mut self, name: &str) -> Result<u64, NicError> {
        let found = COUNTERS.iter().position(|counter| *counter == name && !name.is_empty());
        let number = found.ok_or_else(|| NicError::Stuck { what: format!("no counter {name}") })?;
        self.read(address::COUNTERS + 8 * number as u32)
    }

    /// Reads the number of completed packets of each core.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn packets_by_core(&mut self) -> Result<Vec<u64>, NicError> {
        let mut packets = vec![0; self.identity()?.cores.into()];
        self.host_read(address::PACKETS_BY_CORE, &mut packets)?;
        Ok(packets)
    }

    /// Reads the counters of [`SPENT`], in its order.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn spent(&mut self) -> Result<Vec<u64>, NicError> {
        SPENT.iter().map(|(counter, _)| self.counter(counter)).collect()
    }

    /// Reads all counters, with their names.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn counters(&mut self) -> Result<Vec<(&'static str, u64)>, NicError> {
        let mut values = [0; COUNTERS.len()];
        self.host_read(address::COUNTERS, &mut values)?;
        let named = COUNTERS.into_iter().zip(values);
        Ok(named.filter(|(name, _)| !name.is_empty()).collect())
    }

    /// Writes all signals from now on to a VCD file, until the card is dropped.
    ///
    /// # Errors
    /// The file cannot be created, or there already is a waveform.
    pub fn open_waveform(&mut self, path: &Path) -> Result<(), String> {
        if let Err(error) = std::fs::File::create(path) {
            return Err(format!("{}: cannot be written: {error}", path.display()));
        }
        match self.card.open_waveform(path) {
            true => Ok(()),
            false => Err(format!("{}: the card already writes a waveform", path.display())),
        }
    }
}

/// Returns the host's address of a byte of map memory.
fn memory_address(offset: u64) -> u32 {
    address::MAPS + offset as u32
}

/// Returns words of eight bytes, the last one padded with zeros.
fn words_of(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}
