// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hazards between a row and the next one.
//!
//! A taken branch to another row costs two rows, and the row after a call of a function is not
//! executed right after it, so only consecutive rows count.

use super::form::rows_of;
use super::memory::Touched;
use super::registers::{names, read, written};
use super::{Rule, Violation, text};
use crate::image::{Image, Row, Slot};
use crate::operation::{Operation, Target};
use freeport_ebpf::analysis::Analysis;

/// Returns all hazards in an image.
pub(super) fn check(image: &Image, analysis: &Analysis) -> Vec<Violation> {
    let mut violations = vec![];
    for number in 1..image.rows.len() {
        if !continues(image, number - 1) {
            continue;
        }
        let pair = Pair { image, number };
        pair.cross_lane(&mut violations);
        pair.store_to_load(analysis, &mut violations);
    }
    violations
}

/// Returns whether the following row may be executed next.
fn continues(image: &Image, number: usize) -> bool {
    if !rows_of(image, number).contains(&(number + 1)) {
        return false;
    }
    let next = Some(Target::Row(number + 1));
    let leaves = |operation: Operation| {
        operation.is_terminal() || matches!(operation, Operation::CallFunction(_))
    };
    let row = &image.rows[number];
    !row.slots().any(|(_, slot)| leaves(slot.operation))
        || row.slots().any(|(_, slot)| slot.operation.target() == next)
}

/// A row with the previous one.
struct Pair<'a> {
    image: &'a Image,
    number: usize,
}

impl Pair<'_> {
    fn rows(&self) -> [&Row; 2] {
        [self.number - 1, self.number].map(|number| &self.image.rows[number])
    }

    fn cross_lane(&self, violations: &mut Vec<Violation>) {
        let [before, row] = self.rows();
        for (from, slot) in before.slots() {
            let results = written(&slot.operation);
            for (to, reader) in row.slots().filter(|(to, _)| *to != from) {
                let early = read(&reader.operation) & results;
                if early != 0 {
                    violations.push(self.violation([from, to], Rule::CrossLane, &names(early)));
                }
            }
        }
    }

    fn store_to_load(&self, analysis: &Analysis, violations: &mut Vec<Violation>) {
        let [before, row] = self.rows();
        let stores = before.slots().filter(|(_, slot)| is_store(slot));
        for (from, store) in stores {
            let written = Touched::by(store, analysis);
            for (to, slot) in row.slots() {
                let loaded = Touched::by(slot, analysis).read();
                if written.conflicts(&loaded) {
                    violations.push(self.violation([from, to], Rule::StoreToLoad, "memory"));
                }
            }
        }
    }

    fn violation(&self, [from, to]: [usize; 2], rule: Rule, what: &str) -> Violation {
        let [before, row] = self.rows();
        let what = format!("{what}: {} after {}", text(row, to), text(before, from));
        let lanes = if from == to { vec![to] } else { vec![from, to] };
        Violation { row: self.number, lanes, rule, what }
    }
}

/// Returns whether the operation stores memory in its own row; the effects of a helper are complete
/// before the next row.
fn is_store(slot: &Slot) -> bool {
    matches!(slot.operation, Operation::Store { .. } | Operation::Atomic { .. })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{broken, image, load, set, store, sum};
    use super::*;
    use crate::operation::Condition::Equal;

    const SUM: &str = "r2 = 1\nr3 = 2\nr0 = r2\nr0 += r3\nexit";

    #[test]
    fn a_result_is_read_in_its_own_lane_or_a_row_later() {
        let own = image(&[
            &[(1, set(2, 1), &[0])],
            &[(1, sum(0, 2, 2), &[2, 3])],
            &[],
            &[(0, Operation::Exit, &[4])],
        ]);
        assert_eq!(broken(SUM, &own), []);
        let across = image(&[
            &[(1, set(2, 1), &[0])],
            &[(2, sum(0, 2, 2), &[2, 3])],
            &[],
            &[(0, Operation::Exit, &[4])],
        ]);
        assert_eq!(broken(SUM, &across), [Rule::CrossLane]);
        let exit = image(&[&[(1, set(0, 1), &[2])], &[(0, Operation::Exit, &[4])]]);
        assert_eq!(broken(SUM, &exit), [Rule::CrossLane]);
    }

    #[test]
    fn results_and_arguments_of_calls_count() {
        let text = "r1 = 5\nr2 = 0\ncall 0x17\nexit";
        let call = |rows: [usize; 2]| {
            let mut lanes = image(&[
                &[(0, set(1, 5), &[0]), (1, set(2, 0), &[1])],
                &[],
                &[],
                &[(0, Operation::Exit, &[3])],
            ]);
            lanes.rows[rows[0]].lanes[0] =
                image(&[&[(0, Operation::call(23), &[2])]]).rows[0].lanes[0].clone();
            lanes.rows.drain(rows[0] + 1..rows[1]);
            lanes
        };
        assert_eq!(broken(text, &call([2, 3])), []);
        assert_eq!(broken(text, &call([1, 3])), [Rule::CrossLane], "register 2");
    }

    #[test]
    fn a_branch_that_is_taken_leaves_time() {
        let text = "r2 = 1\nif r1 == 0 goto +1\nr2 = 2\nr0 = r2\nexit";
        let jump = |target| Operation::Jump {
            width: crate::operation::Width::Bits64,
            condition: Equal,
            left: 1,
            right: crate::operation::Operand::Immediate(0),
            target: Target::Row(target),
        };
        let rows = |target| {
            image(&[
                &[(0, jump(target), &[1]), (1, set(2, 1), &[0])],
                &[(0, set(3, 2), &[2])],
                &[(0, sum(0, 2, 2), &[3])],
                &[(0, Operation::Exit, &[4])],
            ])
        };
        assert_eq!(broken(text, &rows(2)), []);
        let mut next = rows(1);
        next.rows.remove(1);
        assert_eq!(broken(text, &next), [Rule::CrossLane]);
        // A jump to the next row is not a taken branch, even if a later lane leaves.
        next.rows[0].lanes[2] = image(&[&[(0, Operation::Exit, &[4])]]).rows[0].lanes[0].clone();
        assert_eq!(broken(text, &next), [Rule::CrossLane]);
    }

    #[test]
    fn what_was_stored_is_loaded_two_rows_later() {
        let text = "*(u64 *)(r10 - 8) = 1\nr0 = *(u64 *)(r10 - 8)\nr2 = *(u64 *)(r10 - 16)\nexit";
        let rows = |wait: bool, offset, origin| {
            let mut image = image(&[
                &[(0, store(8, 10, -8, 1), &[0])],
                &[],
                &[(0, load(8, 0, 10, offset), &[origin])],
                &[(0, Operation::Exit, &[3])],
            ]);
            if !wait {
                image.rows.remove(1);
            }
            image
        };
        assert_eq!(broken(text, &rows(true, -8, 1)), []);
        assert_eq!(broken(text, &rows(false, -16, 2)), []);
        assert_eq!(broken(text, &rows(false, -8, 1)), [Rule::StoreToLoad]);
    }
}
