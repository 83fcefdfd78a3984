// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs that the kernel's verifier accepts, to compare targets on instruction sequences
//! that no compiler would emit.
//!
//! The frame of a program is fixed: it checks that the packet is long enough, looks up the only
//! value of the only map, and fills its registers and stack. Then follow random operations on
//! numbers in registers 0 to 5, on the packet (register 7), on the value (register 9) and on the
//! stack, with forward jumps and loops that count down. At the end all registers and the stack are
//! stored in the value, so that a wrong result shows even if it had no other effect.

use crate::{Error, RawProgram};
use fastrand::Rng;
use freeport_ebpf::instruction::{
    Arithmetic, AtomicOperation, ByteOrder, Callee, Condition, Constant, Instruction, Operand,
    Operation, Size, Width,
};
use freeport_ebpf::object::{Function, MapDefinition, MapKind, Object, Program};
use std::ops::Range;

/// Minimum packet length, in bytes; on a shorter packet the program exits at once.
pub const PACKET_BYTES: usize = 64;
/// Bytes of the map's value.
pub const VALUE_BYTES: usize = 256;
/// Bytes of the stack in use.
const STACK_BYTES: i16 = 128;
/// Offset in the value at which registers and stack are stored.
const RESULTS: i16 = 64;

const PACKET: u8 = 7;
const PACKET_END: u8 = 8;
const VALUE: u8 = 9;
const FRAME: u8 = 10;
const HELPER_LOOKUP: u32 = 1;
/// Registers that hold numbers.
const NUMBERS: u8 = 6;
/// Return value of a program that did not reach its end.
const NOT_RUN: i32 = 2;

const SIZES: [Size; 4] = [Size::Byte, Size::Half, Size::Word, Size::Double];
const WIDTHS: [Width; 2] = [Width::Bits32, Width::Bits64];

/// Generates a program of about `length` random operations. Its map is number 0 of the object.
pub fn random_program(random: &mut Rng, length: usize) -> Vec<Instruction> {
    let mut program = Builder { slots: vec![], random };
    program.begin();
    while program.slots.len() < length {
        match program.random.u32(..10) {
            0 | 1 => program.skip_some(),
            2 => program.repeat_some(),
            _ => program.step(NUMBERS),
        }
    }
    program.end();
    program.slots
}

/// Result of checking random programs with the kernel's verifier.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verified {
    /// Number of accepted programs.
    pub taken: u64,
    /// Verifier messages for the others, with their seeds.
    pub refusals: Vec<String>,
}

