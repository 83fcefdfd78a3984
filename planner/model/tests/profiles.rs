// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles as files: complete ones, and errors that name file, line and parameter.

use freeport_plan_model::profile::{BUILT_IN, Profile, SECTIONS, built_in, with_values};

const TEXT: &str = BUILT_IN[0].1;

#[test]
fn built_in_profiles_are_complete_and_name_their_sources() {
    for (name, _) in BUILT_IN {
        let profile = built_in(name).expect("it is built in").expect("a profile");
        let parameters: usize = SECTIONS.iter().map(|(_, keys)| keys.len()).sum();
        assert_eq!(profile.origins.len(), parameters);
        assert!(profile.origins.values().all(|origin| origin.source.len() > 3));
    }
    assert!(built_in("bluefield9").is_none());
}

#[test]
fn errors_name_file_line_and_parameter() {
    let line_of = |text: &str, part: &str| {
        1 + text.lines().position(|line| line.contains(part)).expect("it is there")
    };
    let cases = [
        (
            "pass = { value = 300,",
            "pass = { value = -300,",
            "switch.pass: -300 ns is not between 0",
        ),
        ("pass = { value = 300,", "pass = { value = \"x\",", "switch.pass: it has to be a number"),
        (
            "pass = { value = 300,",
            "pass = { worth = 300,",
            "switch.pass.worth: there is no such attribute",
        ),
        (
            "pass = { value = 300, unit = \"ns\"",
            "pass = { value = 300, unit = \"us\"",
            "switch.pass: the unit has to be \"ns\", and not \"us\"",
        ),
        (
            "pass = { value = 300,",
            "passes = { value = 300,",
            "switch.passes: there is no such parameter",
        ),
        (
            "cores_for_host = { value = 2,",
            "cores_for_host = { value = 29,",
            "nic.cores_for_host: together with nic.cores_for_soc, 31 cores are reserved of 30",
        ),
        (
            "cores_for_host = { value = 2,",
            "cores_for_host = { value = 2.5,",
            "nic.cores_for_host: it has to be a whole number",
        ),
        (
            "mtu_soc = { value = 128,",
            "mtu_soc = { value = 100,",
            "pcie.mtu_soc: 100 is not a power of two",
        ),
        (
            "untracked = { value = 94,",
            "untracked = { value = 940,",
            "nic.untracked: it is more than network.rate, 200 Gbps",
        ),
        ("[internal]", "[inside]", "inside: there is no such section"),
        ("[internal]", "[internal", "it is not TOML"),
    ];
    for (from, to, expected) in cases {
        assert_eq!(TEXT.matches(from).count(), 1, "{from}");
        let text = TEXT.replace(from, to);
        let error = Profile::parse("some.toml", &text).expect_err(to).to_string();
        let line = line_of(&text, to);
        assert!(error.starts_with(&format!("some.toml:{line}: ")), "{error}");
        assert!(error.contains(expected), "{error} is not {expected}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let without = |part: &str| {
        let kept = TEXT.lines().filter(|line| !line.starts_with(part));
        let text: String = kept.flat_map(|line| [line, "\n"]).collect();
        Profile::parse("some.toml", &text).expect_err(part).to_string()
    };
    let section = 1 + TEXT.lines().position(|line| line == "[switch]").expect("a section");
    assert!(
        without("pass =").starts_with(&format!("some.toml:{section}: switch.pass: it is missing"))
    );
    assert!(without("name =").starts_with("some.toml: name: it is missing"));
    let text = TEXT.replace("pass = { value = 300, unit = \"ns\", ", "pass = { value = 300, ");
    let error = Profile::parse("some.toml", &text).expect_err("no unit").to_string();
    assert!(error.contains("switch.pass: its unit is missing"), "{error}");
}

#[test]
fn values_are_replaced_and_all_else_stays() {
    let text = with_values("some.toml", TEXT, &[("switch.pass", 250.0), ("nic.request", 1.5)]);
    let text = text.expect("a profile");
    let profile = Profile::parse("some.toml", &text).expect("a profile");
    assert_eq!((profile.switch.pass, profile.nic.request), (250.0, 1.5));
    let changed = TEXT.lines().zip(text.lines()).filter(|(old, new)| old != new).count();
    assert_eq!((changed, text.lines().count()), (2, TEXT.lines().count()));
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
        let _ = Profile::parse("some.toml", &String::from_utf8_lossy(&bytes));
    }
}
