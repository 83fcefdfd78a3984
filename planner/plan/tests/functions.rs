// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions as files: errors name file, line and field.

use freeport_plan::Function;
use freeport_plan::function::{BUILT_IN, built_in};

const TEXT: &str = BUILT_IN[1].1;

#[test]
fn built_in_functions_have_the_alternatives_of_the_study() {
    let names = |function: &str| {
        let function = built_in(function).expect("it is built in").expect("a function");
        function.alternatives.iter().map(|it| it.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("replication"), ["A1", "A2", "A3"]);
    assert_eq!(names("key-value"), ["A1", "A2", "A3", "A4", "A5"]);
    assert!(built_in("ledger").is_none());
}

#[test]
fn errors_name_file_line_and_field() {
    let cases = [
        ("tolerance = 0.1", "tolerance = 2", "tolerance: 2 is not between 0 and 0.9"),
        ("tolerance = 0.1", "tolerances = 0.1", "tolerances: there is no such field; known are"),
        ("bytes = 296\n", "bytes = -296\n", "bytes: -296 is not between 1 and"),
        ("bytes = 296\n", "bytes = 3.5\n", "bytes: it has to be a whole number"),
        (
            "host_cores = 0",
            "host_cores = \"none\"",
            "constraints.host_cores: it has to be a number",
        ),
        (
            "criteria = [\"round-trips\",",
            "criteria = [\"beauty\",",
            "criteria: there is no criterion beauty; the criteria are throughput,",
        ),
        (
            "criteria = [\"round-trips\",",
            "criteria = [\"latency\",",
            "criteria: latency is there twice",
        ),
        (
            "{ do = \"read\", path = \"1\", bytes = 16, times = 1.5 },",
            "{ do = \"read\", path = \"1\", bytes = 16, times = -1 },",
            "alternatives[1].steps[1].times: -1 is not between",
        ),
        (
            "{ do = \"read\", path = \"1\", bytes = 16, times = 1.5 },",
            "{ do = \"read\", path = \"1\", times = 1.5 },",
            "alternatives[1].steps[1].bytes: it is missing",
        ),
        (
            "{ do = \"read\", path = \"1\", bytes = 16, times = 1.5 },",
            "{ do = \"read\", path = \"rnic\", bytes = 16 },",
            "alternatives[1].steps[1].path: path rnic belongs to another device",
        ),
        (
            "{ do = \"read\", path = \"1\", bytes = 16, times = 1.5 },",
            "{ do = \"read\", path = \"soc-peer\", bytes = 16 },",
            "alternatives[1].steps[1].path: path soc-peer has no read",
        ),
        (
            "{ do = \"read\", path = \"1\", bytes = 16, times = 1.5 },",
            "{ do = \"look\", path = \"1\", bytes = 16 },",
            "alternatives[1].steps[1].do: look is not read, write, send,",
        ),
        ("covers = 0.95", "covers = 0", "alternatives[5].covers: 0 is no share of calls"),
        ("miss = [", "misses = [", "alternatives[5].misses: there is no such field"),
        ("name = \"A5\"", "name = \"A4\"", "alternatives[5].name: another alternative is named A4"),
        ("service = \"get\"", "service = \"put\"", "service: there is no service put; use"),
        ("[constraints]", "[constraints", "it is not TOML"),
    ];
    for (from, to, expected) in cases {
        assert!(TEXT.contains(from), "{from}");
        let text = TEXT.replacen(from, to, 1);
        let error = Function::parse("some.toml", &text).expect_err(to).to_string();
        assert!(error.contains(expected), "{error} is not {expected}");
        let line = error.strip_prefix("some.toml:").and_then(|rest| rest.split(':').next());
        let line: usize = line.and_then(|line| line.parse().ok()).expect(&error);
        let first = to.trim_end().lines().next().expect("a line");
        let lines = (1..).zip(text.lines()).filter(|(_, line)| line.contains(first));
        let expected = lines.last().expect("it is there").0;
        assert_eq!(line, expected, "{error}");
    }
}

#[test]
fn contradictions_are_refused() {
    let text = TEXT.replace("covers = 0.95\n", "covers = 0.95\nmiss = []\n");
    let text = text[..text.rfind("miss = [\n").expect("the last one")].to_owned();
    let error = Function::parse("some.toml", &text).expect_err("no miss").to_string();
    assert!(error.contains("alternatives[5].miss: it is missing: calls that are not"), "{error}");
    let error = Function::parse("some.toml", &TEXT.replace("covers = 0.95", "covers = 1"));
    let error = error.expect_err("an unused miss").to_string();
    assert!(error.contains("alternatives[5].miss: it is never used"), "{error}");
    let twice = TEXT.replacen("name = \"values\"", "name = \"index\"", 1);
    let error = Function::parse("some.toml", &twice).expect_err("a repeat").to_string();
    assert!(error.contains("alternatives[1].memory[2].name: index is there twice"), "{error}");
    let many: String = (0..33)
        .map(|it| format!("{{ side = \"host\", name = \"m{it}\", bytes = 1 }},\n"))
        .collect();
    let many = TEXT.replacen("memory = [\n", &format!("memory = [\n{many}"), 1);
    let error = Function::parse("some.toml", &many).expect_err("too many").to_string();
    assert!(error.contains("alternatives[1].memory: an alternative has at most 32"), "{error}");
    let text =
        TEXT.replacen("name = \"index\", bytes = 1600000000", "name = \"index\", bytes = 7", 1);
    let error = Function::parse("some.toml", &text).expect_err("two sizes").to_string();
    assert!(error.contains("alternatives[2].memory: index has 7 B elsewhere"), "{error}");
    let start = TEXT.split("[[alternatives]]").next().expect("a beginning");
    let error = Function::parse("some.toml", start).expect_err("nothing").to_string();
    assert!(error.contains("alternatives: a function has 1 to 32 alternatives"), "{error}");
    let idle = format!(
        "{start}[[alternatives]]\nname = \"A\"\n\
         steps = [{{ do = \"work\", side = \"soc\", ns = 1 }}]\n"
    );
    let error = Function::parse("some.toml", &idle).expect_err("no path").to_string();
    assert!(error.contains("steps: no step takes a path"), "{error}");
}

#[test]
fn any_text_is_read_without_panic() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..2000 {
        let mut bytes = TEXT.as_bytes().to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bytes.len());
            match random.u8(..3) {
                0 => bytes[at] = random.u8(32..127),
                1 => bytes.truncate(at.max(1)),
                _ => drop(bytes.drain(at..(at + random.usize(..40)).min(bytes.len()))),
            }
            if bytes.is_empty() {
                bytes.push(b'x');
            }
        }
        let _ = Function::parse("some.toml", &String::from_utf8_lossy(&bytes));
    }
}
