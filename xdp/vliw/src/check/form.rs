// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules about single operations and rows: fields, lanes, targets, and the starts and ends of
//! functions.

use super::{Rule, Violation, text};
use crate::image::{Image, Row, Slot};
use crate::machine::{CALLS_PER_ROW, LANES, PACKET, REGISTERS};
use crate::operation::{
    Arithmetic, AtomicOperation, Constant, FRAME_POINTER, Operation, Target, Width,
};
use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::instruction::{self as ebpf, Callee};
use freeport_ebpf::object::Program;
use std::ops::Range;

/// Returns all violations of these rules in an image.
pub(super) fn check(image: &Image, program: &Program, analysis: &Analysis) -> Vec<Violation> {
    let mut form = Form { image, called: called(image), violations: vec![] };
    if analysis.graph().slots() != program.instructions.len() {
        form.add(0, [], Rule::Origin, "the analysis is of another program".into());
    }
    form.functions();
    for (number, row) in image.rows.iter().enumerate() {
        form.row(number, row);
        for (lane, slot) in row.slots() {
            form.fields(number, lane, &slot.operation);
            form.control(number, lane, &slot.operation);
            if !comes_from(slot, analysis) {
                let what = format!("{} comes from {:?}", text(row, lane), slot.origins);
                form.add(number, [lane], Rule::Origin, what);
            }
        }
    }
    form.violations
}

/// Returns the rows that are called, or whose address is taken.
fn called(image: &Image) -> Vec<usize> {
    let operations = image.rows.iter().flat_map(Row::slots).map(|(_, slot)| slot.operation);
    let called = operations.filter_map(|operation| match operation {
        Operation::CallFunction(row) => Some(row),
        Operation::Constant { constant: Constant::Function(row), .. } => Some(row),
        _ => None,
    });
    called.collect()
}

/// State of the check, with the violations so far.
struct Form<'a> {
    image: &'a Image,
    called: Vec<usize>,
    violations: Vec<Violation>,
}

impl Form<'_> {
    fn add<const N: usize>(&mut self, row: usize, lanes: [usize; N], rule: Rule, what: String) {
        self.violations.push(Violation { row, lanes: lanes.into(), rule, what });
    }

    fn functions(&mut self) {
        let image = self.image;
        let lanes = image.machine.lanes;
        if !LANES.contains(&lanes) {
            self.add(0, [], Rule::Lanes, format!("the machine has {lanes}"));
        }
        if image.functions.first().is_none_or(|first| first.row != 0) || image.rows.is_empty() {
            self.add(0, [], Rule::Functions, "no function begins in row 0".into());
        }
        for (at, function) in image.functions.iter().enumerate() {
            let next = image.functions.get(at + 1).map_or(image.rows.len(), |next| next.row);
            if next <= function.row || next > image.rows.len() {
                let what = format!("`{}` has no row", function.name);
                self.add(function.row, [], Rule::Functions, what);
                continue;
            }
            let leaves = image.rows[next - 1].slots().any(|(_, slot)| slot.operation.is_terminal());
            if !leaves {
                let what = format!("the last row of `{}` may fall through", function.name);
                self.add(next - 1, [], Rule::LastRow, what);
            }
        }
    }

    fn row(&mut self, number: usize, row: &Row) {
        if row.lanes.len() != usize::from(self.image.machine.lanes) {
            self.add(number, [], Rule::Lanes, format!("it has {}", row.lanes.len()));
        }
        let calls =
            row.slots().filter(|(_, slot)| matches!(slot.operation, Operation::Call { .. }));
        let lanes: Vec<_> = calls.map(|(lane, _)| lane).collect();
        if lanes.len() > CALLS_PER_ROW {
            let what = format!("it calls {}", lanes.len());
            self.violations.push(Violation { row: number, lanes, rule: Rule::OneCall, what });
        }
        for (lane, slot) in row.slots() {
            let operation = &slot.operation;
            let behind = row.slots().map(|(other, _)| other).find(|other| *other > lane);
            let long = row.lanes.get(lane + 1).is_none_or(Option::is_some);
            if operation.lanes() == 2 && long {
                self.add(number, [lane], Rule::LongConstant, text(row, lane));
            }
            let Some(behind) = behind else { continue };
            let what = format!("{} before {}", text(row, lane), text(row, behind));
            if operation.is_terminal() {
                self.add(number, [lane, behind], Rule::BehindLeaving, what);
            } else if matches!(operation, Operation::CallFunction(_)) {
                self.add(number, [lane, behind], Rule::CallIsLast, what);
            }
        }
    }

    fn fields(&mut self, number: usize, lane: usize, operation: &Operation) {
        let what = || text(&self.image.rows[number], lane);
        let is_wrong = registers(operation).any(|register| register >= REGISTERS);
        if is_wrong {
            let what = what();
            return self.add(number, [lane], Rule::RegisterNumber, what);
        }
        if !means_something(operation) {
            let what = what();
            self.add(number, [lane], Rule::Field, what);
        }
        if matches!(operation.written(), Some(FRAME_POINTER | PACKET)) {
            let what = text(&self.image.rows[number], lane);
            self.add(number, [lane], Rule::FramePointer, what);
        }
    }

    fn control(&mut self, number: usize, lane: usize, operation: &Operation) {
        let what = text(&self.image.rows[number], lane);
        let (own, first) = (rows_of(self.image, number), self.image.functions.first());
        let is_program = first.is_some_and(|_| own.start == 0) && !self.called.contains(&0);
        match operation.target() {
            Some(Target::Row(row)) if !own.contains(&row) => {
                self.add(number, [lane], Rule::JumpTarget, what.clone());
            }
            Some(Target::Exit(_)) if !is_program => {
                self.add(number, [lane], Rule::ExitTarget, what.clone());
            }
            _ => {}
        }
        let called = match *operation {
            Operation::CallFunction(row) => row,
            Operation::Constant { constant: Constant::Function(row), .. } => row,
            _ => return,
        };
        if !self.image.functions.iter().any(|function| function.row == called) {
            self.add(number, [lane], Rule::CallTarget, what);
        }
    }
}

