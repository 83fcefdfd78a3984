// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sankey diagrams as SVG: nodes in columns, and bands between them as wide as what flows.

use crate::Drawing;
use crate::page::{finish, page, text};

const WIDTH: f64 = 1040.0;
/// Room beside the first and the last column.
const SIDE: f64 = 90.0;
const HEAD: f64 = 56.0;
const FOOT: f64 = 34.0;
const NODE_WIDTH: f64 = 14.0;
/// Room between nodes of a column, for their names.
const GAP: f64 = 30.0;
/// Room between bands that pass a column.
const BAND_GAP: f64 = 5.0;
/// Height of the largest column without its gaps.
const FLOW_HEIGHT: f64 = 300.0;
/// Least height of a band and of a node.
const LEAST: f64 = 1.0;
const COLOURS: [&str; 6] = ["#1c6dd0", "#d9822b", "#3f9e6e", "#b04ec4", "#c23b3b", "#00a0a8"];

/// A node of a diagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Its column, from the left.
    pub column: usize,
    /// Its name.
    pub name: String,
    /// A note beside its name, such as its use; may be empty.
    pub note: String,
}

/// A flow between nodes of different columns. It passes the columns between them below their nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// Number of the node that it leaves.
    pub from: usize,
    /// Number of the node that it enters, in a later column.
    pub to: usize,
    /// Its amount; above 0.
    pub value: f64,
    /// Subject of the flow: its colour and its place in the legend.
    pub subject: usize,
}

/// Place of a node in a drawing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Place {
    /// Its left edge.
    pub x: f64,
    /// Its upper edge.
    pub y: f64,
    /// Its height, in proportion to what flows.
    pub height: f64,
}

/// Places of all nodes and of the bands between them, and the size of the page.
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    /// Places in the order of the nodes.
    pub places: Vec<Place>,
    /// Places that each flow passes in the columns between its nodes, in the order of the flows.
    pub passed: Vec<Vec<Place>>,
    /// Width and height of the page.
    pub size: (f64, f64),
    scale: f64,
}

/// Returns the more of what enters and what leaves a node.
fn through(node: usize, flows: &[Flow]) -> f64 {
    let sum = |end: fn(&Flow) -> usize| {
        flows.iter().filter(|flow| end(flow) == node).map(|flow| flow.value).sum::<f64>()
    };
    sum(|flow| flow.from).max(sum(|flow| flow.to))
}

/// Places nodes in their columns from the top, in the order given, and below them the bands that
/// pass the columns.
pub fn layout(nodes: &[Node], flows: &[Flow]) -> Layout {
    let columns = nodes.iter().map(|node| node.column + 1).max().unwrap_or(1);
    let sizes: Vec<f64> = (0..nodes.len()).map(|node| through(node, flows)).collect();
    let sum = |column: usize| -> f64 {
        let of = nodes.iter().zip(&sizes).filter(|(node, _)| node.column == column);
        of.map(|(_, size)| size).sum()
    };
    let largest = (0..columns).map(sum).fold(0.0, f64::max);
    let scale = if largest > 0.0 { FLOW_HEIGHT / largest } else { 0.0 };
    let step = (WIDTH - 2.0 * SIDE - NODE_WIDTH) / (columns.max(2) - 1) as f64;
    let mut next = vec![HEAD + GAP; columns];
    let mut place = |column: usize, size: f64, gap: f64| {
        let (x, height) = (SIDE + step * column as f64, (size * scale).max(LEAST));
        let place = Place { x, y: next[column], height };
        next[column] += height + gap;
        place
    };
    let places = nodes.iter().zip(&sizes).map(|(node, size)| place(node.column, *size, GAP));
    let places = places.collect();
    let passed = flows.iter().map(|flow| {
        let column = |node: usize| nodes.get(node).map_or(0, |node| node.column);
        let between = column(flow.from) + 1..column(flow.to);
        between.map(|column| place(column, flow.value, BAND_GAP)).collect()
    });
    let passed = passed.collect();
    let height = next.into_iter().fold(HEAD, f64::max) + FOOT;
    Layout { places, passed, size: (WIDTH, height), scale }
}

/// Draws a diagram with a legend of the subjects, and below it a line about the origin of the
/// figures. Flows that end in no node are left out.
pub fn svg(title: &str, subjects: &[&str], nodes: &[Node], flows: &[Flow], origin: &str) -> String {
    let Layout { places, passed, size, scale } = layout(nodes, flows);
    let mut out = page(size, 12, title);
    draw_legend(&mut out, subjects);
    let mut left: Vec<f64> = places.iter().map(|place| place.y).collect();
    let mut entered = left.clone();
    for (flow, passed) in flows.iter().zip(&passed) {
        let (Some(from), Some(to)) = (places.get(flow.from), places.get(flow.to)) else { continue };
        let mut points = vec![(from.x + NODE_WIDTH, left[flow.from])];
        for Place { x, y, .. } in passed {
            points.extend([(*x, *y), (x + NODE_WIDTH, *y)]);
        }
        points.push((to.x, entered[flow.to]));
        left[flow.from] += flow.value * scale;
        entered[flow.to] += flow.value * scale;
        let height = (flow.value * scale).max(LEAST);
        draw_band(&mut out, &points, height, COLOURS[flow.subject % COLOURS.len()]);
    }
    for (node, place) in nodes.iter().zip(&places) {
        draw_node(&mut out, node, place);
    }
    finish(out, size.1 - 12.0, origin)
}

