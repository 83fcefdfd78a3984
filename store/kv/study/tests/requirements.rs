// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The engine's accesses per operation, as required and as the model expects.

use freeport_kv_study::access::{Cause, Expected, Layout, Store, largest_index_ratio};
use freeport_kv_study::sweep::{Bench, Costs, Row, Trial};
use freeport_kv_study::tuner::{self, Candidate, Demand, Work};
use freeport_kv_study::workload::Sizes;
use freeport_testbed::usual_or_long;

fn bench() -> Bench {
    let (memory_bytes, operations) = usual_or_long((1 << 20, 2500), (4 << 20, 20_000));
    Bench { memory_bytes, operations, ..Bench::default() }
}

fn costs(row: Row) -> Costs {
    row.costs.unwrap_or_else(|reason| panic!("{} B: {reason}", row.pair_bytes))
}

#[test]
fn small_pairs_cost_one_access_to_get_and_two_to_put() {
    let costs = costs(bench().engine(&bench().trial(&Sizes::fixed(10), 0.5), 10));
    assert!(costs.get_hit.mean() <= 1.15, "GET {}", costs.get_hit.mean());
    assert!(costs.update.mean() <= 2.2, "PUT {}", costs.update.mean());
    assert_eq!(costs.get_hit.mean_of(Cause::Data), 0.0);
}

#[test]
fn pairs_in_blocks_cost_one_access_more() {
    for pair_bytes in [62, 126, 254] {
        let costs = costs(bench().engine(&bench().trial(&Sizes::fixed(pair_bytes), 0.5), 50));
        let [get, put] = [costs.get_hit, costs.update].map(|cost| cost.mean());
        assert!((2.0..=2.1).contains(&get), "{pair_bytes} B: GET {get}");
        assert!((3.0..=3.2).contains(&put), "{pair_bytes} B: PUT {put}");
    }
}

#[test]
fn accesses_are_those_of_the_model() {
    for (pair_bytes, inline_threshold) in [(10, 10), (25, 25), (50, 50), (30, 0), (62, 50)] {
        for utilisation in [0.3, 0.5, 0.6, 0.7] {
            let pairs = Sizes::fixed(pair_bytes);
            let store = Store { pairs: pairs.clone(), utilisation, inline_threshold };
            let Some(largest) = largest_index_ratio(&Layout::ENGINE, &store) else {
                continue;
            };
            // Deletions leave gaps, so that the largest index would leave no room for inserts.
            let ratio = largest * 0.98;
            let expected = Expected::new(&Layout::ENGINE, &store, ratio).expect("pairs fit");
            let trial = bench().trial(&pairs, utilisation);
            let costs = costs(bench().engine_with(&trial, inline_threshold, ratio));
            for (name, cost, model) in [
                ("GET hit", costs.get_hit, expected.get_hit()),
                ("GET miss", costs.get_miss, expected.get_miss()),
                ("update", costs.update, expected.update()),
                ("delete", costs.delete, expected.delete()),
            ] {
                let place = format!("{name} of {pair_bytes} B at {utilisation}, index {ratio:.3}");
                let found = cost.mean();
                assert!((found / model - 1.0).abs() < 0.05, "{place}: {found}, model {model}");
            }
            // Inserts follow deletions, and often find the gaps that those left.
            let (found, model) = (costs.insert.mean(), expected.insert());
            let place = format!("insert of {pair_bytes} B at {utilisation}");
            assert!((found / model - 1.0).abs() < 0.1, "{place}: {found}, model {model}");
        }
    }
}

#[test]
fn utilisation_of_small_pairs_exceeds_that_of_the_rivals() {
    let rows = bench().side_by_side(&Sizes::fixed(10), &[0.15, 0.56], 10);
    let names: Vec<_> = rows.iter().map(|row| row.table).collect();
    assert_eq!(names, ["engine", "cuckoo", "hopscotch", "farm"].repeat(2));
    let is_filled: Vec<_> = rows.iter().map(|row| row.costs.is_ok()).collect();
    assert_eq!(is_filled, [true, true, true, true, true, false, false, false]);
}

#[test]
fn one_in_512_secondary_hashes_matches_by_chance() {
    // Few buckets with long chains, so that a GET of an absent key compares many slots.
    let (ratio, pair_bytes, utilisation) = (0.02, 62, 0.5);
    let trial =
        Trial { operations: 20_000, ..bench().trial(&Sizes::fixed(pair_bytes), utilisation) };
    let costs = costs(Bench { memory_bytes: 2 << 20, ..bench() }.engine_with(&trial, 0, ratio));
    let pairs_of_bucket = utilisation * 64.0 / (pair_bytes as f64 * ratio);
    let rate = costs.get_miss.mean_of(Cause::Data) / pairs_of_bucket;
    assert!((rate * 512.0 - 1.0).abs() < 0.1, "{} of 512 match", rate * 512.0);
}

