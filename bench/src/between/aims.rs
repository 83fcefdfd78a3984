// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the project wants to reach, told beside what was measured.

/// A line about what should not be exceeded.
pub fn at_most(value: f64, aim: f64, what: &str) -> String {
    told(value, value <= aim, &format!("at most {aim}"), what)
}

/// A line about what should be reached.
pub fn at_least(value: f64, aim: f64, what: &str) -> String {
    told(value, value >= aim, &format!("at least {aim}"), what)
}

fn told(value: f64, is_met: bool, aim: &str, what: &str) -> String {
    let word = if is_met { "met" } else { "missed" };
    format!("{value:.2} {what}; the aim is {aim}: {word}")
}
