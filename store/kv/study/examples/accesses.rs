// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The published figures of accesses per operation, measured (KV-Direct, hash table), and plans for
//! some mixes of sizes, as text on standard output.
//!
//! `cargo run --release -p freeport-kv-study --example accesses`

use std::io::{self, Write};

use freeport_kv_study::access::{Layout, Store, largest_index_ratio};
use freeport_kv_study::metered::Metered;
use freeport_kv_study::sweep::{Bench, Row, Text, run_mix};
use freeport_kv_study::tuner::{self, Demand, Work};
use freeport_kv_study::workload::{Mix, Operations, Sizes};

/// Several sizes, each as frequent as the others.
fn sizes(bytes: &[usize]) -> Sizes {
    let weights: Vec<_> = bytes.iter().map(|&bytes| (bytes, 1.0)).collect();
    Sizes::weighted(&weights).expect("the weights are positive")
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut figure = |title: &str, rows: &[Row]| writeln!(out, "{title}\n\n{}", Text(rows));
    let bench = Bench::default();
    let small = sizes(&[5, 10, 15, 25, 40]);
    let utilisations = [0.2, 0.3, 0.4, 0.5, 0.6];
    let rows = bench.thresholds(&small, &utilisations, &[0, 10, 15, 25, 40]);
    figure("Inline thresholds, pairs of 5 to 40 B", &rows)?;
    let trial = bench.trial(&Sizes::fixed(10), 0.5);
    let rows = bench.index_ratios(&trial, 10, &[0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]);
    figure("Index ratio, pairs of 10 B", &rows)?;
    writeln!(out, "Largest utilisation, pairs of 10 B\n\nindex  utilisation")?;
    let pairs = Sizes::fixed(10);
    for reach in bench.largest_utilisations(&pairs, 10, &[0.1, 0.3, 0.5, 0.7, 0.9]) {
        writeln!(out, "{:5.2}  {:11.3}", reach.index_ratio, reach.utilisation)?;
    }
    writeln!(out)?;
    let mut figure = |title: &str, rows: &[Row]| writeln!(out, "{title}\n\n{}", Text(rows));
    for (pair_bytes, utilisations) in [
        (10, &[0.1, 0.15, 0.18, 0.3, 0.5, 0.6, 0.7][..]),
        (62, &[0.3, 0.5, 0.6, 0.7, 0.75]),
        (126, &[0.5, 0.7, 0.8, 0.85]),
        (254, &[0.5, 0.7, 0.8, 0.9]),
    ] {
        let rows = bench.side_by_side(&Sizes::fixed(pair_bytes), utilisations, 50);
        figure(&format!("Three tables, pairs of {pair_bytes} B"), &rows)?;
    }
    writeln!(out, "YCSB mixes, accesses of all operations, half of memory used\n")?;
    for pair_bytes in [5, 10, 15, 62, 254] {
        let trial = bench.trial(&Sizes::fixed(pair_bytes), 0.5);
        let store = Store { pairs: trial.pairs.clone(), utilisation: 0.56, inline_threshold: 50 };
        let ratio = largest_index_ratio(&Layout::ENGINE, &store).expect("the pairs fit");
        write!(out, "{pair_bytes:3} B")?;
        for mix in Mix::ALL {
            let mut table = Metered::new(bench.memory_bytes, ratio, 50, 1).expect("valid options");
            let pairs = trial.fill(&mut table).expect("the pairs fit");
            let mut operations = Operations::new(mix, pairs, 1);
            match run_mix(&trial, &mut table, &mut operations, 10_000) {
                Ok(costs) => write!(out, "  {mix:?} {:5.2}", costs.all.mean())?,
                Err(reason) => write!(out, "  {mix:?} {reason}")?,
            }
        }
        writeln!(out)?;
    }
    writeln!(out)?;
    for utilisation in [0.3, 0.5, 0.6] {
        let demand = Demand { pairs: small.clone(), utilisation, work: Work::gets(0.95) };
        let fitting = "pairs fit without any inline";
        let plans = [
            ("expected", tuner::plan(&Layout::ENGINE, &demand).expect(fitting)),
            ("measured", tuner::measure(&bench, &demand).expect(fitting)),
        ];
        for (kind, plan) in plans {
            writeln!(out, "Plan at a utilisation of {utilisation}, {kind}\n\n{plan}\n")?;
        }
    }
    Ok(())
}
