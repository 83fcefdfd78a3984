// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands of `docs/guide/operating.md` are executed as written, in separate network, mount
//! and process namespaces. Their output has the lines of the page, except for numbers.

use crate::harness::{Node, find};
use freeport_testbed::{preload, skip};
use std::path::Path;
use std::process::Command;

/// Programs that the commands need besides the one under test.
const TOOLS: [&str; 6] = ["ip", "unshare", "redis-server", "redis-benchmark", "redis-cli", "awk"];
/// Mark that precedes the output of the command of this number.
const MARK: &str = "== command ";

/// A command, and the lines of its output on the page.
#[derive(Debug)]
struct Step {
    command: String,
    shown: Vec<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = vec![];
    for line in page.lines() {
        if let Some(command) = line.strip_prefix("    $ ") {
            steps.push(Step { command: command.to_owned(), shown: vec![] });
        } else if let (Some(line), Some(step)) = (line.strip_prefix("    "), steps.last_mut()) {
            // A block without a command is not an output.
            step.shown.push(line.to_owned());
        } else if !line.is_empty() && steps.last().is_some() {
            steps.push(Step { command: ":".to_owned(), shown: vec![] });
        }
    }
    steps.retain(|step| step.command != ":");
    steps
}

/// The words of a line, without those that have digits, which differ each time.
fn shape(line: &str) -> Vec<String> {
    let words = line.split_whitespace();
    let words = words.filter(|word| !word.contains(|it: char| it.is_ascii_digit()));
    words.map(str::to_owned).collect()
}

fn script(steps: &[Step]) -> String {
    let mut script = "set -u; mount -t tmpfs none /run; ip link set lo up
        # Until all four connections are where the page shows them.
        settled() {
            for turn in $(seq 3000); do
                freeport sockets list | grep -q '2 accelerated ends, 1 in the kernel' && return
                sleep 0.02
            done
        }\n"
    .to_owned();
    for (number, step) in steps.iter().enumerate() {
        let settles = step.command.starts_with("freeport sockets top");
        script += &format!(
            "{}echo '{MARK}{number}'\n{}\n",
            if settles { "settled\n" } else { "" },
            step.command
        );
    }
    script
}

#[test]
fn the_page_for_operators_can_be_followed() {
    // SAFETY: the call has no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return skip("only root makes a machine of its own");
    }
    if let Some(missing) = TOOLS.iter().find(|tool| find(tool).is_none()) {
        return skip(format_args!("there is no {missing}"));
    }
    let apart = ["--net", "--mount", "--mount-proc", "--pid", "--fork", "--kill-child"];
    let may = Command::new("unshare").args(apart).arg("true").output();
    if !may.is_ok_and(|output| output.status.success()) {
        return skip("this process may not make namespaces");
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/operating.md");
    let steps = steps(&std::fs::read_to_string(page).expect("it is there"));
    assert!(steps.len() > 8, "{steps:#?}");
    let node = Node::without_monitor();
    let tools = Path::new(env!("CARGO_BIN_EXE_freeport")).parent().expect("it is in a folder");
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").expect("there is one"));
    let mut command = Command::new("unshare");
    command.args(apart).args(["bash", "-c", &script(&steps)]).env("PATH", path);
    command.env("FREEPORT_PRELOAD", preload::library()).current_dir(node.path());
    command.env_remove("LD_PRELOAD").env_remove("FREEPORT_MONITOR");
    let printed = node.start("page", command).finish();
    for (number, step) in steps.iter().enumerate() {
        let begin = format!("{MARK}{number}\n");
        let (_, behind) = printed.split_once(&begin).unwrap_or_else(|| panic!("{printed}"));
        let reported = behind.split(MARK).next().unwrap_or_default();
        for line in &step.shown {
            // A refusal may have its count after it, or not yet.
            let is_it = |reported: &str| {
                let (reported, shown) = (shape(reported), shape(line));
                !reported.is_empty()
                    && (reported.starts_with(&shown) || shown.starts_with(&reported))
            };
            let exists = line.is_empty() || reported.lines().any(is_it);
            assert!(exists, "`{}` prints no `{line}`:\n{reported}", step.command);
        }
    }
}
