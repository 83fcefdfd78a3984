// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bernstein's conditions: rules about pairs of operations in a row.

use super::memory::Touched;
use super::registers::{names, read, written};
use super::{Rule, Violation, text};
use crate::image::{Image, Row};
use freeport_ebpf::analysis::Analysis;

/// Returns all violating pairs of operations.
pub(super) fn check(image: &Image, analysis: &Analysis) -> Vec<Violation> {
    let mut violations = vec![];
    for (number, row) in image.rows.iter().enumerate() {
        let slots: Vec<_> = row.slots().collect();
        let touched: Vec<_> = slots.iter().map(|(_, slot)| Touched::by(slot, analysis)).collect();
        for one in 0..slots.len() {
            for another in one + 1..slots.len() {
                let lanes = [slots[one].0, slots[another].0];
                let mut add = |rule, detail: &str| {
                    violations.push(violation(number, row, lanes, rule, detail));
                };
                registers(row, lanes, &mut add);
                memory(&touched[one], &touched[another], &mut add);
            }
        }
    }
    violations
}

fn registers(row: &Row, lanes: [usize; 2], add: &mut impl FnMut(Rule, &str)) {
    let operations = lanes.map(|lane| row.lanes[lane].as_ref().map(|slot| slot.operation));
    let [Some(one), Some(another)] = operations else { return };
    let twice = written(&one) & written(&another);
    if twice != 0 {
        add(Rule::WrittenTwice, &names(twice));
    }
    let both = read(&one) & written(&another) | written(&one) & read(&another);
    if both != 0 {
        add(Rule::ReadAndWritten, &names(both));
    }
}

fn memory(one: &Touched, another: &Touched, add: &mut impl FnMut(Rule, &str)) {
    if one.conflicts(another) {
        add(Rule::MemoryConflict, "memory");
    }
    if one.moves_packet_of(another) || another.moves_packet_of(one) {
        add(Rule::PacketMoved, "packet");
    }
}

fn violation(number: usize, row: &Row, lanes: [usize; 2], rule: Rule, what: &str) -> Violation {
    let what = format!("{what}: {} and {}", text(row, lanes[0]), text(row, lanes[1]));
    Violation { row: number, lanes: lanes.into(), rule, what }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{broken, image, load, set, store, sum};
    use super::*;
    use crate::operation::Operation;

    /// Returns the rules violated by two operations in one row.
    fn together(text: &str, one: (Operation, usize), another: (Operation, usize)) -> Vec<Rule> {
        let exit = text.lines().count() - 1;
        let image = image(&[
            &[(0, one.0, &[one.1]), (1, another.0, &[another.1])],
            &[],
            &[(0, Operation::Exit, &[exit])],
        ]);
        broken(text, &image)
    }

    #[test]
    fn registers_of_a_row_are_apart() {
        let text = "r2 = 1\nr3 = 2\nr0 = r2\ncall 0x17\ncall 0x5\nexit";
        let beside = |other| {
            let origin = match other {
                Operation::Call { helper: 23, .. } => 3,
                Operation::Call { .. } => 4,
                _ => 1,
            };
            together(text, (set(2, 1), 0), (other, origin))
        };
        assert_eq!(beside(set(3, 2)), []);
        assert_eq!(beside(set(2, 2)), [Rule::WrittenTwice]);
        assert_eq!(beside(sum(3, 2, 1)), [Rule::ReadAndWritten]);
        assert_eq!(beside(Operation::call(23)), [Rule::ReadAndWritten], "its second argument");
        assert_eq!(beside(Operation::call(5)), []);
        assert_eq!(together(text, (set(0, 1), 2), (Operation::call(5), 4)), [Rule::WrittenTwice]);
    }

    #[test]
    fn memory_of_a_row_is_apart() {
        let text = "*(u64 *)(r10 - 8) = 1\n*(u32 *)(r10 - 12) = 1\nr0 = *(u32 *)(r10 - 8)\n\
                    r3 = *(u8 *)(r10 - 9)\nexit";
        let beside = |other, origin| together(text, (store(8, 10, -8, 1), 0), (other, origin));
        assert_eq!(beside(store(4, 10, -12, 1), 1), []);
        assert_eq!(beside(load(4, 0, 10, -8), 2), [Rule::MemoryConflict]);
        assert_eq!(beside(load(1, 3, 10, -9), 3), []);
        let wider = beside(load(4, 3, 10, -12), 3);
        assert_eq!(wider, [Rule::MemoryConflict], "it is not what its instruction does");
        assert_eq!(together(text, (load(4, 0, 10, -8), 2), (load(1, 3, 10, -9), 3)), []);
    }

    #[test]
    fn helpers_touch_what_they_are_given_and_what_they_move() {
        let text = "r6 = r1\nr2 = r10\nr2 += -4\nr1 = map[0]\ncall 0x1\n\
                    *(u32 *)(r10 - 4) = 1\n*(u32 *)(r10 - 8) = 1\nr0 = 0\nexit";
        let beside = |other, origin| together(text, (Operation::call(1), 5), (other, origin));
        assert_eq!(beside(store(4, 10, -8, 1), 7), []);
        assert_eq!(beside(store(4, 10, -4, 1), 6), [Rule::MemoryConflict], "the key");
        let text = "r2 = 0\ncall 0x2c\ncall 0x5\nr0 = 0\nexit";
        let target = crate::operation::Target::Row(2);
        let bound = Operation::Bound { base: None, bytes: 14, target };
        assert_eq!(together(text, (bound, 0), (Operation::call(44), 1)), [Rule::PacketMoved]);
        assert_eq!(together(text, (bound, 0), (Operation::call(5), 2)), []);
    }
}
