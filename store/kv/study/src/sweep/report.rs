// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows as text: a table to read, and comma-separated values to plot.

use std::fmt::{self, Write};

use super::{Cost, Costs, Row};
use crate::access::Cause;

/// The cost of one kind of operation, among all.
type CostOf = fn(&Costs) -> &Cost;

/// Kinds of operations, in the order of the columns.
const OPERATIONS: [(&str, CostOf); 5] = [
    ("get_hit", |costs| &costs.get_hit),
    ("get_miss", |costs| &costs.get_miss),
    ("update", |costs| &costs.update),
    ("insert", |costs| &costs.insert),
    ("delete", |costs| &costs.delete),
];

/// A table of rows: mean accesses of each kind of operation, and their variance.
pub struct Text<'a>(pub &'a [Row]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "table        B  util  inline  index")?;
        for (name, _) in OPERATIONS {
            write!(formatter, "  {name:>6} (var)")?;
        }
        writeln!(formatter)?;
        for row in self.0 {
            write!(
                formatter,
                "{:9} {:4.0}  {:.2}  {:6}  {:.3}",
                row.table, row.pair_bytes, row.utilisation, row.inline_threshold, row.index_ratio
            )?;
            match &row.costs {
                Ok(costs) => {
                    for (name, cost) in OPERATIONS {
                        let (width, cost) = (name.len().max(6), cost(costs));
                        write!(formatter, "  {:width$.2} {:5.2}", cost.mean(), cost.variance())?;
                    }
                    writeln!(formatter)?;
                }
                Err(reason) => writeln!(formatter, "  {reason}")?,
            }
        }
        Ok(())
    }
}

/// Comma-separated values with a line of names: mean, variance and largest number of accesses of
/// each kind of operation, and the mean for each cause and direction. A table that could
/// not be filled has empty fields.
pub fn csv(rows: &[Row]) -> String {
    let mut text =
        String::from("table,pair_bytes,utilisation,inline_threshold,index_ratio,refused");
    for (name, _) in OPERATIONS {
        let _ = write!(text, ",{name}_mean,{name}_variance,{name}_largest");
        for cause in Cause::ALL {
            let cause = cause.name();
            let _ = write!(text, ",{name}_{cause}_reads,{name}_{cause}_writes");
        }
    }
    text.push('\n');
    for row in rows {
        let Row { table, pair_bytes, utilisation, inline_threshold, index_ratio, costs } = row;
        let _ = write!(text, "{table},{pair_bytes},{utilisation},{inline_threshold},");
        match costs {
            Ok(costs) => {
                let _ = write!(text, "{index_ratio},{}", costs.refused);
                OPERATIONS.iter().for_each(|(_, cost)| write_cost(&mut text, cost(costs)));
            }
            Err(_) => {
                let columns = OPERATIONS.len() * (3 + 2 * Cause::ALL.len());
                text.push_str(&",".repeat(1 + columns));
            }
        }
        text.push('\n');
    }
    text
}

// Writing into a string does not fail.
fn write_cost(text: &mut String, cost: &Cost) {
    let _ = write!(text, ",{:.4},{:.4},{}", cost.mean(), cost.variance(), cost.largest());
    let operations = cost.operations().max(1) as f64;
    for cause in Cause::ALL {
        let [reads, writes] = [cost.accesses().reads(cause), cost.accesses().writes(cause)];
        let _ = write!(text, ",{:.4},{:.4}", reads as f64 / operations, writes as f64 / operations);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Accesses, Direction};
    use crate::table::Refused;

    fn rows() -> [Row; 2] {
        let mut accesses = Accesses::default();
        accesses.count_many(Cause::Chain, Direction::Write, 7);
        let mut costs = Costs::default();
        costs.delete.add(accesses);
        let row = Row {
            table: "engine",
            pair_bytes: 10.0,
            utilisation: 0.5,
            inline_threshold: 10,
            index_ratio: 0.25,
            costs: Ok(costs),
        };
        [row.clone(), Row { costs: Err(Refused::Displacement), ..row }]
    }

    #[test]
    fn values_have_a_name_each() {
        let text = csv(&rows());
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|fields| fields.len() == lines[0].len()), "{text}");
        let value = |name| lines[0].iter().position(|&field| field == name).map(|at| lines[1][at]);
        assert_eq!(value("delete_mean"), Some("7.0000"));
        assert_eq!(value("delete_chain_writes"), Some("7.0000"));
        assert_eq!(value("delete_chain_reads"), Some("0.0000"));
        assert_eq!(value("index_ratio"), Some("0.25"));
    }

    #[test]
    fn a_table_has_a_line_for_each_row() {
        let text = Text(&rows()).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0].len(), lines[1].len(), "{text}");
        assert!(lines[1].ends_with("  7.00  0.00"), "{text}");
        assert!(lines[2].contains("moving pairs"), "{text}");
    }
}
