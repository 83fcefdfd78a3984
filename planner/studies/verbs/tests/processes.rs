// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places as processes: each is this test's own program, started again.

use crate::conformance::{Command, MEMORY_BYTES, Role, Stage, conform, play, start};
use freeport_study_verbs::fabric::{FabricVerbs, Node, Options};
use freeport_study_verbs::{Fault, Place, Stable, Verbs, Way};
use freeport_testbed::process;
use freeport_testbed::wait::{PATIENCE, wait_until};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::rc::Rc;
use std::time::Duration;

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

/// Begins a place that waits for others as long as a loaded machine may need, and sleeps until
/// something wakes it. A process that another test is starting has the lock of an earlier life of
/// the place for a moment.
fn begin(folder: &Path, place: Place, memory_bytes: usize) -> Node {
    let longest_sleep = 10 * PATIENCE;
    let options = Options { patience: PATIENCE, longest_sleep, ..Options::default() };
    let mut node = None;
    wait_until("nobody else is the place", || {
        match Node::begin_with(folder, place, memory_bytes, options) {
            Ok(begun) => node = Some(begun),
            Err(fault) => assert!(is_taken(&fault), "{fault}"),
        }
        node.is_some()
    });
    node.expect("it has begun")
}

/// Returns whether a place cannot begin because a process has its lock.
fn is_taken(fault: &Fault) -> bool {
    fault.to_string().contains("end the process that is this place already")
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
    let mut node = begin(folder, place, memory_bytes);
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
    let mut node = begin(folder.path(), Place::Client(0), MEMORY_BYTES);
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

/// Runs a task of a place until it has ended, and returns its result.
fn result<T: 'static>(node: &mut Node, task: impl Future<Output = T> + 'static) -> T {
    let result: Rc<RefCell<Option<T>>> = Rc::default();
    let into = Rc::clone(&result);
    node.verbs().spawn(async move { *into.borrow_mut() = Some(task.await) });
    node.run_until(|| result.borrow().is_some()).expect("it runs");
    result.take().expect("it has ended")
}

/// Reads the first word of the host.
fn read_host(node: &mut Node) -> Result<Vec<u8>, Fault> {
    let here = node.verbs();
    result(node, async move { here.read(Place::Host.at(0), 8, Way::Nic).await })
}

#[test]
fn a_place_without_work_sleeps_until_it_is_called() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut node = begin(folder.path(), Place::Client(0), 0);
    let host = Process::start(folder.path(), Place::Host, 64, Role::Server);
    for _ in 0..3 {
        wait_until("the host sleeps", || process::all_sleep(host.pid()));
        let here = node.verbs();
        let answer = result(&mut node, async move { here.call(Place::Host, vec![0, 1, 2]).await });
        assert_eq!(answer, Ok(vec![2, 1]));
    }
}

/// A process that is stopped during the handshake is considered gone; later it is not needed for
/// access to its memory.
#[test]
fn a_place_that_is_stopped_is_gone_only_for_a_handshake() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = Process::start(folder.path(), Place::Host, 64, Role::Server);
    let patience = Duration::from_millis(50);
    let options = Options { patience, longest_sleep: PATIENCE, ..Options::default() };
    let begin = |number| {
        let place = Place::Client(number);
        Node::begin_with(folder.path(), place, 0, options).expect("a place")
    };
    let (mut first, mut second) = (begin(0), begin(1));
    let zero = Ok(vec![0; 8]);
    // It has the time that it needs on a loaded machine.
    wait_until("the host answers", || read_host(&mut first) == zero);
    process::pause(host.pid());
    assert_eq!(read_host(&mut first), zero);
    assert_eq!(read_host(&mut second), Err(Fault::Gone(Place::Host)));
    process::resume(host.pid());
    wait_until("the host answers", || read_host(&mut second) == zero);
}

#[test]
fn a_place_is_one_process_and_leaves_only_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = || {
        let entries = fs::read_dir(folder.path()).expect("a folder");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<_> = entries.map(name).collect();
        names.sort();
        names
    };
    let mut node = begin(folder.path(), Place::Host, 64);
    assert_eq!(names(), ["host.log", "host.sock"]);
    let other = Node::begin(folder.path(), Place::Host, 64).err().expect("there is one");
    assert!(is_taken(&other), "{other}");
    let here = node.verbs();
    result(&mut node, async move { here.stable().append(vec![1, 2]).await }).expect("it works");
    drop(node);
    assert_eq!(names(), ["host.log"]);
    // The socket of a process that was killed.
    drop(Process::start(folder.path(), Place::Host, 64, Role::Server));
    assert_eq!(names(), ["host.begun", "host.log", "host.sock"]);
    let node = begin(folder.path(), Place::Host, 64);
    assert_eq!(node.verbs().stable().read(), Ok(vec![1, 2]));
}

#[test]
fn places_that_cannot_begin_say_why() {
    let begin = |folder: &Path, bytes| {
        Node::begin(folder, Place::Soc, bytes).err().expect("it cannot begin").to_string()
    };
    let absent = begin(Path::new("/nowhere/at/all"), 64);
    assert!(absent.starts_with("soc: /nowhere/at/all/soc.log: "), "{absent}");
    let folder = tempfile::tempdir().expect("a folder");
    let large = begin(folder.path(), (2 << 30) + 1);
    assert!(large.contains("a region of 2147483656 bytes"), "{large}");
    let long = folder.path().join("x".repeat(120));
    fs::create_dir(&long).expect("a folder");
    let long = begin(&long, 64);
    assert!(long.ends_with("use a folder with a short name"), "{long}");
}
