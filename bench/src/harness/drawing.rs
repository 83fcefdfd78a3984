// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The page that all drawings of results share: a white background, a title above, and below it
//! where and when the results were measured.

use super::machine::Machine;
pub use freeport_svg::{Drawing, Tenths};

/// Begins a page with its title.
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

/// Ends a page with a line about the machine, at this height.
pub fn finish(mut drawing: Drawing, y: f64, machine: &Machine) -> String {
    let foot = format!("{}; commit {}; {}", machine.machine, machine.commit, machine.date);
    text(&mut drawing, (16.0, y), "start", "normal", &foot);
    drawing.finish()
}

/// Writes a text; `anchor` names the end of it that lies at the point.
pub fn text(drawing: &mut Drawing, (x, y): (f64, f64), anchor: &str, weight: &str, text: &str) {
    drawing.text(
        "text",
        &[("x", &Tenths(x)), ("y", &Tenths(y)), ("text-anchor", &anchor), ("font-weight", &weight)],
        text,
    );
}