/// Returns the rows of the function to which a row belongs.
pub(super) fn rows_of(image: &Image, row: usize) -> Range<usize> {
    let at = image.functions.partition_point(|function| function.row <= row);
    let start = at.checked_sub(1).map_or(0, |at| image.functions[at].row);
    let end = image.functions.get(at).map_or(image.rows.len(), |next| next.row);
    start..end
}

/// Returns whether an operation can be made from its instructions: a call must be one of the same
/// callee.
fn comes_from(slot: &Slot, analysis: &Analysis) -> bool {
    let origins: Option<Vec<_>> =
        slot.origins.iter().map(|at| analysis.graph().operation(*at)).collect();
    let Some(origins) = origins else { return false };
    let mut callees = origins.iter().filter_map(|origin| match origin {
        ebpf::Operation::Call(callee) => Some(*callee),
        _ => None,
    });
    match slot.operation {
        Operation::Call { helper, .. } => callees.any(|callee| callee == Callee::Helper(helper)),
        Operation::CallFunction(_) => callees.any(|it| matches!(it, Callee::Local(_))),
        _ => !origins.is_empty(),
    }
}

/// Returns all registers in the fields of an operation.
fn registers(operation: &Operation) -> impl Iterator<Item = u8> {
    let unread = match *operation {
        Operation::Alu { left, .. } => Some(left),
        _ => None,
    };
    operation.read().chain(operation.written()).chain(unread)
}

