// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The page layout of all drawings of results: a white background, a title at the top, and at the
//! bottom the machine, commit and date of the measurement.

use super::machine::Machine;
pub use freeport_svg::{Drawing, Tenths};

/// Begins a page of this size with its title.
pub fn page((width, height): (f64, f64), font_size: u32, title: &str) -> Drawing {
    let view = format!("0 0 {width} {height}");
    let mut drawing = Drawing::new(&[
        ("viewBox", &view),
        ("width", &width),
        ("height", &height),
        ("font-family", &"sans-serif"),
        ("font-size", &font_size),
    ]);
    drawing.background("#ffffff");
    text(&mut drawing, (16.0, 26.0), "start", "bold", title);
    drawing
}

/// Ends a page with a line about the machine at height `y`.
pub fn finish(mut drawing: Drawing, y: f64, machine: &Machine) -> String {
    let foot = format!("{}; commit {}; {}", machine.machine, machine.commit, machine.date);
    text(&mut drawing, (16.0, y), "start", "normal", &foot);
    drawing.finish()
}

/// Writes a text; `anchor` says which end of it lies at the point.
pub fn text(drawing: &mut Drawing, (x, y): (f64, f64), anchor: &str, weight: &str, text: &str) {
    drawing.text(
        "text",
        &[("x", &Tenths(x)), ("y", &Tenths(y)), ("text-anchor", &anchor), ("font-weight", &weight)],
        text,
    );
}
