// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random devices, functions and constraints: plans are never worse than the best alternative, and
//! nothing panics.

use crate::{function, profile};
use fastrand::Rng;
use freeport_plan::function::{Action, Memory, Repeated};
use freeport_plan::simulation::{Run, simulate};
use freeport_plan::{Alternative, Constraints, Cost, Criterion, Function, explain, plan};
use freeport_plan_model::profile::random;
use freeport_plan_model::{Operation, Path, Profile, Request, Side};
use freeport_testbed::effort::usual_or_long;

fn device(numbers: &mut Rng) -> Profile {
    random(&profile("bluefield2"), numbers)
}

fn study(numbers: &mut Rng) -> Function {
    match numbers.bool() {
        true => function("key-value"),
        false => function("replication").with_ratio(0.05 + 0.95 * numbers.f64()),
    }
}

/// By the bounds, a plan is never worse than an alternative alone, as it was declared or changed.
#[test]
fn plans_are_never_worse_than_the_best_alternative_alone() {
    let base = profile("bluefield2");
    let both = [function("key-value"), function("replication")];
    let mut numbers = Rng::with_seed(11);
    let mut mixes = 0;
    for number in 0..10_000 {
        let device = random(&base, &mut numbers);
        let ratio = 0.05 + 0.95 * numbers.f64();
        let mut function = both[number % 2].clone();
        if number % 2 == 1 {
            function.ratio = ratio;
        }
        let Ok(plan) = plan(&device, &function) else { continue };
        let all: f64 = plan.shares.iter().map(|share| share.rate).sum();
        assert!((all - plan.rate).abs() < 1e-9 * all, "{number}");
        // Few clients are another reason than a full machine.
        let is_full = !plan.left_out.iter().any(|it| it.reason.contains("clients are too few"));
        if is_full {
            let rates = plan.ranking.iter().map(|candidate| candidate.cost.limit().rate);
            let best = rates.fold(0.0, f64::max);
            assert!(plan.rate >= best * (1.0 - 1e-9), "{number}: {} {best}", plan.rate);
        }
        mixes += usize::from(plan.shares.len() > 1);
        assert!(plan.uses.iter().all(|(_, share)| *share <= 1.0 + 1e-9), "{number}");
    }
    assert!(mixes > 2000, "{mixes} plans are mixes");
}

/// In simulations, a plan is as good as the best alternative alone with the same clients.
#[test]
fn simulated_plans_are_as_good_as_the_best_alternative_alone() {
    let mut numbers = Rng::with_seed(12);
    for number in 0..usual_or_long(30, 300) {
        let device = device(&mut numbers);
        let mut function = study(&mut numbers);
        let is_large = function.bytes > 10_000;
        function.clients = Some(if is_large { numbers.u32(1..24) } else { numbers.u32(1..80) });
        let Ok(plan) = plan(&device, &function) else { continue };
        let calls = if is_large { 300 } else { 2500 };
        let plan = plan.verified(&device, calls, number + 1000);
        let run = Run { in_flight: function.in_flight, calls, seed: number };
        let alone = plan.ranking.iter().map(|candidate| {
            simulate(&device, &[(&candidate.alternative, plan.clients)], &run).rate
        });
        let best = alone.fold(0.0, f64::max);
        let together = plan.simulate(&device, calls, number).rate;
        assert!(together >= 0.97 * best, "{number}: {together} of {best}, {:?}", plan.shares);
    }
}

fn step(numbers: &mut Rng) -> Repeated {
    let paths = &Path::ALL[1..];
    let path = paths[numbers.usize(..paths.len())];
    let operations: Vec<Operation> =
        Operation::ALL.into_iter().filter(|operation| path.has(*operation)).collect();
    let operation = operations[numbers.usize(..operations.len())];
    let most = 1 << numbers.u32(0..24);
    let bytes = numbers.u64(0..=most);
    let short = bytes.min(4096);
    let sides = [Side::Client, Side::Host, Side::Soc, Side::Peer];
    let side = sides[numbers.usize(..sides.len())];
    let action = match numbers.u8(..6) {
        0 => Action::Work { side, ns: 1e6 * numbers.f64() },
        1 if path.has(Operation::Send) => Action::Message { path, bytes: short },
        2 if path.has(Operation::Send) => Action::Answer { path, bytes: short },
        _ => {
            let bytes = if operation == Operation::Send { short } else { bytes };
            let (batch, range) = (1 << numbers.u32(0..8), 64 << numbers.u32(0..30));
            Action::Request(Request { path, operation, bytes, batch, range })
        }
    };
    Repeated { action, times: 3.0 * numbers.f64() + 0.01, is_compressed: numbers.bool() }
}

