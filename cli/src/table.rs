// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Text tables with aligned columns.

use std::fmt::Write;

/// A table.
pub struct Table<const COLUMNS: usize> {
    lines: Vec<Line<COLUMNS>>,
    /// Maximum number of characters of a cell.
    widest: usize,
}

enum Line<const COLUMNS: usize> {
    Cells([String; COLUMNS]),
    /// A line across all columns.
    Heading(String),
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    /// Makes a table with these column names; longer cells than `widest` are cut.
    pub fn new(heads: [&str; COLUMNS], widest: usize) -> Self {
        Self { lines: vec![Line::Cells(heads.map(str::to_owned))], widest }
    }

    /// Adds a line of cells.
    pub fn add(&mut self, cells: [String; COLUMNS]) {
        self.lines.push(Line::Cells(cells.map(|cell| cut(cell, self.widest))));
    }

    /// Adds a line across all columns.
    pub fn head(&mut self, text: String) {
        self.lines.push(Line::Heading(text));
    }

    /// The table as text, without empty columns; columns with `is_right` are aligned to the right.
    pub fn text(&self, between: &str, is_right: [bool; COLUMNS]) -> String {
        let mut widths = [0; COLUMNS];
        for line in &self.lines {
            let Line::Cells(cells) = line else { continue };
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut out = String::new();
        for line in &self.lines {
            match line {
                Line::Heading(text) => out += text,
                Line::Cells(cells) => {
                    let aligned = cells.iter().zip(widths).zip(is_right);
                    let aligned = aligned.filter(|((_, width), _)| *width > 0);
                    let aligned: Vec<String> = aligned
                        .map(|((cell, width), is_right)| match is_right {
                            true => format!("{cell:>width$}"),
                            false => format!("{cell:<width$}"),
                        })
                        .collect();
                    let _ = write!(out, "{}", aligned.join(between).trim_end());
                }
            }
            out.push('\n');
        }
        out
    }
}

/// The text, cut if it is too long.
fn cut(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other_and_long_cells_are_cut() {
        let mut table = Table::new(["a", "number"], 6);
        table.add(["längere Zeile".into(), "7".into()]);
        table.head("in between, however long".into());
        table.add(["b".into(), "10".into()]);
        let text = table.text(" | ", [false, true]);
        let expected = "a      | number\nlänge… |      7\nin between, however long\n\
            b      |     10\n";
        assert_eq!(text, expected);
    }
}
