// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Plan files and placement files: round trips, errors, and files that are not replaced.

use crate::{function, profile};
use freeport_plan::function::{Action, Service};
use freeport_plan::placement::{Compression, Placement, PlanFile, write};
use freeport_plan::{Function, plan};
use freeport_plan_model::Path;

fn plan_file(name: &str) -> PlanFile {
    let plan = plan(&profile("bluefield2"), &function(name)).expect("a plan");
    PlanFile::of(&plan).expect("the function has a service")
}

fn placement() -> Placement {
    let mut placement = Placement::default();
    for name in ["replication", "key-value"] {
        let file = plan_file(name);
        let text = file.text();
        placement.services.insert(file.service, file.settings(&text));
    }
    placement
}

#[test]
fn files_have_the_settings_of_a_plan() {
    let file = plan_file("replication");
    assert_eq!(file.service, Service::Replication);
    let [first, second] = &file.shares[..] else { panic!("{file:?}") };
    assert_eq!((first.alternative.as_str(), second.alternative.as_str()), ("A2", "A3"));
    assert_eq!(first.paths, [Path::DmaToHost, Path::SocToPeer]);
    assert_eq!((first.bytes, first.compression), (262_144, Compression::Soc));
    assert_eq!((second.bytes, second.compression), (262_144, Compression::None));
    let mut other = function("key-value");
    other.service = None;
    let plan = plan(&profile("bluefield2"), &other).expect("a plan");
    assert_eq!(PlanFile::of(&plan), None);
}

/// Sizes are those before compression, and those of messages count.
#[test]
fn the_largest_payload_is_that_before_compression() {
    let bytes = |function: &Function| {
        let plan = plan(&profile("bluefield2"), function).expect("a plan");
        PlanFile::of(&plan).expect("a service").shares[0].bytes
    };
    for ratio in [0.3, 1.0] {
        let mut function = function("replication").with_ratio(ratio);
        // The compressed write is the only transfer.
        function.alternatives.truncate(2);
        function.alternatives.remove(0);
        function.alternatives[0].steps.remove(0);
        assert_eq!(bytes(&function), 262_144, "{ratio}");
    }
    let gets = function("key-value");
    let of_a5 = |size: u64| {
        let mut gets = gets.clone();
        gets.alternatives = vec![gets.alternatives[4].clone()];
        let Action::Message { bytes, .. } = &mut gets.alternatives[0].steps[0].action else {
            panic!("{gets:?}")
        };
        *bytes = size;
        gets
    };
    assert_eq!((bytes(&of_a5(16)), bytes(&of_a5(999))), (296, 999));
}

/// Each of several processes that change a file at once keeps what the others wrote.
#[test]
fn changes_at_once_are_all_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("placement.toml");
    for _ in 0..20 {
        let _ = std::fs::remove_file(&path);
        std::thread::scope(|scope| {
            for name in ["replication", "key-value"] {
                let (file, path) = (plan_file(name), &path);
                let settings = file.clone().settings(&file.text());
                scope.spawn(move || write(path, file.service, settings).expect("it is written"));
            }
        });
        let text = std::fs::read_to_string(&path).expect("a file");
        assert_eq!(Placement::parse("placement.toml", &text), Ok(placement()));
    }
}

#[test]
fn reading_gives_what_was_written() {
    for name in ["replication", "key-value"] {
        let file = plan_file(name);
        assert_eq!(PlanFile::parse("plan.toml", &file.text()), Ok(file));
    }
    let placement = placement();
    let text = placement.text();
    assert_eq!(Placement::parse("placement.toml", &text).as_ref(), Ok(&placement));
    assert_eq!(placement.services.len(), 2);
    // Names with characters that have a meaning in TOML stay as they are.
    let mut odd = plan_file("replication");
    odd.device = "a \"b\"\\\n# c".into();
    assert_eq!(PlanFile::parse("plan.toml", &odd.text()), Ok(odd));
}

#[test]
fn errors_name_file_line_and_field() {
    let text = placement().text();
    let cases = [
        ("kind = \"placement\"", "kind = \"plan\"", "kind: it has to be placement, and not plan"),
        ("version = 1", "version = 2", "version: this program reads version 1, and not 2"),
        ("batch = 1", "batch = 0", "replication.shares[1].batch: 0 is not between 1 and 256"),
        ("batch = 1", "badge = 1", "replication.shares[1].badge: there is no such field"),
        (
            "compression = \"soc\"",
            "compression = \"gpu\"",
            "compression: gpu is not none, host or soc",
        ),
        ("paths = [\"dma-s2h\"", "paths = [\"4\"", "paths: there is no path 4; the paths are"),
        ("paths = [\"dma-s2h\"", "paths = [\"soc-peer\"", "paths: path soc-peer is there twice"),
        ("alternative = \"A3\"", "alternative = \"A2\"", "A2 has another share already"),
        ("[get]", "[put]", "put: there is no such field; known are kind, version, replication"),
    ];
    for (from, to, expected) in cases {
        assert!(text.contains(from), "{from}");
        let changed = text.replacen(from, to, 1);
        let changed = if to == "[put]" { changed.replace("[[get.", "[[put.") } else { changed };
        let error = Placement::parse("placement.toml", &changed).expect_err(to).to_string();
        assert!(error.starts_with("placement.toml:") && error.contains(expected), "{error}");
    }
    let share = text.lines().find(|line| line.starts_with("share = ")).expect("a share");
    for (value, expected) in
        [("0.1", "all shares together have to be 1"), ("-1", "-1 is not between")]
    {
        let changed = text.replacen(share, &format!("share = {value}"), 1);
        let error = Placement::parse("placement.toml", &changed).expect_err(value).to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = Placement::parse("p", "kind = \"placement\"\nversion = 1\n").expect_err("empty");
    assert!(error.to_string().contains("no service: neither replication nor get"), "{error}");
}

#[test]
fn a_placement_keeps_its_other_services() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("placement.toml");
    for name in ["replication", "key-value", "replication"] {
        let file = plan_file(name);
        let text = file.text();
        write(&path, file.service, file.settings(&text)).expect("it is written");
    }
    let text = std::fs::read_to_string(&path).expect("a file");
    assert_eq!(Placement::parse("placement.toml", &text), Ok(placement()));
    // Nothing else is left in the folder.
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn a_file_that_is_no_placement_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("other.toml");
    let plan = plan_file("replication").text();
    for text in ["[package]\nname = \"x\"\n", "not TOML at all", &plan, "\u{0}"] {
        std::fs::write(&path, text).expect("a file");
        let file = plan_file("key-value");
        let settings = file.clone().settings(&file.text());
        let error = write(&path, file.service, settings).expect_err("refused").to_string();
        assert!(error.contains("the file is not a placement, and stays as it is"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), text);
    }
    let file = plan_file("key-value");
    let settings = file.clone().settings(&file.text());
    let nowhere = folder.path().join("nowhere/placement.toml");
    let error = write(&nowhere, file.service, settings).expect_err("no folder").to_string();
    assert!(error.contains("nowhere/placement.toml cannot be written"), "{error}");
}
