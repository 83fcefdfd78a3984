// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Executing operations for one firing (or one host call) of one instance.

use super::channel::{ChannelState, Token};
use super::eval::eval_pure;
use super::frame::{Datum, End, Frame, LoopBounds, Stop};
use super::instance::InstanceState;
use super::memory::ObjectMemory;
use super::packet::PacketBuffer;
use super::probe::{self, ProbeEvent, ProbeKind};
use super::table::{Reference, TableMemory};
use crate::oracle::InstanceCounters;
use crate::{
    Bits, FunctionId, Inst, InstanceId, Item, ObjectRef, Op, PortId, Probe, Program, TableId,
    TrapCode, ValueId,
};

/// How deep calls may nest; the front end rules out recursion, so no program comes near.
const MAX_CALL_DEPTH: u32 = 128;

/// What all instances share, apart from the channels.
pub(super) struct Shared {
    /// What `random` draws from.
    pub generator: fastrand::Rng,
    /// What `now` gives.
    pub clock_ns: u64,
    /// What probes told and nobody took yet.
    pub probes: Vec<ProbeEvent>,
    /// By function: frames not in use.
    pub frames: Vec<Vec<Frame>>,
}

/// What one firing, or one call by the host, may see, and what it did.
#[derive(Debug, Default)]
pub(super) struct Activation {
    /// Whether the ports can be used: only a handler's can.
    pub has_ports: bool,
    /// The masked ports that had an item when it began.
    pub ready: u64,
    /// Ports taken from.
    pub taken: u64,
    /// Whether it did something, see [`InstanceCounters::firings`].
    pub did_something: bool,
    /// What it counted.
    pub counters: InstanceCounters,
    /// Operations left until the watchdog ends it.
    pub steps_left: u64,
    /// The breakpoint that it passed last.
    pub breakpoint: Option<String>,
    /// How deep the calls are.
    pub call_depth: u32,
}

/// Everything that an operation can touch.
pub(super) struct Machine<'a> {
    pub program: &'a Program,
    pub loops: &'a [LoopBounds],
    pub id: InstanceId,
    pub instance: &'a mut InstanceState,
    pub channels: &'a mut [ChannelState],
    pub shared: &'a mut Shared,
    pub activation: Activation,
}

