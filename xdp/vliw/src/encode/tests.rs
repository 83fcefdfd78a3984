// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations survive encoding and decoding, and invalid bytes are rejected without a panic.

use super::*;
use crate::image::Slot;
use crate::machine::Machine;
use crate::operation::{AtomicOperation, ByteOrder, Condition, Width};

const ARITHMETIC: [Arithmetic; 14] = {
    use Arithmetic::*;
    [
        Add,
        Subtract,
        Multiply,
        Divide,
        SignedDivide,
        Or,
        And,
        ShiftLeft,
        ShiftRight,
        Modulo,
        SignedModulo,
        Xor,
        Move,
        SignedShiftRight,
    ]
};
const CONDITIONS: [Condition; 11] = {
    use Condition::*;
    [
        Equal,
        Greater,
        GreaterOrEqual,
        Set,
        NotEqual,
        SignedGreater,
        SignedGreaterOrEqual,
        Less,
        LessOrEqual,
        SignedLess,
        SignedLessOrEqual,
    ]
};
const ATOMIC: [AtomicOperation; 6] = {
    use AtomicOperation::*;
    [Add, Or, And, Xor, Exchange, CompareExchange]
};
/// Number of rows of the images here, which limits targets.
const ROWS: usize = 40;

/// Generates operations with random fields.
struct Random(fastrand::Rng);

impl Random {
    fn register(&mut self) -> u8 {
        self.0.u8(..REGISTERS)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.0.usize(..all.len())]
    }

    fn width(&mut self) -> Width {
        self.of(&[Width::Bits32, Width::Bits64])
    }

    fn operand(&mut self) -> Operand {
        match self.0.bool() {
            true => Operand::Register(self.register()),
            false => Operand::Immediate(self.0.i32(..)),
        }
    }

    fn target(&mut self) -> Target {
        match self.0.bool() {
            true => Target::Row(self.0.usize(..ROWS)),
            false => Target::Exit(self.0.u32(..1 << VERDICT_BITS)),
        }
    }

    fn arithmetic(&mut self) -> Operation {
        let (destination, source, width) = (self.register(), self.register(), self.width());
        match self.0.u8(..6) {
            0 => Operation::Negate { width, destination, source },
            1 => {
                let bits = self.of(&[8, 16]);
                Operation::MoveSigned { width, destination, source, bits }
            }
            2 => {
                let width = Width::Bits64;
                Operation::MoveSigned { width, destination, source, bits: 32 }
            }
            3 => {
                let order = self.of(&[ByteOrder::Little, ByteOrder::Big, ByteOrder::Reverse]);
                Operation::Swap { order, destination, source, bits: self.of(&[16, 32, 64]) }
            }
            _ => {
                let operation = self.of(&ARITHMETIC);
                let left = if operation == Arithmetic::Move { 0 } else { source };
                Operation::Alu { width, operation, destination, left, right: self.operand() }
            }
        }
    }

    fn constant(&mut self) -> Operation {
        let constant = match self.0.u8(..5) {
            0 => Constant::Value(self.0.u64(..)),
            1 => Constant::Value(i64::from(self.0.i32(..)) as u64),
            2 => Constant::Map(self.0.u32(..)),
            3 => Constant::MapValue { map: self.0.u16(..).into(), offset: self.0.u32(..) },
            _ => Constant::Function(self.0.usize(..ROWS)),
        };
        Operation::Constant { destination: self.register(), constant }
    }

    fn access(&mut self) -> Operation {
        let (destination, base, offset) = (self.register(), self.register(), self.0.i16(..));
        match self.0.u8(..3) {
            0 => {
                let bytes = self.of(&[1, 2, 4, 6, 8]);
                let is_signed = bytes <= 4 && self.0.bool();
                let is_speculative = self.0.bool();
                Operation::Load { bytes, is_signed, is_speculative, destination, base, offset }
            }
            1 => {
                let bytes = self.of(&[1, 2, 4, 6, 8]);
                Operation::Store { bytes, base, offset, source: self.operand() }
            }
            _ => {
                let (width, operation) = (self.width(), self.of(&ATOMIC));
                let is_exchange = matches!(
                    operation,
                    AtomicOperation::Exchange | AtomicOperation::CompareExchange
                );
                let is_fetching = is_exchange || self.0.bool();
                let source = self.register();
                Operation::Atomic { width, operation, is_fetching, base, offset, source }
            }
        }
    }

    /// Chooses an argument of a helper.
    fn argument(&mut self, at: usize) -> Argument {
        match (at, self.0.u8(..3)) {
            (_, 0) => Argument::Register,
            (0, 1) => Argument::Context,
            (0, _) => Argument::Map(self.0.u16(..Argument::MAPS)),
            (_, 1) => Argument::Stack(-4 * self.0.i16(1..=128)),
            (..) => Argument::Number(self.0.u8(..Argument::NUMBERS)),
        }
    }

    fn control(&mut self) -> Operation {
        match self.0.u8(..7) {
            0 => Operation::Goto(self.target()),
            1 => Operation::call(self.0.u32(..)),
            6 => {
                let arguments = std::array::from_fn(|at| self.argument(at));
                Operation::Call { helper: self.0.u32(..256), arguments }
            }
            2 => Operation::CallFunction(self.0.usize(..ROWS)),
            3 => Operation::Exit,
            4 => {
                let base = self.0.bool().then(|| self.register());
                Operation::Bound { base, bytes: self.0.i32(..), target: self.target() }
            }
            _ => Operation::Jump {
                width: self.width(),
                condition: self.of(&CONDITIONS),
                left: self.register(),
                right: self.operand(),
                target: self.target(),
            },
        }
    }

    fn operation(&mut self) -> Operation {
        match self.0.u8(..4) {
            0 => self.arithmetic(),
            1 => self.constant(),
            2 => self.access(),
            _ => self.control(),
        }
    }

    fn row(&mut self, lanes: u8) -> Row {
        let mut row = Row { lanes: vec![None; lanes.into()] };
        let mut lane = 0;
        while lane < usize::from(lanes) {
            let operation = self.operation();
            let taken = if self.0.u8(..4) > 0 { operation.lanes() } else { 0 };
            if (1..=usize::from(lanes) - lane).contains(&taken) {
                row.lanes[lane] = Some(Slot { operation, origins: vec![0] });
            }
            lane += taken.max(1);
        }
        row
    }
}

