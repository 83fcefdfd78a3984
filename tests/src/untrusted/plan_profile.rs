// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles of devices for plans. Those that are accepted have every parameter in its range, and
//! can be written again.

use freeport_plan_model::profile::{Profile, SECTIONS, with_values};

/// Reads the bytes as the text of a profile.
pub fn plan_profile(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(profile) = Profile::parse("profile.toml", text) else { return };
    for (section, keys) in SECTIONS {
        for key in *keys {
            let name = format!("{section}.{}", key.name);
            assert!(profile.is_possible(&name), "{name}");
        }
    }
    let again = with_values("profile.toml", text, &[("switch.pass", profile.switch.pass)]);
    let again = Profile::parse("profile.toml", &again.expect("it was read before"));
    assert_eq!(again.expect("it was written").switch, profile.switch);
}

/// Profiles to begin with.
pub fn samples() -> Vec<Vec<u8>> {
    freeport_plan_model::profile::BUILT_IN.map(|(_, text)| text.as_bytes().to_vec()).into()
}