impl Machine<'_> {
    /// Counts operations against the watchdog.
    pub fn spend(&mut self, steps: u64) -> Result<(), Stop> {
        let left = self.activation.steps_left.checked_sub(steps);
        self.activation.steps_left = left.ok_or(Stop::Trap(TrapCode::Watchdog))?;
        Ok(())
    }

    /// Executes one instruction.
    pub fn execute(&mut self, frame: &mut Frame, inst: &Inst) -> Result<(), Stop> {
        let datum = match &inst.op {
            // Any type can be selected, not only what `eval_pure` knows.
            Op::Select { cond, if_true, if_false } => {
                let chosen = if frame.bits(*cond).is_zero() { if_false } else { if_true };
                Some(frame.datum(*chosen).clone())
            }
            op => match eval_pure(op, |value| frame.bits(value)) {
                Some(bits) => Some(Datum::Bits(bits)),
                None => self.effect(frame, op)?,
            },
        };
        if let (Some(result), Some(datum)) = (inst.result, datum) {
            frame.set(result, datum);
        }
        Ok(())
    }

    fn effect(&mut self, frame: &mut Frame, op: &Op) -> Result<Option<Datum>, Stop> {
        let bits = match op {
            Op::Handle(table) => return Ok(Some(Datum::Table(*table))),
            Op::NullRef(_) => return Ok(Some(Datum::Reference(Reference::default()))),
            Op::RefOffset { reference, offset } => {
                let reference = frame.reference(*reference).advanced(frame.bits(*offset));
                return Ok(Some(Datum::Reference(reference)));
            }
            Op::TableLookup { table, key } => {
                let reference = self.lookup(frame, *table, *key);
                return Ok(Some(Datum::Reference(reference)));
            }
            Op::Peek(port) => return Ok(Some(self.read(*port, false))),
            Op::Take(port) => return Ok(Some(self.read(*port, true))),
            Op::Call { function, args, .. } => return self.call(frame, *function, args),
            Op::RefIsValid(reference) => Bits::from_bool(frame.reference(*reference).is_valid()),
            Op::RefLoad { reference, width } => {
                let reference = frame.reference(*reference);
                let table = reference.table().map(|at| &self.instance.tables[at.index()]);
                let loaded = table.and_then(|table| table.load(reference, *width as usize / 8));
                self.or_zero(loaded, *width)
            }
            Op::TableUpdate { table, key, value } => {
                let (key, value) = (frame.bits(*key), frame.bits(*value));
                self.activation.did_something = true;
                let done = self.table(frame.table(*table)).is_some_and(|at| at.update(key, value));
                Bits::from_bool(done)
            }
            Op::TableDelete { table, key } => {
                let key = frame.bits(*key);
                self.activation.did_something = true;
                Bits::from_bool(self.table(frame.table(*table)).is_some_and(|at| at.delete(key)))
            }
            Op::Load { object, index, lo, width } => {
                let index = frame.bits(*index).saturating_u64();
                let loaded = self.object(frame, *object).load(index, *lo, *width);
                self.or_zero(loaded, *width)
            }
            Op::LoadBytes { object, offset, bytes } => {
                let offset = frame.bits(*offset).clone();
                let loaded = self.object(frame, *object).load_bytes(&offset, *bytes);
                self.or_zero(loaded, *bytes * 8)
            }
            Op::ReadyMask => {
                let width = self.instance.inputs.len().max(1) as u32;
                Bits::from_u64(width, self.activation.ready)
            }
            Op::Ready(port) => Bits::from_bool(self.activation.ready >> port.0 & 1 == 1),
            Op::Now => {
                self.activation.did_something = true;
                Bits::from_u64(64, self.instance.choice.now(self.shared.clock_ns)?)
            }
            Op::Random => {
                self.activation.did_something = true;
                Bits::from_u64(64, self.instance.choice.random(&mut self.shared.generator)?)
            }
            Op::PacketLength(packet) => {
                let packet = self.packet(frame, *packet);
                Bits::from_u64(32, packet.map_or(0, |packet| packet.bytes().len() as u64))
            }
            Op::PacketLoad { packet, offset, bytes } => {
                let offset = frame.bits(*offset);
                let packet = self.packet(frame, *packet);
                let loaded = packet.and_then(|packet| packet.load(offset, *bytes));
                self.or_zero(loaded, *bytes * 8)
            }
            Op::PacketAdjustHead { packet, delta } => {
                let packet = self.packet(frame, *packet);
                Bits::from_bool(packet.is_some_and(|it| it.adjust_head(frame.bits(*delta))))
            }
            Op::PacketAdjustTail { packet, delta } => {
                let packet = self.packet(frame, *packet);
                Bits::from_bool(packet.is_some_and(|it| it.adjust_tail(frame.bits(*delta))))
            }
            op => {
                self.effect_without_result(frame, op);
                return Ok(None);
            }
        };
        Ok(Some(Datum::Bits(bits)))
    }

    fn effect_without_result(&mut self, frame: &mut Frame, op: &Op) {
        let is_stored = match op {
            Op::Store { object, index, lo, value, mask } => {
                let index = frame.bits(*index).saturating_u64();
                let value = frame.bits(*value).clone();
                let mask = mask.map(|mask| frame.bits(mask).clone());
                self.note_store(*object);
                self.object(frame, *object).store(index, *lo, &value, mask.as_ref())
            }
            Op::StoreBytes { object, offset, value } => {
                let (offset, value) = (frame.bits(*offset).clone(), frame.bits(*value).clone());
                self.note_store(*object);
                self.object(frame, *object).store_bytes(&offset, &value)
            }
            Op::RefStore { reference, value } => {
                let (reference, value) = (frame.reference(*reference), frame.bits(*value));
                self.activation.did_something = true;
                self.table(reference.table()).is_some_and(|table| table.store(reference, value))
            }
            Op::PacketStore { packet, offset, value } => {
                let (offset, value) = (frame.bits(*offset), frame.bits(*value));
                self.packet(frame, *packet).is_some_and(|packet| packet.store(offset, value))
            }
            Op::Put { port, value } => {
                self.put(*port, frame.datum(*value));
                true
            }
            Op::Probe { probe, args } => {
                let args: Vec<Bits> = args.iter().map(|arg| frame.bits(*arg).clone()).collect();
                self.tell(probe, &args);
                true
            }
            // Whatever gives a result was handled before.
            _ => true,
        };
        self.activation.counters.out_of_range += u64::from(!is_stored);
    }

    fn or_zero(&mut self, loaded: Option<Bits>, width: u32) -> Bits {
        self.activation.counters.out_of_range += u64::from(loaded.is_none());
        loaded.unwrap_or_else(|| Bits::zero(width))
    }

    fn object<'a>(&'a mut self, frame: &'a mut Frame, object: ObjectRef) -> &'a mut ObjectMemory {
        match object {
            ObjectRef::State(at) => &mut self.instance.objects[at.index()],
            ObjectRef::Local(at) => &mut frame.locals[at.index()],
        }
    }

    fn note_store(&mut self, object: ObjectRef) {
        self.activation.did_something |= matches!(object, ObjectRef::State(_));
    }

    fn table(&mut self, table: Option<TableId>) -> Option<&mut TableMemory> {
        self.instance.tables.get_mut(table?.index())
    }

    fn lookup(&mut self, frame: &Frame, table: ValueId, key: ValueId) -> Reference {
        let Some(id) = frame.table(table) else { return Reference::default() };
        let memory = &mut self.instance.tables[id.index()];
        self.activation.did_something |= memory.lookup_is_use();
        let entry = memory.lookup(frame.bits(key));
        entry.map_or(Reference::default(), |entry| Reference::to(id, entry))
    }

    fn packet(&mut self, frame: &Frame, packet: ValueId) -> Option<&mut PacketBuffer> {
        self.instance.packets.get_mut(frame.packet(packet))
    }

    /// The next item of a port, by the snapshot of the firing.
    fn read(&mut self, port: PortId, takes: bool) -> Datum {
        let activation = &mut self.activation;
        let bit = 1 << port.0;
        let is_there = activation.ready & !activation.taken & bit != 0;
        activation.counters.empty_reads += u64::from(!is_there);
        let token = match self.instance.inputs.get(port.index()) {
            Some(channel) if is_there && takes => {
                activation.taken |= bit;
                activation.did_something = true;
                self.channels[channel.index()].take()
            }
            Some(channel) if is_there => self.channels[channel.index()].front().cloned(),
            _ => None,
        };
        let packet = match (token, self.input_item(port)) {
            (Some(Token::Bits(bits)), _) => return Datum::Bits(bits),
            (Some(Token::Packet(packet)), _) => packet,
            (None, Item::Flit) => return Datum::Bits(Bits::zero(crate::flit::FLIT_BITS)),
            (None, Item::Bits(width)) => return Datum::Bits(Bits::zero(width)),
            (None, Item::Packet { .. }) => PacketBuffer::new(&[]),
        };
        self.instance.packets.push(packet);
        Datum::Packet(self.instance.packets.len() - 1)
    }

    fn input_item(&self, port: PortId) -> Item {
        self.program.element_of(self.id).inputs[port.index()].item
    }

    /// Stages an item. A packet is put as it is now; what is done to it later does not show.
    fn put(&mut self, port: PortId, datum: &Datum) {
        if !self.activation.has_ports {
            return;
        }
        let token = match datum {
            Datum::Bits(bits) => Token::Bits(bits.clone()),
            Datum::Packet(at) => {
                let packet = self.instance.packets.get(*at).cloned();
                Token::Packet(packet.unwrap_or_else(|| PacketBuffer::new(&[])))
            }
            Datum::Reference(_) | Datum::Table(_) => return,
        };
        self.activation.did_something = true;
        self.instance.staged[port.index()] = Some(token);
    }

    fn call(
        &mut self,
        caller: &Frame,
        function: FunctionId,
        args: &[ValueId],
    ) -> Result<Option<Datum>, Stop> {
        if self.activation.call_depth >= MAX_CALL_DEPTH {
            return Err(Stop::Trap(TrapCode::Watchdog));
        }
        let args = args.iter().map(|arg| caller.datum(*arg).clone());
        self.activation.call_depth += 1;
        let end = self.invoke(function, args);
        self.activation.call_depth -= 1;
        Ok(match end? {
            End::Return { value } => value,
            End::Done { .. } | End::Suspend { .. } => None,
        })
    }

    /// Runs a function from its entry, in a frame of its own.
    pub fn invoke(
        &mut self,
        id: FunctionId,
        args: impl Iterator<Item = Datum>,
    ) -> Result<End, Stop> {
        let function = self.program.function(id);
        let mut frame = match self.shared.frames[id.index()].pop() {
            Some(frame) => frame,
            None => Frame::new(function).ok_or(Stop::Trap(TrapCode::Watchdog))?,
        };
        frame.reset(function);
        for (param, arg) in function.params().iter().zip(args) {
            frame.set(*param, arg);
        }
        let end = self.run(id, &mut frame, crate::Function::ENTRY);
        self.shared.frames[id.index()].push(frame);
        end
    }

    fn tell(&mut self, probe: &Probe, args: &[Bits]) {
        self.activation.did_something = true;
        let (kind, text) = probe::describe(probe, args);
        if kind == ProbeKind::Breakpoint {
            self.activation.breakpoint = Some(text.clone());
        }
        let firing = self.instance.counters.firings;
        self.shared.probes.push(ProbeEvent { instance: self.id, firing, kind, text });
    }
}
