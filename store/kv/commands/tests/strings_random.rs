// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random commands of strings, bits and HyperLogLogs on a few keys beside redis-server: replies,
//! events, bytes and times of expiry are the same.

use fastrand::Rng;
use freeport_kv_protocol::resp::{Value, Version};
use freeport_testbed::{seed, usual_or_long};

use crate::harness::{Compared, Local, but_expiries, parsed};

/// Forms of commands. Words of capital letters alone that [`argument`] knows are chosen at random.
const FORMS: &[&str] = &[
    "SET KEY VALUE",
    "SET KEY VALUE CONDITION",
    "SET KEY VALUE CONDITION GET",
    "SET KEY VALUE PXAT TIME",
    "SET KEY VALUE KEEPTTL",
    "SET KEY VALUE EXAT 1",
    "SETNX KEY VALUE",
    "GET KEY",
    "GETSET KEY VALUE",
    "GETDEL KEY",
    "GETEX KEY",
    "GETEX KEY PXAT TIME",
    "GETEX KEY PERSIST",
    "GETEX KEY EXAT 1",
    "MGET KEY KEY KEY",
    "MSET KEY VALUE KEY VALUE",
    "MSETNX KEY VALUE KEY VALUE",
    "APPEND KEY VALUE",
    "STRLEN KEY",
    "GETRANGE KEY INDEX INDEX",
    "SETRANGE KEY INDEX VALUE",
    "INCR KEY",
    "DECR KEY",
    "INCRBY KEY INTEGER",
    "DECRBY KEY INTEGER",
    "INCRBYFLOAT KEY FLOAT",
    "LCS KEY KEY",
    "LCS KEY KEY LEN",
    "LCS KEY KEY IDX MINMATCHLEN INDEX WITHMATCHLEN",
    "SETBIT KEY PLACE BIT",
    "GETBIT KEY PLACE",
    "BITCOUNT KEY",
    "BITCOUNT KEY INDEX INDEX UNIT",
    "BITPOS KEY BIT",
    "BITPOS KEY BIT INDEX",
    "BITPOS KEY BIT INDEX INDEX UNIT",
    "BITOP OPERATION KEY KEY KEY",
    "BITOP NOT KEY KEY",
    "BITFIELD KEY GET FIELD PLACE SET FIELD PLACE INTEGER",
    "BITFIELD KEY OVERFLOW SAT INCRBY FIELD PLACE INTEGER GET FIELD PLACE",
    "BITFIELD KEY INCRBY FIELD PLACE INTEGER OVERFLOW FAIL INCRBY FIELD 3 INTEGER",
    "BITFIELD_RO KEY GET FIELD PLACE",
    "PFADD COUNTED VALUE VALUE",
    "PFADD KEY VALUE",
    "PFADD COUNTED VALUE",
    "PFCOUNT COUNTED",
    "PFCOUNT COUNTED COUNTED",
    "PFMERGE COUNTED COUNTED COUNTED",
    "PFMERGE COUNTED KEY",
    "PFDEBUG ENCODING COUNTED",
];

/// Forms of commands that Redis does not have.
const OTHER_FORMS: &[&str] = &[
    "KV.UPDATE KEY add u8 INTEGER",
    "KV.UPDATEV KEY FUNCTION u16 DELTA INTEGER RETURN",
    "KV.UPDATEV KEY FUNCTION u8 DELTAS VALUE",
    "KV.REDUCE KEY FUNCTION i8 INTEGER",
    "KV.FILTER KEY FUNCTION i8 INTEGER",
    "KV.FUNCTIONS",
    "PFDEBUG GETREG COUNTED",
    "PFDEBUG TODENSE KEY",
    "PFDEBUG DECODE COUNTED",
    "SETRANGE KEY 500000 VALUE",
    "SETRANGE KEY 536870911 VALUE",
    "SETBIT KEY 4294967295 1",
    "BITFIELD KEY SET FIELD 4294967290 INTEGER",
    "SET KEY VALUE EX INTEGER",
    "GETEX KEY PX INTEGER",
];

const KEYS: [&str; 8] = ["a", "b", "c", "{a}d", "e", "f", "list", "hll1"];
const COUNTED: [&str; 4] = ["hll1", "hll2", "hll3", "none"];

fn argument(word: &str, random: &mut Rng) -> Vec<u8> {
    fn one_of(words: &[&str], random: &mut Rng) -> String {
        words[random.usize(0..words.len())].to_owned()
    }
    // Now and then an argument is something else.
    if random.u32(0..60) == 0 {
        return one_of(&["", "x", "-1", "1e3", "99", "#5", "list", "NX"], random).into_bytes();
    }
    let text = match word {
        "KEY" => one_of(&KEYS, random),
        "COUNTED" => one_of(&COUNTED, random),
        "VALUE" => match random.u32(0..5) {
            0 => return (0..random.usize(0..40)).map(|_| random.u8(..)).collect(),
            1 => random.i64(-50..50).to_string(),
            2 => format!("{}", random.f64()),
            3 => "ab".repeat(random.usize(0..30)),
            _ => format!("element {}", random.u32(0..500)),
        },
        "CONDITION" => one_of(&["NX", "XX"], random),
        "TIME" => (9_999_999_000_000_u64 + random.u64(0..1_000)).to_string(),
        "INDEX" => random.i64(-30..60).to_string(),
        "INTEGER" => (random.i64(..) >> random.u32(0..64)).to_string(),
        "FLOAT" => match random.bool() {
            true => format!("{}", random.f64() * 100.0),
            false => format!("{}e{}", random.i32(-99..99), random.i32(-9..9)),
        },
        "PLACE" => match random.u32(0..4) {
            0 => format!("#{}", random.u32(0..20)),
            _ => random.u32(0..400).to_string(),
        },
        "BIT" => random.u32(0..2).to_string(),
        "FUNCTION" => random.u8(..80).to_string(),
        "UNIT" => one_of(&["BIT", "BYTE"], random),
        "OPERATION" => one_of(&["AND", "OR", "XOR"], random),
        "FIELD" => match random.bool() {
            true => format!("i{}", random.u32(1..=64)),
            false => format!("u{}", random.u32(1..=63)),
        },
        other => other.to_owned(),
    };
    text.into_bytes()
}