/// Creates an image with one operation in a row.
fn image_of(row: usize, operation: Operation) -> Image {
    let mut rows = vec![Row { lanes: vec![None; 2] }; row + 1];
    rows[row].lanes[0] = Some(Slot { operation, origins: vec![0] });
    Image { rows, machine: Machine { lanes: 2 }, ..Image::default() }
}

fn operations(image: &Image) -> Vec<Vec<Option<Operation>>> {
    let row = |row: &Row| row.lanes.iter().map(|it| it.as_ref().map(|it| it.operation)).collect();
    image.rows.iter().map(row).collect()
}

#[test]
fn every_operation_survives_a_round_trip() {
    let mut random = Random(fastrand::Rng::with_seed(1));
    for round in 0..2_000_u32 {
        let lanes = 1 + (round % 8) as u8;
        let rows = (0..ROWS).map(|_| random.row(lanes)).collect();
        let image = Image { rows, machine: Machine { lanes }, ..Image::default() };
        let bytes = encode(&image).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(bytes.len(), ROWS * usize::from(lanes) * 8);
        assert_eq!(decode(&bytes, lanes.into()).as_ref(), Ok(&operations(&image)));
    }
}

#[test]
fn what_is_decoded_is_encoded_with_the_same_meaning() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut decoded = 0;
    for round in 0..400_000_u32 {
        let mut bytes: [u8; 16] = std::array::from_fn(|_| random.u8(..));
        bytes[0] = round as u8;
        // Most fields must be 0 or small.
        let zero = [[2, 3, 1], [4, 5, 6], [4, 5, 7], [3, 2, 7]][random.usize(..4)];
        zero.iter().for_each(|at| bytes[*at] = 0);
        if random.bool() {
            (4..8).for_each(|at| bytes[at] = 0);
        }
        if random.u8(..4) > 0 {
            bytes[8..].fill(0);
        }
        let Ok(rows) = decode(&bytes, 2) else { continue };
        decoded += 1;
        let slots = rows[0].iter().map(|operation| {
            let operation = (*operation)?;
            Some(Slot { operation, origins: vec![0] })
        });
        let rows = vec![Row { lanes: slots.collect() }];
        let image = Image { rows, machine: Machine { lanes: 2 }, ..Image::default() };
        let again = encode(&image).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(decode(&again, 2).as_ref(), Ok(&operations(&image)), "{bytes:x?}");
    }
    assert!(decoded > 10_000, "only {decoded}");
}

