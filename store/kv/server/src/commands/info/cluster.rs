// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Section of `INFO` on the cluster.

use super::Lines;
use crate::worker::Core;

pub(super) fn cluster(core: &Core, lines: &mut Lines) {
    lines.add("cluster_enabled", u8::from(core.shared.cluster.is_some()));
}
