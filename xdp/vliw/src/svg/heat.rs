// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Heat of rows: a band behind each row, darker the more of all cycles it takes, with its cycles
//! per packet on the left.

use super::{BOX_HEIGHT, MARGIN, Places, text};
use freeport_svg::Drawing;

/// Width for the cycles of a row on its left.
pub const WIDTH: f64 = 64.0;

/// Cycles per packet that rows take.
pub struct Heat {
    /// By row; missing rows take none.
    pub rows: Vec<f64>,
    /// All cycles of a packet, including those that belong to no row.
    pub all: f64,
}

impl Heat {
    /// Returns the fraction of all cycles that a row takes.
    fn share(&self, row: usize) -> f64 {
        let cycles = self.rows.get(row).copied().unwrap_or(0.0);
        if self.all > 0.0 { cycles / self.all } else { 0.0 }
    }

    /// Returns the fraction of the hottest row.
    fn most(&self) -> f64 {
        (0..self.rows.len()).map(|row| self.share(row)).fold(0.0, f64::max)
    }

    /// Draws the bands, which end at `end`, where jumps begin.
    pub(super) fn draw(&self, out: &mut Drawing, places: &Places, end: f64) {
        text(out, "dim", "start", (MARGIN, super::TOP - 8.0), "cycles");
        let most = self.most();
        for (row, y) in places.rows.iter().enumerate() {
            let share = self.share(row);
            if share == 0.0 {
                continue;
            }
            let (cycles, percent) = (self.rows[row], 100.0 * share);
            let (x, width) = (places.left - 4.0, end - places.left);
            let opacity = 0.08 + 0.62 * share / most;
            let top = y - 1.5;
            let height = BOX_HEIGHT + 3.0;
            out.open("g", &[("class", &"heat")]);
            let share = format!("row {row}: {cycles:.2} cycles per packet, {percent:.1} %");
            out.text("title", &[], &share);
            let band = format!("M{x} {top}h{width}v{height}h-{width}z");
            let opacity = format!("{opacity:.3}");
            out.element("path", &[("fill", &"#d7301f"), ("fill-opacity", &opacity), ("d", &band)]);
            out.close("g");
            let at = (MARGIN + WIDTH - 22.0, y + 14.0);
            text(out, "", "end", at, &format!("{cycles:.1}"));
        }
    }
}
