// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table of reasons in `docs/guide/sockets.md` is complete, and each reason has a test.

use freeport_sockets_proto::Reason;

const MANUAL: &str = include_str!("../../../../docs/guide/sockets.md");
/// Folders with tests of reasons: this one, and those of the crates that decide.
const TESTS: [&str; 6] = [
    include_str!("bounds.rs"),
    include_str!("library.rs"),
    include_str!("monitors.rs"),
    include_str!("outside.rs"),
    include_str!("../../../../sockets/monitor/tests/outside.rs"),
    include_str!("../../../../sockets/monitor/tests/policy.rs"),
];

/// The names in the first column of the table.
fn documented() -> Vec<&'static str> {
    let (_, table) = MANUAL.split_once("| reason | what it means | what to do |").expect("it is");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let name = |row: &'static str| row.strip_prefix("| `")?.split_once("` |").map(|it| it.0);
    rows.map(|row| name(row).unwrap_or_else(|| panic!("a reason is expected: {row}"))).collect()
}

#[test]
fn the_manual_has_each_reason_once_and_no_others() {
    let names: Vec<&str> = Reason::ALL.iter().map(|it| it.name()).collect();
    let documented = documented();
    let missing: Vec<_> = names.iter().filter(|it| !documented.contains(it)).collect();
    let unknown: Vec<_> = documented.iter().filter(|it| !names.contains(it)).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "without: {missing:?}, not so: {unknown:?}");
    assert_eq!(documented.len(), names.len(), "each once");
}

#[test]
fn each_reason_has_a_test() {
    let is_tested = |name: &str| TESTS.iter().any(|test| test.contains(&format!("\"{name}\"")));
    let untested: Vec<_> =
        Reason::ALL.iter().map(|it| it.name()).filter(|it| !is_tested(it)).collect();
    assert!(untested.is_empty(), "{untested:?}");
}
