// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Live registers, and live bytes of a function's own frame.
//!
//! The algorithm is that of `freeport-ir`; its nodes are slots here, and its values registers and
//! bytes. The bytes that an instruction accesses are known once addresses are analysed; before
//! that, or where they are unknown, all of them count as read.

use super::access::{Access, Space};
use super::graph::{Graph, target};
use crate::abi::FRAME_BYTES;
use crate::helper_functions::signature;
use crate::instruction::{Callee, FRAME_POINTER, Operation, REGISTERS};
use freeport_ir::analysis::{self, ControlFlow, DataFlow};
use std::ops::Range;

/// Live registers and bytes of a program, by instruction.
#[derive(Clone, Debug)]
pub struct Liveness {
    /// For each function, its first slot and its liveness.
    functions: Vec<(usize, analysis::Liveness)>,
}

impl Liveness {
    /// Computes the liveness of registers alone.
    pub fn of_registers(graph: &Graph) -> Self {
        Self::of(graph, None)
    }

    /// Computes the liveness of registers and frames; `accesses` has the accesses of each slot.
    pub(super) fn of(graph: &Graph, accesses: Option<&[Vec<Access>]>) -> Self {
        let functions = graph.functions().iter().map(|function| {
            let flow = SlotFlow { graph, slots: function.slots.clone(), accesses };
            (function.slots.start, analysis::Liveness::of(&flow))
        });
        Self { functions: functions.collect() }
    }

    /// Returns whether the value of a register before an instruction may still be read.
    pub fn is_register_live(&self, slot: usize, register: u8) -> bool {
        self.is_live(slot, usize::from(register))
    }

    /// Returns the registers that are live before an instruction, as a bit mask.
    pub fn registers(&self, slot: usize) -> u16 {
        let live = (0..REGISTERS).filter(|register| self.is_register_live(slot, *register));
        live.fold(0, |set, register| set | 1 << register)
    }

    /// Returns whether a byte of the function's frame, at this offset from the frame pointer, may
    /// still be read. Without facts about frames ([`Liveness::of_registers`]) every byte is live.
    pub fn is_byte_live(&self, slot: usize, offset: i64) -> bool {
        let byte = usize::try_from(offset + FRAME_BYTES as i64);
        byte.is_ok_and(|byte| byte < FRAME_BYTES && self.is_live(slot, byte_value(byte)))
    }

    fn is_live(&self, slot: usize, value: usize) -> bool {
        let at = self.functions.partition_point(|(start, _)| *start <= slot);
        let Some((start, live)) = at.checked_sub(1).map(|at| &self.functions[at]) else {
            return false;
        };
        live.live_in(slot - start).contains(value)
    }
}

/// Returns the number of a frame's byte among the values.
fn byte_value(byte: usize) -> usize {
    usize::from(REGISTERS) + byte
}

/// The slots of a function as a graph; the second slot of an instruction has no successors.
struct SlotFlow<'g> {
    graph: &'g Graph,
    slots: Range<usize>,
    accesses: Option<&'g [Vec<Access>]>,
}

impl SlotFlow<'_> {
    fn operation(&self, node: usize) -> Option<Operation> {
        self.graph.operation(self.slots.start + node)
    }

    /// Returns the bytes of the function's own frame that an access may touch, and whether it is
    /// certain to touch them.
    fn bytes_of(access: &Access) -> (Range<usize>, bool) {
        let all = (0..FRAME_BYTES, false);
        match access.space {
            Space::Stack { calls_up: Some(0) } => {
                let end = FRAME_BYTES as i64;
                let size = access.size.map_or(end, |size| size.min(end as u64) as i64);
                let start = (access.offset.0 + end).clamp(0, end);
                let behind = access.offset.1.saturating_add(size + end).clamp(start, end);
                let is_exact = access.is_proven && access.offset.0 == access.offset.1;
                (start as usize..behind as usize, is_exact)
            }
            Space::Stack { calls_up: None } | Space::Unknown(_) => all,
            _ => (0..0, false),
        }
    }
}

impl ControlFlow for SlotFlow<'_> {
    fn node_count(&self) -> usize {
        self.slots.len()
    }

    fn for_each_successor(&self, node: usize, visit: &mut dyn FnMut(usize)) {
        let Some(operation) = self.operation(node) else { return };
        if !operation.is_terminal() {
            visit(node + operation.slots());
        }
        if let Some(distance) = operation.distance()
            && let Some(to) = target(self.slots.start + node, distance)
        {
            visit(to - self.slots.start);
        }
    }
}

