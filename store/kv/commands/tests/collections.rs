// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random commands of hashes, sets and lists beside redis-server, on few keys, so that types are
//! mixed.

use fastrand::Rng;
use freeport_kv_protocol::resp::Version;

use freeport_testbed::seed;

use crate::harness::{Beside, Compared, Local, are_same, shown};

/// Commands. `K` is a key, `F` a field, member or element, `V` a value, `N` an integer, `P` one
/// that is mostly positive, `E` an end of a list, `M` a pattern, `T` a timeout.
const TEMPLATES: &str = "
    set K V
    sdiffstore K none
    hset K F V
    hset K F V F V F V
    hset K F V F
    hsetnx K F V
    hmset K F V F V
    hget K F
    hmget K F F F
    hgetall K
    hkeys K
    hvals K
    hlen K
    hexists K F
    hdel K F
    hdel K F F F F
    hincrby K F N
    hincrbyfloat K F V
    hstrlen K F
    hrandfield K 1000
    hrandfield K 1000 withvalues
    hrandfield K 0 F
    hscan K 0 count 1000 match M
    hscan K P count 1000 F V
    sadd K F
    sadd K F F F
    sadd K P P
    srem K F
    srem K F F F F
    smembers K
    sismember K F
    smismember K F F
    scard K
    spop K 1000
    srandmember K 1000
    smove K K F
    sinter K K
    sinter K
    sinterstore K K K
    sintercard 2 K K limit P
    sintercard P K K
    sintercard 2 K K limit P limit P
    sunion K K K
    sunionstore K K K
    sdiff K K K
    sdiffstore K K K
    sscan K 0 match M count 1000
    lpush K F
    lpush K F F F
    rpush K F F
    lpushx K F
    rpushx K F F
    lpop K
    rpop K
    lpop K P
    rpop K P
    llen K
    lrange K N N
    lindex K N
    lset K N F
    linsert K before F F
    linsert K after F F
    linsert K E F F
    lrem K 0 F
    lrem K -1 F
    lrem K P F
    ltrim K N N
    lpos K F
    lpos K F rank P count P
    lpos K F rank -2 maxlen P
    lpos K F count P maxlen P rank -1
    lmove K K E E
    rpoplpush K K
    lmpop P K K E
    lmpop 2 K K E count P
    blpop K K 0
    brpop K 0.5
    brpop K T
    blmove K K E E 0
    brpoplpush K K 0
    blmpop 0 2 K K E count P
    blmpop T P K K E
";

/// Commands that make values large.
const GROWING: &str = "
    hset K F V F V F V F V F V F V F V F V F V F V
    sadd K F F F F F F F F F F F F
    rpush K F F F F F F F F F F F F F F F F F F F F
    linsert K after F V
";

/// First words of commands that remove or replace whole values.
const REPLACING: &[&str] = &["set", "sdiffstore", "sinterstore", "sunionstore", "spop", "ltrim"];

fn word(template: &str, elements: u16, random: &mut Rng) -> Vec<u8> {
    const ELEMENTS: [&str; 12] =
        ["a", "b", "c", "d", "1", "2", "3", "-5", "70000", "007", "1.5", ""];
    let (is_odd, length) = (random.u8(..30) == 0, random.usize(60..9000));
    let number = random.u16(..elements.max(1)).to_string();
    let mut one_of = |words: &[&str]| words[random.usize(..words.len())].as_bytes().to_vec();
    match template {
        "K" => one_of(&["k0", "k1", "k2", "k3", "k4"]),
        "F" if is_odd => vec![b'f'; length % 9 + 60],
        "V" if is_odd => vec![b'v'; length],
        "F" if elements > 0 => number.into_bytes(),
        "F" => one_of(&ELEMENTS),
        "V" => one_of(&["0", "1", "-3", "2.25", "1e2", "x", "", "inf", "100000"]),
        "N" if is_odd => one_of(&["x", "", "1.0", "9223372036854775807", "-9223372036854775808"]),
        "P" if is_odd => one_of(&["-1", "x", "9223372036854775807", "0"]),
        "N" => random.i8(-5..6).to_string().into_bytes(),
        "P" => random.u8(1..5).to_string().into_bytes(),
        "E" => one_of(&["left", "RIGHT", "left", "right", "up"]),
        "T" => one_of(&["0", "0.5", "x", "-1", "1e-9"]),
        "M" => one_of(&["*", "[a-c]", "*0*", "?", "x"]),
        other => other.as_bytes().to_vec(),
    }
}

fn words(template: &str, elements: u16, random: &mut Rng) -> Vec<Vec<u8>> {
    template.split(' ').map(|part| word(part, elements, random)).collect()
}

/// A random command of hashes, sets and lists.
pub fn random_command(elements: u16, random: &mut Rng) -> Vec<Vec<u8>> {
    let templates = [lines(TEMPLATES), lines(GROWING)].concat();
    words(templates[random.usize(..templates.len())], elements, random)
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// Executes random commands of these templates. Elements are numbers below `elements`, if that is
/// not 0.
fn run(seeds: u64, templates: &[&str], elements: u16) {
    Compared::for_seeds(seeds, |compared, random| {
        compared.use_version(if random.bool() { Version::Two } else { Version::Three });
        let mut beside = Beside::new(compared);
        for step in 1..=10_000 {
            let template = templates[random.usize(..templates.len())];
            let words = words(template, elements, random);
            beside.call(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
            if step % 20 == 0 {
                beside.same_events();
            }
        }
    });
}

#[test]
fn several_shards_reply_as_one_does() {
    let templates = [lines(TEMPLATES), lines(GROWING)].concat();
    let seed = seed();
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    for elements in [0, 900] {
        let (mut one, mut several) = (Local::new(), Local::with_shards(3));
        // Waits end at the same time.
        (one.now_ms, several.now_ms) = (Some(1_000), Some(1_000));
        for _ in 0..3_000 {
            let template = templates[random.usize(..templates.len())];
            let words = words(template, elements, &mut random);
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let replies = (one.call(&words), several.call(&words));
            assert!(are_same(&words, &replies.0, &replies.1), "{} {replies:?}", shown(&words));
            assert_eq!(one.effects.block.take(), several.effects.block.take());
            assert_eq!(one.events(), several.events());
        }
    }
}

#[test]
#[ignore = "long: needs redis-server"]
fn random_commands_have_the_replies_and_events_of_redis() {
    run(36, &lines(TEMPLATES), 0);
}

#[test]
#[ignore = "long: needs redis-server"]
fn random_commands_on_large_values_have_the_replies_and_events_of_redis() {
    let mut templates = lines(TEMPLATES);
    templates.retain(|line| !REPLACING.contains(&line.split(' ').next().expect("it has a name")));
    templates.extend(lines(GROWING).repeat(4));
    run(12, &templates, 900);
}
