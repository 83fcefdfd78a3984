// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places on the earth as scores of a sorted set.
//!
//! A place is a geohash of 52 bits: the 26 bits of the latitude and the 26 bits of the longitude,
//! bit by bit in turn. A double holds it exactly. Places with the same first bits lie in the same
//! rectangle, so a rectangle is a range of scores ([`Search`]).

mod search;

use crate::number::Digits;

pub use search::{Match, Order, Search, Shape};

/// Bits of each coordinate.
const BITS: u32 = 26;

/// Largest latitude in degrees, that of the square Mercator map.
pub const MAX_LATITUDE: f64 = 85.051_128_78;
/// Largest longitude in degrees.
pub const MAX_LONGITUDE: f64 = 180.0;

/// Radius of the earth in meters, as Redis takes it.
pub const EARTH_RADIUS_M: f64 = 6_372_797.560_856;

/// A place on the earth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Degrees to the east.
    pub longitude: f64,
    /// Degrees to the north.
    pub latitude: f64,
}

/// A unit of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `m`
    Meters,
    /// `km`
    Kilometers,
    /// `ft`
    Feet,
    /// `mi`
    Miles,
}

impl Unit {
    /// Reads the name of a unit in any case. `None` stands for Redis' error "unsupported unit
    /// provided. please use M, KM, FT, MI".
    pub fn parse(name: &[u8]) -> Option<Self> {
        let units = [
            (b"m".as_slice(), Self::Meters),
            (b"km", Self::Kilometers),
            (b"ft", Self::Feet),
            (b"mi", Self::Miles),
        ];
        units.into_iter().find(|(text, _)| text.eq_ignore_ascii_case(name)).map(|(_, unit)| unit)
    }

    /// Length of one unit in meters.
    pub fn meters(self) -> f64 {
        match self {
            Self::Meters => 1.0,
            Self::Kilometers => 1000.0,
            Self::Feet => 0.3048,
            Self::Miles => 1609.34,
        }
    }
}

impl Point {
    /// A place that has a geohash; `None` beyond [`MAX_LONGITUDE`] or [`MAX_LATITUDE`].
    pub fn new(longitude: f64, latitude: f64) -> Option<Self> {
        let is_valid = longitude.abs() <= MAX_LONGITUDE && latitude.abs() <= MAX_LATITUDE;
        is_valid.then_some(Self { longitude, latitude })
    }

    /// The geohash of the place, which is the score of a member.
    pub fn score(self) -> f64 {
        Cell::at(self, BITS, MAX_LATITUDE).hash() as f64
    }

    /// The middle of the rectangle whose geohash is `score`.
    pub fn from_score(score: f64) -> Self {
        let cell = Cell::from_hash(hash_of(score), BITS);
        let ([west, east], [south, north]) = (cell.longitudes(), cell.latitudes());
        Self {
            longitude: f64::midpoint(west, east).clamp(-MAX_LONGITUDE, MAX_LONGITUDE),
            latitude: f64::midpoint(south, north).clamp(-MAX_LATITUDE, MAX_LATITUDE),
        }
    }

    /// The distance of two places in meters, on a sphere, by the haversine formula.
    pub fn distance_m(self, other: Self) -> f64 {
        let half = (self.longitude.to_radians() - other.longitude.to_radians()) / 2.0;
        let sine = half.sin();
        if sine == 0.0 {
            return self.latitude_distance_m(other);
        }
        let (latitude, other_latitude) = (self.latitude.to_radians(), other.latitude.to_radians());
        let latitude_sine = ((other_latitude - latitude) / 2.0).sin();
        let square =
            latitude_sine * latitude_sine + latitude.cos() * other_latitude.cos() * sine * sine;
        2.0 * EARTH_RADIUS_M * square.sqrt().asin()
    }

    /// The distance of the parallels of two places in meters.
    pub fn latitude_distance_m(self, other: Self) -> f64 {
        EARTH_RADIUS_M * (other.latitude.to_radians() - self.latitude.to_radians()).abs()
    }

    /// The geohash as text (`GEOHASH`): 11 letters of the alphabet of geohash.org, for latitudes up
    /// to 90 degrees. The last letter is always `0`, because it would need more bits.
    pub fn text(self) -> [u8; 11] {
        const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let hash = Cell::at(self, BITS, 90.0).hash();
        std::array::from_fn(|at| {
            let shift = (2 * BITS as usize).checked_sub(5 * (at + 1));
            ALPHABET[shift.map_or(0, |shift| (hash >> shift) as usize % 32)]
        })
    }
}

