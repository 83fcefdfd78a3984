// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values that a jump passes to its target region.

use super::Live;
use crate::operation::FRAME_POINTER;
use crate::region::{Node, Value};
use std::collections::HashMap;

/// Returns the values, with their registers, that are live in the target region of a jump.
pub fn passed<'a>(
    node: &'a Node,
    live: &HashMap<usize, Live>,
) -> impl Iterator<Item = (u8, Value)> + use<'a> {
    let next = node.successor().and_then(|block| live.get(&block));
    let registers = next.map_or(0, |next| next.registers);
    let state = node.state.iter();
    state.flat_map(move |state| {
        let needed = (0..=FRAME_POINTER).filter(move |it| registers >> it & 1 == 1);
        needed.map(|register| (register, state[usize::from(register)]))
    })
}
