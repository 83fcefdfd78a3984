// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles of devices and machines for plans. Those that are accepted have every parameter in its
//! range, and can be written again.

use freeport_plan_model::local::{self, Machine, Operation, Request};
use freeport_plan_model::parameters::Origin;
use freeport_plan_model::profile::{BUILT_IN, Profile, SECTIONS, with_values};

/// Reads the bytes as the text of a profile.
pub fn plan_profile(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(machine) = Machine::parse("machine.toml", text) {
        read_machine(&machine);
    }
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

fn read_machine(machine: &Machine) {
    let again = Machine::parse("machine.toml", &machine.text(&[])).expect("it was written");
    assert_eq!(again, *machine);
    for operation in Operation::ALL {
        let range = (machine.measured.range * local::KIB) as u64;
        let request = Request { operation, bytes: 8, batch: 1, range, threads: 3 };
        let estimate = machine.estimate(request).expect("every profile covers it");
        assert!(estimate.latency >= 0.0 && estimate.rate >= 0.0, "{estimate:?}");
    }
}

/// Profiles to begin with.
pub fn samples() -> Vec<Vec<u8>> {
    let mut samples = BUILT_IN.map(|(_, text)| text.as_bytes().to_vec()).to_vec();
    let mut machine = Machine::default();
    for (section, keys) in local::SECTIONS {
        for key in *keys {
            let name = format!("{section}.{}", key.name);
            machine.set_value(&name, key.least);
            machine.origins.insert(name, Origin { source: "a sample".into(), fitted: true });
        }
    }
    samples.push(machine.text(&["A sample."]).into_bytes());
    samples
}