/// Appends a distance with four digits after the point, as Redis 7.2 rounds it.
pub fn push_distance(distance: f64, out: &mut Vec<u8>) {
    let scaled = (distance * 10_000.0).round_ties_even() as i64;
    out.extend_from_slice(Digits::new(scaled / 10_000).as_bytes());
    out.push(b'.');
    let fraction = 10_000 + scaled % 10_000;
    out.extend_from_slice(&Digits::new(fraction).as_bytes()[1..]);
}

/// Appends a coordinate in degrees, as `GEOPOS` gives it: up to 17 digits after the point.
pub fn push_coordinate(degrees: f64, out: &mut Vec<u8>) {
    let text = format!("{degrees:.17}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    out.extend_from_slice(if text == "-0" { b"0" } else { text.as_bytes() });
}

/// The integer that C on x86-64 makes of a score. For scores that are no geohashes C leaves it
/// open; clients may see the places that they stand for, which are those of Redis.
fn hash_of(score: f64) -> u64 {
    const HALF: f64 = (1u64 << 63) as f64;
    let signed = |value: f64| if value.abs() < HALF { value as i64 } else { i64::MIN };
    if score < HALF { signed(score) as u64 } else { signed(score - HALF) as u64 ^ 1 << 63 }
}

/// A rectangle of the map: both coordinates, cut to some bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    longitude: u32,
    latitude: u32,
    bits: u32,
}

impl Cell {
    /// The rectangle with `point`, on a map whose latitudes end at `max_latitude`.
    fn at(point: Point, bits: u32, max_latitude: f64) -> Self {
        let cut =
            |value: f64, max: f64| ((value + max) / (2.0 * max) * f64::from(1u32 << bits)) as u32;
        let longitude = cut(point.longitude, MAX_LONGITUDE);
        Self { longitude, latitude: cut(point.latitude, max_latitude), bits }
    }

    fn from_hash(hash: u64, bits: u32) -> Self {
        Self { longitude: every_second_bit(hash >> 1), latitude: every_second_bit(hash), bits }
    }

    fn hash(self) -> u64 {
        spread_bits(self.latitude) | spread_bits(self.longitude) << 1
    }

    /// The rectangle that is `east` to the east and `north` to the north. The map has no edges, but
    /// places exactly on the eastern or northern edge lie in rectangles beyond the last.
    fn moved(self, east: i32, north: i32) -> Self {
        let mask = (1 << self.bits) - 1;
        let moved = |value: u32, by: i32| match by {
            0 => value,
            _ => value.wrapping_add_signed(by) & mask,
        };
        Self {
            longitude: moved(self.longitude, east),
            latitude: moved(self.latitude, north),
            bits: self.bits,
        }
    }

    /// The western and the eastern edge in degrees.
    fn longitudes(self) -> [f64; 2] {
        self.edges(self.longitude, MAX_LONGITUDE)
    }

    /// The southern and the northern edge in degrees.
    fn latitudes(self) -> [f64; 2] {
        self.edges(self.latitude, MAX_LATITUDE)
    }

    fn edges(self, value: u32, max: f64) -> [f64; 2] {
        let edge = |value: f64| -max + value / f64::from(1u32 << self.bits) * (2.0 * max);
        [edge(f64::from(value)), edge(f64::from(value) + 1.0)]
    }
}

/// Masks of groups of bits, and by how much the halves of each group move apart or together.
const GROUPS: [(u64, u32); 5] = [
    (0x0000_ffff_0000_ffff, 16),
    (0x00ff_00ff_00ff_00ff, 8),
    (0x0f0f_0f0f_0f0f_0f0f, 4),
    (0x3333_3333_3333_3333, 2),
    (0x5555_5555_5555_5555, 1),
];

/// Moves each bit to twice its position.
fn spread_bits(value: u32) -> u64 {
    GROUPS.iter().fold(u64::from(value), |bits, (mask, shift)| (bits | bits << shift) & mask)
}

