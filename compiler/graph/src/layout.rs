// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A layered layout (Sugiyama, Tagawa and Toda 1981), in five steps: set aside channels that close
//! a cycle; assign each box to a column, the length of the longest path to it; reserve a slot in
//! each column that a channel passes; order each column so that few channels cross; choose vertical
//! positions near those of the neighbours without overlap. Channels are horizontal within columns
//! and bend only between them, so they never touch a box that they pass.

use super::{Kind, Node, Picture};

/// Height of a port, in pixels like all lengths here.
const PORT_PITCH: f64 = 22.0;
/// Height of a box above its first port.
const HEADER: f64 = 40.0;
const BOX_GAP: f64 = 26.0;
const COLUMN_GAP: f64 = 96.0;
const LANE_PITCH: f64 = 24.0;
const MARGIN: f64 = 24.0;
const LETTER_WIDTH: f64 = 7.4;

/// A point.
pub type Point = (f64, f64);

/// Position and size of a box.
#[derive(Clone, Copy, Debug, Default)]
pub struct Area {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// From left to right.
    pub width: f64,
    /// From top to bottom.
    pub height: f64,
}

/// Positions of all boxes and channels.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Areas by node.
    pub areas: Vec<Area>,
    /// Points by edge: each pair bounds a horizontal segment, and bends join the pairs.
    pub routes: Vec<Vec<Point>>,
    /// Width of the whole.
    pub width: f64,
    /// Height of the whole.
    pub height: f64,
}

/// A slot of a column: a box, or an edge that passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    Node(usize),
    Passing(usize),
}

/// A connection between slots of adjacent columns, with the vertical offsets of its ends.
struct Link {
    left: usize,
    left_offset: f64,
    right: usize,
    right_offset: f64,
}

struct Columns {
    slots: Vec<Slot>,
    heights: Vec<f64>,
    /// Column by slot.
    column: Vec<usize>,
    links: Vec<Link>,
    /// Slots by column, from top to bottom.
    order: Vec<Vec<usize>>,
    /// Upper edge by slot.
    top: Vec<f64>,
}

/// Places every box and channel of `picture`.
pub fn place(picture: &Picture) -> Layout {
    let is_back = back_edges(picture);
    let column_of = columns_of(picture, &is_back);
    let mut columns = Columns::new(picture, &is_back, &column_of);
    columns.reduce_crossings();
    columns.choose_heights();
    columns.finish(picture, &is_back)
}

/// Distance of a port from the upper edge of its box.
pub fn port_offset(node: &Node, port: usize) -> f64 {
    match node.kind {
        Kind::Endpoint => HEADER / 2.0,
        _ => HEADER + PORT_PITCH * (port as f64 + 0.5),
    }
}

fn size_of(node: &Node) -> (f64, f64) {
    let letters = |text: &String| text.chars().count();
    let widest = |ports: &[String]| ports.iter().map(letters).max().unwrap_or(0);
    let ports = widest(&node.inputs) + widest(&node.outputs) + 3;
    let letters = letters(&node.title).max(letters(&node.subtitle)).max(ports);
    let rows = node.inputs.len().max(node.outputs.len());
    let ports_height = match node.kind {
        Kind::Endpoint => 0.0,
        _ => PORT_PITCH * rows as f64 + 6.0,
    };
    (28.0 + LETTER_WIDTH * letters as f64, HEADER + ports_height)
}

/// Marks the edges that close a cycle, by a depth-first search from the sources.
fn back_edges(picture: &Picture) -> Vec<bool> {
    let count = picture.nodes.len();
    let mut starts: Vec<usize> = (0..count).collect();
    starts.sort_by_key(|&node| !picture.nodes[node].inputs.is_empty());
    let (mut is_open, mut is_done) = (vec![false; count], vec![false; count]);
    let mut is_back = vec![false; picture.edges.len()];
    for start in starts {
        // Each entry: a node, and the number of edges that were examined for it.
        let mut path = vec![(start, 0)];
        while let Some((node, looked)) = path.pop() {
            if is_done[node] {
                continue;
            }
            is_open[node] = true;
            let next = (looked..picture.edges.len()).find(|&at| picture.edges[at].source.0 == node);
            let Some(at) = next else {
                is_done[node] = true;
                is_open[node] = false;
                continue;
            };
            path.push((node, at + 1));
            let sink = picture.edges[at].sink.0;
            if is_open[sink] {
                is_back[at] = true;
            } else if !is_done[sink] {
                path.push((sink, 0));
            }
        }
    }
    is_back
}

