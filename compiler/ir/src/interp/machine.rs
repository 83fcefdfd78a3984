// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Execution of operations for one firing (or one host call) of one instance.

use super::Clock;
use super::channel::ChannelState;
use super::eval::eval_pure;
use super::frame::{Datum, End, Frame, LoopBounds, Stop};
use super::instance::InstanceState;
use super::memory::ObjectMemory;
use super::packet::PacketBuffer;
use super::probe::{self, ProbeEvent, ProbeKind};
use super::table::{Reference, TableMemory};
use crate::oracle::InstanceCounters;
use crate::{
    Bits, FunctionId, Inst, InstanceId, ObjectRef, Op, Probe, Program, TableId, TrapCode, ValueId,
};

/// Maximum depth of nested calls; the front end rules out recursion, so programs stay far below it.
const MAX_CALL_DEPTH: u32 = 128;

/// State that all instances share, apart from the channels.
pub(super) struct Shared {
    /// Generator for `random`.
    pub generator: fastrand::Rng,
    /// Time for `now`, unless the clock is measured.
    pub clock_ns: u64,
    /// Source of the time.
    pub clock: Clock,
    /// Probe events not yet collected.
    pub probes: Vec<ProbeEvent>,
    /// By function: frames not in use.
    pub frames: Vec<Vec<Frame>>,
    /// Iterations of watched loops in one firing or call before the watchdog traps it.
    pub turn_limit: u64,
}

impl Shared {
    /// Returns the time that `now` reads.
    pub fn now_ns(&self) -> u64 {
        match self.clock {
            Clock::Firings => self.clock_ns,
            Clock::Measured(now_ns) => now_ns(),
        }
    }

    /// Returns the initial state of a firing or call without ports.
    pub fn activation(&self) -> Activation {
        Activation { turns_left: self.turn_limit, ..Activation::default() }
    }
}

/// View and effects of one firing, or one call by the host.
#[derive(Debug, Default)]
pub(super) struct Activation {
    /// Whether the ports can be used: only by a handler.
    pub has_ports: bool,
    /// Masked ports that had an item when it began.
    pub ready: u64,
    /// Number of packets created.
    pub new_packets: u32,
    /// Ports taken from.
    pub taken: u64,
    /// Whether it read the clock.
    pub has_asked_time: bool,
    /// Whether it did something; see [`InstanceCounters::firings`].
    pub did_something: bool,
    /// Counters of this firing.
    pub counters: InstanceCounters,
    /// Iterations of watched loops left until the watchdog traps.
    pub turns_left: u64,
    /// Breakpoint that it passed last.
    pub breakpoint: Option<String>,
    /// Current call depth.
    pub call_depth: u32,
}

/// Everything that an operation can access.
pub(super) struct Machine<'a> {
    pub program: &'a Program,
    pub loops: &'a [LoopBounds],
    pub id: InstanceId,
    pub instance: &'a mut InstanceState,
    /// All instances, for functions that call their methods; empty in a firing. The instance
    /// itself, and those that wait for it to return, are replaced by vacancies.
    pub others: &'a mut [InstanceState],
    pub channels: &'a mut [ChannelState],
    pub shared: &'a mut Shared,
    pub activation: Activation,
}

