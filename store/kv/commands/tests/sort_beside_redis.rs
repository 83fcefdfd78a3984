// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sorting, beside redis-server.

use freeport_kv_protocol::resp::Version;
use freeport_testbed::usual_or_long;

use crate::harness::Compared;

const PREPARED: &str = "
    RPUSH list 3 10 1 2 1 -5 2.5 1e2
    RPUSH words b a c B aa a
    RPUSH odd 0x10 +5 007 1.50
    RPUSH wrong 1 x 2
    RPUSH nan 1 nan
    RPUSH large 1e400 1
    RPUSH infinite inf 1 -inf
    SADD set 5 3 9 1
    SADD names bob alice carol
    ZADD zset 5 a 4 b 3 c 2 d 1 e
    ZADD numbers 1 30 2 20 3 10
    HSET hash f v
    SET string value
    SET w_1 9
    SET w_2 8
    SET w_3 7
    SET w_10 x
    SET w_a z
    SET w_b y
    SET w_c x
    SET n_1 5
    SET n_2 -5
    SET n_3 5
    HSET h_1 name one weight 3
    HSET h_2 name two weight 2
    HSET h_3 name three weight 1
    SET k_1-> arrow
    SET *_ star";

/// Redis 7.0 does not forget that a number was too large, so that one is the last.
const TABLE: &str = "
    SORT
    SORT list
    SORT list ASC
    SORT list DESC
    SORT list DESC ASC
    SORT list asc desc
    SORT list ALPHA
    SORT list alpha DESC
    SORT words
    SORT words ALPHA
    SORT words ALPHA DESC
    SORT odd
    SORT wrong
    SORT wrong ALPHA
    SORT wrong BY nosort
    SORT wrong LIMIT 0 1
    SORT wrong STORE new
    SORT nan
    SORT infinite
    SORT set
    SORT set DESC
    SORT names
    SORT names ALPHA
    SORT zset
    SORT zset ALPHA
    SORT zset BY nosort
    SORT zset BY nosort DESC
    SORT zset BY nosort LIMIT 1 2
    SORT zset BY nosort DESC LIMIT 1 2
    SORT zset BY nosort LIMIT 9 2
    SORT numbers
    SORT hash
    SORT string
    SORT string BY nosort STORE new
    SORT none
    SORT none x
    SORT none BY w_* GET # LIMIT 0 1
    SORT string x
    SORT list x
    SORT list LIMIT
    SORT list LIMIT 1
    SORT list LIMIT x 1
    SORT list LIMIT 1 x
    SORT list LIMIT 0 0
    SORT list LIMIT 0 -1
    SORT list LIMIT 0 -7
    SORT list LIMIT -5 3
    SORT list LIMIT 2 3
    SORT list LIMIT 2 100
    SORT list LIMIT 8 1
    SORT list LIMIT 100 1
    SORT list LIMIT 9223372036854775807 9223372036854775807
    SORT list LIMIT 0 9223372036854775807
    SORT list LIMIT 0 9223372036854775808
    SORT list LIMIT 1 1 LIMIT 2 2
    SORT list BY
    SORT list BY nosort
    SORT list BY nosort DESC
    SORT list BY nosort LIMIT 2 3
    SORT list BY nosort DESC LIMIT 2 3
    SORT list BY nosort LIMIT 8 1
    SORT list BY #
    SORT list BY # DESC
    SORT list BY w_*
    SORT set BY w_*
    SORT set BY w_* DESC
    SORT set BY w_* LIMIT 1 2
    SORT set BY w_* DESC LIMIT 1 9
    SORT set BY n_*
    SORT set BY none_*
    SORT set BY none_* DESC
    SORT set BY h_*
    SORT set BY h_*->weight
    SORT set BY h_*->weight DESC
    SORT set BY h_*->name
    SORT set BY w_*->name
    SORT zset BY w_* ALPHA LIMIT 2 3
    SORT zset BY w_* ALPHA DESC LIMIT 0 3
    SORT set BY w_* BY nosort STORE new
    SORT_RO new BY nosort
    SORT list GET
    SORT list GET #
    SORT list GET # GET #
    SORT list GET nothing
    SORT list GET w_*
    SORT list GET n_* GET w_* GET #
    SORT list GET h_*->name
    SORT list GET h_*->none
    SORT list GET h_*->
    SORT list GET k_*->
    SORT list GET h_*
    SORT list GET string*->f
    SORT list GET w_* LIMIT 2 2 DESC
    SORT list GET **
    SORT list GET *
    SORT zset BY nosort GET w_* GET # LIMIT 0 4
    SORT list STORE
    SORT list STORE new
    SORT_RO new BY nosort
    SORT list STORE new STORE other
    SORT_RO other BY nosort
    SORT list LIMIT 2 2 GET # GET w_* STORE new
    SORT_RO new BY nosort
    SORT none STORE new
    SORT_RO new
    SORT list LIMIT 100 1 STORE other
    SORT_RO other
    SORT set BY nosort STORE new
    SORT_RO new BY nosort
    SORT names BY nosort DESC STORE new
    SORT_RO new BY nosort
    SORT list STORE string
    SORT_RO string BY nosort
    SORT list ALPHA STORE list
    SORT_RO list BY nosort
    SORT_RO list STORE new
    SORT_RO list
    SORT_RO list BY w_* ALPHA GET # LIMIT 0 1
    SORT_RO hash
    SORT_RO
    SORT large";

