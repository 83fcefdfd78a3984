// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places against a redis-server.

use super::server::{Reply, Server};
use super::with_server;
use freeport_kv_types::Limits;
use freeport_kv_types::geo::{
    MAX_LATITUDE, MAX_LONGITUDE, Order, Point, Search, Shape, Unit, push_coordinate, push_distance,
};
use freeport_kv_types::zset::{AddOptions, ZSet};
use freeport_testbed::usual_or_long;

fn random_point(random: &mut fastrand::Rng) -> Point {
    let spread = [1.0, 10.0, MAX_LONGITUDE][random.usize(..3)];
    let mut coordinate = |spread: f64| (random.f64() - 0.5) * 2.0 * spread;
    let (longitude, latitude) = (coordinate(spread), coordinate(spread.min(MAX_LATITUDE)));
    // Some places on an edge of the map, but no two in one corner: their order is not defined.
    let (longitude, latitude) = match random.u8(..20) {
        0 => (MAX_LONGITUDE.copysign(longitude), latitude),
        1 => (longitude, MAX_LATITUDE.copysign(latitude)),
        _ => (longitude, latitude),
    };
    Point::new(longitude, latitude).expect("it is on the map")
}

fn distance(meters: f64, unit: Unit) -> Reply {
    let mut text = vec![];
    push_distance(meters / unit.meters(), &mut text);
    Reply::Text(text)
}

#[test]
#[ignore = "long: needs redis-server"]
fn places_give_what_redis_gives() {
    with_server(usual_or_long(4, 40), |server, random| {
        let mut set = ZSet::default();
        for number in 0..400 {
            add(server, &mut set, number, random);
        }
        for _ in 0..500 {
            search(server, &set, random);
        }
    });
}

/// Adds a place with the name `number`, and compares what Redis gives for it.
fn add(server: &mut Server, set: &mut ZSet, number: i32, random: &mut fastrand::Rng) {
    let point = random_point(random);
    server.line(&format!("geoadd key {} {} {number}", point.longitude, point.latitude));
    let (name, score) = (number.to_string(), point.score());
    set.add(&Limits::default(), name.as_bytes(), score, AddOptions::default()).expect("a number");
    assert_eq!(server.line(&format!("zscore key {name}")).score(), score);
    let hash = server.line(&format!("geohash key {name}")).texts();
    assert_eq!(hash[0], Point::from_score(score).text());
    let stored = Point::from_score(score);
    let coordinates = [stored.longitude, stored.latitude].map(|degrees| {
        let mut text = vec![];
        push_coordinate(degrees, &mut text);
        Reply::Text(text)
    });
    let position = server.line(&format!("geopos key {name}")).array();
    assert_eq!(position, [Reply::Array(coordinates.to_vec())]);
    let other = random.i32(0..=number).to_string();
    let other_score = set.view().score(other.as_bytes()).expect("it was added");
    let meters = Point::from_score(score).distance_m(Point::from_score(other_score));
    let reply = server.line(&format!("geodist key {name} {other} km"));
    assert_eq!(reply, distance(meters, Unit::Kilometers));
}

fn search(server: &mut Server, set: &ZSet, random: &mut fastrand::Rng) {
    let center = random_point(random);
    let units = [("m", Unit::Meters), ("km", Unit::Kilometers), ("mi", Unit::Miles)];
    let (name, unit) = units[random.usize(..3)];
    let length = (10f64.powf(random.f64() * 4.0 + 3.0) / unit.meters()).round();
    let (shape, area) = match random.bool() {
        true => (Shape::Circle { radius_m: length * unit.meters() }, format!("byradius {length}")),
        false => {
            let height = (length * random.f64()).round().max(1.0);
            let meters = [length, height].map(|length| length * unit.meters());
            let shape = Shape::Rectangle { width_m: meters[0], height_m: meters[1] };
            (shape, format!("bybox {length} {height}"))
        }
    };
    let orders =
        [(None, ""), (Some(Order::NearestFirst), " asc"), (Some(Order::FarthestFirst), " desc")];
    let (order, order_name) = orders[random.usize(..3)];
    let count = random.bool().then(|| random.usize(1..20));
    let is_any = count.is_some() && random.bool();
    let mut command = format!("geosearch key fromlonlat {} {}", center.longitude, center.latitude);
    command += &format!(" {area} {name}{order_name}");
    command += &count.map_or(String::new(), |count| format!(" count {count}"));
    command += if is_any { " any" } else { "" };
    let replies = server.line(&format!("{command} withdist")).array();
    let matches = Search { center, shape, order, count, is_any }.run(set.view());
    let expected: Vec<_> = matches
        .iter()
        .map(|found| {
            let member = Reply::Text(found.member.to_vec());
            Reply::Array(vec![member, distance(found.distance_m, unit)])
        })
        .collect();
    assert_eq!(replies, expected, "{command}");
}