/// Returns whether fields have values that the processor defines.
fn means_something(operation: &Operation) -> bool {
    use AtomicOperation::{CompareExchange, Exchange};
    match *operation {
        Operation::Alu { operation: Arithmetic::Move, left, .. } => left == 0,
        Operation::MoveSigned { width, bits, .. } => {
            matches!((bits, width), (8 | 16, _) | (32, Width::Bits64))
        }
        Operation::Swap { bits, .. } => matches!(bits, 16 | 32 | 64),
        Operation::Load { bytes, is_signed: true, .. } => matches!(bytes, 1 | 2 | 4),
        Operation::Load { bytes, .. } | Operation::Store { bytes, .. } => {
            matches!(bytes, 1 | 2 | 4 | 6 | 8)
        }
        Operation::Atomic { operation: Exchange | CompareExchange, is_fetching, .. } => is_fetching,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{broken, image, load, set};
    use super::*;
    use crate::image::Function;
    use crate::operation::{ByteOrder, Operand};

    const TEXT: &str = "r2 = 1\nr0 = 2\nexit";

    fn good() -> Image {
        image(&[&[(0, set(0, 2), &[1]), (1, set(2, 1), &[0])], &[(0, Operation::Exit, &[2])]])
    }

    /// Returns the rules violated by an operation in lane 2 of the first row.
    fn with(operation: Operation) -> Vec<Rule> {
        let mut image = good();
        image.rows[0].lanes[2] = Some(Slot { operation, origins: vec![0] });
        broken(TEXT, &image)
    }

    #[test]
    fn lanes_and_functions_are_counted() {
        assert_eq!(broken(TEXT, &good()), []);
        let change = |change: fn(&mut Image)| {
            let mut image = good();
            change(&mut image);
            broken(TEXT, &image)
        };
        assert_eq!(change(|image| image.rows[1].lanes.truncate(3)), [Rule::Lanes]);
        assert_eq!(change(|image| image.machine.lanes = 9), [Rule::Lanes]);
        assert_eq!(change(|image| image.functions.clear()), [Rule::Functions]);
        assert_eq!(change(|image| image.functions[0].row = 1), [Rule::Functions]);
        assert_eq!(change(|image| image.rows.clear()), [Rule::Functions]);
        assert_eq!(change(|image| image.rows[1].lanes.fill(None)), [Rule::LastRow]);
        let second = |image: &mut Image| {
            image.functions.push(Function { name: String::new(), row: 1 });
        };
        assert_eq!(change(second), [Rule::LastRow], "the first function goes on");
        assert_eq!(change(|image| image.functions.push(Function::default())), [Rule::Functions]);
    }

    #[test]
    fn operations_come_from_the_program() {
        for origins in [vec![], vec![3]] {
            let mut image = good();
            image.rows[0].lanes[2] = Some(Slot { operation: set(4, 1), origins });
            assert_eq!(broken(TEXT, &image), [Rule::Origin]);
        }
        assert_eq!(with(Operation::call(5)), [Rule::Origin], "it is no call there");
    }

    #[test]
    fn fields_mean_something() {
        assert_eq!(with(load(6, 3, 10, -8)), [], "memory is another matter");
        assert_eq!(with(load(5, 3, 10, -8)), [Rule::Field]);
        assert_eq!(with(load(4, 16, 10, -8)), [Rule::RegisterNumber]);
        assert_eq!(with(load(4, 10, 10, -8)), [Rule::FramePointer]);
        let swap =
            |bits| Operation::Swap { order: ByteOrder::Big, destination: 3, source: 4, bits };
        assert_eq!([with(swap(16)), with(swap(24))], [vec![], vec![Rule::Field]]);
        let moved = |left| Operation::Alu {
            width: Width::Bits64,
            operation: Arithmetic::Move,
            destination: 3,
            left,
            right: Operand::Register(4),
        };
        assert_eq!([with(moved(0)), with(moved(1))], [vec![], vec![Rule::Field]]);
        let extended = |width| Operation::MoveSigned { width, destination: 3, source: 4, bits: 32 };
        assert_eq!(with(extended(Width::Bits64)), []);
        assert_eq!(with(extended(Width::Bits32)), [Rule::Field]);
    }

    #[test]
    fn a_long_constant_has_two_lanes() {
        let long = Constant::Value(1 << 40);
        let constant = Operation::Constant { destination: 3, constant: long };
        assert_eq!(with(constant), []);
        let put = |lane| {
            let mut image = good();
            let slot = Slot { operation: constant, origins: vec![0] };
            image.rows[0].lanes[3] = image.rows[0].lanes[1].take();
            image.rows[0].lanes[lane] = Some(slot);
            broken(TEXT, &image)
        };
        assert_eq!(put(1), []);
        assert_eq!([put(2), put(3)], [[Rule::LongConstant]; 2]);
    }

    #[test]
    fn control_stays_in_functions_and_ends() {
        let goto = |target| with(Operation::Goto(target));
        assert_eq!(goto(Target::Row(1)), []);
        assert_eq!(goto(Target::Row(2)), [Rule::JumpTarget]);
        assert_eq!(goto(Target::Exit(1)), []);
        assert!(with(Operation::CallFunction(1)).contains(&Rule::CallTarget));
        let mut image = good();
        image.rows[0].lanes[3] = image.rows[0].lanes[1].take();
        let slot = |operation| Some(Slot { operation, origins: vec![0] });
        image.rows[0].lanes[2] = slot(Operation::Goto(Target::Row(1)));
        assert_eq!(broken(TEXT, &image), [Rule::BehindLeaving]);
        image.rows[0].lanes[2] = slot(Operation::call(5));
        image.rows[0].lanes[0] = None;
        image.rows[0].lanes[3] = slot(Operation::call(7));
        assert!(broken(TEXT, &image).contains(&Rule::OneCall));
    }

    #[test]
    fn functions_that_are_called_return() {
        let text = "call inner\nexit\ninner:\nr0 = 1\nexit";
        let rows = |last: Operation, lane: usize| {
            let mut image = image(&[
                &[(1, Operation::CallFunction(2), &[0]), (lane, set(6, 1), &[2])],
                &[(0, Operation::Exit, &[1])],
                &[(0, set(0, 1), &[2])],
                &[(0, last, &[3])],
            ]);
            image.functions.push(Function { name: "inner".into(), row: 2 });
            image
        };
        assert_eq!(broken(text, &rows(Operation::Exit, 0)), []);
        assert_eq!(broken(text, &rows(Operation::Exit, 2)), [Rule::CallIsLast]);
        let verdict = Operation::Goto(Target::Exit(1));
        assert_eq!(broken(text, &rows(verdict, 0)), [Rule::ExitTarget]);
        let back = Operation::Goto(Target::Row(1));
        assert_eq!(broken(text, &rows(back, 0)), [Rule::JumpTarget]);
    }
}
