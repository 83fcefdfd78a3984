// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of plans.

mod explanations;
mod functions;
mod placements;
mod plans;
mod random;
mod rules;
mod switches;

use freeport_plan::{Alternative, Function, function};
use freeport_plan_model::profile::{Profile, built_in};

fn profile(name: &str) -> Profile {
    built_in(name).expect("it is built in").expect("a profile")
}

fn function(name: &str) -> Function {
    function::built_in(name).expect("it is built in").expect("a function")
}

/// Returns an alternative of a function after compression.
fn alternative(function: &Function, name: &str) -> Alternative {
    let found = function.resolved().into_iter().find(|alternative| alternative.name == name);
    found.expect("the function has it")
}
