// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs as compiled code in user space: lifted to the representation that packet programs
//! share, and compiled from there. One program of an object at a time.

use crate::{Arrival, Contents, Departure, Error, InUserSpace, Target};
use freeport_ebpf::interpreter::{Outcome, Redirect, verdict};
use freeport_ebpf::lift::{INGRESS, Lifted, MapPlace, Ports, QUEUE, lift};
use freeport_ebpf::maps::{ErrorNumber, flags};
use freeport_ebpf::object::{MapDefinition, MapKind, Object};
use freeport_ir::{Bits, InstanceId};
use freeport_native::{Buffer, EndpointIo, Frame, Graph, Options, build};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Headroom and tailroom of a packet, in bytes.
const HEAD_ROOM: usize = 256;
const TAIL_ROOM: usize = 4_096;
/// Bytes for each packet of a batch.
const SLOT_BYTES: usize = 8_192;
/// Packets in a batch where time is measured: as many as a port returns at a time.
const BATCH: usize = 64;
/// Bytes of the record that holds the verdict of a packet.
const RECORD_BYTES: usize = 8;
/// The only instance of the program.
const INSTANCE: InstanceId = InstanceId(0);

/// A program as compiled code, with the maps of its object.
pub struct Native {
    graph: Graph,
    program: String,
    maps: Vec<(MapDefinition, Option<MapPlace>)>,
    /// Device and queue for which the code is currently set up.
    from: (u32, u32),
    memory: Vec<u8>,
    room: Vec<u8>,
    records: Vec<u8>,
    last: Option<Outcome>,
    /// Prefix keys as they were set, by map and by lookup key: the tables themselves keep no bits
    /// beyond the prefix.
    prefixes: HashMap<(String, Vec<u8>), Vec<u8>>,
}

impl Native {
    /// Compiles a program of an object.
    ///
    /// # Errors
    /// There is no such program, it cannot be lifted, or the compiler fails.
    pub fn load(object: &Object, program: &str, options: &Options) -> Result<Self, Error> {
        let found = object.programs.iter().find(|it| it.name == program);
        let found = found.ok_or_else(|| Error::NoProgram(program.into()))?;
        let lifted = lift(object, found, &Ports::Verdicts);
        let Lifted { program: lifted, maps: places } =
            lifted.map_err(|error| Error::Unsupported(error.explain(found)))?;
        let load = |error: &dyn std::fmt::Display| Error::Load(error.to_string());
        freeport_ir::verify(&lifted).map_err(|errors| {
            let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
            load(&all.join("\n"))
        })?;
        let image = build(&lifted, options).map_err(|error| load(&error))?;
        let graph = Graph::load(&image).map_err(|error| load(&error))?;
        Ok(Self {
            graph,
            program: program.into(),
            maps: object.maps.iter().cloned().zip(places).collect(),
            from: (1, 0),
            memory: vec![0; BATCH * SLOT_BYTES],
            room: vec![0; SLOT_BYTES],
            records: vec![0; BATCH * RECORD_BYTES],
            last: None,
            prefixes: HashMap::new(),
        })
    }

    /// Returns the number of out-of-range memory accesses. A program that the kernel's verifier
    /// accepts makes none.
    pub fn out_of_range(&self) -> u64 {
        self.graph.counters().instances.iter().map(|it| it.out_of_range).sum()
    }