#[test]
#[ignore = "long: needs redis-server"]
fn odd_arguments_have_the_replies_of_redis() {
    for version in [Version::Two, Version::Three] {
        Compared::once(|compared| {
            compared.use_version(version);
            let lines = |text: &'static str| text.lines().map(str::trim);
            let lines = |text| lines(text).filter(|line| !line.is_empty());
            lines(PREPARED).for_each(|line| drop(compared.same(line)));
            lines(TABLE).for_each(|line| drop(compared.same(line)));
        });
    }
}

/// Every element has a weight of each kind: where weights are missing or equal as texts, Redis has
/// no order.
fn prepare_randomly(compared: &mut Compared, random: &mut fastrand::Rng) {
    for element in 0..40 {
        let weight = random.i32(-9..9);
        compared.same(&format!("SET n_{element} {weight}"));
        let text = random.u32(..);
        compared.same(&format!("SET t_{element} {text:x}.{element}"));
        if random.bool() {
            compared.same(&format!("HSET h_{element} f {weight}.5 g {text:x}"));
        }
    }
}

fn random_values(compared: &mut Compared, random: &mut fastrand::Rng) {
    let count = random.usize(1..30);
    let mut elements: Vec<u32> = (0..count).map(|_| random.u32(0..40)).collect();
    let joined =
        |elements: &[u32]| elements.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    compared.same(&format!("RPUSH list {}", joined(&elements)));
    elements.sort_unstable();
    elements.dedup();
    compared.same(&format!("SADD set {}", joined(&elements)));
    let scored = elements.iter().map(|element| format!("{} {element}", random.u32(0..9)));
    compared.same(&format!("ZADD zset {}", scored.collect::<Vec<_>>().join(" ")));
}

#[test]
#[ignore = "long: needs redis-server"]
fn random_sorts_have_the_replies_of_redis() {
    Compared::for_seeds(usual_or_long(10, 40), |compared, random| {
        prepare_randomly(compared, random);
        for _ in 0..100 {
            compared.same("DEL list set zset");
            random_values(compared, random);
            for _ in 0..100 {
                let line = random_line(random);
                if line.starts_with("SORT set BY nosort") && !line.contains("LIMIT") {
                    compared.same_in_any_order(&line);
                } else if !line.starts_with("SORT set BY nosort") {
                    compared.same(&line);
                }
            }
        }
    });
}

fn random_line(random: &mut fastrand::Rng) -> String {
    let mut pick = |choices: &[&str]| choices[random.usize(..choices.len())].to_owned();
    let key = pick(&["list", "set", "zset"]);
    let by = pick(&["", "", " BY n_*", " BY h_*->f", " BY t_* ALPHA", " BY nosort", " ALPHA"]);
    let direction = pick(&["", " DESC", " ASC"]);
    let get = pick(&["", "", " GET #", " GET h_*->g GET n_*", " GET t_* GET # GET x"]);
    let command = format!("SORT {key}{by}{direction}{get}");
    match random.u8(0..4) {
        0 => format!("{command} LIMIT {} {}", random.i32(-2..20), random.i32(-1..20)),
        1 => format!("{command} LIMIT 0 {}", random.i32(-1..8)),
        _ => command,
    }
}
