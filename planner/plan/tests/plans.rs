// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Plans of the study's functions, and constraints.

use crate::{function, profile};
use freeport_plan::function::Action;
use freeport_plan::rules::Rule;
use freeport_plan::{Constraints, Criterion, Function, Plan, PlanError, explain, plan};
use freeport_plan_model::{Operation, Path, Request};

fn planned(device: &str, function: &Function) -> Plan {
    plan(&profile(device), function).expect("a plan")
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.shares.iter().map(|share| share.candidate.alternative.name.as_str()).collect()
}

#[test]
fn gets_use_the_cache_first_and_then_index_and_value() {
    for device in ["bluefield2", "bluefield3"] {
        let plan = planned(device, &function("key-value"));
        assert_eq!(names(&plan), ["A5", "A4"]);
        assert_eq!(plan.shares[0].limited_by, "cores of the SoC");
        assert!(plan.rate > plan.single.1 && plan.is_mix_kept);
        assert_eq!(plan.host_cores, 0.0);
        let clients: u32 = plan.shares.iter().map(|share| share.clients).sum();
        assert_eq!(clients, plan.clients);
        let sum: f64 = plan.shares.iter().map(|share| share.share).sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }
}

#[test]
fn replication_fills_the_processor_first_and_then_the_host() {
    let plan = planned("bluefield2", &function("replication"));
    assert_eq!(names(&plan), ["A2", "A3"]);
    assert_eq!(plan.shares[0].limited_by, "cores of the SoC");
    // The rules make A1 the same as A2.
    assert_eq!(plan.removed[0].name, "A1");
    assert!(plan.rate > 1.2 * plan.single.1, "{} {:?}", plan.rate, plan.single);
}

#[test]
fn no_resource_gives_more_than_it_has() {
    for device in ["bluefield2", "bluefield3"] {
        for name in ["replication", "key-value"] {
            let plan = planned(device, &function(name));
            assert!(plan.uses.iter().all(|(_, share)| *share <= 1.0 + 1e-9), "{:?}", plan.uses);
            assert!((plan.uses[0].1 - 1.0).abs() < 1e-9);
            let expected = plan.expected.expect("not throttled");
            assert!(expected.rate <= 1.02 * plan.rate, "{expected:?} {}", plan.rate);
        }
    }
}

#[test]
fn without_time_of_the_host_what_uses_it_is_removed() {
    let mut function = function("replication");
    function.constraints.host_cores = Some(0.0);
    let plan = planned("bluefield2", &function);
    assert_eq!(names(&plan), ["A2"]);
    let reason = &plan.removed.iter().find(|it| it.name == "A3").expect("removed").reason;
    assert!(reason.starts_with("host-cores=0 allows no time of the host"), "{reason}");
    // Some time allows some calls.
    function.constraints.host_cores = Some(0.2);
    let plan = planned("bluefield2", &function);
    assert_eq!(names(&plan), ["A2", "A3"]);
    assert!((plan.host_cores - 0.2).abs() < 1e-6, "{}", plan.host_cores);
}

#[test]
fn messages_to_the_host_need_its_processor() {
    let text = r#"
        name = "echo"
        bytes = 64
        criteria = ["throughput"]
        [[alternatives]]
        name = "messages"
        steps = [
            { do = "message", path = "1", bytes = 64 },
            { do = "answer", path = "1", bytes = 64 },
        ]
        [[alternatives]]
        name = "whole"
        steps = [{ do = "send", path = "1", bytes = 64 }]
        [[alternatives]]
        name = "read"
        steps = [{ do = "read", path = "1", bytes = 64 }]
    "#;
    let mut function = Function::parse("echo.toml", text).expect("a function");
    function.constraints.host_cores = Some(0.0);
    let plan = planned("bluefield2", &function);
    let removed: Vec<&str> = plan.removed.iter().map(|it| it.name.as_str()).collect();
    assert_eq!((names(&plan), removed), (vec!["read"], vec!["messages", "whole"]));
}