fn any_function(numbers: &mut Rng) -> Function {
    let mut function = function("key-value");
    let some = |numbers: &mut Rng, most: f64| numbers.bool().then(|| most * numbers.f64());
    let request = Request::new(Path::Host, Operation::Read, 64);
    let sure = Repeated { action: Action::Request(request), times: 0.5, is_compressed: false };
    let steps = |numbers: &mut Rng| {
        let more = (0..numbers.usize(0..6)).map(|_| step(numbers));
        more.chain([sure]).collect::<Vec<_>>()
    };
    let alternative = |number: usize, numbers: &mut Rng| Alternative {
        name: format!("A{number}"),
        about: String::new(),
        steps: steps(numbers),
        covers: 0.1 + 0.8 * numbers.f64(),
        miss: steps(numbers),
        memory: vec![Memory {
            side: if numbers.bool() { Side::Soc } else { Side::Host },
            name: format!("m{}", numbers.u8(..3)),
            bytes: numbers.u64(..1 << 40),
        }],
    };
    function.alternatives = (0..numbers.usize(1..6)).map(|it| alternative(it, numbers)).collect();
    let mut criteria = Criterion::ALL.to_vec();
    numbers.shuffle(&mut criteria);
    function.criteria = criteria;
    function.tolerance = 0.5 * numbers.f64();
    function.ratio = 0.01 + 0.99 * numbers.f64();
    function.clients = Some(numbers.u32(1..200));
    function.in_flight = numbers.u32(1..16);
    function.offered = some(numbers, 20.0).map(|offered| offered + 1e-6);
    function.constraints = Constraints {
        host_cores: some(numbers, 4.0),
        host_memory: some(numbers, 1e12).map(|bytes| bytes as u64),
        soc_memory: some(numbers, 1e12).map(|bytes| bytes as u64),
        latency_us: some(numbers, 1e4).map(|time| time + 1.0),
    };
    function
}

#[test]
fn any_function_has_a_plan_or_an_error_with_the_reason() {
    let mut numbers = Rng::with_seed(13);
    let (mut plans, mut errors) = (0, 0);
    for number in 0..800 {
        let device = device(&mut numbers);
        let function = any_function(&mut numbers);
        match plan(&device, &function) {
            Ok(plan) => {
                plans += 1;
                assert!(plan.rate.is_finite() && plan.rate > 0.0, "{number}: {}", plan.rate);
                let sum: f64 = plan.shares.iter().map(|share| share.share).sum();
                assert!((sum - 1.0).abs() < 1e-9, "{number}: {sum}");
                let offered = function.offered.unwrap_or(f64::INFINITY);
                assert!(plan.rate <= offered * (1.0 + 1e-9), "{number}");
                let allowed = function.constraints.host_cores.unwrap_or(f64::INFINITY);
                assert!(plan.host_cores <= allowed * (1.0 + 1e-9) + 1e-12, "{number}");
                assert!(!explain::explain(&plan).contains("NaN"), "{number}");
            }
            Err(error) => {
                errors += 1;
                assert!(error.to_string().contains('A'), "{number}: {error}");
            }
        }
    }
    assert!(plans > 100 && errors > 100, "{plans} {errors}");
}

/// A cost is what the rules compare: a change they make never lowers its limit by more than 1 %.
#[test]
fn rules_do_not_slow_down() {
    let mut numbers = Rng::with_seed(14);
    for number in 0..500 {
        let device = device(&mut numbers);
        let function = any_function(&mut numbers);
        for alternative in function.resolved() {
            let (changed, _) =
                freeport_plan::rules::optimise(&device, function.ratio, &alternative);
            let [before, after] = [&alternative, &changed].map(|it| Cost::of(&device, it).limit());
            // Each of five changes may lose a hundredth.
            assert!(after.rate >= 0.95 * before.rate, "{number}: {before:?} {after:?}");
        }
    }
}