/// Undoes [`spread_bits`]; bits between are ignored.
fn every_second_bit(hash: u64) -> u32 {
    let bits = hash & GROUPS[4].0;
    let masks = GROUPS.iter().map(|(mask, _)| *mask).rev().skip(1).chain([u64::from(u32::MAX)]);
    let shifts = GROUPS.iter().map(|(_, shift)| *shift).rev();
    masks.zip(shifts).fold(bits, |bits, (mask, shift)| (bits | bits >> shift) & mask) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const PALERMO: Point = Point { longitude: 13.361389, latitude: 38.115556 };
    const CATANIA: Point = Point { longitude: 15.087269, latitude: 37.502669 };

    #[test]
    fn places_have_the_scores_that_redis_gives() {
        assert_eq!(PALERMO.score(), 3479099956230698.0);
        assert_eq!(CATANIA.score(), 3479447370796909.0);
        let point = Point::from_score(3479099956230698.0);
        assert_eq!(point.longitude, 13.361_389_338_970_184);
        assert_eq!(point.latitude, 38.115_556_395_496_3);
    }

    #[test]
    fn distances_are_those_of_redis() {
        let stored = [PALERMO, CATANIA].map(|point| Point::from_score(point.score()));
        let text = |distance: f64| {
            let mut out = vec![];
            push_distance(distance, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(stored[0].distance_m(stored[1])), "166274.1516");
        let miles = stored[0].distance_m(stored[1]) / Unit::Miles.meters();
        assert_eq!(text(miles), "103.3182");
        assert_eq!(text(0.0), "0.0000");
        assert_eq!(text(12.00004), "12.0000");
        assert_eq!(text(0.05), "0.0500");
        let north = Point { latitude: 39.0, ..PALERMO };
        assert_eq!(PALERMO.distance_m(north), PALERMO.latitude_distance_m(north));
    }

    #[test]
    fn coordinates_have_the_digits_of_redis() {
        let text = |degrees: f64| {
            let mut out = vec![];
            push_coordinate(degrees, &mut out);
            String::from_utf8(out).unwrap()
        };
        let point = Point::from_score(PALERMO.score());
        assert_eq!(text(point.longitude), "13.36138933897018433");
        assert_eq!(text(point.latitude), "38.11555639549629859");
        let texts = [0.0, -0.0, -180.0, 100.0, 0.5, -1e-18].map(text);
        assert_eq!(texts, ["0", "0", "-180", "100", "0.5", "0"]);
    }

    #[test]
    fn texts_are_those_of_redis() {
        assert_eq!(&Point::from_score(PALERMO.score()).text(), b"sqc8b49rny0");
        assert_eq!(&Point::from_score(CATANIA.score()).text(), b"sqdtr74hyu0");
    }

    #[test]
    fn every_hash_is_found_again() {
        let mut random = fastrand::Rng::with_seed(4);
        for _ in 0..10_000 {
            let hash = random.u64(..1 << (2 * BITS));
            let cell = Cell::from_hash(hash, BITS);
            assert_eq!(cell.hash(), hash);
            assert_eq!(Point::from_score(hash as f64).score(), hash as f64);
            assert_eq!(cell.moved(-1, 1).moved(1, -1), cell);
        }
    }

    #[test]
    fn places_beyond_the_map_have_no_hash() {
        assert!(Point::new(180.0, MAX_LATITUDE).is_some());
        for (longitude, latitude) in [(180.1, 0.0), (0.0, 86.0), (f64::NAN, 0.0), (0.0, f64::NAN)] {
            assert_eq!(Point::new(longitude, latitude), None);
        }
        // Scores that are no geohashes give some place.
        for score in [-1.0, f64::INFINITY, 1e300, 0.5] {
            let point = Point::from_score(score);
            assert!(Point::new(point.longitude, point.latitude).is_some(), "{score}");
        }
        assert_eq!([-1.0, 3.9, 1e19, 1e300].map(hash_of), [u64::MAX, 3, 10u64.pow(19), 0]);
        assert_eq!([-1e300, f64::NEG_INFINITY].map(hash_of), [1 << 63; 2]);
        assert_eq!(hash_of(f64::INFINITY), 0);
    }

    #[test]
    fn units_are_read_in_any_case() {
        assert_eq!(Unit::parse(b"KM"), Some(Unit::Kilometers));
        assert_eq!(Unit::parse(b"ft"), Some(Unit::Feet));
        assert_eq!(Unit::parse(b"cm"), None);
    }
}
