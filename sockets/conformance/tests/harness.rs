// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The harness detects faulty cases. This needs no library: the program sees in its environment
//! which run it is in.

use freeport_sockets_conformance::{Case, Effort, Failure, Preload, Runs, compare, compile};
use std::path::Path;

fn case(name: &str) -> Case {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong");
    let fixtures = crate_folder.join("tests/fixtures");
    let programs = compile(&fixtures, &crate_folder.join("programs"), &cache).unwrap();
    let cases = programs[0].cases().unwrap();
    cases.into_iter().find(|case| case.argument() == name).unwrap()
}

fn outcome(name: &str) -> Result<(), Failure> {
    let preload = Preload { library: "/nowhere/library".into(), monitor: "/nowhere/socket".into() };
    compare(&case(name), Some(&preload), Effort { repeats: 1, seconds: 3, seed: 1 })
}

#[test]
fn equal_transcripts_pass_over_all_kinds_of_sockets() {
    for over in ["", "@v6", "@unix", "@pair"] {
        outcome(&format!("right{over}")).unwrap();
    }
}

#[test]
fn different_transcripts_are_shown() {
    let failure = outcome("different").unwrap_err().to_string();
    assert!(failure.contains("- preloaded: 0\n+ preloaded: 1\n"), "{failure}");
}

#[test]
fn a_run_that_proves_nothing_fails() {
    let failure = outcome("never_upgraded").unwrap_err();
    assert!(matches!(failure, Failure::NotUpgraded { server: false, client: false, .. }));
}

#[test]
fn a_side_that_does_not_end_is_shown_with_what_it_had_noted() {
    let failure = outcome("stuck_if_preloaded").unwrap_err().to_string();
    assert!(failure.contains("  begun\n- ended with 0\n+ did not end in time"), "{failure}");
}

#[test]
fn a_side_that_is_killed_is_shown() {
    let failure = outcome("killed_if_preloaded").unwrap_err().to_string();
    assert!(failure.contains("- ended with 0\n+ ended by SIGABRT"), "{failure}");
}

#[test]
fn one_side_alone_is_given_the_library() {
    let failure = outcome("different_on_one_side").unwrap_err();
    let Failure::Different { runs, difference, .. } = failure else { panic!("{failure}") };
    assert_eq!(runs, Runs::ServerAccelerated);
    let expected =
        "  -- server\n- loaded: 0\n+ loaded: 1\n  ended with 0\n  -- client\n  loaded: 0";
    assert!(difference.starts_with(expected), "{difference}");
}
