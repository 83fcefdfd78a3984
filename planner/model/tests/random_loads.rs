// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random loads on random devices: no resource gives more than it has, and equal seeds give equal
//! results.

use crate::bounds::bluefield2;
use fastrand::Rng;
use freeport_plan_model::bounds::{limits, shares};
use freeport_plan_model::profile::{Profile, random};
use freeport_plan_model::{Load, Operation, Path, Request, simulate};
use std::collections::BTreeMap;

fn device(numbers: &mut Rng) -> Profile {
    random(&bluefield2(), numbers)
}

fn load(profile: &Profile, random: &mut Rng, paths: &[Path]) -> Load {
    let path = paths[random.usize(..paths.len())];
    let operations: Vec<Operation> =
        Operation::ALL.into_iter().filter(|operation| path.has(*operation)).collect();
    let operation = operations[random.usize(..operations.len())];
    let most = if operation == Operation::Send { 12 } else { 20 };
    let largest = 1 << random.u32(0..=most);
    let bytes = random.u64(..=largest);
    let batch = 1 << random.u32(0..8);
    let range = 1 << random.u32(10..34);
    let request = Request { batch, range, ..Request::new(path, operation, bytes) };
    let full = Load::full(profile, request);
    match random.u8(..3) {
        0 => Load { machines: 1, threads: random.u32(1..4), ..full },
        1 => full.offering(0.001 + random.f64()),
        _ => full,
    }
}

#[test]
fn nothing_exceeds_its_bound() {
    let mut random = Rng::with_seed(5);
    for number in 0..60 {
        let profile = device(&mut random);
        let paths = if random.bool() { &Path::ALL[..1] } else { &Path::ALL[1..] };
        let loads: Vec<Load> =
            (0..random.usize(1..4)).map(|_| load(&profile, &mut random, paths)).collect();
        let outcome = simulate(&profile, &loads, number).expect("operations that exist");
        let mut used = BTreeMap::<&str, f64>::new();
        for (load, flow) in loads.iter().zip(&outcome.flows) {
            let rate = flow.rate_from_start;
            for limit in limits(&profile, load) {
                assert!(rate <= limit.rate * 1.000_001, "{number}: {flow:?} {limit:?} {load:?}");
            }
            assert!(load.offered.is_none_or(|offered| flow.rate < 1.05 * offered), "{flow:?}");
            // At both ends of the measured time, parts of requests are counted whole.
            let lowest = limits(&profile, load)[0];
            let is_long = outcome.is_steady && flow.completed >= 2000;
            assert!(
                !is_long || flow.rate <= lowest.rate * 1.03,
                "{number}: {flow:?} {lowest:?} {load:?}"
            );
            // Ports and posting belong to each load's own requesters, banks to its own range.
            let own = |name: &str| name.starts_with("p") || name.starts_with("banks");
            for (name, share) in shares(&profile, load).into_iter().filter(|(name, _)| !own(name)) {
                *used.entry(name).or_default() += rate * share;
            }
        }
        for (name, share) in used {
            assert!(share <= 1.000_001, "{number}: {name} is used {share} times: {loads:?}");
        }
        for used in &outcome.uses {
            assert!((0.0..=1.000_001).contains(&used.share), "{number}: {used:?} {loads:?}");
        }
    }
}

#[test]
fn equal_seeds_give_equal_results() {
    let mut random = Rng::with_seed(6);
    for number in 0..20 {
        let profile = device(&mut random);
        let loads = [(); 2].map(|()| load(&profile, &mut random, &Path::ALL[1..]));
        let once = simulate(&profile, &loads, number);
        assert_eq!(once, simulate(&profile, &loads, number));
    }
}
