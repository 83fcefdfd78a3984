// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random devices, functions and constraints: plans are never worse than the best alternative, and
//! nothing panics.

use crate::{function, profile};
use fastrand::Rng;
use freeport_plan::constraints::broken;
use freeport_plan::function::{Action, Memory, Repeated};
use freeport_plan::queue::closed;
use freeport_plan::rules::optimise;
use freeport_plan::simulation::{Run, simulate};
use freeport_plan::switch::class;
use freeport_plan::{Alternative, Constraints, Cost, Criterion, Function, Plan, explain, plan};
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

/// Share of its declared limit that an alternative may lose by all rules together.
const LOSS_MAX: f64 = 0.01;
/// Share of what few clients of one alternative may be served more by the queueing model.
const FEW_LOSS_MAX: f64 = 0.01;
/// Room for rounding.
const ROUNDING: f64 = 1e-9;

/// Returns the highest bound of alternatives as they were declared, without those that break a
/// constraint.
fn best_declared(device: &Profile, function: &Function) -> f64 {
    let bound = |alternative: &Alternative| {
        let cost = Cost::of(device, alternative);
        match broken(&function.constraints, alternative, &cost) {
            None => cost.limit().rate,
            Some(_) => 0.0,
        }
    };
    function.resolved().iter().map(bound).fold(0.0, f64::max)
}

/// Holds a plan for a full machine against the bounds of alternatives: exactly against those after
/// the rules, and with the loss that rules may cause against the declared ones.
fn check_bounds(number: usize, device: &Profile, plan: &Plan) {
    let rates = plan.ranking.iter().map(|candidate| candidate.cost.limit().rate);
    let best = rates.fold(0.0, f64::max);
    assert!(plan.rate >= best * (1.0 - ROUNDING), "{number}: {} {best}", plan.rate);
    let declared = best_declared(device, &plan.function);
    let least = (1.0 - LOSS_MAX - ROUNDING) * declared;
    assert!(plan.rate >= least, "{number}: {} {declared} as declared", plan.rate);
}

/// Holds what the queueing model expects of a plan against each alternative alone.
fn check_few_clients(number: usize, plan: &Plan) {
    let expected = plan.expected.expect("not throttled").rate;
    for candidate in &plan.ranking {
        let alone = class(&candidate.cost, plan.clients, plan.function.in_flight);
        let alone = closed(&[alone])[0].rate;
        let least = (1.0 - FEW_LOSS_MAX - ROUNDING) * alone;
        let name = &candidate.alternative.name;
        assert!(expected >= least, "{number}: {expected}, and {alone} by {name} alone");
    }
}

/// By the bounds, a plan is never worse than an alternative alone: as the rules changed it, and
/// but for 1 % as it was declared. With few clients, the queueing model takes the place of bounds.
#[test]
fn plans_are_never_worse_than_the_best_alternative_alone() {
    let base = profile("bluefield2");
    let both = [function("key-value"), function("replication")];
    let mut numbers = Rng::with_seed(11);
    let (mut mixes, mut full, mut few, mut errors) = (0, 0, 0, 0);
    for number in 0..10_000 {
        let device = random(&base, &mut numbers);
        let ratio = 0.05 + 0.95 * numbers.f64();
        let mut function = both[number % 2].clone();
        if number % 2 == 1 {
            function.ratio = ratio;
        }
        if number % 4 > 1 {
            function.clients = Some(numbers.u32(1..=16));
        }
        let Ok(plan) = plan(&device, &function) else {
            errors += 1;
            continue;
        };
        let all: f64 = plan.shares.iter().map(|share| share.rate).sum();
        assert!((all - plan.rate).abs() < 1e-9 * all, "{number}");
        match plan.left_out.iter().any(|it| it.reason.contains("clients are too few")) {
            true => {
                few += 1;
                check_few_clients(number, &plan);
            }
            false => {
                full += 1;
                check_bounds(number, &device, &plan);
            }
        }
        mixes += usize::from(plan.shares.len() > 1);
        assert!(plan.uses.iter().all(|(_, share)| *share <= 1.0 + 1e-9), "{number}");
    }
    let counts = format!("{full} by bounds, {few} of few clients, {mixes} mixes, {errors} errors");
    assert!(full > 6000 && few > 2000 && mixes > 2000 && errors == 0, "{counts}");
}

/// In simulations, a plan is as good as the best alternative alone with the same clients.
#[test]
fn simulated_plans_are_as_good_as_the_best_alternative_alone() {
    let mut numbers = Rng::with_seed(12);
    let (devices, mut checked) = (usual_or_long(30, 300), 0);
    for number in 0..devices {
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
        checked += 1;
    }
    assert!(10 * checked >= 9 * devices, "{checked} of {devices} are checked");
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

/// Rules together lower the limit of an alternative by 1 % at most, and break no constraint that it
/// keeps.
#[test]
fn rules_neither_slow_down_nor_break_constraints() {
    let mut numbers = Rng::with_seed(14);
    let mut changes = 0;
    for number in 0..500 {
        let device = device(&mut numbers);
        let Function { ratio, constraints, alternatives, .. } = any_resolved(&mut numbers);
        for declared in alternatives {
            let (changed, _) = optimise(&device, ratio, &constraints, &declared);
            let [before, after] = [&declared, &changed].map(|it| Cost::of(&device, it));
            let (most, left) = (before.limit(), after.limit());
            let least = (1.0 - LOSS_MAX - ROUNDING) * most.rate;
            assert!(left.rate >= least, "{number}: {most:?} {left:?}");
            if broken(&constraints, &declared, &before).is_none() {
                assert_eq!(broken(&constraints, &changed, &after), None, "{number}");
                changes += usize::from(changed != declared);
            }
        }
    }
    assert!(changes > 100, "{changes} changes");
}

/// Returns a function with the sizes after compression.
fn any_resolved(numbers: &mut Rng) -> Function {
    let function = any_function(numbers);
    Function { alternatives: function.resolved(), ..function }
}
