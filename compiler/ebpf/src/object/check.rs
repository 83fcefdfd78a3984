// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of a function's slots that every target requires.

use crate::instruction::{FRAME_POINTER, Instruction, Operation, decode};

/// The first invalid slot, and the reason.
pub(crate) type Fault = (usize, String);

/// Checks that every slot is part of an instruction, that jumps lead to instructions of the
/// function, that the frame pointer is not written, and that execution does not run past the end.
///
/// # Errors
/// The first slot that violates this.
pub(super) fn check(slots: &[Instruction]) -> Result<(), Fault> {
    let operations = decoded(slots)?;
    let mut last = (0, false);
    for (slot, operation) in operations.iter().enumerate() {
        let Some(operation) = operation else { continue };
        if operation.written() == Some(FRAME_POINTER) {
            return Err((slot, format!("`{operation}` writes r10, the frame pointer")));
        }
        if let Some(distance) = operation.distance() {
            check_target(&operations, slot, distance)
                .map_err(|reason| (slot, format!("`{operation}` {reason}")))?;
        }
        last = (slot, operation.is_terminal());
    }
    match last {
        (_, true) => Ok(()),
        (slot, false) => Err((slot, "execution continues past the end of the function".to_owned())),
    }
}

/// Returns operations by their first slot; second slots have none.
///
/// # Errors
/// The first slot that is not a valid instruction.
pub(crate) fn decoded(slots: &[Instruction]) -> Result<Vec<Option<Operation>>, Fault> {
    let mut operations = vec![None; slots.len()];
    let mut slot = 0;
    while slot < slots.len() {
        let operation = decode(slots, slot)
            .map_err(|invalid| (slot, format!("is not an instruction of RFC 9669: {invalid}")))?;
        operations[slot] = Some(operation);
        slot += operation.slots();
    }
    Ok(operations)
}

fn check_target(
    operations: &[Option<Operation>],
    slot: usize,
    distance: i32,
) -> Result<(), &'static str> {
    let target = slot as i64 + 1 + i64::from(distance);
    match usize::try_from(target).ok().and_then(|target| operations.get(target)) {
        Some(Some(_)) => Ok(()),
        Some(None) => Err("leads into the middle of a 64-bit constant"),
        None => Err("leads outside the function"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::assemble;

    #[track_caller]
    fn assert_fault(text: &str, slot: usize, reason: &str) {
        let slots = assemble(text).expect("the text is right");
        let (found, why) = check(&slots).expect_err("something is wrong");
        assert!(found == slot && why.contains(reason), "slot {found}: {why}");
    }

    #[test]
    fn a_sound_function_passes() {
        let text = "r1 = 0x1122334455667788 ll\nif r1 == 0x0 goto end\nr0 = 1\nend:\nexit";
        assert_eq!(check(&assemble(text).expect("is right")), Ok(()));
    }

    #[test]
    fn each_fault_is_found() {
        assert_fault("r0 = 1", 0, "past the end");
        assert_fault("r0 = 1\nif r0 == 0 goto -2", 1, "past the end");
        assert_fault("r10 += 8\nexit", 0, "writes r10");
        assert_fault("goto +1\nr0 = 1 ll\nexit", 0, "into the middle");
        assert_fault("goto +1\nexit", 0, "outside the function");
        assert_fault("gotol -2\nexit", 0, "outside the function");
        assert_eq!(check(&[]).expect_err("nothing ends it").0, 0);
        let unknown = [Instruction { opcode: 0xff, ..Default::default() }];
        let (slot, reason) = check(&unknown).expect_err("is unknown");
        assert_eq!((slot, reason.contains("opcode 0xff")), (0, true), "{reason}");
    }
}
