// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Section of `INFO` on the cluster.

use super::Lines;
use crate::worker::Core;

pub(super) fn cluster(core: &Core, lines: &mut Lines) {
    lines.add("cluster_enabled", u8::from(core.shared.cluster.is_some()));
    let moves = core.shared.moving.iter().flat_map(|moving| moving.progress.lines());
    moves.for_each(|(name, value)| lines.add(&name, value));
}