#[test]
fn random_bytes_do_no_harm() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..random.usize(..200)).map(|_| random.u8(..)).collect();
        let _ = decode(&bytes, random.usize(..10));
    }
    assert!(decode(&[0; 16], 0).is_err() && decode(&[0; 72], 9).is_err());
    assert_eq!(decode(&[0; 12], 1).map_err(|error| error.row), Err(1), "the second row is cut");
}

#[test]
fn what_ebpf_has_is_as_ebpf_has_it() {
    let bytes = |operation| encode(&image_of(0, operation)).expect("it fits")[..8].to_vec();
    let add = |left, right| Operation::Alu {
        width: Width::Bits64,
        operation: Arithmetic::Add,
        destination: 4,
        left,
        right,
    };
    assert_eq!(bytes(add(4, Operand::Register(2))), [0x0f, 0x24, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes(add(3, Operand::Register(2))), [0xef, 0x34, 0x02, 0, 0, 0, 0, 0]);
    assert_eq!(bytes(add(3, Operand::Immediate(42))), [0xe7, 0x34, 0, 0, 42, 0, 0, 0]);
    let bound = Operation::Bound { base: Some(7), bytes: 14, target: Target::Exit(1) };
    assert_eq!(bytes(bound), [0xfd, 0x07, 1, 0, 14, 0, 0, 0]);
    assert_eq!(bytes(Operation::Exit), [0x95, 0, 0, 0, 0, 0, 0, 0]);
    let verdict = Operation::Goto(Target::Exit(3));
    assert_eq!(bytes(verdict), [0x9d, 0, 0, 0, 3, 0, 0, 0]);
}

#[test]
fn what_has_no_room_is_named() {
    let refused = |row, operation| {
        let error = encode(&image_of(row, operation)).expect_err("it has no room");
        assert_eq!((error.row, error.lane), (row, 0));
        error.reason
    };
    let jump = |target| Operation::Jump {
        width: Width::Bits32,
        condition: Condition::Less,
        left: 3,
        right: Operand::Immediate(-1),
        target,
    };
    assert_eq!(refused(2, jump(Target::Exit(4_096))), "the verdict has more than 12 bits");
    assert_eq!(refused(0, jump(Target::Row(40_000))), "the target is more than 16 bits away");
    assert_eq!(
        refused(1, Operation::CallFunction(1 << 40)),
        "the row's number has more than 31 bits"
    );
    let far = Operation::Goto(Target::Row(40_000));
    let bytes = encode(&image_of(0, far)).expect("there is room for long ones");
    assert_eq!(decode(&bytes, 2).expect("they are rows")[0][0], Some(far));
    let long = Operation::Constant { destination: 3, constant: Constant::Value(1 << 40) };
    let mut image = image_of(0, long);
    image.rows[0].lanes[1] = Some(Slot { operation: Operation::Exit, origins: vec![0] });
    assert_eq!(encode(&image).map_err(|error| error.lane), Err(0));
    image.rows[0].lanes = vec![None, image.rows[0].lanes[0].take()];
    assert_eq!(encode(&image).map_err(|error| error.lane), Err(1));
}