impl Verified {
    /// Generates a program from each seed and calls `compare` for those that the verifier accepts,
    /// with the seed, the program, the loaded program, and the generator in its state after
    /// generation.
    ///
    /// # Errors
    /// The kernel refuses the map or the call for a reason that does not concern the program.
    pub fn each(
        seeds: Range<u64>,
        mut compare: impl FnMut(u64, &[Instruction], &RawProgram, &mut Rng),
    ) -> Result<Self, Error> {
        let mut verified = Self::default();
        for seed in seeds {
            let mut random = Rng::with_seed(seed);
            let length = random.usize(70..160);
            let program = random_program(&mut random, length);
            match RawProgram::load(&program, VALUE_BYTES as u32) {
                Ok(kernel) => {
                    verified.taken += 1;
                    compare(seed, &program, &kernel, &mut random);
                }
                Err(Error::Load(reason)) => {
                    verified.refusals.push(format!("seed {seed}: {reason}"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(verified)
    }

    /// Returns whether enough programs were accepted for the comparison to be meaningful.
    pub fn is_most(&self) -> bool {
        self.taken >= 9 * self.refusals.len() as u64
    }
}

/// Makes an object of such a program and its map.
pub fn object_of(instructions: &[Instruction]) -> Object {
    let value = MapDefinition {
        name: "value".into(),
        kind: MapKind::Array,
        key_size: 4,
        value_size: VALUE_BYTES as u32,
        max_entries: 1,
        ..MapDefinition::default()
    };
    let program = Program {
        name: "random".into(),
        section: "xdp".into(),
        instructions: instructions.to_vec(),
        functions: vec![Function { name: "random".into(), slot: 0 }],
        ..Program::default()
    };
    Object { programs: vec![program], maps: vec![value], ..Object::default() }
}

struct Builder<'a> {
    slots: Vec<Instruction>,
    random: &'a mut Rng,
}

impl Builder<'_> {
    fn push(&mut self, operation: Operation) {
        let (first, second) = operation.encode();
        self.slots.push(first);
        self.slots.extend(second);
    }

    /// Fills registers and stack; a program that cannot continue returns [`NOT_RUN`].
    fn begin(&mut self) {
        let load = |destination, base, offset| Operation::Load {
            size: Size::Word,
            is_signed: false,
            destination,
            base,
            offset,
        };
        self.push(load(PACKET, 1, 0));
        self.push(load(PACKET_END, 1, 4));
        self.push(moved(2, Operand::Register(PACKET)));
        self.push(alu(Arithmetic::Add, 2, Operand::Immediate(PACKET_BYTES as i32)));
        self.leave_unless(Condition::LessOrEqual, 2, Operand::Register(PACKET_END));
        let key = Operand::Immediate(0);
        self.push(Operation::Store { size: Size::Word, base: FRAME, offset: -4, source: key });
        self.push(Operation::LoadConstant { destination: 1, constant: Constant::Map(0) });
        self.push(moved(2, Operand::Register(FRAME)));
        self.push(alu(Arithmetic::Add, 2, Operand::Immediate(-4)));
        self.push(Operation::Call(Callee::Helper(HELPER_LOOKUP)));
        self.leave_unless(Condition::NotEqual, 0, Operand::Immediate(0));
        self.push(moved(VALUE, Operand::Register(0)));
        for destination in 0..NUMBERS {
            let value = self.number();
            self.push(Operation::LoadConstant { destination, constant: Constant::Value(value) });
        }
        for offset in (-STACK_BYTES..0).step_by(8) {
            let source = Operand::Register((offset & 3) as u8 + (offset >> 4 & 1) as u8);
            self.push(Operation::Store { size: Size::Double, base: FRAME, offset, source });
        }
    }

    fn leave_unless(&mut self, condition: Condition, left: u8, right: Operand) {
        let width = Width::Bits64;
        self.push(Operation::Jump { width, condition, left, right, distance: 2 });
        self.push(moved(0, Operand::Immediate(NOT_RUN)));
        self.push(Operation::Exit);
    }

    fn end(&mut self) {
        for register in 0..NUMBERS {
            self.leave(register, i16::from(register));
        }
        for at in 0..STACK_BYTES / 8 {
            let (size, is_signed) = (Size::Double, false);
            let offset = at * 8 - STACK_BYTES;
            self.push(Operation::Load { size, is_signed, destination: 1, base: FRAME, offset });
            self.leave(1, i16::from(NUMBERS) + at);
        }
        self.push(Operation::Exit);
    }

    /// Stores a register in the value.
    fn leave(&mut self, register: u8, place: i16) {
        let (offset, source) = (RESULTS + place * 8, Operand::Register(register));
        self.push(Operation::Store { size: Size::Double, base: VALUE, offset, source });
    }

    /// Emits a few operations that a conditional jump may skip.
    fn skip_some(&mut self) {
        let jump = self.slots.len();
        let condition = self.choose(&CONDITIONS);
        let (left, right) = (self.random.u8(..NUMBERS), self.operand());
        let width = self.choose(&WIDTHS);
        self.push(Operation::Jump { width, condition, left, right, distance: 0 });
        for _ in 0..self.random.usize(1..6) {
            self.step(NUMBERS);
        }
        let distance = (self.slots.len() - jump - 1) as i16;
        self.slots[jump].offset = distance;
        if self.random.u32(..4) == 0 {
            // The code after it can only be reached by an earlier jump.
            let width = self.choose(&WIDTHS);
            let is_long = width == Width::Bits32;
            self.push(Operation::Goto { is_long, distance: 1 });
            self.push(moved(0, Operand::Immediate(7)));
            self.slots[jump].offset = distance + 1;
        }
    }

    /// Emits a loop that counts its register down.
    fn repeat_some(&mut self) {
        let counter = NUMBERS - 1;
        let times = self.random.i32(2..6);
        self.push(moved(counter, Operand::Immediate(times)));
        let start = self.slots.len();
        for _ in 0..self.random.usize(1..5) {
            self.step(counter);
        }
        self.push(alu(Arithmetic::Add, counter, Operand::Immediate(-1)));
        let distance = start as i64 - self.slots.len() as i64 - 1;
        self.push(Operation::Jump {
            width: Width::Bits64,
            condition: Condition::NotEqual,
            left: counter,
            right: Operand::Immediate(0),
            distance: distance as i16,
        });
    }

    /// Emits an operation that changes only registers below `numbers`, and memory.
    fn step(&mut self, numbers: u8) {
        let destination = self.random.u8(..numbers);
        let operation = match self.random.u32(..16) {
            0..=5 => self.arithmetic(destination),
            6 => Operation::Negate { width: self.choose(&WIDTHS), destination },
            7 => self.signed_move(destination),
            8 => {
                let (order, bits) = (self.choose(&ORDERS), self.choose(&[16, 32, 64]));
                Operation::Swap { order, destination, bits }
            }
            9 => {
                let constant = Constant::Value(self.number());
                Operation::LoadConstant { destination, constant }
            }
            10..=12 => self.load(destination),
            13 | 14 => self.store(),
            _ => self.atomic(numbers),
        };
        self.push(operation);
        self.clear_upper_half(operation);
    }

    /// Clears the upper half of register 0 after a 32-bit compare-and-exchange. RFC 9669 requires
    /// it to be zero, but kernel 6.18 on x86 was seen to keep the old value when the exchange
    /// succeeded; the cause is not known. The programs clear it themselves, so that this difference
    /// alone is not compared.
    fn clear_upper_half(&mut self, operation: Operation) {
        let (width, exchange) = (Width::Bits32, AtomicOperation::CompareExchange);
        if matches!(operation, Operation::Atomic { width: w, operation: o, .. }
            if w == width && o == exchange)
        {
            let (operation, source) = (Arithmetic::Move, Operand::Register(0));
            self.push(Operation::Alu { width, operation, destination: 0, source });
        }
    }

    fn arithmetic(&mut self, destination: u8) -> Operation {
        let (width, operation) = (self.choose(&WIDTHS), self.choose(&ARITHMETIC));
        let bits = if width == Width::Bits32 { 32 } else { 64 };
        let source = match (operation, self.operand()) {
            // The verifier rejects a constant for which the operation is undefined.
            (
                Arithmetic::ShiftLeft | Arithmetic::ShiftRight | Arithmetic::SignedShiftRight,
                Operand::Immediate(by),
            ) => Operand::Immediate(by & (bits - 1)),
            (
                Arithmetic::Divide
                | Arithmetic::Modulo
                | Arithmetic::SignedDivide
                | Arithmetic::SignedModulo,
                Operand::Immediate(0),
            ) => Operand::Immediate(-1),
            (_, source) => source,
        };
        Operation::Alu { width, operation, destination, source }
    }

    fn signed_move(&mut self, destination: u8) -> Operation {
        let source = self.random.u8(..NUMBERS);
        let width = self.choose(&WIDTHS);
        let bits =
            if width == Width::Bits32 { self.choose(&[8, 16]) } else { self.choose(&[8, 16, 32]) };
        Operation::MoveSigned { width, destination, source, bits }
    }

    fn load(&mut self, destination: u8) -> Operation {
        let (base, offset, size) = self.place();
        let is_signed = size != Size::Double && self.random.bool();
        Operation::Load { size, is_signed, destination, base, offset }
    }

    fn store(&mut self) -> Operation {
        let (base, offset, size) = self.place();
        Operation::Store { size, base, offset, source: self.operand() }
    }

    fn atomic(&mut self, numbers: u8) -> Operation {
        let (width, size) =
            if self.random.bool() { (Width::Bits32, 4) } else { (Width::Bits64, 8) };
        let offset = self.random.i16(0..RESULTS / size) * size;
        let operation = self.choose(&ATOMIC);
        let exchanges = [AtomicOperation::Exchange, AtomicOperation::CompareExchange];
        let is_fetching = exchanges.contains(&operation) || self.random.bool();
        let source = self.random.u8(..numbers);
        Operation::Atomic { width, operation, is_fetching, base: VALUE, offset, source }
    }

    /// Chooses aligned memory that may be read and written.
    fn place(&mut self) -> (u8, i16, Size) {
        let size = self.choose(&SIZES);
        let bytes = i16::from(size.bytes());
        let (base, first, room) = match self.random.u32(..3) {
            0 => (PACKET, 0, PACKET_BYTES as i16),
            1 => (VALUE, 0, RESULTS),
            _ => (FRAME, -STACK_BYTES, STACK_BYTES),
        };
        (base, first + self.random.i16(0..room / bytes) * bytes, size)
    }

    fn operand(&mut self) -> Operand {
        if self.random.bool() {
            Operand::Register(self.random.u8(..NUMBERS))
        } else {
            Operand::Immediate(self.number() as i32)
        }
    }

    /// Chooses a number, often one at which results change.
    fn number(&mut self) -> u64 {
        const EDGES: [u64; 10] = [
            0,
            1,
            2,
            31,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            i64::MAX as u64,
            i64::MIN as u64,
            u64::MAX,
        ];
        match self.random.u32(..3) {
            0 => self.choose(&EDGES),
            1 => self.random.u64(..256),
            _ => self.random.u64(..),
        }
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.usize(..from.len())]
    }
}

const ORDERS: [ByteOrder; 3] = [ByteOrder::Little, ByteOrder::Big, ByteOrder::Reverse];

const ATOMIC: [AtomicOperation; 6] = [
    AtomicOperation::Add,
    AtomicOperation::Or,
    AtomicOperation::And,
    AtomicOperation::Xor,
    AtomicOperation::Exchange,
    AtomicOperation::CompareExchange,
];

const ARITHMETIC: [Arithmetic; 14] = [
    Arithmetic::Add,
    Arithmetic::Subtract,
    Arithmetic::Multiply,
    Arithmetic::Divide,
    Arithmetic::SignedDivide,
    Arithmetic::Or,
    Arithmetic::And,
    Arithmetic::ShiftLeft,
    Arithmetic::ShiftRight,
    Arithmetic::Modulo,
    Arithmetic::SignedModulo,
    Arithmetic::Xor,
    Arithmetic::Move,
    Arithmetic::SignedShiftRight,
];

const CONDITIONS: [Condition; 11] = [
    Condition::Equal,
    Condition::Greater,
    Condition::GreaterOrEqual,
    Condition::Set,
    Condition::NotEqual,
    Condition::SignedGreater,
    Condition::SignedGreaterOrEqual,
    Condition::Less,
    Condition::LessOrEqual,
    Condition::SignedLess,
    Condition::SignedLessOrEqual,
];

fn alu(operation: Arithmetic, destination: u8, source: Operand) -> Operation {
    Operation::Alu { width: Width::Bits64, operation, destination, source }
}

fn moved(destination: u8, source: Operand) -> Operation {
    alu(Arithmetic::Move, destination, source)
}
