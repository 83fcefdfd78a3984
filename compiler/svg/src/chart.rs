// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Line charts as SVG, several panels in one drawing, with the same subjects in the same colours.

use crate::Drawing;
use crate::page::{finish, page, text};

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
const HEAD: f64 = 78.0;
const FOOT: f64 = 34.0;
const COLOURS: [&str; 8] =
    ["#1c6dd0", "#d9822b", "#8a8f98", "#3f9e6e", "#b04ec4", "#c23b3b", "#6b5b3e", "#00a0a8"];

/// A range of values and its scale.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// Name of the quantity.
    pub label: String,
    /// Lowest and highest value.
    pub range: (f64, f64),
    /// Whether the scale is logarithmic; then the range lies above 0.
    pub is_logarithmic: bool,
}

/// One chart of a drawing.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// Title above the chart.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Points of each subject, in the order of the subjects' names.
    pub lines: Vec<Vec<(f64, f64)>>,
}

/// Draws panels in `columns` columns, with a legend of the subjects above them, and below them a
/// line about the origin of the results.
pub fn svg(
    title: &str,
    subjects: &[&str],
    panels: &[Panel],
    columns: usize,
    origin: &str,
) -> String {
    let rows = panels.len().div_ceil(columns.max(1));
    let width = WIDTH * columns as f64;
    let height = HEAD + rows as f64 * HEIGHT + FOOT;
    let mut out = page((width, height), 12, title);
    draw_legend(&mut out, subjects);
    for (at, panel) in panels.iter().enumerate() {
        let x = (at % columns) as f64 * WIDTH + LEFT;
        let y = HEAD + (at / columns) as f64 * HEIGHT + TOP;
        panel.draw(&mut out, x, y);
    }
    finish(out, height - 12.0, origin)
}

fn draw_legend(out: &mut Drawing, subjects: &[&str]) {
    let mut x = 16.0;
    for (at, name) in subjects.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let line = format!("M{x:.1} 48h18");
        out.element("path", &[("d", &line), ("stroke", &colour), ("stroke-width", &3)]);
        text(out, (x + 23.0, 52.0), "start", "normal", name);
        x += 44.0 + 6.6 * name.chars().count() as f64;
    }
}

impl Panel {
    fn draw(&self, out: &mut Drawing, left: f64, top: f64) {
        let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        text(out, (left, top - 10.0), "start", "bold", &self.title);
        let bottom = top + height;
        for (value, label) in self.x.ticks() {
            let x = left + self.x.place(value) * width;
            draw_grid_line(out, &format!("M{x:.1} {top:.1}V{bottom:.1}"));
            text(out, (x, bottom + 16.0), "middle", "normal", &label);
        }
        for (value, label) in self.y.ticks() {
            let y = bottom - self.y.place(value) * height;
            draw_grid_line(out, &format!("M{left:.1} {y:.1}h{width:.1}"));
            text(out, (left - 6.0, y + 4.0), "end", "normal", &label);
        }
        let middle = left + width / 2.0;
        text(out, (middle, bottom + 34.0), "middle", "normal", &self.x.label);
        text(out, (left + width, top - 10.0), "end", "normal", &self.y.label);
        for (at, line) in self.lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
            let mut path = String::new();
            for (x, y) in line {
                let x = left + self.x.place(*x) * width;
                let y = bottom - self.y.place(*y) * height;
                let step = if path.is_empty() { 'M' } else { 'L' };
                path += &format!("{step}{x:.1} {y:.1}");
            }
            let colour = COLOURS[at % COLOURS.len()];
            out.element(
                "path",
                &[("d", &path), ("fill", &"none"), ("stroke", &colour), ("stroke-width", &2)],
            );
        }
    }
}

fn draw_grid_line(out: &mut Drawing, line: &str) {
    out.element("path", &[("d", &line), ("stroke", &"#e4e6ea")]);
}

impl Axis {
    /// Returns a logarithmic axis between powers of ten that enclose all values above 0.
    pub fn logarithmic(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let ends = values.filter(|it| *it > 0.0).fold(None, |ends: Option<(f64, f64)>, it| {
            Some(ends.map_or((it, it), |(low, high)| (low.min(it), high.max(it))))
        });
        let (low, high) = ends.unwrap_or((1.0, 10.0));
        let low = low.log10().floor();
        let high = high.log10().ceil().max(low + 1.0);
        let range = (10_f64.powf(low), 10_f64.powf(high));
        Self { label: label.into(), range, is_logarithmic: true }
    }

    /// Returns the position of a value on the axis, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        let place = if self.is_logarithmic {
            (value / low).log10() / (high / low).log10()
        } else {
            (value - low) / (high - low)
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        let (low, high) = self.range;
        if !self.is_logarithmic {
            let values = (0..=4).map(|at| low + (high - low) * f64::from(at) / 4.0);
            return values.map(|value| (value, value.to_string())).collect();
        }
        let powers = low.log10().round() as i32..=high.log10().round() as i32;
        powers.map(|power| (10_f64.powi(power), power_of_ten(power))).collect()
    }
}

fn power_of_ten(power: i32) -> String {
    match power {
        -3..=0 => format!("{:.*}", power.unsigned_abs() as usize, 10_f64.powi(power)),
        1..=4 => format!("{:.0}", 10_f64.powi(power)),
        _ => format!("1e{power}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_power_of_ten_takes_the_same_room() {
        let axis = Axis::logarithmic("x", [0.02, 300.0, 0.0].into_iter());
        assert!((axis.range.0 / 0.01 - 1.0).abs() < 1e-9);
        assert!((axis.range.1 / 1_000.0 - 1.0).abs() < 1e-9);
        assert!((axis.place(0.1) - 0.2).abs() < 1e-9 && (axis.place(10.0) - 0.6).abs() < 1e-9);
        assert_eq!((axis.place(0.0), axis.place(1e9)), (0.0, 1.0));
        let labels: Vec<String> = axis.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0.01", "0.1", "1", "10", "100", "1000"]);
    }

    #[test]
    fn every_subject_has_a_line_and_a_place_in_the_legend() {
        let axis = Axis { label: "l".into(), range: (0.0, 1.0), is_logarithmic: false };
        let lines = vec![vec![(0.0, 0.0), (1.0, 1.0)], vec![], vec![(0.5, 0.5)]];
        let panel = Panel { title: "a<b".into(), x: axis.clone(), y: axis, lines };
        let svg = svg("t", &["one", "two", "three"], &[panel.clone(), panel], 1, "of a model");
        assert_eq!(svg.matches("stroke-width=\"2\"").count(), 4);
        assert_eq!(svg.matches("stroke-width=\"3\"").count(), 3);
        assert!(svg.contains("a&lt;b") && svg.contains("of a model"));
        assert!(svg.contains(&format!("d=\"M{LEFT:.1} ")), "the first line begins at the left");
    }
}