/// The column of each node: the length of the longest path to it. Nodes without inputs move next to
/// their reader.
fn columns_of(picture: &Picture, is_back: &[bool]) -> Vec<usize> {
    let edges =
        || picture.edges.iter().zip(is_back).filter(|(_, back)| !**back).map(|(edge, _)| edge);
    let mut column = vec![0; picture.nodes.len()];
    for _ in 0..picture.nodes.len() {
        for edge in edges() {
            column[edge.sink.0] = column[edge.sink.0].max(column[edge.source.0] + 1);
        }
    }
    for (at, node) in picture.nodes.iter().enumerate() {
        let readers = edges().filter(|edge| edge.source.0 == at).map(|edge| column[edge.sink.0]);
        if let (true, Some(nearest)) = (node.inputs.is_empty(), readers.min()) {
            column[at] = nearest - 1;
        }
    }
    column
}

impl Columns {
    fn new(picture: &Picture, is_back: &[bool], column_of: &[usize]) -> Self {
        let mut slots: Vec<Slot> = (0..picture.nodes.len()).map(Slot::Node).collect();
        let mut heights: Vec<f64> = picture.nodes.iter().map(|node| size_of(node).1).collect();
        let mut column = column_of.to_vec();
        let mut links = vec![];
        let offset = |(node, port): (usize, usize)| port_offset(&picture.nodes[node], port);
        for (at, edge) in picture.edges.iter().enumerate().filter(|(at, _)| !is_back[*at]) {
            let (mut left, mut left_offset) = (edge.source.0, offset(edge.source));
            for passed in column_of[edge.source.0] + 1..column_of[edge.sink.0] {
                slots.push(Slot::Passing(at));
                heights.push(PORT_PITCH);
                column.push(passed);
                let (right, right_offset) = (slots.len() - 1, PORT_PITCH / 2.0);
                links.push(Link { left, left_offset, right, right_offset });
                (left, left_offset) = (right, right_offset);
            }
            let right_offset = offset(edge.sink);
            links.push(Link { left, left_offset, right: edge.sink.0, right_offset });
        }
        let mut order = vec![vec![]; column.iter().max().map_or(0, |last| last + 1)];
        for (slot, &at) in column.iter().enumerate() {
            order[at].push(slot);
        }
        let top = vec![0.0; slots.len()];
        let mut columns = Self { slots, heights, column, links, order, top };
        columns.stack();
        columns
    }

    /// Stacks the slots of each column.
    fn stack(&mut self) {
        for column in &self.order {
            let mut y = 0.0;
            for &slot in column {
                self.top[slot] = y;
                y += self.heights[slot] + BOX_GAP;
            }
        }
    }

    /// The links of a slot on one side: the vertical position of the port at the far end, and the
    /// offset from the top of the slot.
    fn pulls(&self, slot: usize, look_left: bool) -> Vec<(f64, f64)> {
        self.links
            .iter()
            .filter_map(|link| match look_left {
                true if link.right == slot => {
                    Some((self.top[link.left] + link.left_offset, link.right_offset))
                }
                false if link.left == slot => {
                    Some((self.top[link.right] + link.right_offset, link.left_offset))
                }
                _ => None,
            })
            .collect()
    }

    /// The top that makes the links of a slot on one side as horizontal as possible; `None` without
    /// links.
    fn wish(&self, slot: usize, look_left: bool) -> Option<f64> {
        let pulls = self.pulls(slot, look_left);
        let sum: f64 = pulls.iter().map(|(far, own)| far - own).sum();
        (!pulls.is_empty()).then(|| sum / pulls.len() as f64)
    }

    /// Sort key of a slot in its column: the mean position of the ports that it is joined to. Its
    /// own ports do not count, or a tall box would move above a low one that is joined higher.
    fn rank(&self, slot: usize, look_left: bool) -> Option<f64> {
        let pulls = self.pulls(slot, look_left);
        let sum: f64 = pulls.iter().map(|(far, _)| far).sum();
        (!pulls.is_empty()).then(|| sum / pulls.len() as f64)
    }

