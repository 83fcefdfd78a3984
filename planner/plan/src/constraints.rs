// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether an alternative keeps the constraints of a function.

use crate::cost::Cost;
use crate::figures::time;
use crate::function::{Alternative, Constraints, Memory};
use freeport_plan_model::Side;

/// Returns the reason if an alternative breaks a constraint, with both numbers.
pub fn broken(constraints: &Constraints, alternative: &Alternative, cost: &Cost) -> Option<String> {
    if constraints.host_cores == Some(0.0) && cost.host_time > 0.0 {
        let time = time(cost.host_time);
        return Some(format!("host-cores=0 allows no time of the host, and a call takes {time}"));
    }
    if let Some(reason) = too_large(constraints, &alternative.memory) {
        return Some(reason);
    }
    let latency = cost.latency / 1000.0;
    let most = constraints.latency_us.filter(|most| latency > *most)?;
    Some(format!("latency-us={most} is less than {latency:.2} us, its time on an idle machine"))
}

/// Returns the reason if a side has less memory than all of these need together.
pub fn too_large<'a>(
    constraints: &Constraints,
    memory: impl IntoIterator<Item = &'a Memory> + Clone,
) -> Option<String> {
    let sides = [
        ("host-memory", Side::Host, constraints.host_memory),
        ("soc-memory", Side::Soc, constraints.soc_memory),
    ];
    sides.into_iter().find_map(|(name, side, most)| {
        let needed = memory.clone().into_iter().filter(|memory| memory.side == side);
        let bytes = needed.fold(0, |sum: u64, memory| sum.saturating_add(memory.bytes));
        let most = most.filter(|most| bytes > *most)?;
        Some(format!("{name}={most} is less than {bytes} B, which it needs"))
    })
}