fn draw_legend(out: &mut Drawing, subjects: &[&str]) {
    let mut x = 16.0;
    for (at, name) in subjects.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        out.element(
            "rect",
            &[("x", &x), ("y", &40), ("width", &14), ("height", &10), ("fill", &colour)],
        );
        text(out, (x + 19.0, 49.0), "start", "normal", name);
        x += 40.0 + 6.6 * name.chars().count() as f64;
    }
}

/// Draws a band whose upper edge passes these points, from left to right.
fn draw_band(out: &mut Drawing, points: &[(f64, f64)], height: f64, colour: &str) {
    let Some((first, rest)) = points.split_first() else { return };
    let mut path = format!("M{:.1} {:.1}", first.0, first.1);
    path += &edge(*first, rest.iter().copied());
    path += &format!("v{height:.1}");
    let mut back = points.iter().rev().map(|(x, y)| (*x, y + height));
    if let Some(last) = back.next() {
        path += &edge(last, back);
    }
    path.push('z');
    out.element("path", &[("d", &path), ("fill", &colour), ("fill-opacity", &0.55)]);
}

/// Returns a curve from a point through others, level at each of them.
fn edge(mut at: (f64, f64), points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (x, y) in points {
        let middle = (at.0 + x) / 2.0;
        path += &format!("C{middle:.1} {:.1} {middle:.1} {y:.1} {x:.1} {y:.1}", at.1);
        at = (x, y);
    }
    path
}

fn draw_node(out: &mut Drawing, node: &Node, place: &Place) {
    let Place { x, y, height } = *place;
    out.element(
        "rect",
        &[
            ("x", &crate::Tenths(x)),
            ("y", &crate::Tenths(y)),
            ("width", &NODE_WIDTH),
            ("height", &crate::Tenths(height)),
            ("fill", &"#3a3f47"),
        ],
    );
    let middle = x + NODE_WIDTH / 2.0;
    text(out, (middle, y - 16.0), "middle", "bold", &node.name);
    text(out, (middle, y - 4.0), "middle", "normal", &node.note);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(column: usize, name: &str) -> Node {
        Node { column, name: name.into(), note: "50 %".into() }
    }

    fn sample() -> (Vec<Node>, Vec<Flow>) {
        let nodes = vec![node(0, "a"), node(0, "b"), node(1, "link"), node(2, "c"), node(2, "d")];
        let flow = |from, to, value, subject| Flow { from, to, value, subject };
        let flows = vec![
            flow(0, 2, 30.0, 0),
            flow(1, 2, 10.0, 1),
            flow(2, 3, 25.0, 0),
            flow(2, 4, 15.0, 1),
        ];
        (nodes, flows)
    }

    #[test]
    fn nodes_do_not_overlap_and_are_on_the_page() {
        let (nodes, flows) = sample();
        let Layout { places, size, .. } = layout(&nodes, &flows);
        for (one, first) in nodes.iter().zip(&places) {
            assert!(first.x >= 0.0 && first.x + NODE_WIDTH <= size.0);
            assert!(first.y - GAP >= HEAD - 1.0 && first.y + first.height <= size.1 - FOOT);
            for (other, second) in nodes.iter().zip(&places) {
                let is_apart = one.column != other.column
                    || first.y + first.height + GAP <= second.y + 0.1
                    || second.y + second.height + GAP <= first.y + 0.1;
                assert!(one == other || is_apart, "{one:?} {other:?} {places:?}");
            }
        }
    }

    #[test]
    fn a_band_passes_a_column_below_its_nodes() {
        let (nodes, mut flows) = sample();
        flows.push(Flow { from: 0, to: 4, value: 5.0, subject: 1 });
        let Layout { places, passed, size, .. } = layout(&nodes, &flows);
        assert!(passed[..4].iter().all(Vec::is_empty));
        let [one] = passed[4][..] else { panic!("{passed:?}") };
        assert_eq!(one.x, places[2].x);
        assert!(one.y > places[2].y + places[2].height, "{one:?} {places:?}");
        assert!(one.y + one.height <= size.1 - FOOT);
    }

    #[test]
    fn heights_are_in_proportion_to_flows() {
        let (nodes, flows) = sample();
        let places = layout(&nodes, &flows).places;
        assert!((places[0].height - 3.0 * places[1].height).abs() < 1e-9);
        assert!((places[2].height - FLOW_HEIGHT).abs() < 1e-9, "the link has all flows");
        let unused = layout(&nodes[..1], &[]);
        assert_eq!(unused.places[0].height, LEAST);
    }

    #[test]
    fn every_flow_and_every_name_is_drawn() {
        let (nodes, flows) = sample();
        let svg = svg("t", &["x<y", "z"], &nodes, &flows, "of a model");
        assert_eq!(svg.matches("fill-opacity").count(), flows.len());
        assert!(svg.contains("x&lt;y") && svg.contains(">link<") && svg.contains("of a model"));
        assert!(!svg.contains("NaN"));
        let missing = [Flow { from: 9, to: 0, value: 1.0, subject: 0 }];
        assert!(super::svg("t", &[], &nodes, &missing, "").contains("</svg>"));
    }
}