    /// Sweeps over the columns, sorts each by the positions of its neighbours, and keeps the best
    /// order.
    fn reduce_crossings(&mut self) {
        let mut best = (self.crossings(), self.order.clone());
        for sweep in 0..12 {
            let look_left = sweep % 2 == 0;
            let count = self.order.len();
            for step in 0..count {
                let at = if look_left { step } else { count - 1 - step };
                let mut keyed: Vec<(f64, usize)> = self.order[at]
                    .iter()
                    .map(|&slot| (self.rank(slot, look_left).unwrap_or(self.top[slot]), slot))
                    .collect();
                keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
                self.order[at] = keyed.into_iter().map(|(_, slot)| slot).collect();
                self.stack();
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.order.clone());
            }
        }
        self.order = best.1;
        self.stack();
    }

    fn crossings(&self) -> usize {
        let ends = |link: &Link| {
            let left = self.top[link.left] + link.left_offset;
            (self.column[link.left], left, self.top[link.right] + link.right_offset)
        };
        let ends: Vec<_> = self.links.iter().map(ends).collect();
        let crosses = |one: &(usize, f64, f64), other: &(usize, f64, f64)| {
            one.0 == other.0 && (one.1 - other.1) * (one.2 - other.2) < 0.0
        };
        let with_later = |(at, one)| ends[at + 1..].iter().filter(|it| crosses(one, it)).count();
        ends.iter().enumerate().map(with_later).sum()
    }

    /// Moves the slots of each column as close to their wishes as order and gaps allow.
    fn choose_heights(&mut self) {
        for sweep in 0..16 {
            let look_left = sweep % 2 == 0;
            let count = self.order.len();
            for step in 0..count {
                let at = if look_left { step } else { count - 1 - step };
                let column = self.order[at].clone();
                let wishes: Vec<f64> = column
                    .iter()
                    .map(|&slot| self.wish(slot, look_left).unwrap_or(self.top[slot]))
                    .collect();
                let sizes: Vec<f64> =
                    column.iter().map(|&slot| self.heights[slot] + BOX_GAP).collect();
                for (&slot, top) in column.iter().zip(nearest_tops(&wishes, &sizes)) {
                    self.top[slot] = top;
                }
            }
        }
    }

    /// Converts slots to areas and routes, and routes the edges that go back below the rest.
    fn finish(self, picture: &Picture, is_back: &[bool]) -> Layout {
        let highest = self.top.iter().copied().fold(f64::INFINITY, f64::min);
        let widths: Vec<f64> =
            self.order.iter().map(|column| self.width(picture, column)).collect();
        let mut x = MARGIN;
        let mut left = vec![];
        for width in &widths {
            left.push(x);
            x += width + COLUMN_GAP;
        }
        let mut layout = Layout { width: x - COLUMN_GAP + MARGIN, ..Layout::default() };
        for (at, node) in picture.nodes.iter().enumerate() {
            let (width, height) = size_of(node);
            let column = self.column[at];
            let x = left[column] + (widths[column] - width) / 2.0;
            layout.areas.push(Area { x, y: self.top[at] - highest + MARGIN, width, height });
        }
        let bottom = |slot: usize| self.top[slot] + self.heights[slot] - highest + MARGIN;
        let lowest = (0..self.slots.len()).map(bottom).fold(MARGIN, f64::max);
        let mut lane = lowest + LANE_PITCH / 2.0;
        for (at, edge) in picture.edges.iter().enumerate() {
            let port = |(node, port): (usize, usize), is_output: bool| {
                let area = layout.areas[node];
                let x = if is_output { area.x + area.width } else { area.x };
                (x, area.y + port_offset(&picture.nodes[node], port))
            };
            let (start, end) = (port(edge.source, true), port(edge.sink, false));
            let edge_of = |node: usize| {
                let column = self.column[node];
                (left[column], left[column] + widths[column])
            };
            let mut route = vec![start, (edge_of(edge.source.0).1, start.1)];
            if is_back[at] {
                lane += LANE_PITCH;
                let beyond = (edge_of(edge.source.0).1, edge_of(edge.sink.0).0);
                route.extend([(beyond.0, lane), (beyond.1, lane)]);
            } else {
                for (slot, _) in self.passing(at) {
                    let y = self.top[slot] - highest + MARGIN + PORT_PITCH / 2.0;
                    let column = self.column[slot];
                    route.extend([(left[column], y), (left[column] + widths[column], y)]);
                }
            }
            route.extend([(edge_of(edge.sink.0).0, end.1), end]);
            layout.routes.push(route);
        }
        layout.height = lane + MARGIN;
        layout
    }

    fn width(&self, picture: &Picture, column: &[usize]) -> f64 {
        let width = |&slot: &usize| match self.slots[slot] {
            Slot::Node(node) => size_of(&picture.nodes[node]).0,
            Slot::Passing(_) => 0.0,
        };
        column.iter().map(width).fold(0.0, f64::max)
    }

    /// The slots of an edge that passes columns, from left to right.
    fn passing(&self, edge: usize) -> impl Iterator<Item = (usize, &Slot)> {
        self.slots.iter().enumerate().filter(move |(_, slot)| **slot == Slot::Passing(edge))
    }
}

