// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Members of a sorted set near a place.
//!
//! The area of a search is covered by nine rectangles of the map: the one with the center and its
//! neighbours. Their size is the smallest of which nine cover the area. Each is a range of scores,
//! whose members are then compared with the area itself. Rectangles are visited in Redis' order,
//! which is that of results that are not sorted.

use super::{BITS, Cell, EARTH_RADIUS_M, MAX_LATITUDE, Point};
use crate::entry::Entry;
use crate::zset::{ScoreBound, ScoreRange, ZSetRef};

/// Half of the edge of the square Mercator map in meters, as Redis takes it.
const HALF_MAP_M: f64 = 20_037_726.37;

/// The area of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Places up to this distance.
    Circle {
        /// The distance in meters.
        radius_m: f64,
    },
    /// Places in a rectangle whose middle is the center.
    Rectangle {
        /// Length from west to east in meters.
        width_m: f64,
        /// Length from south to north in meters.
        height_m: f64,
    },
}

/// Order of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The nearest first (`ASC`).
    NearestFirst,
    /// The farthest first (`DESC`).
    FarthestFirst,
}

/// A search (`GEOSEARCH`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// The middle of the area.
    pub center: Point,
    /// The area.
    pub shape: Shape,
    /// Order of results; `None` for any.
    pub order: Option<Order>,
    /// Largest number of results (`COUNT`). Without `is_any`, these are the first in the order, and
    /// the nearest if there is none.
    pub count: Option<usize>,
    /// Whether the search ends when it has enough results (`ANY`).
    pub is_any: bool,
}

/// A result of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match<'a> {
    /// The member.
    pub member: Entry<'a>,
    /// Its score, which is its geohash.
    pub score: f64,
    /// Its place.
    pub point: Point,
    /// Distance from the center in meters.
    pub distance_m: f64,
}

impl Search {
    /// The members of `set` in the area.
    pub fn run<'a>(&self, set: ZSetRef<'a>) -> Vec<Match<'a>> {
        let mut matches = vec![];
        let enough = self.count.filter(|_| self.is_any).unwrap_or(usize::MAX);
        let mut last = None;
        for cell in self.cells() {
            // In a coarse map, a cell may be the neighbour on both sides.
            if last == Some(cell) || matches.len() >= enough {
                continue;
            }
            last = Some(cell);
            let ranks = set.ranks_by_score(&score_range(cell));
            let found = set.range(ranks).filter_map(|(member, score)| {
                let point = Point::from_score(score);
                let distance_m = self.shape.distance_m(self.center, point)?;
                Some(Match { member, score, point, distance_m })
            });
            matches.extend(found.take(enough - matches.len()));
        }
        let nearest = self.count.filter(|_| !self.is_any).map(|_| Order::NearestFirst);
        match self.order.or(nearest) {
            None => {}
            Some(Order::NearestFirst) => {
                matches.sort_by(|one, other| one.distance_m.total_cmp(&other.distance_m));
            }
            Some(Order::FarthestFirst) => {
                matches.sort_by(|one, other| other.distance_m.total_cmp(&one.distance_m));
            }
        }
        matches.truncate(self.count.unwrap_or(usize::MAX));
        matches
    }

    /// Rectangles that cover the area, in the order of Redis.
    fn cells(&self) -> impl Iterator<Item = Cell> {
        let bounds = self.shape.bounds(self.center);
        let mut bits = self.shape.bits(self.center.latitude);
        let mut center = Cell::at(self.center, bits, MAX_LATITUDE);
        if bits > 1 && !bounds.are_covered(center) {
            bits -= 1;
            center = Cell::at(self.center, bits, MAX_LATITUDE);
        }
        // Center, north, south, east, west, then the corners.
        let moves = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
        moves
            .into_iter()
            .filter(move |&(east, north)| bits < 2 || bounds.reach(center, east, north))
            .map(move |(east, north)| center.moved(east, north))
    }
}

/// Edges of the area in degrees.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    west: f64,
    east: f64,
    south: f64,
    north: f64,
}

impl Bounds {
    /// Whether `cell` and its neighbours cover the area.
    fn are_covered(&self, cell: Cell) -> bool {
        let ([west, _], [_, east]) =
            (cell.moved(-1, 0).longitudes(), cell.moved(1, 0).longitudes());
        let ([south, _], [_, north]) =
            (cell.moved(0, -1).latitudes(), cell.moved(0, 1).latitudes());
        west <= self.west && self.east <= east && south <= self.south && self.north <= north
    }

    /// Whether the area may reach the neighbour of `cell` in this direction: it does not end within
    /// the cell before.
    fn reach(&self, cell: Cell, east: i32, north: i32) -> bool {
        let ([cell_west, cell_east], [cell_south, cell_north]) =
            (cell.longitudes(), cell.latitudes());
        let is_beyond =
            |direction: i32, low: f64, own_low: f64, high: f64, own_high: f64| match direction {
                -1 => own_low >= low,
                1 => own_high <= high,
                _ => true,
            };
        is_beyond(east, self.west, cell_west, self.east, cell_east)
            && is_beyond(north, self.south, cell_south, self.north, cell_north)
    }
}

impl Shape {
    /// The distance of `point` from the center in meters, if it is in the area.
    fn distance_m(self, center: Point, point: Point) -> Option<f64> {
        match self {
            Self::Circle { radius_m } => {
                Some(center.distance_m(point)).filter(|&distance_m| distance_m <= radius_m)
            }
            Self::Rectangle { width_m, height_m } => {
                // The width is measured along the parallel of the point.
                let middle = Point { latitude: point.latitude, ..center };
                let is_inside = center.latitude_distance_m(point) <= height_m / 2.0
                    && point.distance_m(middle) <= width_m / 2.0;
                is_inside.then(|| center.distance_m(point))
            }
        }
    }