impl DataFlow for SlotFlow<'_> {
    fn value_count(&self) -> usize {
        byte_value(FRAME_BYTES)
    }

    fn for_each_use(&self, node: usize, visit: &mut dyn FnMut(usize)) {
        let Some(operation) = self.operation(node) else { return };
        operation.read().for_each(|register| visit(register.into()));
        if let Operation::Call(callee) = operation {
            let arguments = match callee {
                Callee::Helper(number) => signature(number).map_or(5, |it| it.arguments.len()),
                Callee::Local(_) | Callee::Kernel { .. } => 5,
            };
            (1..=arguments).for_each(&mut *visit);
        }
        visit(FRAME_POINTER.into());
        let Some(accesses) = self.accesses else { return };
        // The function may have received addresses in the frame.
        if self.graph.calls_function(self.slots.start + node) {
            (0..FRAME_BYTES).for_each(|byte| visit(byte_value(byte)));
        }
        for access in &accesses[self.slots.start + node] {
            if access.kind != super::access::AccessKind::Write {
                Self::bytes_of(access).0.for_each(|byte| visit(byte_value(byte)));
            }
        }
    }

    fn for_each_definition(&self, node: usize, visit: &mut dyn FnMut(usize)) {
        let Some(operation) = self.operation(node) else { return };
        if let Some(register) = operation.written() {
            visit(register.into());
        }
        if matches!(operation, Operation::Call(_)) {
            (0..=5).for_each(&mut *visit);
        }
        // Only a store is certain to write; a helper may fail instead.
        if let (Operation::Store { .. }, Some(accesses)) = (operation, self.accesses)
            && let [access] = accesses[self.slots.start + node].as_slice()
            && let (bytes, true) = Self::bytes_of(access)
        {
            bytes.for_each(|byte| visit(byte_value(byte)));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::analysed::analysed;

    #[test]
    fn a_store_that_nobody_reads_is_dead() {
        let dead = |text: &str| -> Vec<usize> {
            let analysis = analysed(text);
            (0..analysis.graph().slots()).filter(|slot| analysis.is_dead_store(*slot)).collect()
        };
        let none: Vec<usize> = vec![];
        assert_eq!(dead("*(u64 *)(r10 - 8) = 1\nr0 = *(u8 *)(r10 - 1)\nexit"), none);
        assert_eq!(dead("*(u64 *)(r10 - 8) = 1\nr0 = *(u8 *)(r10 - 9)\nexit"), [0]);
        assert_eq!(dead("*(u64 *)(r10 - 8) = 1\n*(u64 *)(r10 - 8) = 2\nr0 = 0\nexit"), [0, 1]);
        let overwritten = "*(u64 *)(r10 - 8) = 1\n*(u64 *)(r10 - 8) = 2\n\
                           r0 = *(u64 *)(r10 - 8)\nexit";
        assert_eq!(dead(overwritten), [0]);
        let halves = "*(u64 *)(r10 - 8) = 1\n*(u32 *)(r10 - 8) = 2\n\
                      r0 = *(u64 *)(r10 - 8)\nexit";
        assert_eq!(dead(halves), none);
        // A store at an unknown offset leaves the other bytes live.
        let somewhere = "*(u64 *)(r10 - 8) = 1\nr2 = *(u32 *)(r1 + 12)\nr2 &= 7\nr2 += r10\n\
                         *(u8 *)(r2 - 8) = 2\nr0 = *(u64 *)(r10 - 8)\nexit";
        assert_eq!(dead(somewhere), none);
    }

    #[test]
    fn functions_helpers_and_addresses_that_are_not_known_may_read_the_frame() {
        let is_dead = |rest: &str| {
            let text = format!("*(u64 *)(r10 - 8) = 1\n{rest}\nr0 = 0\nexit\ninner:\nr0 = 0\nexit");
            analysed(&text).is_dead_store(0)
        };
        assert!(is_dead("r2 = 1"));
        assert!(!is_dead("call inner"));
        assert!(!is_dead("r2 = 1\nr2 = *(u8 *)(r2 + 0)"));
        assert!(!is_dead("r2 = r10\nr2 += -8\nr1 = map[0]\ncall 0x1"));
        assert!(is_dead("*(u32 *)(r10 - 12) = 0\nr2 = r10\nr2 += -12\nr1 = map[0]\ncall 0x1"));
        assert!(!is_dead(
            "r2 = r10\nr2 += -16\nr1 = r2\nr2 = 9\nr3 = 0\nr4 = 0\nr5 = 0\n\
                          call 0x1c"
        ));
    }

    #[test]
    fn registers_live_until_they_are_read_last() {
        let analysis = analysed("r6 = r1\nr2 = 5\ncall 0x5\nr0 += r6\nexit");
        let live = |slot| analysis.liveness().registers(slot) & 0x3ff;
        assert_eq!([0, 1, 2, 3, 4].map(live), [1 << 1, 1 << 6, 1 << 6, 1 | 1 << 6, 1]);
    }
}