    /// Runs packets in batches of 64, as a port returns them, and returns the time taken. It
    /// excludes copying the packets in, and includes reading the clock once for each batch.
    ///
    /// # Errors
    /// As with [`run`](Target::run).
    pub fn time(&mut self, arrivals: &[Arrival<'_>]) -> Result<Duration, Error> {
        let mut elapsed = Duration::ZERO;
        for batch in arrivals.chunks(BATCH) {
            for (slot, arrival) in self.memory.chunks_exact_mut(SLOT_BYTES).zip(batch) {
                place(slot, arrival)?;
            }
            self.come_from(batch[0].ingress_ifindex, batch[0].rx_queue_index)?;
            let slots = self.memory.chunks_exact_mut(SLOT_BYTES).zip(batch);
            let mut frames: Vec<Frame<'_>> = slots
                .map(|(slot, it)| Frame::within(slot, HEAD_ROOM..HEAD_ROOM + it.bytes.len()))
                .collect();
            let mut buffers: Vec<Buffer<'_>> =
                (0..batch.len()).map(|_| Buffer::new(&mut [])).collect();
            let mut io = [
                EndpointIo::frames_in(&mut frames),
                EndpointIo::frames_out(&mut buffers),
                EndpointIo::records_out(&mut self.records),
            ];
            let begin = Instant::now();
            self.graph.run(&mut io).map_err(|error| Error::Load(error.to_string()))?;
            elapsed += begin.elapsed();
            if io[2].done() != batch.len() {
                return Err(Error::Load(format!(
                    "{} of {} packets came",
                    io[2].done(),
                    batch.len()
                )));
            }
        }
        Ok(elapsed)
    }

    /// Sets the ingress device and queue.
    fn come_from(&mut self, device: u32, queue: u32) -> Result<(), Error> {
        if self.from == (device, queue) {
            return Ok(());
        }
        for (name, value) in [(INGRESS, device), (QUEUE, queue)] {
            let value = Bits::from_u64(32, value.into());
            let written = self.graph.write_variable(INSTANCE, name, 0, value);
            written.map_err(|error| Error::Load(error.to_string()))?;
        }
        self.from = (device, queue);
        Ok(())
    }

    fn map(&self, name: &str) -> Result<(&MapDefinition, MapPlace), Error> {
        let found = self.maps.iter().find(|(map, _)| map.name == name);
        let (map, place) = found.ok_or_else(|| Error::NoMap(name.into()))?;
        let place = place.ok_or_else(|| Error::Refused {
            what: format!("map {name}"),
            reason: map.check().err().unwrap_or_else(|| {
                let kind = map.kind;
                format!("compiled code does not support {kind}")
            }),
        })?;
        Ok((map, place))
    }

    /// Returns the kind of a map, and a key converted to the form that its table uses.
    fn entry(&self, map: &str, key: &[u8]) -> Result<(MapKind, Bits), Error> {
        let (definition, place) = self.map(map)?;
        let refuse = |error| Err(refused("the key of", map)(error));
        if key.len() != definition.key_size as usize || matches!(place, MapPlace::Data(_)) {
            return refuse(ErrorNumber::EINVAL);
        }
        let is_indexed =
            matches!(definition.kind, MapKind::Array | MapKind::PerCpuArray | MapKind::Devmap);
        let index = key.iter().rev().fold(0_u64, |index, byte| index << 8 | u64::from(*byte));
        if is_indexed && index >= u64::from(definition.max_entries) {
            return refuse(ErrorNumber::E2BIG);
        }
        Ok((definition.kind, Bits::from_le_bytes(definition.key_size * 8, key)))
    }
}

/// Copies a packet into its slot.
fn place(slot: &mut [u8], arrival: &Arrival<'_>) -> Result<(), Error> {
    let room = slot.get_mut(HEAD_ROOM..HEAD_ROOM + arrival.bytes.len() + TAIL_ROOM);
    let Some(room) = room else {
        let (what, bytes) = ("a packet".to_owned(), arrival.bytes.len());
        return Err(Error::Refused { what, reason: format!("{bytes} bytes are too long") });
    };
    room[..arrival.bytes.len()].copy_from_slice(arrival.bytes);
    Ok(())
}

impl InUserSpace for Native {
    const LENGTH_MAX: usize = SLOT_BYTES - HEAD_ROOM - TAIL_ROOM;

    fn takes(&self, program: &str) -> Result<(), Error> {
        match program == self.program {
            true => Ok(()),
            false => Err(Error::NoProgram(program.into())),
        }
    }

    /// Instructions are not counted, and the reason of an abort is not known.
    fn last(&self) -> Option<&Outcome> {
        self.last.as_ref()
    }
}

impl Target for Native {
    fn run_into(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        departure: &mut Departure,
    ) -> Result<(), Error> {
        self.takes(program)?;
        self.last = None;
        self.come_from(arrival.ingress_ifindex, arrival.rx_queue_index)?;
        place(&mut self.memory, arrival)?;
        let slot = &mut self.memory[..SLOT_BYTES];
        let mut frames = [Frame::within(slot, HEAD_ROOM..HEAD_ROOM + arrival.bytes.len())];
        let mut buffers = [Buffer::new(&mut self.room)];
        let mut io = [
            EndpointIo::frames_in(&mut frames),
            EndpointIo::frames_out(&mut buffers),
            EndpointIo::records_out(&mut self.records),
        ];
        self.graph.run(&mut io).map_err(|error| Error::Load(error.to_string()))?;
        let came = io[2].done();
        departure.bytes.clear();
        departure.metadata.clear();
        departure.bytes.extend(EndpointIo::produced(&io, 1).next().unwrap_or_default());
        if came == 0 {
            // An endless loop was stopped, and the packet is aborted.
            departure.verdict = verdict::ABORTED;
            departure.bytes.extend_from_slice(arrival.bytes);
            return Ok(());
        }
        let word =
            |at: usize| u32::from_le_bytes(self.records[at..at + 4].try_into().unwrap_or_default());
        departure.verdict = word(0);
        let redirect = (word(4) != 0).then_some(Redirect::Device { ifindex: word(4) });
        self.last = Some(Outcome {
            verdict: departure.verdict,
            value: departure.verdict.into(),
            aborted: None,
            instructions: 0,
            redirect,
        });
        Ok(())
    }

