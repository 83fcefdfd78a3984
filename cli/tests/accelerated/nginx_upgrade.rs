// SPDX-License-Identifier: Apache-2.0 OR MIT
//! nginx is replaced by another nginx that inherits its listeners, while clients load it.

use crate::harness::{Mode, Node, wait_until};
use crate::nginx::{PLAIN, Settings, configure};
use std::fs;
use std::path::Path;

/// The child processes of a process.
pub fn children(parent: i32) -> Vec<i32> {
    let processes = fs::read_dir("/proc").expect("there are processes");
    let numbers = processes.flatten().filter_map(|it| it.file_name().to_str()?.parse().ok());
    let is_child = |pid: &i32| {
        // The parent is the second word after the name, which is in parentheses.
        let reported = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let behind = reported.rsplit_once(')').map_or("", |(_, behind)| behind);
        behind.split_whitespace().nth(1).and_then(|word| word.parse().ok()) == Some(parent)
    };
    numbers.filter(is_child).collect()
}

/// A master process that is not a child of this one. Dropping it ends the process.
struct Master {
    pid: i32,
}

impl Master {
    /// The process that a PID file names, if it is not the previous one.
    fn of(file: &Path, before: i32) -> Option<Self> {
        let pid = fs::read_to_string(file).ok()?.trim().parse().ok()?;
        (pid != before).then(|| Self { pid })
    }

    fn signal(&self, signal: i32) {
        // SAFETY: no memory is passed; the process was started by this test and is running.
        assert_eq!(unsafe { libc::kill(self.pid, signal) }, 0);
    }

    fn has_ended(&self) -> bool {
        fs::read_link(format!("/proc/{}/exe", self.pid)).is_err()
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.signal(libc::SIGTERM);
        }
    }
}

#[test]
fn another_nginx_takes_over_under_load() {
    let (node, _monitor) = Node::new();
    // nginx passes only the variables that are named here.
    replace(&node, "daemon on; env LD_PRELOAD; env FREEPORT_MONITOR;", |before| {
        node.moved().bytes > before + (1 << 20)
    });
}

#[test]
fn one_that_is_begun_without_the_library_takes_over() {
    let (node, _monitor) = Node::new();
    replace(&node, "daemon on;", |_| node.connections().is_empty());
}

/// Replaces a master by another, and waits for a condition, which is given the number of
/// accelerated bytes before.
fn replace(node: &Node, directives: &str, is_as_expected: impl Fn(u64) -> bool) {
    // A master can be replaced only if its parent is not the process that started it.
    let settings = Settings { directives, workers: 2, ..PLAIN };
    let (mut command, port) = configure(node, "nginx", &settings);
    assert!(command.status().expect("it can be begun").success());
    let file = node.path().join("nginx/pid");
    let mut old = None;
    wait_until("it has begun", || {
        old = Master::of(&file, 0);
        old.is_some()
    });
    let old = old.expect("it has begun");
    let stop = node.path().join("stop");
    let argument = format!("{port} {}", stop.display());
    let mut clients = node.role(Mode::Accelerated, "http load", &argument);
    clients.wait_until("the old one is loaded", || node.moved().bytes > 1 << 20);
    // The new master runs beside the old one, and both accept connections.
    old.signal(libc::SIGUSR2);
    let mut new = None;
    clients.wait_until("the new one has begun", || {
        new = new.take().or_else(|| Master::of(&file, old.pid));
        new.as_ref().is_some_and(|new| children(new.pid).len() == 2)
    });
    let new = new.expect("it has begun");
    old.signal(libc::SIGWINCH);
    clients.wait_until("the old workers have ended", || children(old.pid) == [new.pid]);
    old.signal(libc::SIGQUIT);
    clients.wait_until("the old one has ended", || old.has_ended());
    let before = node.moved();
    clients.wait_until("the new one is loaded", || is_as_expected(before.bytes));
    fs::write(stop, "").expect("it can be written");
    clients.finish();
    new.signal(libc::SIGQUIT);
    wait_until("the new one has ended", || new.has_ended());
    let reported = fs::read_to_string(node.path().join("nginx/errors")).expect("there are errors");
    let errors: Vec<_> = reported.lines().filter(|line| !line.contains("[notice]")).collect();
    assert!(errors.is_empty(), "{errors:?}");
}
