// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of text: columns as wide as their longest cell.

/// Rows of cells; the first is the heading.
#[derive(Default)]
pub struct Table(Vec<Vec<String>>);

impl Table {
    /// A table with this heading.
    pub fn new(heading: &[&str]) -> Self {
        Self(vec![heading.iter().map(|&cell| cell.to_owned()).collect()])
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.0.push(cells);
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.0.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.0 {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            writeln!(formatter, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let mut table = Table::new(&["shard", "slots"]);
        table.row(vec!["a".to_owned(), "0-16383".to_owned()]);
        table.row(vec!["longer".to_owned(), String::new()]);
        assert_eq!(table.to_string(), "shard   slots\na       0-16383\nlonger\n");
    }
}
