// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traces in the interpreter: each instruction, with the registers and the memory that it changed.

use super::super::explain::text::{instruction, source};
use super::super::run::report::abort;
use super::{Reported, Traced, Tracer, hexadecimal, number};
use freeport_ebpf::instruction::{Callee, Operation, Width, decode};
use freeport_ebpf::interpreter::{Clock, Observer, Point};
use freeport_ebpf::object::Object;
use freeport_xdp::{Arrival, Interpreter, Target};
use serde_json::{Map, Value, json};

/// Bytes of a stack frame.
const FRAME_BYTES: u64 = 512;
/// Column of the changes.
const CHANGES: usize = 48;

/// An object in the interpreter.
pub struct Interpreted<'o> {
    pub object: &'o Object,
    pub interpreter: Interpreter,
}

impl Tracer for Interpreted<'_> {
    fn target(&mut self) -> &mut dyn Target {
        &mut self.interpreter
    }

    fn set_time(&mut self, time_ns: u64) {
        self.interpreter.environment_mut().clock = Clock::Set(time_ns);
    }

    fn trace(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        limit: usize,
    ) -> anyhow::Result<Traced> {
        let mut watch = Watch {
            object: self.object,
            limit,
            traced: Traced::default(),
            before: None,
            line: None,
        };
        let departure = self.interpreter.run_observed(program, arrival, &mut watch)?;
        let ended = self.interpreter.last().and_then(|outcome| outcome.aborted.as_ref());
        if let Some(last) = watch.before.take() {
            let step = watch.reported(&last, &[], &[]);
            watch.traced.steps.push(step);
        }
        let ended = ended.map(|ended| abort(self.object, ended));
        Ok(Traced { departure, ended, ..watch.traced })
    }
}

/// Observes each instruction.
struct Watch<'o> {
    object: &'o Object,
    limit: usize,
    traced: Traced,
    /// The instruction that is being executed.
    before: Option<Before>,
    /// The source line that was printed last.
    line: Option<(String, u32)>,
}

/// The state before an instruction.
struct Before {
    program: usize,
    slot: usize,
    registers: [u64; 11],
    /// Memory that the instruction may change, with its contents.
    memory: Vec<(u64, Vec<u8>)>,
}

/// Bytes that an instruction has changed.
struct Changed {
    place: String,
    address: u64,
    bytes: Vec<u8>,
}

impl Observer for Watch<'_> {
    fn before(&mut self, point: &Point<'_, '_>) {
        if let Some(before) = self.before.take() {
            let registers = (0_u8..).zip(before.registers.iter().zip(point.registers()));
            let changed = registers.filter(|(_, (old, new))| old != new);
            let registers: Vec<(u8, u64, String)> = changed
                .map(|(register, (_, new))| (register, *new, self.named(point, *new)))
                .collect();
            let memory = self.changes(&before, point);
            let step = self.reported(&before, &registers, &memory);
            self.traced.steps.push(step);
        }
        if self.traced.steps.len() == self.limit {
            self.traced.left_out += 1;
            return;
        }
        let (program, slot, registers) = (point.program(), point.slot(), *point.registers());
        let operation = self.object.programs.get(program).map(|it| &it.instructions[..]);
        let operation = operation.and_then(|instructions| decode(instructions, slot).ok());
        let reached = operation.map_or(vec![], |it| reached(&it, point));
        let memory = reached
            .into_iter()
            .filter_map(|(address, size)| Some((address, point.read(address, size)?.to_vec())));
        self.before = Some(Before { program, slot, registers, memory: memory.collect() });
    }
}

/// Memory that an instruction may change: the target of a store or, for a call of a helper, the
/// packet and the stack frame. Changes of maps by helpers are not traced.
fn reached(operation: &Operation, point: &Point<'_, '_>) -> Vec<(u64, usize)> {
    let at = |base: u8, offset: i16| {
        point.registers()[usize::from(base)].wrapping_add_signed(offset.into())
    };
    match *operation {
        Operation::Store { size, base, offset, .. } => {
            vec![(at(base, offset), size.bytes().into())]
        }
        Operation::Atomic { width, base, offset, .. } => {
            vec![(at(base, offset), if width == Width::Bits32 { 4 } else { 8 })]
        }
        Operation::Call(Callee::Helper(_)) => {
            let [metadata, _, end] = point.packet();
            let frame = point.frame_pointer(point.depth().saturating_sub(1)) - FRAME_BYTES;
            vec![(metadata, (end - metadata) as usize), (frame, FRAME_BYTES as usize)]
        }
        _ => vec![],
    }
}