#[test]
fn memory_is_shared_by_name_and_limits_what_is_combined() {
    let mut function = function("key-value");
    function.constraints.soc_memory = Some(2_000_000_000);
    let plan = planned("bluefield2", &function);
    assert!(plan.removed.iter().any(|it| it.name == "A5" && it.reason.contains("soc-memory=")));
    assert!(!names(&plan).contains(&"A5"));
    // Index and cache fit together: both alternatives share the index.
    function.constraints.soc_memory = Some(9_000_000_000);
    assert_eq!(names(&planned("bluefield2", &function)), ["A5", "A4"]);
    // With an index of its own for A4, they do not, and A1 takes what A5 leaves.
    function.offered = Some(30.0);
    function.alternatives[3].memory[0].name = "second index".into();
    let plan = planned("bluefield2", &function);
    assert_eq!(names(&plan), ["A5", "A1"]);
    let reason = &plan.left_out.iter().find(|it| it.name == "A4").expect("left out").reason;
    assert!(reason.contains("together with those before"), "{reason}");
}

#[test]
fn an_impossible_constraint_names_what_it_removed() {
    let mut function = function("key-value");
    function.constraints.latency_us = Some(0.5);
    function.constraints.soc_memory = Some(1_000_000);
    let error = plan(&profile("bluefield2"), &function).expect_err("nothing is left");
    let text = error.to_string();
    assert!(text.starts_with("no alternative of key-value is left; relax a constraint:"), "{text}");
    assert!(text.contains("\n  A1: latency-us=0.5 is less than 6.84 us"), "{text}");
    assert!(text.contains("\n  A5: soc-memory=1000000 is less than 9000000000 B"), "{text}");
    let PlanError::NothingLeft { removed, .. } = error else { panic!("{error:?}") };
    assert_eq!(removed.len(), 5);
}

#[test]
fn an_offered_load_needs_no_more_than_it_takes() {
    let mut function = function("key-value");
    function.offered = Some(10.0);
    let plan = planned("bluefield2", &function);
    assert_eq!((names(&plan), plan.rate, plan.limit), (vec!["A5"], 10.0, "offered load"));
    assert!(plan.relieved.is_none());
    function.offered = Some(20.0);
    let plan = planned("bluefield2", &function);
    assert_eq!((names(&plan), plan.rate), (vec!["A5", "A4"], 20.0));
}