/// The upper edges nearest to `wishes` (least squares) such that each is at least the size of the
/// one above below it: isotonic regression by pooling neighbours that violate the order.
fn nearest_tops(wishes: &[f64], sizes: &[f64]) -> Vec<f64> {
    let mut before = 0.0;
    let mut pools: Vec<(f64, usize)> = vec![];
    for (wish, size) in wishes.iter().zip(sizes) {
        pools.push((wish - before, 1));
        before += size;
        while let [.., one, other] = pools.as_slice()
            && one.0 > other.0
        {
            let count = one.1 + other.1;
            let mean = (one.0 * one.1 as f64 + other.0 * other.1 as f64) / count as f64;
            pools.truncate(pools.len() - 2);
            pools.push((mean, count));
        }
    }
    let levels = pools.iter().flat_map(|&(mean, count)| std::iter::repeat_n(mean, count));
    let mut before = 0.0;
    levels
        .zip(sizes)
        .map(|(level, size)| {
            let top = level + before;
            before += size;
            top
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Edge;

    fn picture(count: usize, pairs: &[(usize, usize)]) -> Picture {
        let mut picture = Picture::default();
        for at in 0..count {
            let ports = |wanted: &dyn Fn(&(usize, usize)) -> bool| {
                let ports = pairs.iter().filter(|pair| wanted(pair)).count();
                vec!["port".to_owned(); ports]
            };
            picture.nodes.push(Node {
                kind: Kind::Element,
                title: format!("node{at}"),
                subtitle: "Type".repeat(1 + at % 4),
                inputs: ports(&|pair| pair.1 == at),
                outputs: ports(&|pair| pair.0 == at),
            });
        }
        for (at, &(source, sink)) in pairs.iter().enumerate() {
            let before = &pairs[..at];
            let output = before.iter().filter(|pair| pair.0 == source).count();
            let input = before.iter().filter(|pair| pair.1 == sink).count();
            picture.edges.push(Edge {
                source: (source, output),
                sink: (sink, input),
                label: "16".into(),
                is_lossy: false,
            });
        }
        picture
    }

    fn overlap(one: &Area, other: &Area) -> bool {
        one.x < other.x + other.width
            && other.x < one.x + one.width
            && one.y < other.y + other.height
            && other.y < one.y + one.height
    }

    #[test]
    fn random_graphs_have_no_overlaps_and_no_channel_through_a_box() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let count = random.usize(1..14);
            let pairs: Vec<_> = (0..random.usize(0..24))
                .map(|_| (random.usize(0..count), random.usize(0..count)))
                .collect();
            let layout = place(&picture(count, &pairs));
            for (at, area) in layout.areas.iter().enumerate() {
                assert!(area.x >= 0.0 && area.x + area.width <= layout.width, "seed {seed}");
                assert!(area.y >= 0.0 && area.y + area.height <= layout.height, "seed {seed}");
                for other in &layout.areas[at + 1..] {
                    assert!(!overlap(area, other), "seed {seed}: {area:?} {other:?}");
                }
            }
            for (route, &(source, sink)) in layout.routes.iter().zip(&pairs) {
                // Level stretches join points 0-1, 2-3 and so on.
                for stretch in route.chunks(2) {
                    assert_eq!(stretch[0].1, stretch[1].1, "seed {seed}");
                    for (at, area) in layout.areas.iter().enumerate() {
                        let (from, to) =
                            (stretch[0].0.min(stretch[1].0), stretch[0].0.max(stretch[1].0));
                        let (x, y) = (area.x + 0.5, stretch[0].1);
                        let crosses = from < area.x + area.width - 0.5
                            && to > x
                            && y > area.y
                            && y < area.y + area.height;
                        assert!(at == source || at == sink || !crosses, "seed {seed}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_chain_is_level_and_runs_from_left_to_right() {
        let layout = place(&picture(4, &[(2, 0), (0, 3), (3, 1)]));
        let [a, b, c, d] = [2, 0, 3, 1].map(|at| layout.areas[at]);
        assert!(a.x < b.x && b.x < c.x && c.x < d.x);
        assert!((a.y - d.y).abs() < 1e-6, "{layout:?}");
    }

    #[test]
    fn only_the_channel_that_closes_a_cycle_goes_back() {
        let picture = picture(3, &[(0, 1), (1, 2), (2, 1)]);
        assert_eq!(back_edges(&picture), [false, false, true]);
    }

    #[test]
    fn two_crossed_pairs_are_uncrossed() {
        let picture = picture(4, &[(0, 3), (1, 2)]);
        let layout = place(&picture);
        let is_above = |one: usize, other: usize| layout.areas[one].y < layout.areas[other].y;
        assert_eq!(is_above(0, 1), is_above(3, 2));
    }

    #[test]
    fn tops_keep_their_wishes_where_they_can() {
        assert_eq!(nearest_tops(&[0.0, 50.0], &[10.0, 10.0]), [0.0, 50.0]);
        assert_eq!(nearest_tops(&[20.0, 20.0], &[10.0, 10.0]), [15.0, 25.0]);
    }
}
