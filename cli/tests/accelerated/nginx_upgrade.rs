// SPDX-License-Identifier: Apache-2.0 OR MIT
//! nginx is replaced by another nginx that inherits its listeners, while clients load it.

use crate::harness::{Mode, Node, wait_until};
use crate::nginx::{PLAIN, Settings, configure};
use std::fs;
use std::path::Path;

/// The processes that a process has begun.
pub fn children(parent: i32) -> Vec<i32> {
    let processes = fs::read_dir("/proc").expect("there are processes");
    let numbers = processes.flatten().filter_map(|it| it.file_name().to_str()?.parse().ok());
    let is_child = |pid: &i32| {
        // The parent is the second word behind the name, which is in parentheses.
        let told = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let behind = told.rsplit_once(')').map_or("", |(_, behind)| behind);
        behind.split_whitespace().nth(1).and_then(|word| word.parse().ok()) == Some(parent)
    };
    numbers.filter(is_child).collect()
}

/// A master process, which nobody waits for. It ends with this.
struct Master {
    pid: i32,
}

impl Master {
    /// The one that a file names, if it is not the one that was named before.
    fn of(file: &Path, before: i32) -> Option<Self> {
        let pid = fs::read_to_string(file).ok()?.trim().parse().ok()?;
        (pid != before).then(|| Self { pid })
    }

    fn signal(&self, signal: i32) {
        // SAFETY: a process that this test has begun, and that has not ended yet.
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
    // It gives its environment to nobody unless it is told to.
    replace(&node, "daemon on; env LD_PRELOAD; env FREEPORT_MONITOR;", |before| {
        node.moved().bytes > before + (1 << 20)
    });
}

#[test]
fn one_that_is_begun_without_the_library_takes_over() {
    let (node, _monitor) = Node::new();
    replace(&node, "daemon on;", |_| node.connections().is_empty());
}

/// Replaces one by another, and waits until something is so, of which it is told how many bytes
/// were moved past the kernel before.
fn replace(node: &Node, directives: &str, is_as_expected: impl Fn(u64) -> bool) {
    // Only one whose parent is not who has begun it lets itself be replaced.
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
    // The new one begins beside the old one, and both accept.
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
    let told = fs::read_to_string(node.path().join("nginx/errors")).expect("there are errors");
    let errors: Vec<_> = told.lines().filter(|line| !line.contains("[notice]")).collect();
    assert!(errors.is_empty(), "{errors:?}");
}
