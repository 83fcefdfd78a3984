// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places as processes: each is this test's own program, started again.

use crate::conformance::{Command, MEMORY_BYTES, Role, Stage, conform, play, start};
use freeport_study_verbs::fabric::{FabricVerbs, Node};
use freeport_study_verbs::{Place, Verbs};
use freeport_testbed::wait_until;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};

/// Variable in which another process finds its folder, place, memory and role.
const PART: &str = "FREEPORT_TEST_PLACE";

/// A process that is a place; it is killed when the test ends.
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts a place, and waits until it has begun.
    pub fn start(folder: &Path, place: Place, memory_bytes: usize, role: Role) -> Self {
        let program = env::current_exe().expect("the test's own program");
        let part = format!("{place} {memory_bytes} {} {}", role.number(), folder.display());
        let child = Program::new(program)
            .args(["--exact", "processes::another_place", "--nocapture", "--test-threads=1", "-q"])
            .env(PART, part)
            .stdout(Stdio::null())
            .spawn()
            .expect("the test's own program starts");
        let this = Self { child };
        let pid = this.child.id().to_string();
        wait_until("the place has begun", || {
            fs::read_to_string(begun(folder, place)).is_ok_and(|found| found == pid)
        });
        this
    }

    /// Returns its number.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the file in which a place says that it has begun.
fn begun(folder: &Path, place: Place) -> PathBuf {
    folder.join(format!("{place}.begun"))
}

/// The part of another process, until it is killed. Does nothing as a test.
#[test]
fn another_place() {
    let Ok(part) = env::var(PART) else { return };
    let mut words = part.splitn(4, ' ');
    let mut word = || words.next().expect("four words");
    let place: Place = word().parse().expect("a place");
    let memory_bytes = word().parse().expect("a size");
    let role = Role::of(word().parse().expect("a role"));
    let folder = Path::new(word());
    let mut node = Node::begin(folder, place, memory_bytes).expect("a place");
    // Others find the whole number, or none.
    let (path, unfinished) = (begun(folder, place), folder.join(format!("{place}.new")));
    fs::write(&unfinished, std::process::id().to_string()).expect("a file");
    fs::rename(unfinished, path).expect("a file");
    let here = node.verbs();
    here.spawn(play(here.clone(), role));
    node.run_until(|| false).expect("it runs until it is killed");
}

/// Runs a case in a place of this process, and other places in others.
fn perform<F: Future<Output = ()> + 'static>(case: impl FnOnce(FabricVerbs, Stage) -> F) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut node = Node::begin(folder.path(), Place::Client(0), MEMORY_BYTES).expect("a place");
    let stage = Stage::default();
    let has_ended = start(&node.verbs(), case(node.verbs(), stage.clone()));
    let mut processes = BTreeMap::new();
    let ran = node.run_until(|| {
        stage.obey(|command| match command {
            Command::Begin(place, memory_bytes, role) => {
                let process = Process::start(folder.path(), place, memory_bytes, role);
                processes.insert(place, process);
            }
            Command::Kill(place) => drop(processes.remove(&place).expect("it was begun")),
        });
        has_ended.get()
    });
    ran.expect("it runs");
    assert_eq!(node.refusals().count, 0, "{:?}", node.refusals());
}

conform!(perform);
