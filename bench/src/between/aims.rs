// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The project's aims, reported beside the measured values.

/// Reports a value that should not exceed its aim.
pub fn at_most(value: f64, aim: f64, what: &str) -> String {
    reported(value, value <= aim, &format!("at most {aim}"), what)
}

/// Reports a value that should reach its aim.
pub fn at_least(value: f64, aim: f64, what: &str) -> String {
    reported(value, value >= aim, &format!("at least {aim}"), what)
}

fn reported(value: f64, is_met: bool, aim: &str, what: &str) -> String {
    let word = if is_met { "met" } else { "missed" };
    format!("{value:.2} {what}; the aim is {aim}: {word}")
}
