// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Match tables of the library as native code, for tests with many rules and records: records as
//! Rust structs, method calls, and streams of records.

use crate::repository;
use freeport_clicknp::{Options as SourceOptions, compile_text};
use freeport_ir::{Bits, InstanceId};
use freeport_native::{EndpointIo, Graph, Options, RunStatus, build};
use freeport_testbed::cache::Cache;

/// `Tuple` of `elements/records.cnp`, as far as tables use it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tuple {
    /// Source address.
    pub source: u32,
    /// Destination address.
    pub target: u32,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub target_port: u16,
    /// IP protocol number.
    pub protocol: u8,
}

/// `Match` of `elements/records.cnp`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Match {
    /// Tuple to look up.
    pub tuple: Tuple,
    /// Action of the best rule.
    pub action: u32,
    /// Priority of the best rule; 0 if none has matched.
    pub priority: u16,
}

/// Results of methods, as in `elements/match/status.cnp`.
pub mod status {
    /// Inserted or removed.
    pub const DONE: u64 = 0;
    /// Replaced an existing entry.
    pub const REPLACED: u64 = 1;
    /// The table is full.
    pub const NO_ROOM: u64 = 2;
    /// The entry does not exist.
    pub const ABSENT: u64 = 3;
    /// Every sub-table is in use for another mask.
    pub const NO_MASK: u64 = 5;
}

/// Size of a `Match` in bytes.
pub const MATCH_BYTES: usize = 24;

impl Tuple {
    /// Returns the bytes of the record.
    pub fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.source.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.target.to_le_bytes());
        bytes[8..10].copy_from_slice(&self.source_port.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.target_port.to_le_bytes());
        bytes[12] = self.protocol;
        bytes
    }

    /// Returns the record as an argument.
    pub fn bits(&self) -> Bits {
        Bits::from_le_bytes(128, &self.bytes())
    }

    /// Returns a random tuple.
    pub fn random(random: &mut fastrand::Rng) -> Self {
        Self {
            source: random.u32(..),
            target: random.u32(..),
            source_port: random.u16(..),
            target_port: random.u16(..),
            protocol: random.u8(..),
        }
    }

    /// Returns the bits of this tuple that `mask` selects.
    pub fn masked(&self, mask: &Self) -> Self {
        Self {
            source: self.source & mask.source,
            target: self.target & mask.target,
            source_port: self.source_port & mask.source_port,
            target_port: self.target_port & mask.target_port,
            protocol: self.protocol & mask.protocol,
        }
    }
}

impl Match {
    /// Returns a match of this tuple, which in half of all cases an earlier rule has matched.
    pub fn random(random: &mut fastrand::Rng, tuple: Tuple) -> Self {
        match random.u16(..) {
            priority if priority & 1 == 0 => Self { tuple, ..Self::default() },
            priority => Self { tuple, action: random.u32(..), priority },
        }
    }

    /// Returns this match, or that of a rule with a higher priority.
    pub fn or(&self, (action, priority): (u32, u16)) -> Self {
        if priority > self.priority { Self { action, priority, ..*self } } else { *self }
    }

    /// Returns the bytes of the record.
    pub fn bytes(&self) -> [u8; MATCH_BYTES] {
        let mut bytes = [0; MATCH_BYTES];
        bytes[..16].copy_from_slice(&self.tuple.bytes());
        bytes[16..20].copy_from_slice(&self.action.to_le_bytes());
        bytes[20..22].copy_from_slice(&self.priority.to_le_bytes());
        bytes
    }
}

/// A graph with one table between `from_tor` and `to_tor`.
pub struct Table {
    graph: Graph,
    instance: InstanceId,
}

impl Table {
    /// Makes a table of this type, such as `CuckooHash<64>`.
    pub fn new(element: &str) -> Self {
        let text = format!("{element} :: table\nfrom_tor -> table -> to_tor\n");
        let options = SourceOptions { library: vec![repository().join("elements")] };
        let compiled = compile_text("table.cnp", &text, &options);
        let program = compiled.unwrap_or_else(|failure| panic!("{failure}")).program;
        let cache = Cache::of("native");
        let options = Options { cache: Some(cache.path().to_owned()), ..Options::default() };
        let image = build(&program, &options).unwrap_or_else(|error| panic!("{error}"));
        let graph = Graph::load(&image).expect("a library just built");
        let instance = graph.instance("table").expect("it is in the program");
        Self { graph, instance }
    }

    /// Calls a method, and returns its result.
    pub fn call(&mut self, method: &str, arguments: &[Bits]) -> Bits {
        let result = self.graph.call_method(self.instance, method, arguments);
        result.expect("arguments as it takes them").expect("it has a result")
    }

    /// Inserts the rule `key` with an action and a priority; returns the status.
    pub fn insert(&mut self, key: &[Bits], (action, priority): (u32, u16)) -> u64 {
        let mut arguments = key.to_vec();
        arguments.push(Bits::from_u64(32, action.into()));
        arguments.push(Bits::from_u64(16, priority.into()));
        self.call("insert", &arguments).to_u64()
    }

    /// Removes the rule `key`; returns the status.
    pub fn remove(&mut self, key: &[Bits]) -> u64 {
        self.call("remove", key).to_u64()
    }

    /// Reads element `index` of a variable.
    pub fn read(&self, variable: &str, index: u64) -> Bits {
        self.graph.read_variable(self.instance, variable, index).expect("it is there")
    }

    /// Passes matches through the table.
    pub fn pass(&mut self, records: &[Match]) -> Vec<Match> {
        let bytes: Vec<u8> = records.iter().flat_map(Match::bytes).collect();
        let mut room = vec![0xee; bytes.len()];
        self.pass_bytes(&bytes, &mut room);
        let field = |bytes: &[u8]| Bits::from_le_bytes(32, bytes).to_u64() as u32;
        let passed = records.iter().zip(room.chunks_exact(MATCH_BYTES));
        passed
            .map(|(record, bytes)| {
                assert_eq!(bytes[..16], record.tuple.bytes(), "the tuple stays as it is");
                let (action, priority) = (field(&bytes[16..20]), field(&bytes[20..22]) as u16);
                Match { tuple: record.tuple, action, priority }
            })
            .collect()
    }

    fn pass_bytes(&mut self, mut records: &[u8], mut room: &mut [u8]) {
        while !records.is_empty() {
            let mut io = [EndpointIo::records_in(records), EndpointIo::records_out(room)];
            let status = self.graph.run(&mut io).expect("an io for each endpoint");
            let (consumed, produced) = (io[0].done(), io[1].done());
            assert!(consumed > 0 && consumed == produced, "it stands still: {status:?}");
            assert!(!matches!(status, RunStatus::Stalled(_)), "{status:?}");
            records = &records[consumed * MATCH_BYTES..];
            room = &mut room[produced * MATCH_BYTES..];
        }
        let counters = self.graph.counters();
        let counted = &counters.instances[self.instance.index()];
        assert_eq!((counted.out_of_range, counted.traps.len()), (0, 0), "{counted:?}");
    }
}
