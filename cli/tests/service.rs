// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The unit for systemd: it is installed with the right path, systemd accepts it, and a monitor
//! works with the capabilities that it grants.

use crate::monitor::{Monitor, is_root};
use freeport_monitor::confinement::{NEEDED, Rights};
use freeport_testbed::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn unit() -> String {
    fs::read_to_string(repository().join("packaging/freeport-node.service")).unwrap()
}

/// The value of a setting that occurs once.
fn setting<'u>(unit: &'u str, name: &str) -> &'u str {
    let values: Vec<_> = unit.lines().filter_map(|line| line.strip_prefix(name)).collect();
    let [value] = values.as_slice() else { panic!("{name} {values:?}") };
    value.strip_prefix('=').unwrap()
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|it| it.status.success())
}

#[test]
fn the_unit_is_installed_with_the_path_of_the_command() {
    if !has("objcopy") {
        return skip("objcopy is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let (built, stage) = (folder.path().join("built"), folder.path().join("stage/opt/it"));
    fs::create_dir(&built).unwrap();
    for name in ["freeport", "libfreeport_preload.so"] {
        // Any program can be stripped; this one is small.
        fs::copy("/bin/true", built.join(name)).unwrap();
    }
    let mut script = Command::new("bash");
    script.arg(repository().join("scripts/install-built.sh")).arg(&stage).arg(&built);
    let output = script.env("PREFIX", "/opt/it").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let installed = stage.join("lib/systemd/system/freeport-node.service");
    let installed = fs::read_to_string(installed).unwrap();
    assert_eq!(setting(&installed, "ExecStart"), "/opt/it/bin/freeport node");
    assert!(stage.join("bin/freeport").is_file(), "{installed}");
}

#[test]
fn systemd_takes_the_unit() {
    if !has("systemd-analyze") {
        return skip("systemd-analyze is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("freeport-node.service");
    fs::write(&path, unit().replace("@BIN@/freeport node", "/bin/true")).unwrap();
    let output = Command::new("systemd-analyze").arg("verify").arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("freeport-node"), "{said}");
}

#[test]
fn a_monitor_begins_with_the_rights_of_the_unit() {
    let unit = unit();
    let needed = NEEDED.map(|it| format!("CAP_{}", it.name)).join(" ");
    assert_eq!(setting(&unit, "CapabilityBoundingSet"), needed);
    if !is_root() || !has("setpriv") {
        return skip("only root, with setpriv, takes rights from a process that keeps its user");
    }
    let here = Rights::of(std::process::id()).unwrap();
    if !NEEDED.iter().all(|it| here.has(*it)) {
        return skip("this process has fewer rights than the unit leaves");
    }
    let kept = NEEDED.map(|it| format!(",+{}", it.name.to_lowercase())).concat();
    let bounding = format!("--bounding-set=-all{kept}");
    let monitor = Monitor::after(&["setpriv", &bounding, "--inh-caps=-all", "--no-new-privs"]);
    let monitor = monitor.expect("it runs");
    monitor.reported(&["sockets", "stats"]);
    let rights = Rights::of(monitor.process.id()).unwrap();
    assert!(rights.is_confined() && NEEDED.iter().all(|it| rights.has(*it)), "{rights:?}");
    assert_eq!(monitor.log().lines().count(), 1, "{}", monitor.log());
}