impl Machine<'_> {
    /// Executes one instruction.
    pub fn execute(&mut self, frame: &mut Frame, inst: &Inst) -> Result<(), Stop> {
        let datum = match &inst.op {
            // Any type can be selected, not only those that `eval_pure` handles.
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
            Op::NewPacket { length } => {
                let length = frame.bits(*length).saturating_u64();
                return Ok(Some(self.new_packet(length)));
            }
            Op::Peek(port) => return Ok(Some(self.read(*port, false))),
            Op::Take(port) => return Ok(Some(self.read(*port, true))),
            Op::Call { function, args, .. } => return self.call(frame, *function, args),
            Op::CallMethod { instance, method, args } => {
                let args = args.iter().map(|arg| frame.bits(*arg).clone()).collect();
                return Ok(self.call_method(*instance, *method, args)?.map(Datum::Bits));
            }
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
                self.activation.has_asked_time = true;
                Bits::from_u64(64, self.instance.choice.now(self.shared.now_ns())?)
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
            // Operations with a result were handled above.
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

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, done, object, pass, put, take};
    use super::*;
    use crate::*;

    const WORD: Item = Item::Bits(64);

    /// Passes `inputs` through an element that puts the value `build` makes of each input.
    fn results(
        inputs: &[u64],
        adapt: impl FnOnce(&mut Element, &mut Function),
        build: impl FnOnce(&mut Builder, ValueId) -> ValueId,
    ) -> (Vec<u64>, InstanceCounters) {
        let mut fixture = Fixture::default();
        let element = fixture.element(&[WORD], &[WORD], |b| {
            let x = take(b, 0, 64);
            let result = build(b, x);
            let result = b.resize(result, 64, false);
            put(b, 0, result);
            done(b);
        });
        let handler = fixture.program.elements[0].handler;
        let handler = &mut fixture.program.functions[handler.index()];
        adapt(&mut fixture.program.elements[element.index()], handler);
        let program = fixture.alone(element);
        let inputs: Vec<Bits> = inputs.iter().map(|input| Bits::from_u64(64, *input)).collect();
        let (outputs, interpreter) = pass(&program, &inputs);
        let counters = interpreter.counters(InstanceId(0)).clone();
        (outputs.iter().map(Bits::to_u64).collect(), counters)
    }

    fn keep(_: &mut Element, _: &mut Function) {}

    fn bytes_object(object: Object) -> Object {
        Object { addressing: Addressing::Byte, elem_bits: 8, ..object }
    }

    #[test]
    fn pure_operations_and_select_of_any_type() {
        let (outputs, _) = results(&[3, 4], keep, |b, x| {
            let two = b.number(64, 2);
            let product = b.binary(BinaryOp::Mul, x, two);
            let is_even = b.unary(UnaryOp::ReduceXor, x);
            let spaces = Spaces::of(Space::TableValue);
            let null = b.push(Op::NullRef(spaces), Type::Ref(spaces));
            let op = Op::Select { cond: is_even, if_true: null, if_false: null };
            let chosen = b.push(op, Type::Ref(spaces));
            let is_valid = b.push(Op::RefIsValid(chosen), Type::Bits(1));
            let is_valid = b.resize(is_valid, 64, false);
            b.binary(BinaryOp::Or, product, is_valid)
        });
        assert_eq!(outputs, [6, 8]);
    }

    #[test]
    fn loads_and_stores_of_state_stay_and_beyond_it_are_counted() {
        let with_state = |element: &mut Element, _: &mut Function| {
            element.state.push(object("sums".into(), 32, 2));
        };
        let sums = ObjectRef::State(ObjectId(0));
        let (outputs, counters) = results(&[0, 1, 0, 2], with_state, |b, x| {
            let old = b.load(sums, x, 0, 32);
            let ten = b.number(32, 10);
            let sum = b.binary(BinaryOp::Add, old, ten);
            b.store(sums, x, 0, sum);
            let (value, mask) = (b.number(8, 0xff), b.number(8, 0x0f));
            let mask = Some(mask);
            b.push_effect(Op::Store { object: sums, index: x, lo: 24, value, mask });
            b.load(sums, x, 0, 32)
        });
        assert_eq!(outputs, [0x0f00_000a, 0x0f00_000a, 0x0f00_0014, 0]);
        assert_eq!((counters.out_of_range, counters.firings), (4, 4));
    }

    #[test]
    fn locals_start_at_0_in_each_firing() {
        let with_local = |_: &mut Element, handler: &mut Function| {
            handler.add_local(object("sum".into(), 64, 1));
        };
        let sum = ObjectRef::Local(LocalId(0));
        let (outputs, _) = results(&[5, 7], with_local, |b, x| {
            let zero = b.number(1, 0);
            let old = b.load(sum, zero, 0, 64);
            let new = b.binary(BinaryOp::Add, old, x);
            b.store(sum, zero, 0, new);
            b.load(sum, zero, 0, 64)
        });
        assert_eq!(outputs, [5, 7]);
    }

    #[test]
    fn byte_objects_load_and_store_whole_or_not_at_all() {
        let with_bytes = |element: &mut Element, _: &mut Function| {
            element.state.push(bytes_object(object("bytes".into(), 8, 8)));
        };
        let bytes = ObjectRef::State(ObjectId(0));
        let (outputs, counters) = results(&[4, 5], with_bytes, |b, x| {
            let value = b.number(32, 0x4433_2211);
            b.push_effect(Op::StoreBytes { object: bytes, offset: x, value });
            let three = b.number(64, 3);
            b.push(Op::LoadBytes { object: bytes, offset: three, bytes: 4 }, Type::Bits(32));
            b.push(Op::LoadBytes { object: bytes, offset: x, bytes: 4 }, Type::Bits(32))
        });
        assert_eq!(outputs, [0x4433_2211, 0]);
        assert_eq!(counters.out_of_range, 2);
    }

    #[test]
    fn tables_give_references_that_load_store_and_move() {
        let with_table = |element: &mut Element, _: &mut Function| {
            let (name, kind) = ("flows".into(), TableKind::Hash);
            let table = Table { name, kind, key_bits: 64, value_bits: 32, capacity: 4, loc: LOC };
            element.tables.push(table);
        };
        const LOC: Loc = Loc { file: FileId(0), line: 0, column: 0 };
        let reference = Type::Ref(Spaces::of(Space::TableValue));
        let (outputs, counters) = results(&[7, 7, 9], with_table, |b, key| {
            let table = b.push(Op::Handle(TableId(0)), Type::Handle(TableId(0)));
            let before = b.push(Op::TableLookup { table, key }, reference);
            let was_there = b.push(Op::RefIsValid(before), Type::Bits(1));
            let value = b.number(32, 0xddcc_bbaa);
            let had_room = b.push(Op::TableUpdate { table, key, value }, Type::Bits(1));
            let at = b.push(Op::TableLookup { table, key }, reference);
            let offset = b.number(8, 1);
            let second = b.push(Op::RefOffset { reference: at, offset }, reference);
            let byte = b.number(8, 0x11);
            b.push_effect(Op::RefStore { reference: second, value: byte });
            let loaded = b.push(Op::RefLoad { reference: at, width: 24 }, Type::Bits(24));
            let nine = b.number(64, 9);
            let was_deleted = b.push(Op::TableDelete { table, key: nine }, Type::Bits(1));
            // The reference is stale for 9, so the load is counted.
            let after = b.push(Op::RefLoad { reference: at, width: 8 }, Type::Bits(8));
            b.push(Op::Concat(vec![loaded, was_there, had_room, was_deleted, after]), {
                Type::Bits(35)
            })
        });
        let want = |was_there: u64, was_deleted: u64, after: u64| {
            0xcc_11aa | was_there << 24 | 1 << 25 | was_deleted << 26 | after << 27
        };
        assert_eq!(outputs, [want(0, 0, 0xaa), want(1, 0, 0xaa), want(0, 1, 0)]);
        assert_eq!(counters.out_of_range, 1);
    }

    /// A lookup changes which entry an LRU table evicts, so the firing must be recorded.
    #[test]
    fn only_a_lookup_that_orders_entries_is_something_done() {
        for (kind, firings) in [(TableKind::LruHash, 1), (TableKind::Hash, 0)] {
            let mut fixture = Fixture::default();
            let element = fixture.element(&[], &[], |b| {
                let table = b.push(Op::Handle(TableId(0)), Type::Handle(TableId(0)));
                let key = b.number(8, 1);
                let reference = Type::Ref(Spaces::of(Space::TableValue));
                b.push(Op::TableLookup { table, key }, reference);
                done(b);
            });
            let (name, loc) = ("table".into(), Loc::default());
            let table = Table { name, kind, key_bits: 8, value_bits: 8, capacity: 1, loc };
            fixture.program.elements[0].tables.push(table);
            let program = fixture.alone(element);
            let options = super::super::Options::default();
            let mut interpreter = super::super::Interpreter::new(&program, &options).unwrap();
            interpreter.run(1).unwrap();
            assert_eq!(interpreter.counters(InstanceId(0)).firings, firings);
        }
    }

    #[test]
    fn a_null_reference_loads_0_and_drops_stores() {
        let (outputs, counters) = results(&[1], keep, |b, _| {
            let spaces = Spaces::of(Space::TableValue);
            let reference = b.push(Op::NullRef(spaces), Type::Ref(spaces));
            let value = b.number(8, 5);
            b.push_effect(Op::RefStore { reference, value });
            b.push(Op::RefLoad { reference, width: 8 }, Type::Bits(8))
        });
        assert_eq!((outputs, counters.out_of_range), (vec![0], 2));
    }

    #[test]
    fn now_never_goes_back_and_random_follows_its_seed() {
        let draw = |op: Op| results(&[0; 4], keep, |b, _| b.push(op, Type::Bits(64))).0;
        let times = draw(Op::Now);
        assert!(times.is_sorted() && times[0] < times[3]);
        let (first, second) = (draw(Op::Random), draw(Op::Random));
        assert_eq!(first, second);
        assert_ne!(first[0], first[1]);
    }

    #[test]
    fn calls_pass_values_both_ways_and_recursion_is_stopped() {
        let call = |function| Op::Call {
            function: FunctionId(function),
            args: vec![],
            latency: Latency::Inline,
            order: CallOrder::InOrder,
        };
        let mut fixture = Fixture::default();
        let element = fixture.element(&[WORD], &[WORD], |b| {
            let x = take(b, 0, 64);
            let Op::Call { function, latency, order, .. } = call(1) else { unreachable!() };
            let twice = Op::Call { function, args: vec![x, x], latency, order };
            let sum = b.push(twice, Type::Bits(64));
            put(b, 0, sum);
            b.push_effect(call(2));
            let lost = b.number(64, 0);
            put(b, 0, lost);
            done(b);
        });
        fixture.function(None, |b| {
            let left = b.add_param(Function::ENTRY, Type::Bits(64), None);
            let right = b.add_param(Function::ENTRY, Type::Bits(64), None);
            let sum = b.binary(BinaryOp::Add, left, right);
            b.end(Term::Return { value: Some(sum) });
        });
        fixture.function(None, |b| {
            b.push_effect(call(2));
            b.end(Term::Return { value: None });
        });
        let program = fixture.alone(element);
        let (outputs, interpreter) = pass(&program, &[Bits::from_u64(64, 21)]);
        assert_eq!(outputs, [Bits::from_u64(64, 42)]);
        let traps = &interpreter.counters(InstanceId(0)).traps;
        assert_eq!(traps.get(&TrapCode::Watchdog), Some(&1));
    }

    #[test]
    fn probes_tell_who_when_and_what() {
        let mut fixture = Fixture::default();
        let element = fixture.element(&[WORD], &[WORD], |b| {
            let x = take(b, 0, 64);
            let probes = [
                Probe::Printf("x = %d".into()),
                Probe::Log("log".into()),
                Probe::Breakpoint("here".into()),
            ];
            for probe in probes {
                b.push_effect(Op::Probe { probe, args: vec![x] });
            }
            put(b, 0, x);
            done(b);
        });
        let program = fixture.alone(element);
        let (_, mut interpreter) = pass(&program, &[1, 2].map(|word| Bits::from_u64(64, word)));
        let reported = interpreter.take_probes();
        let texts: Vec<&str> = reported.iter().map(|event| event.text.as_str()).collect();
        assert_eq!(texts, ["x = 1", "log 0x1", "here 0x1", "x = 2", "log 0x2", "here 0x2"]);
        assert_eq!((reported[3].firing, reported[3].kind), (1, ProbeKind::Printf));
    }
}
