// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The reasons of a plan as a text.

use crate::cost::Cost;
use crate::figures::{gbps, rate, time};
use crate::function::{Alternative, Criterion, Function, Repeated};
use crate::plan::{Plan, Removed, Share};
use crate::rules::{Effect, Finding};
use crate::simulation::Flow;
use std::fmt::Write;

/// Longest line in characters.
const LINE_LENGTH: usize = 100;
/// Columns in which lines continue: of items of a list by their margin, and of all others.
const ITEM_MARGIN: usize = 4;
const ITEM_INDENT: usize = 7;
const INDENT: usize = 14;
/// Resources whose use is listed.
const LISTED: usize = 6;
/// Use from which on a resource is listed.
const LISTED_FROM: f64 = 0.1;

/// Returns the text: what was planned, on what grounds, and what limits it.
pub fn explain(plan: &Plan) -> String {
    let mut text = String::new();
    head(&mut text, plan);
    shares(&mut text, plan);
    ranking(&mut text, plan);
    list(&mut text, "removed", &plan.removed);
    list(&mut text, "not used", &plan.left_out);
    rules(&mut text, &plan.findings);
    limit(&mut text, plan);
    steps(&mut text, plan);
    for note in &plan.function.notes {
        line(&mut text, &format!("  note        {note}"));
    }
    text
}

/// Appends a line; what does not fit continues in further ones.
fn line(text: &mut String, line: &str) {
    let margin = line.len() - line.trim_start().len();
    let indent = if margin == ITEM_MARGIN { ITEM_INDENT } else { INDENT };
    let mut column = 0;
    for (number, word) in line.trim_end().split(' ').enumerate() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > LINE_LENGTH {
            let _ = write!(text, "\n{:indent$}", "");
            column = indent;
        } else if number > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}

fn head(text: &mut String, plan: &Plan) {
    let Function { name, bytes, ratio, criteria, .. } = &plan.function;
    let ratio = if *ratio < 1.0 { format!(", compressed to {ratio}") } else { String::new() };
    line(text, &format!("{}: {name}, calls of {bytes} B{ratio}", plan.device));
    let names: Vec<&str> = criteria.iter().map(|criterion| criterion.name()).collect();
    let tolerance = 100.0 * plan.function.tolerance;
    let names = names.join(", then ");
    line(text, &format!("  ranked by   {names}; {tolerance:.0} % count as equal"));
    let kept = constraints(&plan.function);
    if !kept.is_empty() {
        line(text, &format!("  kept        {}", kept.join(", ")));
    }
}

/// Returns the constraints of a function, as the command line has them.
fn constraints(function: &Function) -> Vec<String> {
    let kept = &function.constraints;
    let number = |name: &str, value: Option<f64>| value.map(|value| format!("{name}={value}"));
    let bytes = |name: &str, value: Option<u64>| value.map(|value| format!("{name}={value}"));
    let all = [
        number("host-cores", kept.host_cores),
        bytes("host-memory", kept.host_memory),
        bytes("soc-memory", kept.soc_memory),
        number("latency-us", kept.latency_us),
    ];
    all.into_iter().flatten().collect()
}

fn shares(text: &mut String, plan: &Plan) {
    let origin = match plan.are_shares_simulated {
        true => "shares as simulated; rates and limits are bounds",
        false => "shares, rates and limits are bounds",
    };
    line(text, &format!("  plan        {origin}"));
    for share in &plan.shares {
        let Share { candidate, rate: calls, share, limited_by, clients, .. } = share;
        let name = &candidate.alternative.name;
        line(
            text,
            &format!(
                "    {name}  {:.1} % of calls, {}{}, {clients} of {} clients; no more by \
                 {limited_by}",
                100.0 * share,
                rate(*calls),
                bandwidth(plan, *calls),
                plan.clients,
            ),
        );
    }
    line(
        text,
        &format!(
            "  bound       {}{}, {:.2} cores of the host",
            rate(plan.rate),
            bandwidth(plan, plan.rate),
            plan.host_cores,
        ),
    );
    modelled(text, plan);
    simulated(text, plan);
    let (name, single) = &plan.single;
    let mut alone = format!("{name} by its bound, {}{}", rate(*single), bandwidth(plan, *single));
    if let Some((name, single)) = &plan.simulated_single {
        alone += &format!("; {name} simulated, {}{}", rate(*single), bandwidth(plan, *single));
    }
    line(text, &format!("  best alone  {alone}"));
}