#[test]
fn criteria_order_the_ranking() {
    let ranking = |criteria: &[Criterion], tolerance| {
        let mut function = function("key-value");
        function.criteria = criteria.to_vec();
        function.tolerance = tolerance;
        let plan = planned("bluefield2", &function);
        plan.ranking.iter().map(|it| it.alternative.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ranking(&[Criterion::Throughput], 0.0), ["A4", "A1", "A5", "A3", "A2"]);
    assert_eq!(ranking(&[Criterion::Amplification], 0.0)[0], "A4");
    // All are equal: the order of their declaration stays.
    assert_eq!(ranking(&[Criterion::HostProcessor], 0.0), ["A1", "A2", "A3", "A4", "A5"]);
    // The latencies of A5 and A4 are near each other; the next criterion decides.
    let near = ranking(&[Criterion::Latency, Criterion::Throughput], 0.2);
    assert_eq!(near[..3], ["A4", "A5", "A1"]);
}

#[test]
fn few_clients_use_what_serves_most_of_them() {
    let mut function = function("replication");
    function.clients = Some(2);
    let plan = planned("bluefield2", &function);
    assert_eq!(names(&plan), ["A3"]);
    assert!(plan.left_out[0].reason.starts_with("2 clients are too few"), "{:?}", plan.left_out);
}

#[test]
fn too_many_calls_in_flight_are_refused() {
    let mut function = function("key-value");
    (function.clients, function.in_flight) = (Some(4096), 1024);
    let error = plan(&profile("bluefield2"), &function).expect_err("too many").to_string();
    assert!(error.starts_with("4096 clients with 1024 calls in flight each are more"), "{error}");
}

/// A short file must not take all memory of the simulation.
#[test]
fn too_many_steps_of_a_call_are_refused() {
    let mut function = function("key-value");
    for alternative in &mut function.alternatives {
        alternative.steps[0].times = 1024.0;
    }
    let taken = |function: &Function| plan(&profile("bluefield2"), function);
    let (clients, in_flight) = (132, 8);
    function.clients = Some(clients);
    assert!(taken(&function).is_ok());
    function.in_flight = in_flight * 8;
    let error = taken(&function).expect_err("too many").to_string();
    assert!(
        error.contains("more than the 248 that can be simulated with 8448 in flight"),
        "{error}"
    );
    // Chunks of path 3 count.
    let request = Request::new(Path::HostToSoc, Operation::Read, 1 << 30);
    function.alternatives.truncate(1);
    function.alternatives[0].steps[0].action = Action::Request(request);
    (function.clients, function.in_flight) = (Some(1), 1);
    function.constraints = Constraints::default();
    let mut slow = profile("bluefield2");
    slow.dma.rate = 1.0;
    let error = plan(&slow, &function).expect_err("too many").to_string();
    assert!(error.contains("takes 4300801 steps, more than the 16384 that"), "{error}");
}

/// Neither the queueing model nor the simulation knows how to offer less than all calls.
#[test]
fn throttled_plans_are_not_verified() {
    let changes: [fn(&mut Function); 2] =
        [|it| it.offered = Some(0.05), |it| it.constraints.host_cores = Some(0.2)];
    for change in changes {
        let mut function = function("replication");
        change(&mut function);
        let plan = planned("bluefield2", &function).verified(&profile("bluefield2"), 300, 1);
        assert!(plan.simulated.is_none() && plan.expected.is_none());
        assert!(plan.shares.iter().all(|share| share.expected.is_none()));
        let text = explain::explain(&plan);
        assert!(text.contains("  verified    not verified:"), "{text}");
        assert!(!text.contains("  modelled ") && !text.contains("  simulated "), "{text}");
    }
}

/// Shares of a verified plan are those of the calls that its clients were served.
#[test]
fn verified_shares_are_those_of_the_simulation() {
    let plan = planned("bluefield2", &function("replication"));
    assert!(!plan.are_shares_simulated && plan.simulated_single.is_none());
    let plan = plan.verified(&profile("bluefield2"), 300, 1);
    let simulated = plan.simulated.as_ref().expect("verified");
    assert!(plan.are_shares_simulated && plan.shares.len() > 1);
    for (share, flow) in plan.shares.iter().zip(&simulated.flows) {
        assert!((share.share - flow.rate / simulated.rate).abs() < 1e-9);
    }
    let (_, alone) = plan.simulated_single.as_ref().expect("verified");
    assert!(*alone > 0.0 && *alone <= simulated.rate, "{alone}");
}

#[test]
fn equal_alternatives_need_no_rule() {
    let mut function = function("replication");
    let mut copy = function.alternatives[2].clone();
    copy.name = "A4".into();
    function.alternatives.push(copy);
    let plan = planned("bluefield2", &function);
    let reason = &plan.removed.iter().find(|it| it.name == "A4").expect("removed").reason;
    assert_eq!(reason, "it is the same as A3");
}

/// Rules change with the ratio: compression over path 3 is fine below P/N - 1.
#[test]
fn path_3_is_used_where_dma_is_worse() {
    let mut slow = profile("bluefield2");
    slow.dma.rate = 20.0;
    let mut function = function("replication").with_ratio(0.2);
    function.constraints.host_cores = Some(0.0);
    let plan = plan(&slow, &function).expect("a plan");
    assert!(names(&plan).contains(&"A1"));
    assert!(plan.findings.iter().any(|finding| finding.rule == Rule::R8));
}

/// A plan serves in a simulation what the queueing model expects.
#[test]
fn simulated_plans_serve_what_is_expected() {
    for device in ["bluefield2", "bluefield3"] {
        for (name, calls) in [("replication", 600), ("key-value", 4000)] {
            let plan = planned(device, &function(name));
            let simulated = plan.simulate(&profile(device), calls, 1);
            let share = simulated.rate / plan.expected.expect("not throttled").rate;
            assert!((0.85..1.1).contains(&share), "{device} {name}: {share} {simulated:?}");
        }
    }
}

/// The saving of network traffic falls from that of compression to nothing as A3 takes over.
#[test]
fn the_saving_follows_the_share_of_what_is_not_compressed() {
    let plan = planned("bluefield2", &function("replication"));
    let x = plan.shares[1].share;
    let sent: f64 =
        plan.shares.iter().map(|share| share.share * share.candidate.cost.network_bytes).sum();
    let saved = 1.0 - sent / plan.function.bytes as f64;
    let expected = freeport_plan_model::bounds::saving(x, plan.function.ratio);
    assert!((saved - expected).abs() < 1e-9, "{saved} {expected}");
}
