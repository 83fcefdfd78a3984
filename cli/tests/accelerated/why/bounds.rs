// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Monitors whose limits are reached, and no monitor at all.

use super::Scene;
use crate::harness::{Mode, Node, Program};
use std::process::Command;

/// A monitor with a low limit of descriptors.
fn monitor_with(node: &Node, descriptors: Option<u32>, slabs_of_users: &str) -> Program {
    let freeport = node.freeport(&["node", "--user-slabs", slabs_of_users]);
    let mut command = freeport;
    if let Some(descriptors) = descriptors {
        let mut limited = Command::new("sh");
        let limit = format!("ulimit -n {descriptors}; exec \"$@\"");
        limited.args(["-c", &limit, "sh"]).arg(command.get_program()).args(command.get_args());
        limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        limited.env_remove("LD_PRELOAD").current_dir(node.path());
        command = limited;
    }
    let mut monitor = node.start("monitor", command);
    monitor.wait_until("it listens", || node.monitor_pid().is_some());
    monitor
}

#[test]
fn what_is_beyond_the_share_of_its_users_is_told() {
    let node = Node::without_monitor();
    let _monitor = monitor_with(&node, None, "1");
    let Some(first) = Scene::new(&node, Mode::Accelerated, &["accelerated"]) else { return };
    first.comes_to("accelerated", |reported| reported["state"] == "accelerated");
    let Some(second) = Scene::new(&node, Mode::Accelerated, &["used"]) else { return };
    second.is_for("UserLimit");
}

#[test]
fn what_there_is_no_room_for_is_told() {
    let node = Node::without_monitor();
    // The limit of slabs of a process is an eighth of that.
    let _monitor = monitor_with(&node, Some(48), "1000");
    let Some(scene) = Scene::new(&node, Mode::Accelerated, &["many peers", "6"]) else { return };
    scene.is_for("Resources");
}

#[test]
fn without_a_monitor_that_is_told() {
    let (node, monitor) = Node::new();
    drop(monitor);
    let scene = Scene::new(&node, Mode::Accelerated, &["used"]);
    // The command starts a monitor, which ends too.
    let pid = node.monitor_pid();
    if let Some(pid) = pid {
        // SAFETY: no memory is passed; the process belongs to this test.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
    let Some(scene) = scene else { return };
    scene.is_for("NoMonitor");
}
