// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Jumps: for each row that is a target, a vertical line on the right side joins all jumps to it.
//! Lines that span the same rows have separate tracks, short ones inside.

use super::{BOX_HEIGHT, Places};
use crate::image::Image;
use crate::operation::Target;
use freeport_svg::Drawing;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::RangeInclusive;

/// Colours of adjacent lines.
const COLOURS: [&str; 4] = ["#b3412e", "#41566b", "#3c7a4b", "#6b4a9c"];
/// Distance of adjacent lines.
const TRACK: f64 = 9.0;

/// All jumps except those to the next row.
pub struct Jumps {
    lines: Vec<Line>,
    lanes: usize,
}

/// Jumps to one row.
struct Line {
    target: usize,
    /// Rows and lanes of jumps.
    sources: Vec<(usize, usize)>,
    /// Number of tracks between it and the rows.
    track: usize,
}

impl Jumps {
    /// Collects the jumps of a schedule.
    pub fn of(image: &Image) -> Self {
        let mut by_target: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        for (number, row) in image.rows.iter().enumerate() {
            for (lane, slot) in row.slots() {
                match slot.operation.target() {
                    Some(Target::Row(target)) if target != number + 1 => {
                        by_target.entry(target).or_default().push((number, lane));
                    }
                    _ => {}
                }
            }
        }
        let line = |(target, sources)| Line { target, sources, track: 0 };
        let mut lines: Vec<Line> = by_target.into_iter().map(line).collect();
        lines.sort_by_key(|line| line.rows().count());
        for at in 0..lines.len() {
            let (before, line) = lines.split_at_mut(at);
            let line = &mut line[0];
            let meets = |other: &&Line| meet(&other.rows(), &line.rows());
            let taken: Vec<usize> = before.iter().filter(meets).map(|it| it.track).collect();
            line.track = (0..).find(|track| !taken.contains(track)).unwrap_or(0);
        }
        Self { lines, lanes: image.machine.lanes.into() }
    }

    /// Returns the total width of all lines.
    pub fn width(&self) -> f64 {
        self.lines.iter().map(|line| line.track + 2).max().unwrap_or(0) as f64 * TRACK
    }

    /// Draws the jumps to the right of `x`.
    pub fn draw(&self, out: &mut Drawing, places: &Places, x: f64) {
        for line in &self.lines {
            if let Some(y) = places.rows.get(line.target) {
                self.draw_line(out, places, line, (x, y + BOX_HEIGHT / 2.0));
            }
        }
    }

    fn draw_line(&self, out: &mut Drawing, places: &Places, line: &Line, (x, y): (f64, f64)) {
        let turn = x + (line.track + 2) as f64 * TRACK;
        let colour = COLOURS[line.track % COLOURS.len()];
        let (mut path, mut from) = (String::new(), vec![]);
        let (mut top, mut bottom) = (y, y);
        for (row, lane) in &line.sources {
            // Jumps of a row with different targets begin at different heights.
            let start =
                places.rows[*row] + BOX_HEIGHT * (*lane + 1) as f64 / (self.lanes + 1) as f64;
            let _ = write!(path, "M{x:.1} {start:.1}H{turn:.1}");
            (top, bottom) = (top.min(start), bottom.max(start));
            from.push(row.to_string());
        }
        let _ = write!(path, "M{turn:.1} {top:.1}V{bottom:.1}M{turn:.1} {y:.1}H{:.1}", x + 8.0);
        out.open("g", &[]);
        let title = format!("from row {} to row {}", from.join(", "), line.target);
        out.text("title", &[], &title);
        out.element("path", &[("class", &"jump"), ("stroke", &colour), ("d", &path)]);
        let tip = format!("M{x:.1} {y:.1}l8 -4v8z");
        out.element("path", &[("fill", &colour), ("d", &tip)]);
        out.close("g");
    }
}

impl Line {
    /// Returns the rows that it spans.
    fn rows(&self) -> RangeInclusive<usize> {
        let rows = || self.sources.iter().map(|(row, _)| *row).chain([self.target]);
        rows().min().unwrap_or(0)..=rows().max().unwrap_or(0)
    }
}

fn meet(one: &RangeInclusive<usize>, other: &RangeInclusive<usize>) -> bool {
    one.start() <= other.end() && other.start() <= one.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Row, Slot};
    use crate::machine::Machine;
    use crate::operation::Operation;

    /// Creates an image of jumps to these rows, one jump a row.
    fn jumping(targets: &[usize]) -> Image {
        let row = |target: &usize| {
            let operation = Operation::Goto(Target::Row(*target));
            Row { lanes: vec![Some(Slot { operation, origins: vec![0] }), None] }
        };
        let rows = targets.iter().map(row).collect();
        Image { machine: Machine { lanes: 2 }, rows, ..Image::default() }
    }

    #[test]
    fn lines_beside_the_same_rows_have_tracks_of_their_own() {
        // Rows 0 and 1 jump to 5, 2 to 4, 3 only to the next one, and 5 back to 0.
        let jumps = Jumps::of(&jumping(&[5, 5, 4, 4, 5, 0]));
        let reported = jumps.lines.iter().map(|line| (line.target, line.sources.len(), line.track));
        assert_eq!(reported.collect::<Vec<_>>(), [(4, 1, 0), (0, 1, 1), (5, 2, 2)]);
        let apart = Jumps::of(&jumping(&[2, 2, 3, 5, 5]));
        assert!(apart.lines.iter().all(|line| line.track == 0));
    }

    #[test]
    fn a_line_says_where_it_comes_from() {
        let image = jumping(&[2, 1, 0]);
        let mut out = Drawing::new(&[]);
        Jumps::of(&image).draw(&mut out, &Places::of(&image, 0.0), 100.0);
        let out = out.finish();
        assert!(out.contains("<title>from row 0 to row 2</title>"), "{out}");
        assert!(out.contains("<title>from row 2 to row 0</title>"), "{out}");
        assert!(out.contains("<title>from row 1 to row 1</title>"), "{out}");
    }
}
