// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The drawing as SVG: plain shapes and one style sheet, readable on white and on dark pages.

use super::layout::{Area, Layout, Point, port_offset};
use super::{Edge, Kind, Node, Picture};
use freeport_svg::{Drawing, Tenths};
use std::fmt::Write;

const STYLE: &str = "\
text { font: 12px ui-monospace, monospace; fill: #1c2733 }
.title { font-weight: bold; font-size: 13px }
.dim { fill: #5b6b7b; font-size: 11px }
.label { fill: #35506b; font-size: 10px }
.element { fill: #f4f7fb; stroke: #41566b }
.host { fill: #fdf0d5; stroke: #b07d1c }
.endpoint { fill: #e3f1e6; stroke: #3c7a4b }
.channel { fill: none; stroke: #41566b; stroke-width: 1.4px }
.lossy { stroke: #b3412e; stroke-dasharray: 6 4 }";

/// Draws `picture` where `layout` says.
pub fn render(name: &str, picture: &Picture, layout: &Layout) -> String {
    let (width, height) = (layout.width.ceil(), layout.height.ceil());
    let title = format!("Element graph of {name}");
    let mut out = Drawing::titled((width, height), &title, STYLE);
    define_tip(&mut out);
    out.background("#fff");
    for (edge, route) in picture.edges.iter().zip(&layout.routes) {
        draw_channel(&mut out, edge, route);
    }
    for (node, area) in picture.nodes.iter().zip(&layout.areas) {
        draw_box(&mut out, node, area);
    }
    for (edge, route) in picture.edges.iter().zip(&layout.routes) {
        draw_label(&mut out, edge, route);
    }
    out.finish()
}

/// Defines the tip of the arrows.
fn define_tip(out: &mut Drawing) {
    out.open("defs", &[]);
    out.open(
        "marker",
        &[
            ("id", &"tip"),
            ("viewBox", &"0 0 8 8"),
            ("refX", &8),
            ("refY", &4),
            ("markerWidth", &8),
            ("markerHeight", &8),
            ("orient", &"auto"),
        ],
    );
    out.element("path", &[("d", &"M0 0 L8 4 L0 8 z"), ("fill", &"#41566b")]);
    out.close("marker");
    out.close("defs");
}

/// Level stretches are lines; between two of them the channel bends.
fn draw_channel(out: &mut Drawing, edge: &Edge, route: &[Point]) {
    let mut path = String::new();
    for (at, stretch) in route.chunks(2).enumerate() {
        let (start, end) = (stretch[0], stretch[stretch.len() - 1]);
        if at == 0 {
            let _ = write!(path, "M{:.1} {:.1}", start.0, start.1);
        } else {
            let before = route[at * 2 - 1];
            // A channel that turns back leaves and enters sideways, with a bend of fixed size.
            let reach = ((start.0 - before.0).abs() / 2.0).max(28.0);
            let _ = write!(
                path,
                " C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
                before.0 + if before.0 < route[at * 2 - 2].0 { -reach } else { reach },
                before.1,
                start.0 + if start.0 > end.0 { reach } else { -reach },
                start.1,
                start.0,
                start.1
            );
        }
        let _ = write!(path, " L{:.1} {:.1}", end.0, end.1);
    }
    let class = if edge.is_lossy { "channel lossy" } else { "channel" };
    out.element("path", &[("class", &class), ("d", &path), ("marker-end", &"url(#tip)")]);
}

fn draw_label(out: &mut Drawing, edge: &Edge, route: &[Point]) {
    let (x, y) = route[1];
    let lossy = if edge.is_lossy { ", drops when full" } else { "" };
    out.open("text", &[("class", &"label"), ("x", &Tenths(x + 5.0)), ("y", &Tenths(y - 4.0))]);
    out.words(&edge.label);
    out.text("title", &[], &format!("holds {}{lossy}", edge.label));
    out.close("text");
}

fn draw_box(out: &mut Drawing, node: &Node, area: &Area) {
    let (class, corner) = match node.kind {
        Kind::Endpoint => ("endpoint", area.height / 2.0),
        Kind::Element => ("element", 3.0),
        Kind::HostElement => ("host", 3.0),
    };
    out.element(
        "rect",
        &[
            ("class", &class),
            ("x", &Tenths(area.x)),
            ("y", &Tenths(area.y)),
            ("width", &Tenths(area.width)),
            ("height", &Tenths(area.height)),
            ("rx", &Tenths(corner)),
        ],
    );
    let middle = area.x + area.width / 2.0;
    text(out, "title", "middle", (middle, area.y + 18.0), &node.title);
    text(out, "dim", "middle", (middle, area.y + 33.0), &node.subtitle);
    for (ports, anchor, x) in
        [(&node.inputs, "start", area.x + 7.0), (&node.outputs, "end", area.x + area.width - 7.0)]
    {
        for (at, name) in ports.iter().enumerate() {
            let y = area.y + port_offset(node, at) + 4.0;
            text(out, "dim", anchor, (x, y), name);
        }
    }
}

fn text(out: &mut Drawing, class: &str, anchor: &str, (x, y): Point, text: &str) {
    if !text.is_empty() {
        out.text(
            "text",
            &[("class", &class), ("text-anchor", &anchor), ("x", &Tenths(x)), ("y", &Tenths(y))],
            text,
        );
    }
}
