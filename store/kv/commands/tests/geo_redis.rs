// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places beside redis-server.

use freeport_kv_protocol::resp::Version;
use freeport_testbed::usual_or_long;

use crate::harness::{Beside, Compared, Templates};
use crate::specs::check_keys;

/// Commands of which each reply is compared.
const LINES: &str = include_str!("geo.txt");

/// Random commands of places; see [`Templates`].
pub const TEMPLATES: &str = "
GEOADD KEY LON LAT M
GEOADD KEY nx? ch? LON LAT M LON LAT M
GEOADD KEY xx? ch? LON LAT M [ LON LAT M ]
ZREM KEY M M
GEODIST KEY M M UNIT?
GEOHASH KEY M M? M?
GEOPOS KEY M M? M?
GEOSEARCH KEY frommember M byradius R UNIT ORDER withdist? withhash? withcoord? [ count N ]
GEOSEARCH KEY frommember M bybox R R UNIT ORDER withdist? withcoord? [ count N ]
GEOSEARCH KEY fromlonlat LON LAT byradius R UNIT ORDER withdist? withhash? [ count N any? ]
GEOSEARCH KEY fromlonlat LON LAT bybox R R UNIT ORDER withcoord? [ count N any? ]
GEOSEARCH KEY [ frommember M ] [ fromlonlat LON LAT ] [ byradius R UNIT ] [ bybox R R UNIT ] any?
GEOSEARCHSTORE KEY KEY frommember M byradius R UNIT ORDER [ count N ]
GEOSEARCHSTORE to KEY frommember M byradius R UNIT ORDER storedist? [ count N ]
GEOSEARCHSTORE to KEY fromlonlat LON LAT bybox R R UNIT storedist? withdist?
GEORADIUS KEY LON LAT R UNIT ORDER withdist? withcoord? withhash? [ count N any? ]
GEORADIUS KEY LON LAT R UNIT ORDER [ count N ] [ STORE to ]
GEORADIUS_RO KEY LON LAT R UNIT ORDER withdist?
GEORADIUSBYMEMBER KEY M R UNIT ORDER withdist? withcoord? withhash? [ count N any? ]
GEORADIUSBYMEMBER KEY M R UNIT ORDER [ count N ] [ STORE to ]
GEORADIUSBYMEMBER_RO KEY M R UNIT ORDER withdist? [ count N ]
ZRANGE to 0 -1 withscores
";

/// Choices of their words, but for members and coordinates.
pub const CHOICES: &[(&str, &[&str])] = &[
    ("KEY", &["a", "b", "c", "none", "text"]),
    ("UNIT", &["m", "km", "mi", "ft", "KM", "cm"]),
    ("R", &["0", "10", "500", "2000", "12.5", "1e4", "1e7", "-1", "x"]),
    ("N", &["1", "2", "3", "10", "100", "0", "x"]),
    ("ORDER", &["asc", "desc", "asc"]),
    ("STORE", &["store", "storedist"]),
];

/// Coordinates as words, half of them close together. They are enough for all members to have
/// different places: the order of equal distances is open.
fn coordinates(random: &mut fastrand::Rng, most: f64) -> Vec<String> {
    let mut coordinate = |number: u32| match number % 2 {
        0 => random.f64() * 4.0 + 9.0,
        _ => (random.f64() * 2.0 - 1.0) * most,
    };
    (0..20_000).map(|number| coordinate(number).to_string()).collect()
}

#[test]
#[ignore = "long: needs redis-server"]
fn odd_lines_have_the_replies_of_redis() {
    Compared::once(|compared| {
        Beside::new(compared).table(LINES);
    });
}

#[test]
#[ignore = "long: needs redis-server"]
fn random_commands_have_the_replies_of_redis() {
    let members: Vec<String> = (0..300).map(|number| format!("m{number}")).collect();
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    Compared::for_seeds(usual_or_long(10, 40), |compared, random| {
        let (longitudes, latitudes) = (coordinates(random, 180.0), coordinates(random, 85.0));
        let (longitudes, latitudes) = (words(&longitudes), words(&latitudes));
        let mut choices = CHOICES.to_vec();
        choices.extend([("M", &members[..]), ("LON", &longitudes), ("LAT", &latitudes)]);
        let templates = Templates::new(TEMPLATES, &choices);
        let mut beside = Beside::new(compared);
        let version = if random.bool() { Version::Two } else { Version::Three };
        beside.empty(version);
        beside.lines("SET text x");
        for _ in 0..10_000 {
            let command = templates.command(random);
            beside.same(&command.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
    });
}

fn words(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
#[ignore = "long: needs redis-server"]
fn keys_are_those_that_redis_finds() {
    Compared::once(|compared| check_keys(compared, LINES));
}