fn modelled(text: &mut String, plan: &Plan) {
    let Some(expected) = &plan.expected else {
        let reason = "the model of clients and the simulation know neither an offered load nor \
                      cores of the host that a constraint allows";
        return line(text, &format!("  verified    not verified: {reason}"));
    };
    line(
        text,
        &format!(
            "  modelled    {}{} of {} clients with {} in flight each, {} a call",
            rate(expected.rate),
            bandwidth(plan, expected.rate),
            plan.clients,
            plan.function.in_flight,
            time(1000.0 * expected.latency),
        ),
    );
}

fn simulated(text: &mut String, plan: &Plan) {
    let Some(simulated) = &plan.simulated else { return };
    let flow = |flow: &Flow| {
        format!("{} {} with {} a call", flow.name, rate(flow.rate), time(flow.latency))
    };
    let flows: Vec<String> = simulated.flows.iter().map(flow).collect();
    line(
        text,
        &format!(
            "  simulated   {}{}, limited by {}: {}",
            rate(simulated.rate),
            bandwidth(plan, simulated.rate),
            simulated.bottleneck,
            flows.join(", "),
        ),
    );
}

/// Returns the payload of calls per second.
fn bandwidth(plan: &Plan, calls: f64) -> String {
    format!(", {:.1} Gbit/s", gbps(calls, plan.function.bytes as f64))
}

fn ranking(text: &mut String, plan: &Plan) {
    line(text, "  ranking");
    for (number, candidate) in plan.ranking.iter().enumerate() {
        let figures: Vec<String> =
            plan.function.criteria.iter().map(|it| figure(&candidate.cost, *it)).collect();
        let Alternative { name, about, .. } = &candidate.alternative;
        line(text, &format!("    {}. {name}  {}", number + 1, figures.join("; ")));
        line(text, &format!("       {about}"));
    }
}

/// Returns the figure of a criterion as a text.
pub fn figure(cost: &Cost, criterion: Criterion) -> String {
    let figure = cost.figure(criterion);
    match criterion {
        Criterion::Throughput => format!("up to {} by {}", rate(figure), cost.limit().name),
        Criterion::Latency => format!("{} on an idle machine", time(figure)),
        Criterion::HostProcessor => format!("{} of the host's processor", time(figure)),
        Criterion::NetworkBytes => format!("{figure:.0} B on the network"),
        Criterion::Amplification => format!("{figure:.1} packets on PCIe"),
        Criterion::RoundTrips => format!("{figure:.2} round trips"),
    }
}

fn list(text: &mut String, head: &str, removed: &[Removed]) {
    if !removed.is_empty() {
        line(text, &format!("  {head}"));
    }
    for Removed { name, reason } in removed {
        line(text, &format!("    {name}  {reason}"));
    }
}

fn rules(text: &mut String, findings: &[Finding]) {
    if !findings.is_empty() {
        line(text, "  rules");
    }
    for Finding { rule, alternative, effect, reason } in findings {
        let effect = match effect {
            Effect::Changed => "changed",
            Effect::Warning => "warning",
            Effect::Advice => "advice",
        };
        line(text, &format!("    {rule} {alternative} ({effect})  {reason}"));
    }
}

fn limit(text: &mut String, plan: &Plan) {
    let uses = plan.uses.iter().filter(|(_, share)| *share >= LISTED_FROM).take(LISTED);
    let uses: Vec<String> =
        uses.map(|(name, share)| format!("{name} {:.0} %", 100.0 * share)).collect();
    line(text, &format!("  limited by  {}", plan.limit));
    line(text, &format!("  used        {}", uses.join(", ")));
    if let Some((more, next)) = plan.relieved {
        let gain = 100.0 * (more / plan.rate - 1.0);
        let more = rate(more);
        line(text, &format!("  without it  {more} ({gain:+.0} %), then limited by {next}"));
    }
}

fn steps(text: &mut String, plan: &Plan) {
    line(text, "  steps");
    for share in &plan.shares {
        let Alternative { name, steps, miss, covers, .. } = &share.candidate.alternative;
        line(text, &format!("    {name}  {}", sequence(steps)));
        if !miss.is_empty() {
            let missed = 100.0 * (1.0 - covers);
            line(text, &format!("        {missed:.0} % of calls: {}", sequence(miss)));
        }
    }
}

fn sequence(steps: &[Repeated]) -> String {
    let of = |step: &Repeated| match step.times {
        1.0 => step.action.to_string(),
        times => format!("{times} x {}", step.action),
    };
    steps.iter().map(of).collect::<Vec<_>>().join("; ")
}
