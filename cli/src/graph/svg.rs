// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The drawing as SVG: plain shapes and one style sheet, readable on white and on dark pages.

use super::layout::{Area, Layout, Point, port_offset};
use super::{Edge, Kind, Node, Picture};
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
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">\n"
    );
    let _ = writeln!(out, "<title>Element graph of {}</title>", escape(name));
    let _ = writeln!(out, "<style>\n{STYLE}\n</style>");
    out += "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" \
            markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#41566b\"/>\
            </marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    for (edge, route) in picture.edges.iter().zip(&layout.routes) {
        draw_channel(&mut out, edge, route);
    }
    for (node, area) in picture.nodes.iter().zip(&layout.areas) {
        draw_box(&mut out, node, area);
    }
    for (edge, route) in picture.edges.iter().zip(&layout.routes) {
        draw_label(&mut out, edge, route);
    }
    out + "</svg>\n"
}

/// Level stretches are lines; between two of them the channel bends.
fn draw_channel(out: &mut String, edge: &Edge, route: &[Point]) {
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
    let _ = writeln!(out, "<path class=\"{class}\" d=\"{path}\" marker-end=\"url(#tip)\"/>");
}

fn draw_label(out: &mut String, edge: &Edge, route: &[Point]) {
    let (x, y) = route[1];
    let lossy = if edge.is_lossy { ", drops when full" } else { "" };
    let _ = writeln!(
        out,
        "<text class=\"label\" x=\"{:.1}\" y=\"{:.1}\">{}<title>holds {}{lossy}</title></text>",
        x + 5.0,
        y - 4.0,
        escape(&edge.label),
        escape(&edge.label)
    );
}

fn draw_box(out: &mut String, node: &Node, area: &Area) {
    let (class, corner) = match node.kind {
        Kind::Endpoint => ("endpoint", area.height / 2.0),
        Kind::Element => ("element", 3.0),
        Kind::HostElement => ("host", 3.0),
    };
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
         rx=\"{corner:.1}\"/>",
        area.x, area.y, area.width, area.height
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

fn text(out: &mut String, class: &str, anchor: &str, (x, y): Point, text: &str) {
    if !text.is_empty() {
        let _ = writeln!(
            out,
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            escape(text)
        );
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_the_document() {
        assert_eq!(escape("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
    }
}