    /// Half of the width and half of the height in meters.
    fn half_lengths_m(self) -> (f64, f64) {
        match self {
            Self::Circle { radius_m } => (radius_m, radius_m),
            Self::Rectangle { width_m, height_m } => (width_m / 2.0, height_m / 2.0),
        }
    }

    fn bounds(self, center: Point) -> Bounds {
        let (width_m, height_m) = self.half_lengths_m();
        let Point { longitude, latitude } = center;
        let height = (height_m / EARTH_RADIUS_M).to_degrees();
        // Meridians are closer on the side of the pole.
        let outer = if latitude < 0.0 { latitude - height } else { latitude + height };
        let width = (width_m / EARTH_RADIUS_M / outer.to_radians().cos()).to_degrees();
        Bounds {
            west: longitude - width,
            east: longitude + width,
            south: latitude - height,
            north: latitude + height,
        }
    }

    /// Bits of the coordinates of rectangles that are about as large as the area.
    fn bits(self, latitude: f64) -> u32 {
        let (width_m, height_m) = self.half_lengths_m();
        let mut length_m = match self {
            Self::Circle { radius_m } => radius_m,
            Self::Rectangle { .. } => width_m.hypot(height_m),
        };
        if length_m <= 0.0 {
            return BITS;
        }
        let mut bits = 0;
        while length_m < HALF_MAP_M && bits <= BITS + 2 {
            length_m *= 2.0;
            bits += 1;
        }
        // One less, so that neighbours cover the area wherever the center is in its rectangle; and
        // again towards the poles, where rectangles are narrow.
        let less = 1 + i32::from(latitude.abs() > 66.0) + i32::from(latitude.abs() > 80.0);
        (bits as i32 - less).clamp(1, BITS as i32) as u32
    }
}

/// The scores of a rectangle.
fn score_range(cell: Cell) -> ScoreRange {
    let shift = 2 * (BITS - cell.bits);
    let edge = |hash: u64| (hash << shift) as f64;
    ScoreRange {
        min: ScoreBound::Inclusive(edge(cell.hash())),
        max: ScoreBound::Exclusive(edge(cell.hash() + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::zset::{AddOptions, ZSet};
    use std::collections::BTreeSet;

    fn random_point(random: &mut fastrand::Rng) -> Point {
        Point {
            longitude: random.f64() * 360.0 - 180.0,
            latitude: (random.f64() * 2.0 - 1.0) * 70.0,
        }
    }

    fn places(random: &mut fastrand::Rng, count: u32) -> (ZSet, Vec<Point>) {
        let (mut set, limits) = (ZSet::default(), Limits::default());
        let mut points = vec![];
        for number in 0..count {
            let score = random_point(random).score();
            let member = number.to_string();
            set.add(&limits, member.as_bytes(), score, AddOptions::default()).unwrap();
            points.push(Point::from_score(score));
        }
        (set, points)
    }

    fn search(center: Point, shape: Shape) -> Search {
        Search { center, shape, order: None, count: None, is_any: false }
    }

    #[test]
    fn a_search_finds_every_place_in_its_area() {
        let mut random = fastrand::Rng::with_seed(11);
        let (set, points) = places(&mut random, 2000);
        for _ in 0..300 {
            let center = random_point(&mut random);
            let length = 10f64.powf(random.f64() * 3.0 + 3.5);
            let shape = match random.bool() {
                true => Shape::Circle { radius_m: length },
                false => Shape::Rectangle { width_m: length, height_m: random.f64() * length },
            };
            let expected: BTreeSet<i64> = (0..2000)
                .filter(|&number| shape.distance_m(center, points[number as usize]).is_some())
                .collect();
            let matches = search(center, shape).run(set.view());
            let found: BTreeSet<_> =
                matches.iter().filter_map(|found| found.member.integer()).collect();
            assert_eq!(found, expected, "{center:?} {shape:?}");
        }
    }

    #[test]
    fn results_are_sorted_and_limited() {
        let mut random = fastrand::Rng::with_seed(12);
        let (set, _) = places(&mut random, 500);
        let all = search(random_point(&mut random), Shape::Circle { radius_m: 4e6 });
        let distances = |search: Search| -> Vec<f64> {
            search.run(set.view()).iter().map(|found| found.distance_m).collect()
        };
        let mut sorted = distances(all);
        assert!(sorted.len() > 20);
        sorted.sort_by(f64::total_cmp);
        let nearest = Search { order: Some(Order::NearestFirst), ..all };
        assert_eq!(distances(nearest), sorted);
        assert_eq!(distances(Search { count: Some(5), ..all }), sorted[..5]);
        let farthest = Search { order: Some(Order::FarthestFirst), count: Some(3), ..all };
        assert!(distances(farthest).iter().eq(sorted.iter().rev().take(3)));
        let any = distances(Search { count: Some(7), is_any: true, ..all });
        assert_eq!(any, distances(all)[..7]);
    }

    #[test]
    fn areas_of_any_size_have_an_end() {
        let mut random = fastrand::Rng::with_seed(13);
        let (set, _) = places(&mut random, 100);
        for length in [0.0, -1.0, 1e-300, 1e9, f64::INFINITY, f64::NAN] {
            for latitude in [-85.0, 0.0, 85.05] {
                let center = Point { longitude: 179.9, latitude };
                search(center, Shape::Circle { radius_m: length }).run(set.view());
                let shape = Shape::Rectangle { width_m: length, height_m: length };
                search(center, shape).run(set.view());
            }
        }
        let whole =
            search(Point { longitude: 0.0, latitude: 0.0 }, Shape::Circle { radius_m: 3e7 });
        assert_eq!(whole.run(set.view()).len(), 100);
    }
}
