// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Plans as JSON.

use freeport_plan::figures::gbps;
use freeport_plan::plan::{Candidate, Plan, Removed, Share};
use freeport_plan::rules::{Effect, Finding};
use freeport_plan::simulation::Simulated;
use serde_json::{Map, Value, json};

/// Returns a plan as a JSON object.
pub fn plan_json(plan: &Plan) -> Value {
    let function = &plan.function;
    let criteria: Vec<&str> = function.criteria.iter().map(|it| it.name()).collect();
    let uses = plan.uses.iter().map(|(name, share)| json!({ "resource": name, "share": share }));
    json!({
        "device": plan.device,
        "function": function.name,
        "ratio": function.ratio,
        "criteria": criteria,
        "kind": "modelled",
        "millions_per_second": plan.rate,
        "gbps": gbps(plan.rate, function.bytes as f64),
        "limited_by": plan.limit,
        "host_cores": plan.host_cores,
        "shares": plan.shares.iter().map(share).collect::<Vec<_>>(),
        "ranking": plan.ranking.iter().map(|it| candidate(plan, it)).collect::<Vec<_>>(),
        "removed": plan.removed.iter().map(removed).collect::<Vec<_>>(),
        "not_used": plan.left_out.iter().map(removed).collect::<Vec<_>>(),
        "rules": plan.findings.iter().map(finding).collect::<Vec<_>>(),
        "uses": uses.collect::<Vec<_>>(),
        "best_alone": single(&plan.single),
        "best_alone_simulated": plan.simulated_single.as_ref().map(single),
        "without_limit": plan.relieved.map(|(rate, next)| {
            json!({ "millions_per_second": rate, "limited_by": next })
        }),
        "clients": {
            "number": plan.clients,
            "in_flight": function.in_flight,
            "millions_per_second": plan.expected.map(|calls| calls.rate),
            "latency_us": plan.expected.map(|calls| calls.latency),
        },
        "simulated": plan.simulated.as_ref().map(simulated),
        "shares_are": if plan.are_shares_simulated { "simulated" } else { "modelled" },
    })
}

fn share(share: &Share) -> Value {
    json!({
        "alternative": share.candidate.alternative.name,
        "share": share.share,
        "millions_per_second": share.rate,
        "limited_by": share.limited_by,
        "clients": share.clients,
        "latency_us": share.expected.map(|calls| calls.latency),
    })
}

fn single((name, rate): &(String, f64)) -> Value {
    json!({ "alternative": name, "millions_per_second": rate })
}

fn candidate(plan: &Plan, candidate: &Candidate) -> Value {
    let figures =
        plan.function.criteria.iter().map(|criterion| {
            (criterion.name().to_owned(), json!(candidate.cost.figure(*criterion)))
        });
    json!({
        "alternative": candidate.alternative.name,
        "figures": figures.collect::<Map<_, _>>(),
        "limited_by": candidate.cost.limit().name,
    })
}

fn removed(removed: &Removed) -> Value {
    json!({ "alternative": removed.name, "reason": removed.reason })
}

fn finding(finding: &Finding) -> Value {
    let effect = match finding.effect {
        Effect::Changed => "changed",
        Effect::Warning => "warning",
        Effect::Advice => "advice",
    };
    json!({
        "rule": finding.rule.to_string(),
        "alternative": finding.alternative,
        "effect": effect,
        "reason": finding.reason,
    })
}

fn simulated(simulated: &Simulated) -> Value {
    let flows = simulated.flows.iter().map(|flow| {
        json!({
            "alternative": flow.name,
            "clients": flow.clients,
            "calls": flow.completed,
            "millions_per_second": flow.rate,
            "mean_ns": flow.latency,
        })
    });
    let links = simulated.links.iter().map(|(name, count)| {
        let gbps = count.bytes as f64 * 8.0 / simulated.time;
        json!({ "link": name, "gbps": gbps, "packets": count.packets, "bytes": count.bytes })
    });
    json!({
        "millions_per_second": simulated.rate,
        "bottleneck": simulated.bottleneck,
        "flows": flows.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
    })
}
