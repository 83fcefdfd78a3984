// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results of estimates as texts and as JSON.

pub use freeport_plan::figures::{rate, time};

use freeport_plan_model::Request;
use freeport_plan_model::estimate::Estimate;
use freeport_plan_model::simulator::{Flow, Load, Outcome};
use serde_json::{Value, json};

/// Returns requests as a text.
pub fn request(request: &Request) -> String {
    let Request { path, operation, bytes, batch, .. } = request;
    let batch = if *batch > 1 { format!(", batches of {batch}") } else { String::new() };
    format!("path {path}, {operation} of {bytes} B{batch}")
}

/// Returns requests as members of a JSON object.
pub fn request_json(request: &Request) -> Value {
    let Request { path, operation, bytes, batch, range } = request;
    json!({
        "path": path.name(),
        "operation": operation.name(),
        "bytes": bytes,
        "batch": batch,
        "range_bytes": range,
    })
}

/// Returns results of a load as a JSON object.
pub fn flow_json(flow: &Flow) -> Value {
    json!({
        "completed": flow.completed,
        "millions_per_second": flow.rate,
        "gbps": flow.goodput,
        "mean_ns": flow.mean,
        "median_ns": flow.median,
        "p99_ns": flow.p99,
    })
}

/// Returns the use of resources and links as members of a JSON object.
pub fn outcome_json(outcome: &Outcome) -> Value {
    let used = outcome.uses.iter().filter(|it| it.share > 0.0);
    let uses: Vec<Value> =
        used.map(|it| json!({ "resource": it.name, "share": it.share })).collect();
    let links = outcome.links.iter().map(|(name, count)| {
        let gbps = count.bytes as f64 * 8.0 / outcome.time;
        json!({ "link": name, "gbps": gbps, "packets": count.packets, "bytes": count.bytes })
    });
    json!({
        "kind": "simulated",
        "is_steady": outcome.is_steady,
        "seconds": outcome.time / 1e9,
        "bottleneck": outcome.bottleneck(),
        "uses": uses,
        "links": links.collect::<Vec<_>>(),
    })
}

/// Joins JSON objects; members of later ones replace those of earlier ones.
pub fn joined<const PARTS: usize>(parts: [Value; PARTS]) -> Value {
    let members = parts.into_iter().filter_map(|part| match part {
        Value::Object(members) => Some(members),
        _ => None,
    });
    Value::Object(members.flatten().collect())
}

/// Returns an estimate as a JSON object.
pub fn estimate_json(device: &str, estimate: &Estimate) -> Value {
    joined([
        json!({ "device": device }),
        request_json(&estimate.request),
        flow_json(&estimate.full.flows[0]),
        outcome_json(&estimate.full),
        json!({
            "single_ns": estimate.single.median,
            "bound_millions_per_second": estimate.limit.rate,
            "bound_resource": estimate.limit.name,
        }),
    ])
}

/// Returns a load as a text.
pub fn load(load: &Load) -> String {
    let offered = load.offered.map(|offered| format!(", {offered} M/s offered"));
    request(&load.request) + &offered.unwrap_or_default()
}