/// A failed `OVERFLOW` that makes a string longer has no event in Redis; here it has, because the
/// value is another one.
fn may_fail_silently(arguments: &[&[u8]]) -> bool {
    arguments.iter().any(|argument| argument.eq_ignore_ascii_case(b"FAIL"))
}

/// Redis 7.0 looks for the key before it reads all arguments; 7.2 does not.
fn is_checked_later(arguments: &[&[u8]]) -> bool {
    [&b"BITCOUNT"[..], b"BITPOS"].contains(&arguments[0])
}

/// For any arguments, the reply is one value, and a refused command has changed nothing.
/// The store is small, so that memory ends now and then.
#[test]
fn refused_commands_change_nothing() {
    let mut random = Rng::with_seed(seed());
    let mut local = Local::with_memory(3, 1 << 20);
    local.line("RPUSH list element");
    local.events();
    let (mut refused, mut full) = (0, 0);
    for _ in 0..usual_or_long(30_000, 1_000_000) {
        let words = random_command(&mut random);
        let arguments: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let before = local.effects.changes;
        let reply = local.call(&arguments);
        let shown = arguments.join(&b' ').escape_ascii().to_string();
        if let Value::Error(_) = parsed(&reply) {
            assert!(local.effects.changes == before, "{shown}");
            // It may have found a key whose time has passed.
            let is_expiry = |event: &String| event.starts_with("expired ");
            assert!(local.events().iter().all(is_expiry), "{shown}");
            refused += 1;
            full += u32::from(reply.starts_with(b"-OOM"));
        }
        local.events();
    }
    assert!(refused > 1_000 && full > 10, "{refused} refused, {full} for lack of memory");
}

/// A random command of strings, bits, HyperLogLogs and vectors.
pub fn random_command(random: &mut Rng) -> Vec<Vec<u8>> {
    let forms = if random.u32(0..4) == 0 { OTHER_FORMS } else { FORMS };
    random_words(forms[random.usize(0..forms.len())], random)
}

fn random_words(form: &str, random: &mut Rng) -> Vec<Vec<u8>> {
    let words = form.split(' ').enumerate();
    words.map(|(at, word)| if at == 0 { word.into() } else { argument(word, random) }).collect()
}

#[test]
#[ignore = "long: needs redis-server"]
fn random_commands() {
    Compared::for_seeds(60, |compared, random| {
        compared.ours = Local::with_shards(3);
        let version = if random.bool() { Version::Two } else { Version::Three };
        compared.use_version(version);
        compared.same("RPUSH list element");
        let mut listener = compared.listener();
        compared.ours.events();
        for _ in 0..2_000 {
            let form = FORMS[random.usize(0..FORMS.len())];
            let words = random_words(form, random);
            let arguments: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let (ours, theirs) = compared.both(&arguments);
            let is_older = is_checked_later(&arguments)
                && (theirs.starts_with(b":") || theirs.starts_with(b"-WRONGTYPE"));
            let shown = || arguments.join(&b' ').escape_ascii().to_string();
            assert!(
                ours == theirs || is_older && ours.starts_with(b"-ERR"),
                "{}\n ours:  {}\n redis: {}",
                shown(),
                ours.escape_ascii(),
                theirs.escape_ascii()
            );
            let ours = but_expiries(compared.ours.events());
            let theirs = but_expiries(listener.events());
            assert!(
                ours == theirs || may_fail_silently(&arguments),
                "{}\n ours: {ours:?}\n redis: {theirs:?}",
                shown()
            );
            if form.contains("EXAT 1") {
                // Redis removes a key whose time has passed when it is looked for.
                compared.same_arguments(&[b"GET", arguments[1]]);
            }
            if random.u32(0..8) == 0 {
                check_key(compared, random);
            }
        }
    });
}

/// Bytes and expiry of a key are the same.
fn check_key(compared: &mut Compared, random: &mut Rng) {
    let key = KEYS[random.usize(0..KEYS.len())].as_bytes();
    compared.same_arguments(&[b"GET", key]);
    let expires_ms = match compared.ours.expires_ms(key) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => at as i64,
    };
    let theirs = compared.redis.call(&[b"PEXPIRETIME", key]);
    assert_eq!(theirs, format!(":{expires_ms}\r\n").into_bytes());
}
