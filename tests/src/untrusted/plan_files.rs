// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions, plans and placements. Plans and placements that are accepted are the same after they
//! were written and read again; functions have a plan or an error.

use freeport_plan::function::BUILT_IN;
use freeport_plan::placement::{Placement, PlanFile};
use freeport_plan::{Function, explain, plan};
use freeport_plan_model::profile::built_in;

/// Reads the bytes as the text of each kind of file.
pub fn plan_files(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(file) = PlanFile::parse("plan.toml", text) {
        assert_eq!(PlanFile::parse("plan.toml", &file.text()), Ok(file));
    }
    if let Ok(file) = Placement::parse("placement.toml", text) {
        assert_eq!(Placement::parse("placement.toml", &file.text()), Ok(file));
    }
    if let Ok(function) = Function::parse("function.toml", text) {
        let profile = built_in("bluefield2").expect("the default").expect("a profile");
        if let Ok(plan) = plan(&profile, &function) {
            assert!(!explain::explain(&plan).is_empty());
        }
    }
}

/// Files to begin with.
pub fn samples() -> Vec<Vec<u8>> {
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let mut samples: Vec<Vec<u8>> = BUILT_IN.map(|(_, text)| text.as_bytes().to_vec()).into();
    let mut placement = Placement::default();
    for (name, text) in BUILT_IN {
        let function = Function::parse(name, text).expect("a function");
        let file = PlanFile::of(&plan(&profile, &function).expect("a plan")).expect("a service");
        let text = file.text();
        placement.services.insert(file.service, file.settings(&text));
        samples.push(text.into_bytes());
    }
    samples.push(placement.text().into_bytes());
    samples
}