impl Watch<'_> {
    /// Runs of bytes that have changed.
    fn changes(&self, before: &Before, point: &Point<'_, '_>) -> Vec<Changed> {
        let mut changes = vec![];
        for (address, old) in &before.memory {
            // If a helper has moved the packet, the part that is still accessible is compared.
            let new = (0..old.len()).map(|at| {
                let found = point.read(address + at as u64, 1);
                found.and_then(|bytes| bytes.first().copied())
            });
            let new: Vec<Option<u8>> = new.collect();
            let mut at = 0;
            while at < old.len() {
                let differs = |at: usize| new[at].is_some_and(|byte| byte != old[at]);
                let run = (at..old.len()).take_while(|at| differs(*at)).count();
                if run > 0 {
                    let address = address + at as u64;
                    let bytes = new[at..at + run].iter().flatten().copied().collect();
                    changes.push(Changed { place: self.named(point, address), address, bytes });
                }
                at += run.max(1);
            }
        }
        changes
    }

    /// A number, or what it is the address of.
    fn named(&self, point: &Point<'_, '_>, value: u64) -> String {
        let [metadata, start, end] = point.packet();
        let frames = (0..point.depth()).rev().map(|depth| point.frame_pointer(depth));
        let mut frames = frames.filter(|frame| (frame - FRAME_BYTES..=*frame).contains(&value));
        if value == point.context() {
            return "context".into();
        } else if (start..=end).contains(&value) {
            return format!("packet+{}", value - start);
        } else if (metadata..start).contains(&value) {
            return format!("packet-{}", start - value);
        } else if let Some(frame) = frames.next() {
            return format!("stack-{}", frame - value);
        }
        let name = |map: usize| self.object.maps.get(map).map_or("?", |map| map.name.as_str());
        if let Some(map) = (0..point.maps()).find(|map| point.map(*map) == value) {
            return format!("map {}", name(map));
        }
        let of_value = point.map_of_value(value);
        match of_value.and_then(|map| Some((map, point.values(map)?))) {
            Some((map, (first, spacing))) if value >= first && spacing > 0 => {
                let (entry, byte) = ((value - first) / spacing, (value - first) % spacing);
                format!("{}: value {entry}+{byte}", name(map))
            }
            _ => number(value),
        }
    }

    /// The step of an instruction.
    fn reported(
        &mut self,
        before: &Before,
        registers: &[(u8, u64, String)],
        memory: &[Changed],
    ) -> Reported {
        let program = &self.object.programs[before.program];
        let line = program.line(before.slot);
        let place = line.map(|line| (line.file.clone(), line.line));
        let mut text = String::new();
        if let Some(line) = line.filter(|_| place != self.line) {
            text = source(line) + "\n";
        }
        self.line = place;
        let instruction = instruction(program, before.slot);
        let mut changes: Vec<String> =
            registers.iter().map(|(register, _, named)| format!("r{register} = {named}")).collect();
        changes
            .extend(memory.iter().map(|it| format!("[{}] = {}", it.place, hexadecimal(&it.bytes))));
        let reported = format!("    {instruction:<CHANGES$} {}", changes.join(", "));
        text += reported.trim_end();
        text.push('\n');
        let named = |(register, value, _): &(u8, u64, String)| {
            (format!("r{register}"), Value::from(*value))
        };
        let changed = |it: &Changed| {
            let bytes = hexadecimal(&it.bytes);
            json!({ "place": it.place, "address": it.address, "bytes": bytes })
        };
        let json = json!({
            "target": "interpreter",
            "program": program.name,
            "slot": before.slot,
            "instruction": instruction.split_once(": ").map(|(_, text)| text),
            "file": line.map(|line| &line.file),
            "line": line.map(|line| line.line),
            "source": line.map(|line| line.text.trim()),
            "registers": registers.iter().map(named).collect::<Map<_, _>>(),
            "memory": memory.iter().map(changed).collect::<Vec<_>>(),
        });
        Reported { text, json }
    }
}
