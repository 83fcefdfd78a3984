// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The layout of drawings of results: a white page, a title at the top, and at the bottom where the
//! results come from.

use crate::{Drawing, Tenths};

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

/// Ends a page with a line about the origin of the results at height `y`.
pub fn finish(mut drawing: Drawing, y: f64, origin: &str) -> String {
    text(&mut drawing, (16.0, y), "start", "normal", origin);
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