#[test]
fn an_index_that_grows_costs_as_much_as_a_fixed_one_of_its_size() {
    let trial = bench().trial(&Sizes::fixed(10), 0.4);
    let growing = bench().growing_engine(&trial, 10, 0.7);
    let fixed = bench().engine_with(&trial, 10, growing.index_ratio);
    let [growing, fixed] = [growing, fixed].map(|row| costs(row).get_hit.mean());
    // Buckets that were not divided yet have twice as many pairs as the others.
    assert!((1.0..1.1).contains(&(growing / fixed)), "{growing} growing, {fixed} fixed");
}

#[test]
fn a_larger_index_leaves_less_room() {
    let reach = |pair_bytes| {
        let pairs = Sizes::fixed(pair_bytes);
        bench().largest_utilisations(&pairs, 10, &[0.1, 0.3, 0.6, 0.9]).into_iter()
    };
    for pair_bytes in [10, 62] {
        let utilisations: Vec<_> = reach(pair_bytes).map(|reach| reach.utilisation).collect();
        assert!(utilisations.is_sorted_by(|more, less| more > less), "{utilisations:?}");
        // Memory without the index is full of blocks.
        let blocks = |ratio: f64| (1.0 - ratio) * pair_bytes as f64 / 64.0;
        assert!(pair_bytes == 10 || (utilisations[1] / blocks(0.3) - 1.0).abs() < 0.02);
    }
    assert!(reach(10).any(|reach| reach.utilisation > 0.7), "chains use all slots");
}

#[test]
fn inserts_into_nearly_full_rivals_vary() {
    let rows = bench().side_by_side(&Sizes::fixed(126), &[0.5, 0.85], 50);
    let means: Vec<_> = rows.iter().map(|row| costs(row.clone()).get_hit.mean()).collect();
    // Buckets are nearly empty: a read of the bucket, and a read of the block.
    assert!(means[..4].iter().all(|mean| (2.0..2.02).contains(mean)), "{means:?}");
    let [engine, cuckoo, hopscotch, farm] = [4, 5, 6, 7].map(|at| costs(rows[at].clone()));
    assert!(engine.insert.variance() < 0.1, "{}", engine.insert.variance());
    for rival in [&cuckoo, &hopscotch, &farm] {
        assert!(rival.insert.variance() > 1.0, "{}", rival.insert.variance());
    }
    // Two reads of buckets and one of the value bound the cuckoo table's GET.
    assert!(cuckoo.get_hit.largest() == 3 && cuckoo.get_miss.largest() == 2);
    assert!(farm.get_hit.mean() < hopscotch.get_hit.mean());
}

#[test]
fn the_tuner_finds_the_fewest_accesses() {
    let mixes: [&[(usize, f64)]; 3] = [
        &[(10, 1.0)],
        &[(8, 1.0), (16, 1.0), (24, 1.0), (40, 1.0)],
        &[(12, 3.0), (45, 1.0), (200, 0.2)],
    ];
    let bench = Bench { operations: 1500, ..bench() };
    for (pairs, utilisation, gets) in
        [(mixes[0], 0.5, 0.95), (mixes[1], 0.4, 0.5), (mixes[1], 0.55, 0.95), (mixes[2], 0.5, 0.5)]
    {
        let pairs = Sizes::weighted(pairs).expect("valid weights");
        let demand = Demand { pairs, utilisation, work: Work::gets(gets) };
        let plan = tuner::plan(&Layout::ENGINE, &demand).expect("pairs fit");
        let measured = tuner::measure(&bench, &demand).expect("pairs fit");
        let place = format!("{demand:?}\n{plan}\n{measured}");
        let chosen = tuner::measure_candidate(&bench, &demand, &plan.best).expect("pairs fit");
        assert!(chosen <= measured.best.accesses * 1.02, "{chosen}: {place}");
        for (model, found) in plan.candidates.iter().zip(&measured.candidates) {
            if model.index_ratio.is_some() {
                assert!((model.accesses / found.accesses - 1.0).abs() < 0.05, "{place}");
            }
        }
        // Smaller indexes are no better.
        for tenth in 1..10 {
            let index_ratio = Some(f64::from(tenth) / 10.0);
            let other = Candidate { index_ratio, ..plan.best };
            if let Some(accesses) = tuner::measure_candidate(&bench, &demand, &other) {
                assert!(chosen <= accesses * 1.02, "ratio {index_ratio:?}: {accesses}, {place}");
            }
        }
    }
}
