// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measures how many errors are detected: a correct image is changed in one place at a time.

use super::check_paths;
use super::naive::naive;
use super::sample::program;
use crate::image::{Image, Slot};
use crate::operation::{Operand, Operation, Target};
use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::object::Program;

/// Counts packets in a map by two of their bytes and sends them back, unless they are short or of
/// another type.
const COUNTS: &str = "r7 = *(u32 *)(r1 + 0)\nr3 = *(u32 *)(r1 + 4)\n\
    r0 = 1\nr4 = r7\nr4 += 34\nif r4 > r3 goto out\n\
    r4 = *(u16 *)(r7 + 12)\nif r4 != 8 goto other\n\
    r8 = *(u8 *)(r7 + 23)\nr9 = *(u8 *)(r7 + 14)\nr9 &= 15\nif r9 != 5 goto other\n\
    r8 &= 3\n*(u32 *)(r10 - 4) = r8\nr2 = r10\nr2 += -4\nr1 = map[0]\ncall 0x1\n\
    if r0 == 0 goto other\n\
    r1 = *(u64 *)(r0 + 0)\nr1 += 1\n*(u64 *)(r0 + 0) = r1\n\
    r2 = *(u64 *)(r0 + 8)\nr3 = *(u16 *)(r7 + 16)\nr3 = be16 r3\nr2 += r3\n\
    *(u64 *)(r0 + 8) = r2\n\
    r1 = *(u32 *)(r7 + 0)\nr2 = *(u16 *)(r7 + 4)\nr3 = *(u32 *)(r7 + 6)\nr4 = *(u16 *)(r7 + 10)\n\
    *(u32 *)(r7 + 0) = r3\n*(u16 *)(r7 + 4) = r4\n*(u32 *)(r7 + 6) = r1\n*(u16 *)(r7 + 10) = r2\n\
    r0 = 3\ngoto out\nother:\nr0 = 2\nout:\nexit";

/// A program with a correct image.
struct Case {
    program: Program,
    analysis: Analysis,
    image: Image,
}

impl Case {
    fn is_right(&self, image: &Image) -> bool {
        check_paths(image, &self.program, &self.analysis, 200).is_ok()
    }

    /// Creates an image of a program with operations as early as the checker permits.
    fn packed(text: &str) -> Self {
        let (program, analysis) = program(text);
        let image = naive(&analysis, 4);
        let mut case = Self { program, analysis, image };
        assert!(case.is_right(&case.image));
        loop {
            let better = moved_up(&case.image).chain(without_rows(&case.image));
            let Some(better) = better.into_iter().find(|image| case.is_right(image)) else {
                return case;
            };
            case.image = better;
        }
    }
}

/// Returns the places of operations.
fn places(image: &Image) -> Vec<(usize, usize)> {
    let rows = image.rows.iter().enumerate();
    rows.flat_map(|(row, it)| it.slots().map(move |(lane, _)| (row, lane))).collect()
}

/// Returns images with an operation moved to an empty lane of the previous row.
fn moved_up(image: &Image) -> impl Iterator<Item = Image> {
    let places = places(image).into_iter().filter(|(row, _)| *row > 0);
    places.flat_map(move |(row, lane)| {
        let free = (0..4).filter(move |to| image.rows[row - 1].lanes[*to].is_none());
        free.map(move |to| {
            let mut other = image.clone();
            other.rows[row - 1].lanes[to] = other.rows[row].lanes[lane].take();
            other
        })
    })
}

/// Returns images with an empty row removed.
fn without_rows(image: &Image) -> impl Iterator<Item = Image> {
    let is_empty = |row: &usize| image.rows[*row].slots().next().is_none();
    (0..image.rows.len()).filter(is_empty).map(|row| {
        let mut other = image.clone();
        other.rows.remove(row);
        for slot in other.rows.iter_mut().flat_map(|row| &mut row.lanes).flatten() {
            if let Some(Target::Row(target)) = slot.operation.target_mut() {
                *target -= usize::from(*target > row);
            }
        }
        other
    })
}

/// Returns images with two lanes of a row exchanged.
fn lanes_swapped(image: &Image) -> Vec<Image> {
    let swapped = places(image).into_iter().flat_map(|(row, lane)| {
        (lane + 1..4).map(move |other| {
            let mut image = image.clone();
            image.rows[row].lanes.swap(lane, other);
            image
        })
    });
    swapped.collect()
}

/// Returns images with an operation replaced by each alternative.
fn replaced(image: &Image, change: impl Fn(Operation) -> Vec<Operation>) -> Vec<Image> {
    let replaced = places(image).into_iter().flat_map(|(row, lane)| {
        let slot = image.rows[row].lanes[lane].clone().expect("an operation is there");
        change(slot.operation).into_iter().map(move |operation| {
            let mut other = image.clone();
            let origins = slot.origins.clone();
            other.rows[row].lanes[lane] = Some(Slot { operation, origins });
            other
        })
    });
    replaced.collect()
}

/// Returns the operation with another source register.
fn other_source(operation: Operation) -> Vec<Operation> {
    let mut found = vec![];
    for register in 0..11 {
        let mut other = operation;
        match &mut other {
            Operation::Alu { right: Operand::Register(read), .. }
            | Operation::Load { base: read, .. }
            | Operation::Store { source: Operand::Register(read), .. }
            | Operation::Jump { left: read, .. } => *read = register,
            _ => continue,
        }
        found.extend((other != operation).then_some(other));
    }
    found
}

/// Returns the operation with another destination register.
fn other_destination(operation: Operation) -> Vec<Operation> {
    let mut found = vec![];
    for register in 0..16 {
        let mut other = operation;
        match &mut other {
            Operation::Alu { destination, .. }
            | Operation::Load { destination, .. }
            | Operation::Constant { destination, .. } => *destination = register,
            _ => continue,
        }
        found.extend((other != operation).then_some(other));
    }
    found
}

/// Returns the operation with another offset, constant, or target.
fn other_number(operation: Operation) -> Vec<Operation> {
    let mut other = operation;
    match &mut other {
        Operation::Load { offset, .. } | Operation::Store { offset, .. } => *offset += 1,
        Operation::Alu { right: Operand::Immediate(number), .. }
        | Operation::Jump { right: Operand::Immediate(number), .. } => *number ^= 1,
        Operation::Call { helper, .. } => *helper += 1,
        Operation::Goto(Target::Row(row)) => *row -= 1,
        _ => return vec![],
    }
    vec![other]
}

#[test]
fn almost_all_mistakes_are_found() {
    let case = Case::packed(COUNTS);
    let image = &case.image;
    assert!(image.operations_per_row() > 1.2, "{image}");
    let dropped = places(image).into_iter().map(|(row, lane)| {
        let mut other = image.clone();
        other.rows[row].lanes[lane] = None;
        other
    });
    let kinds: [(&str, Vec<Image>, usize); 6] = [
        ("row", moved_up(image).collect(), 100),
        ("dropped", dropped.collect(), 100),
        ("source", replaced(image, other_source), 99),
        ("destination", replaced(image, other_destination), 99),
        ("number", replaced(image, other_number), 100),
        // If no operation reads a result in its lane, another lane is equally correct.
        ("lanes", lanes_swapped(image), 75),
    ];
    for (kind, mutants, least_percent) in kinds {
        let found = mutants.iter().filter(|mutant| !case.is_right(mutant)).count();
        let is_enough = mutants.len() >= 20 && found * 100 >= least_percent * mutants.len();
        assert!(is_enough, "{kind}: {found} of {}\n{image}", mutants.len());
    }
}
