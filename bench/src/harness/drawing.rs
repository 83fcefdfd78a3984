// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pages of all drawings of measurements: at the bottom, they name the machine, commit and date.

use super::machine::Machine;
use freeport_svg::page;
pub use freeport_svg::page::{page, text};
pub use freeport_svg::{Drawing, Tenths};

/// Ends a page with a line about the machine at height `y`.
pub fn finish(drawing: Drawing, y: f64, machine: &Machine) -> String {
    page::finish(drawing, y, &machine.line())
}
