// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values of a machine's profile that contradict each other.

use super::Machine;

/// Bytes of a KiB.
pub const KIB: f64 = 1024.0;

impl Machine {
    /// Returns the first parameter that contradicts another one, and the reason.
    pub(super) fn contradiction(&self) -> Option<(&'static str, String)> {
        let Self { cache, measured, together, .. } = self;
        if cache.near > cache.middle {
            let reason = format!("it is less than cache.near, {} KiB", cache.near);
            return Some(("cache.middle", reason));
        }
        if cache.middle > cache.last {
            let reason = format!("it is less than cache.middle, {} KiB", cache.middle);
            return Some(("cache.last", reason));
        }
        if measured.payload > measured.range * KIB {
            let reason = format!("it is more than measured.range, {} KiB", measured.range);
            return Some(("measured.payload", reason));
        }
        for (field, worth) in [
            ("together.near", together.near),
            ("together.last", together.last),
            ("together.memory", together.memory),
        ] {
            if worth > measured.cores {
                let reason = format!("it is more than measured.cores, {}", measured.cores);
                return Some((field, reason));
            }
        }
        None
    }
}
