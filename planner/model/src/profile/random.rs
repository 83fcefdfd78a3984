// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random devices, for tests of what has to hold on every device.

use super::{Profile, SECTIONS};
use fastrand::Rng;

/// Returns a device whose parameters are between half and twice those of another one, as far as
/// they contradict nothing. Its values have no origins.
pub fn random(base: &Profile, random: &mut Rng) -> Profile {
    let mut profile = Profile { origins: Default::default(), ..base.clone() };
    for (section, keys) in SECTIONS {
        for key in *keys {
            let name = format!("{section}.{}", key.name);
            let old = profile.value(&name).expect("the table has only parameters");
            let value = old * (0.5 + 1.5 * random.f64());
            let value = match key.unit {
                "count" => value.round().max(key.least),
                "B" if name.starts_with("pcie.mtu") => old,
                "B" => value.round(),
                _ => value,
            };
            profile.set_value(&name, value);
            if !profile.is_possible(&name) {
                profile.set_value(&name, old);
            }
        }
    }
    profile
}
