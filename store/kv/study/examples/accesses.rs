// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Prints the published figures, measured: accesses per operation against memory utilisation, for
//! inline thresholds and for rival tables, and against the index ratio.
//!
//! `cargo run --release -p freeport-kv-study --example accesses`

use freeport_kv_study::sweep::{Bench, Cost, Row};
use freeport_kv_study::workload::Sizes;

fn main() {
    let bench = Bench::default();
    let small = Sizes::weighted(&[5, 10, 15, 25, 40].map(|bytes| (bytes, 1.0))).expect("weights");
    print("Pairs of 5 to 40 B", &bench.thresholds(&small, &[0.3, 0.4, 0.5], &[0, 10, 15, 25, 40]));
    for (pair_bytes, utilisations) in [(10, &[0.3, 0.5, 0.6, 0.7][..]), (25, &[0.3, 0.5, 0.6])] {
        let pairs = Sizes::fixed(pair_bytes);
        print("One size", &bench.thresholds(&pairs, utilisations, &[0, 50]));
    }
    let trial = bench.trial(&Sizes::fixed(10), 0.5);
    print("Index ratio", &bench.index_ratios(&trial, 10, &[0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]));
    for (pair_bytes, utilisations) in [
        (10, &[0.1, 0.15, 0.18, 0.5][..]),
        (62, &[0.3, 0.5, 0.6, 0.7, 0.75]),
        (126, &[0.5, 0.7, 0.8, 0.85]),
        (254, &[0.5, 0.7, 0.8, 0.9]),
    ] {
        let pairs = Sizes::fixed(pair_bytes);
        print("Three tables", &bench.side_by_side(&pairs, utilisations, 50));
    }
}

fn print(title: &str, rows: &[Row]) {
    println!("{title}\n{:31} mean and variance of accesses", "");
    println!(
        "{:9} {:>4} {:>4} {:>3} {:>5} {:>12} {:>6} {:>12} {:>12} {:>6}",
        "table", "B", "util", "inl", "index", "get", "miss", "update", "insert", "delete"
    );
    for row in rows {
        let Row { table, pair_bytes, utilisation, inline_threshold, index_ratio, .. } = row;
        let head = format!(
            "{table:9} {pair_bytes:4} {utilisation:.2} {inline_threshold:3} {index_ratio:.3}"
        );
        match &row.costs {
            Ok(costs) => println!(
                "{head} {} {:6.2} {} {} {:6.2} {:5}",
                spread(&costs.get_hit),
                costs.get_miss.mean(),
                spread(&costs.update),
                spread(&costs.insert),
                costs.delete.mean(),
                costs.refused
            ),
            Err(reason) => println!("{head} {reason}"),
        }
    }
    println!();
}

fn spread(cost: &Cost) -> String {
    format!("{:6.2} {:5.2}", cost.mean(), cost.variance())
}
