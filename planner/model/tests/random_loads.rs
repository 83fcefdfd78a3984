// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random loads on random devices: no resource gives more than it has, and equal seeds give equal
//! results.

use crate::bounds::bluefield2;
use fastrand::Rng;
use freeport_plan_model::bounds::{limits, shares};
use freeport_plan_model::profile::{Profile, SECTIONS};
use freeport_plan_model::{Load, Operation, Path, Request, simulate};
use std::collections::BTreeMap;

/// A device whose parameters are between half and twice those of a real one.
fn device(random: &mut Rng) -> Profile {
    let mut profile = bluefield2();
    for (section, keys) in SECTIONS {
        for key in *keys {
            let name = format!("{section}.{}", key.name);
            let fixed = ["pcie.", "nic.cores", "client.machines"];
            if fixed.iter().any(|fixed| name.starts_with(fixed)) {
                continue;
            }
            let value = profile.value(&name).expect("a parameter") * (0.5 + 1.5 * random.f64());
            let value = if key.unit == "count" { value.round().max(1.0) } else { value };
            assert!(profile.set_value(&name, value));
        }
    }
    profile
}

fn load(profile: &Profile, random: &mut Rng, paths: &[Path]) -> Load {
    let path = paths[random.usize(..paths.len())];
    let operations = if path.is_dma() { 2 } else { 3 };
    let operation = Operation::ALL[random.usize(..operations)];
    let most = if operation == Operation::Send { 12 } else { 20 };
    let largest = 1 << random.u32(0..=most);
    let bytes = random.u64(..=largest);
    let batch = 1 << random.u32(0..6);
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
    for number in 0..40 {
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
            // Ports and posting belong to each load's own requesters, banks to its own range.
            let own = |name: &str| name.starts_with("p") || name.starts_with("banks");
            for (name, share) in shares(&profile, load).into_iter().filter(|(name, _)| !own(name)) {
                // Cores of the NIC that are kept for one end are idle for the other.
                let all = if name == "NIC cores" { 1.0 - 4.0 / profile.nic.cores } else { 1.0 };
                *used.entry(name).or_default() += rate * share * all;
            }
        }
        for (name, share) in used {
            assert!(share <= 1.000_001, "{number}: {name} is used {share} times: {loads:?}");
        }
        for used in &outcome.uses {
            assert!((0.0..=1.0).contains(&used.share), "{used:?}");
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
