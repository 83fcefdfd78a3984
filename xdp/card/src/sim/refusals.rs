// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks in advance that the card can execute a program.

use crate::Layout;
use freeport_ebpf::helper_functions::name;
use freeport_ebpf::object::Program;
use freeport_vliw::image::Image;
use freeport_vliw::operation::{Argument, Constant, Operation};

/// Helpers of the card, by the kernel's numbers.
pub const HELPERS: [u32; 25] = [
    1, 2, 3, 5, 7, 8, 12, 23, 28, 42, 44, 51, 54, 65, 87, 88, 89, 93, 94, 125, 160, 188, 189, 190,
    208,
];

/// Helpers that call functions of the program. If the function is known, and the map if there is
/// one, the program has a function in their place:
/// [`with_local_helpers`](freeport_vliw::with_local_helpers).
const FOR_EACH: u32 = 164;
const LOOP: u32 = 181;

/// Checks all operations of a program.
///
/// # Errors
/// All operations that the card cannot execute, one a line.
pub fn check(program: &Program, image: &Image, layout: &Layout) -> Result<(), String> {
    let mut lines: Vec<String> = vec![];
    for slot in image.rows.iter().flat_map(|row| row.lanes.iter().flatten()) {
        if let Err(reason) = check_operation(&slot.operation, layout) {
            let at = slot.origins.first().copied().unwrap_or_default();
            lines.push(format!("program `{}`, instruction {at}: {reason}", program.name));
        }
    }
    // Copies of an instruction are reported once.
    lines.sort();
    lines.dedup();
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) }
}

fn check_operation(operation: &Operation, layout: &Layout) -> Result<(), String> {
    let map = match *operation {
        Operation::Call { helper: FOR_EACH, .. } => {
            return Err(
                "the card only iterates over arrays (bpf_for_each_map_elem), with a function \
                        that is known"
                    .into(),
            );
        }
        Operation::Call { helper: LOOP, .. } => {
            return Err("the card only repeats a function that is known (bpf_loop), at most six \
                        calls deep"
                .into());
        }
        Operation::Call { helper, .. } if !HELPERS.contains(&helper) => {
            let name = name(helper).unwrap_or("unknown");
            return Err(format!("the card does not support helper {helper} ({name})"));
        }
        Operation::Call { arguments: [Argument::Map(map), ..], .. } => usize::from(map),
        Operation::Constant { constant: Constant::Map(map), .. }
        | Operation::Constant { constant: Constant::MapValue { map, .. }, .. } => map as usize,
        _ => return Ok(()),
    };
    match layout.maps.get(map) {
        Some(Ok(_)) => Ok(()),
        Some(Err(reason)) => Err(reason.clone()),
        None => Err(format!("there is no map {map}")),
    }
}