    fn update_with(
        &mut self,
        map: &str,
        key: &[u8],
        value: &[u8],
        flags: u64,
    ) -> Result<(), Error> {
        let (definition, place) = self.map(map)?;
        if value.len() != definition.value_size as usize {
            return Err(refused("updating", map)(ErrorNumber::EINVAL));
        }
        if let MapPlace::Data(_) = place {
            for (at, byte) in (0..).zip(value) {
                let byte = Bits::from_u64(8, u64::from(*byte));
                let written = self.graph.write_variable(INSTANCE, map, at, byte);
                written.map_err(|error| Error::Load(error.to_string()))?;
            }
            return Ok(());
        }
        let (kind, bits) = self.entry(map, key)?;
        let is_array = matches!(kind, MapKind::Array | MapKind::PerCpuArray);
        let exists = is_array || self.lookup(map, key)?.is_some();
        match flags {
            flags::NOEXIST if exists => {
                return Err(refused("updating", map)(ErrorNumber::EEXIST));
            }
            flags::EXIST if !exists => {
                return Err(refused("updating", map)(ErrorNumber::ENOENT));
            }
            flags::ANY | flags::NOEXIST | flags::EXIST => {}
            _ => return Err(refused("updating", map)(ErrorNumber::EINVAL)),
        }
        let value = Bits::from_le_bytes(value.len() as u32 * 8, value);
        let done = self.graph.table_update(INSTANCE, map, bits, value);
        match done.map_err(|error| Error::Load(error.to_string()))? {
            true if kind == MapKind::LpmTrie => {
                self.prefixes.insert((map.into(), prefix(key)), key.to_vec());
                Ok(())
            }
            true => Ok(()),
            false if kind == MapKind::LpmTrie => Err(refused("updating", map)(ErrorNumber::ENOSPC)),
            false => Err(refused("updating", map)(ErrorNumber::E2BIG)),
        }
    }

    fn delete(&mut self, map: &str, key: &[u8]) -> Result<(), Error> {
        let (kind, bits) = self.entry(map, key)?;
        if matches!(kind, MapKind::Array | MapKind::PerCpuArray) {
            return Err(refused("deleting in", map)(ErrorNumber::EINVAL));
        }
        let done = self.graph.table_delete(INSTANCE, map, bits);
        match done.map_err(|error| Error::Load(error.to_string()))? {
            true => Ok(()),
            false => Err(refused("deleting in", map)(ErrorNumber::ENOENT)),
        }
    }

    fn lookup(&mut self, map: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        if let (_, MapPlace::Data(_)) = self.map(map)? {
            let Contents::Entries(mut entries) = self.contents(map)? else { return Ok(None) };
            return Ok(entries.remove(key));
        }
        let (_, bits) = self.entry(map, key)?;
        let found = self.graph.table_lookup(INSTANCE, map, &bits);
        let found = found.map_err(|error| Error::Load(error.to_string()))?;
        Ok(found.map(|value| value.to_le_bytes()))
    }

    fn push(&mut self, map: &str, _: &[u8]) -> Result<(), Error> {
        self.map(map)?;
        Err(refused("pushing to", map)(ErrorNumber::EINVAL))
    }

    fn put_inside(&mut self, outer: &str, _: &[u8], _: &str) -> Result<(), Error> {
        self.map(outer)?;
        Err(refused("putting a map into", outer)(ErrorNumber::EINVAL))
    }

    fn put_program(&mut self, map: &str, _: &[u8], _: &str) -> Result<(), Error> {
        self.map(map)?;
        Err(refused("putting a program into", map)(ErrorNumber::EINVAL))
    }

    fn maps(&self) -> Vec<String> {
        self.maps.iter().map(|(map, _)| map.name.clone()).collect()
    }

    fn contents(&mut self, map: &str) -> Result<Contents, Error> {
        if self.maps.iter().any(|(it, place)| it.name == map && place.is_none()) {
            return Ok(Contents::Opaque);
        }
        let (definition, place) = self.map(map)?;
        let load = |error: freeport_native::Error| Error::Load(error.to_string());
        if let MapPlace::Data(_) = place {
            let byte = |at| {
                let byte = self.graph.read_variable(INSTANCE, map, at).map_err(load)?;
                Ok(byte.to_u64() as u8)
            };
            let bytes = (0..definition.value_size.into()).map(byte);
            let bytes = bytes.collect::<Result<Vec<u8>, Error>>()?;
            return Ok(Contents::Entries([(vec![0; 4], bytes)].into()));
        }
        let entries = self.graph.table_entries(INSTANCE, map).map_err(load)?;
        let given = |key: Vec<u8>| {
            let known = self.prefixes.get(&(map.to_owned(), key.clone()));
            known.cloned().unwrap_or(key)
        };
        let bytes =
            entries.iter().map(|(key, value)| (given(key.to_le_bytes()), value.to_le_bytes()));
        Ok(Contents::Entries(bytes.collect()))
    }
}

/// Returns the key of a prefix with the bits beyond the prefix cleared.
fn prefix(key: &[u8]) -> Vec<u8> {
    let (length, data) = key.split_at(key.len().min(4));
    let bits = length.iter().rev().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
    let kept = data.iter().enumerate().map(|(at, byte)| match bits.saturating_sub(8 * at) {
        0 => 0,
        bits @ 1..8 => byte & !(0xff >> bits),
        _ => *byte,
    });
    length.iter().copied().chain(kept).collect()
}

fn refused(what: &str, map: &str) -> impl FnOnce(ErrorNumber) -> Error {
    let what = format!("{what} {map}");
    move |error| Error::Refused { what, reason: error.to_string() }
}
