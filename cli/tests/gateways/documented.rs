// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands of `docs/guide/networks.md` do what the page says: they are executed as written, in
//! order, in separate network and mount namespaces, so that the names of namespaces there do not
//! collide with others.

use super::network::{MOMENT, launch};
use crate::hosts::may_make_hosts;
use freeport_bench::network::PATIENCE;
use freeport_testbed::skip;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// Programs that the commands need besides the one under test.
const TOOLS: [&str; 6] = ["ip", "ethtool", "ping", "curl", "python3", "unshare"];

/// Output after `&& echo` or `|| echo` if a command behaves as the page says.
const SIGNS: [&str; 2] = ["answered", "nobody answers"];

/// The commands after `$`, each with its continuation lines.
fn commands(page: &str) -> Vec<String> {
    let mut commands: Vec<String> = vec![];
    for line in page.lines() {
        if let Some(command) = line.strip_prefix("    $ ") {
            commands.push(command.to_owned());
        } else if let (true, Some(last)) = (line.starts_with("     "), commands.last_mut()) {
            *last += &format!("\n{line}");
        }
    }
    commands
}

/// A script that stops at the first command that fails, and names it.
fn script(commands: &[String]) -> String {
    let mut script = "set -eu -o pipefail\nmount -t tmpfs none /run\n".to_owned();
    for command in commands {
        let shown = command.replace('\'', "'\\''");
        script += &format!("echo '$ {shown}' >&2\n{command}\n");
    }
    script
}

#[test]
fn the_page_on_networks_can_be_followed() {
    if !may_make_hosts() {
        return;
    }
    let exists = |tool: &&str| {
        let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
        found.is_ok_and(|output| output.status.success())
    };
    if let Some(missing) = TOOLS.iter().find(|tool| !exists(tool)) {
        skip(format_args!("there is no {missing}"));
        return;
    }
    let launch = launch();
    let page = launch.folder.join("docs/guide/networks.md");
    let commands = commands(&std::fs::read_to_string(page).expect("it is there"));
    assert!(commands.len() > 60, "{commands:#?}");
    let folder = tempfile::tempdir().expect("a folder");
    let [said, reported] = ["said", "told"].map(|name| folder.path().join(name));
    let file = |path| Stdio::from(std::fs::File::create(path).expect("it can be written"));
    let tools = launch.program.parent().expect("it is in a folder").display();
    let path = format!("{tools}:{}", std::env::var("PATH").expect("there is one"));
    // It ends with this process, and so does everything that it starts.
    let mut child = Command::new("unshare")
        .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c"])
        .arg(script(&commands))
        .current_dir(&launch.folder)
        .env("PATH", path)
        .env("FREEPORT_RUN", folder.path().join("sockets"))
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env_remove("FREEPORT_ELEMENTS")
        .stdin(Stdio::null())
        .stdout(file(&reported))
        .stderr(file(&said))
        .spawn()
        .expect("it can be started");
    let status = wait(&mut child, &said);
    let (said, reported) = (read(&said), read(&reported));
    assert!(status.is_some_and(|it| it.success()), "{said}\n{reported}");
    for sign in SIGNS {
        let asked = commands.iter().filter(|it| it.ends_with(&format!(" echo {sign}"))).count();
        let seen = reported.lines().filter(|line| *line == sign).count();
        assert!(asked > 0 && seen == asked, "{seen} of {asked} `{sign}`:\n{said}\n{reported}");
    }
}

/// Its exit status; `None`: it was killed because it printed nothing for too long.
fn wait(child: &mut Child, said: &Path) -> Option<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            return Some(status);
        }
        let last = std::fs::metadata(said).and_then(|it| it.modified()).expect("it was written");
        if last.elapsed().is_ok_and(|idle| idle > 2 * PATIENCE) {
            child.kill().expect("it runs");
            child.wait().expect("it is a child");
            return None;
        }
        std::thread::sleep(MOMENT / 10);
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).expect("it was written")).into_owned()
}
