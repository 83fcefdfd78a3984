// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table of programs: each row names an existing test.

use std::collections::BTreeSet;
use std::process::Command;

const TABLE: &str = include_str!("../../../../docs/reference/applications.csv");
const COLUMNS: &str = "program,version,as,what is done,connections,why,test";

/// Allowed values of the column about connections.
const WHERE: [&str; 3] = ["leave the kernel", "leave and stay", "stay in the kernel"];

/// Errors of a table.
fn wrong(table: &str, tests: &BTreeSet<&str>) -> Vec<String> {
    let mut lines = table.lines();
    let header = lines.next().unwrap_or_default();
    let header = (header != COLUMNS).then(|| format!("the columns are {COLUMNS}"));
    let rows = lines.filter_map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let [.., place, why, test] = cells[..] else { return Some(format!("no row: {line}")) };
        let is_whole = cells.len() == COLUMNS.split(',').count()
            && cells.iter().enumerate().all(|(at, it)| at == 5 || !it.trim().is_empty());
        if !is_whole {
            return Some(format!("not seven cells: {line}"));
        }
        if !WHERE.contains(&place) {
            return Some(format!("not one of {WHERE:?}: {line}"));
        }
        if (place == WHERE[0]) != why.is_empty() {
            return Some(format!("the reason belongs to what stays, and to that only: {line}"));
        }
        (!tests.contains(test)).then(|| format!("no such test: {line}"))
    });
    header.into_iter().chain(rows).collect()
}

#[test]
fn every_row_names_its_test() {
    let test = std::env::current_exe().expect("this test");
    let output = Command::new(test).args(["--list", "--format", "terse"]).output();
    let listed = String::from_utf8(output.expect("it can be begun").stdout).expect("it is text");
    let tests: BTreeSet<&str> = listed.lines().filter_map(|it| it.strip_suffix(": test")).collect();
    assert_eq!(wrong(TABLE, &tests), [""; 0]);
    // Every test here is in the table.
    let named: BTreeSet<&str> = TABLE.lines().filter_map(|it| it.rsplit(',').next()).collect();
    let own = tests.iter().filter(|it| it.starts_with("matrix::"));
    let own =
        own.filter(|it| !it.starts_with("matrix::table") && !it.ends_with("reports_are_read"));
    let missing: Vec<_> = own.filter(|it| !named.contains(*it)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn rows_that_are_wrong_are_found() {
    let tests = BTreeSet::from(["a::b"]);
    let good = format!("{COLUMNS}\nx,1,server,all,leave the kernel,,a::b\n");
    assert_eq!(wrong(&good, &tests), [""; 0]);
    for row in [
        "x,1,server,all,leave the kernel,,a::c",
        "x,1,server,all,stay in the kernel,,a::b",
        "x,1,server,all,somewhere,,a::b",
        "x,,server,all,leave the kernel,,a::b",
        "x,1,server,all,leave the kernel,,a::b,more",
        "x",
    ] {
        assert_eq!(wrong(&format!("{COLUMNS}\n{row}"), &tests).len(), 1, "{row}");
    }
}
