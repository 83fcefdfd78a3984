// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The load of a plan by link: where payload comes from, which links it passes, where it goes.

use freeport_plan::load::{Passage, passages};
use freeport_plan::plan::Plan;
use freeport_plan_model::route::Resource;
use freeport_plan_model::{Profile, Side};
use freeport_svg::sankey::{Flow, Node, svg as sankey};

/// Places of the drawing in their order from left to right: sides, links, sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    From(Side),
    Link(Resource),
    To(Side),
}

/// Links with their columns and names.
const LINKS: [(Resource, usize, &str); 10] = [
    (Resource::NetworkIn, 1, "network in"),
    (Resource::Pcie0Up, 1, "PCIe0 up"),
    (Resource::InternalUp, 1, "internal up"),
    (Resource::Pcie1Up, 2, "PCIe1 up"),
    (Resource::Loopback, 3, "loopback"),
    (Resource::DmaRate, 3, "DMA"),
    (Resource::Pcie1Down, 4, "PCIe1 down"),
    (Resource::NetworkOut, 5, "network out"),
    (Resource::Pcie0Down, 5, "PCIe0 down"),
    (Resource::InternalDown, 5, "internal down"),
];
const SIDES: [(Side, &str); 4] = [
    (Side::Client, "clients"),
    (Side::Host, "host"),
    (Side::Soc, "SoC"),
    (Side::Peer, "other machine"),
];
/// Column of the sides that payload goes to.
const LAST: usize = 6;

/// Draws the load.
pub fn svg(profile: &Profile, plan: &Plan) -> String {
    let passages = passages(profile, plan);
    let mut stops: Vec<(Stop, Node)> = vec![];
    let sides = |last: bool| {
        SIDES.map(|(side, name)| {
            let stop = if last { Stop::To(side) } else { Stop::From(side) };
            (stop, if last { LAST } else { 0 }, name)
        })
    };
    let links = LINKS.map(|(link, column, name)| (Stop::Link(link), column, name));
    for (stop, column, name) in sides(false).into_iter().chain(links).chain(sides(true)) {
        let load: f64 = passages
            .iter()
            .filter(|passage| way(passage).contains(&stop))
            .map(|passage| passage.gbps)
            .sum();
        if load > 0.0 {
            let note = note(plan, stop, load);
            stops.push((stop, Node { column, name: name.to_owned(), note }));
        }
    }
    let number = |stop: &Stop| stops.iter().position(|(other, _)| other == stop);
    let mut flows = vec![];
    for passage in &passages {
        for pair in way(passage).windows(2) {
            let [from, to] = pair else { continue };
            if let (Some(from), Some(to)) = (number(from), number(to)) {
                flows.push(Flow { from, to, value: passage.gbps, subject: passage.share });
            }
        }
    }
    let subjects: Vec<String> = plan
        .shares
        .iter()
        .map(|share| {
            let name = &share.candidate.alternative.name;
            format!("{name}: {:.0} % of calls", 100.0 * share.share)
        })
        .collect();
    let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
    let nodes: Vec<Node> = stops.iter().map(|(_, node)| node.clone()).collect();
    let title = format!("Load of {} on {}", plan.function.name, plan.device);
    let origin = format!(
        "payload in Gbit/s and use of links at {}, by the model; nothing is measured",
        super::results::rate(plan.rate)
    );
    sankey(&title, &subjects, &nodes, &flows, &origin)
}

/// Returns all places of a passage.
fn way(passage: &Passage) -> Vec<Stop> {
    let links = passage.links.iter().map(|link| Stop::Link(*link));
    std::iter::once(Stop::From(passage.from)).chain(links).chain([Stop::To(passage.to)]).collect()
}

fn note(plan: &Plan, stop: Stop, load: f64) -> String {
    let Stop::Link(link) = stop else { return format!("{load:.1} Gbit/s") };
    let used = plan.uses.iter().find(|(name, _)| *name == link.name());
    let used = used.map_or(0.0, |(_, share)| 100.0 * share);
    format!("{load:.1} Gbit/s, {used:.0} %")
}
