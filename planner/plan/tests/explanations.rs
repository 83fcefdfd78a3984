// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Explanations of plans, as goldens. `BLESS=1` accepts the present ones.

use crate::{function, profile};
use freeport_plan::{Function, explain, plan};
use std::path::Path;

/// A change of a function.
type Change = fn(&mut Function);

/// Simulated calls of each plan.
const CALLS: u32 = 300;

#[test]
fn explanations_are_as_expected() {
    let changes: [(&str, Change); 3] = [
        ("default", |_| {}),
        ("no-host", |function| function.constraints.host_cores = Some(0.0)),
        // The index of the key-value store fits, and its cache does not.
        ("little-memory", |function| function.constraints.soc_memory = Some(2_000_000_000)),
    ];
    for device in ["bluefield2", "bluefield3"] {
        for name in ["replication", "key-value"] {
            for (case, change) in changes {
                let mut function = function(name);
                change(&mut function);
                let plan = plan(&profile(device), &function).expect("a plan");
                let plan = plan.verified(&profile(device), CALLS, 1);
                compare(&format!("{name}-{device}-{case}"), &explain::explain(&plan));
            }
        }
    }
}

/// Without room for its chunks, only the host itself can replicate.
#[test]
fn a_small_memory_leaves_the_host() {
    let mut function = function("replication");
    function.constraints.soc_memory = Some(1 << 20);
    let plan = plan(&profile("bluefield2"), &function).expect("a plan");
    let plan = plan.verified(&profile("bluefield2"), CALLS, 1);
    compare("replication-bluefield2-tiny-memory", &explain::explain(&plan));
    assert_eq!(plan.shares.len(), 1);
}

fn compare(name: &str, text: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    let file = folder.join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, text).expect("the golden is written");
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(text == expected, "{name} differs; BLESS=1 accepts it:\n{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}
