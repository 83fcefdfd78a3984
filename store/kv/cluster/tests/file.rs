// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registries in a folder: killed processes, other boots and versions, and a lock that is held.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use freeport_kv_cluster::{NodeId, Registry, RegistryError, Revision, SwapError, boot_time, open};
use freeport_testbed::{seed, usual_or_long, wait_until};
use tempfile::TempDir;

use crate::fixture::{LONG, file_url, presence, topology};

/// The URL for the process that writes.
const URL: &str = "FREEPORT_TEST_REGISTRY";
const WRITES: &str = "file::writes_for_another_test";
/// Begin of the lines that the writer prints.
const WROTE: &str = "wrote ";

fn registry() -> (TempDir, PathBuf, Arc<dyn Registry>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("registry");
    let registry = open(&file_url(folder.path())).expect("the folder can be made");
    (folder, path, registry)
}

/// Swaps and keeps a lease until it is killed, if it was started for that.
#[test]
fn writes_for_another_test() {
    let Some(url) = std::env::var_os(URL) else { return };
    let registry = open(url.to_str().expect("a URL")).expect("the folder is there");
    let node = NodeId::random();
    for session in 0.. {
        let stored = registry.read().expect("it answers").topology;
        let epoch = stored.as_ref().map_or(0, |stored| stored.topology.epoch) + 1;
        let expected = stored.map(|stored| stored.revision);
        let revision = registry.swap(expected, None, &topology(epoch)).expect("no other swaps");
        registry.keep(node, &presence(session, 0), LONG).expect("nobody else has it");
        registry.leave(node, session).expect("it answers");
        println!("{WROTE}{} {epoch}", revision.0);
    }
}

fn start_writer(folder: &Path) -> Child {
    let test = std::env::current_exe().expect("a test knows its own file");
    let mut command = Command::new(test);
    command.args([WRITES, "--exact", "--nocapture", "--test-threads=1"]);
    command.env(URL, file_url(folder)).stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().expect("it starts")
}

/// Kills a writer after a number of its lines and some more time, and returns what it wrote last.
fn kill_writer(mut writer: Child, lines: usize, more: Duration) -> (u64, u64) {
    let mut output = BufReader::new(writer.stdout.take().expect("it is piped")).lines();
    let parse = |line: &str| {
        let (revision, epoch) = line.split_once(WROTE)?.1.split_once(' ')?;
        Some((revision.parse().ok()?, epoch.parse().ok()?))
    };
    let mut wrote = output.by_ref().map_while(Result::ok).filter_map(|line| parse(&line));
    let before: Vec<_> = wrote.by_ref().take(lines).collect();
    assert_eq!(before.len(), lines, "the writer has ended by itself");
    std::thread::sleep(more);
    writer.kill().expect("it is a child");
    writer.wait().expect("it is a child");
    wrote.last().unwrap_or(before[lines - 1])
}

#[test]
fn a_killed_process_leaves_the_old_value_or_the_new_one() {
    let (folder, _, registry) = registry();
    let mut random = fastrand::Rng::with_seed(seed());
    for _ in 0..usual_or_long(15, 300) {
        let more = Duration::from_micros(random.u64(..3000));
        let (revision, epoch) = kill_writer(start_writer(folder.path()), random.usize(1..4), more);
        let state = registry.read().expect("it can be read");
        let stored = state.topology.expect("it was written");
        // The writer may have been killed between a swap and the line about it.
        let ahead = stored.revision.0 - revision;
        assert!(ahead <= 1, "{stored:?} after {revision}");
        assert_eq!(stored.topology.epoch, epoch + ahead);
        let next = registry.swap(Some(stored.revision), None, &topology(stored.topology.epoch + 1));
        assert_eq!(next, Ok(Revision(stored.revision.0 + 1)), "the lock has ended");
    }
}

#[test]
fn what_a_killed_process_did_not_finish_is_ignored() {
    let (_folder, path, registry) = registry();
    let node = NodeId::random();
    registry.keep(node, &presence(1, 0), LONG).expect("nobody has it");
    registry.swap(None, None, &topology(1)).expect("there is none");
    let before = registry.read().expect("it answers");
    let leases = leases(&path);
    fs::write(path.join("topology.new"), "{\"form").expect("it can be written");
    fs::write(leases.join(format!("{node}.new")), "").expect("it can be written");
    assert_eq!(registry.read(), Ok(before));
    registry.keep(node, &presence(1, 0), LONG).expect("it is its own");
    registry.swap(Some(Revision(1)), None, &topology(2)).expect("it is the revision");
}

/// The folder with the leases of this boot.
fn leases(path: &Path) -> PathBuf {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux has it");
    path.join(format!("leases.{}", boot.trim()))
}

#[test]
fn leases_of_another_boot_have_ended() {
    let (_folder, path, registry) = registry();
    let (node, other) = (NodeId::random(), NodeId::random());
    registry.keep(node, &presence(1, 0), LONG).expect("nobody has it");
    let earlier = path.join("leases.an-earlier-boot");
    fs::rename(leases(&path), &earlier).expect("it is there");
    assert!(registry.read().expect("it answers").nodes.is_empty());
    registry.swap(None, Some(node), &topology(1)).expect("the node has no lease");
    registry.keep(other, &presence(2, 0), LONG).expect("nobody has it");
    assert!(!earlier.exists(), "leases of other boots are removed");
    assert!(registry.read().expect("it answers").nodes.keys().eq([&other]));
}

#[test]
fn contents_of_another_version_are_refused() {
    let (_folder, path, registry) = registry();
    fs::write(path.join("topology"), "{\"format\": 2}").expect("it can be written");
    let error = registry.read().expect_err("it is of another version");
    let text = error.to_string();
    assert!(matches!(error, RegistryError::Contents(_)), "{text}");
    assert!(text.contains("topology: format 2 of another version of Freeport"), "{text}");
    let swapped = registry.swap(None, None, &topology(1));
    assert_eq!(swapped, Err(SwapError::Failed(error)));
}

#[test]
fn a_stored_topology_that_breaks_the_rules_is_refused() {
    let (_folder, path, registry) = registry();
    registry.swap(None, None, &topology(1)).expect("there is none");
    let file = path.join("topology");
    let text = fs::read_to_string(&file).expect("it was written");
    let other = NodeId::random().to_string();
    let (before, after) = text.split_once("\"primary\":\"").expect("it has a primary");
    fs::write(&file, format!("{before}\"primary\":\"{other}{}", &after[40..])).expect("a file");
    let error = registry.read().expect_err("its primary is no member").to_string();
    assert!(error.contains("is none of its nodes"), "{error}");
}

#[test]
fn a_lock_that_a_stopped_process_holds_is_reported() {
    let (_folder, path, registry) = registry();
    let lock = File::open(&path).expect("it is a folder");
    lock.lock().expect("nobody has it");
    let error = registry.read().expect_err("it is locked").to_string();
    assert!(error.contains("`lslocks` shows it"), "{error}");
    let error = registry.swap(None, None, &topology(1));
    assert!(matches!(error, Err(SwapError::Failed(_))), "{error:?}");
    lock.unlock().expect("it is locked");
    registry.swap(None, None, &topology(1)).expect("it is free");
}

#[test]
fn readers_share_the_lock() {
    let (_folder, path, registry) = registry();
    let lock = File::open(&path).expect("it is a folder");
    lock.lock_shared().expect("nobody has it");
    registry.read().expect("it reads, too");
    let time = Duration::from_millis(300);
    let error = registry.keep(NodeId::random(), &presence(1, 0), time).expect_err("it writes");
    assert!(error.to_string().contains("locked for 100 ms"), "{error}");
}

#[test]
fn leases_do_not_wait_for_a_writer_of_the_topology() {
    let (_folder, path, registry) = registry();
    registry.swap(None, None, &topology(1)).expect("there is none");
    let writer = File::open(path.join("topology.lock")).expect("a writer has made it");
    writer.lock().expect("nobody has it");
    let node = NodeId::random();
    registry.keep(node, &presence(1, 0), LONG).expect("nobody has it");
    assert!(registry.read().expect("it answers").nodes.contains_key(&node));
    registry.leave(node, 1).expect("it answers");
    let second = registry.swap(Some(Revision(1)), None, &topology(2));
    assert!(matches!(second, Err(SwapError::Failed(_))), "{second:?}");
    writer.unlock().expect("it is locked");
    registry.swap(Some(Revision(1)), None, &topology(2)).expect("nobody else writes");
}

/// Number of files of this process that are open under a path.
fn opened(path: &Path) -> usize {
    let files = fs::read_dir("/proc/self/fd").expect("Linux has it").flatten();
    files.filter(|file| fs::read_link(file.path()).is_ok_and(|it| it == path)).count()
}

/// Keeps a lease while the folder is locked for a while, and returns when it was unlocked; none if
/// the call has not waited that long.
fn keep_while_locked(registry: &Arc<dyn Registry>, path: &Path, node: NodeId) -> Option<Duration> {
    let lock = File::open(path).expect("it is a folder");
    lock.lock().expect("nobody has it");
    std::thread::scope(|scope| {
        let keeper = scope.spawn(|| registry.keep(node, &presence(1, 0), LONG));
        wait_until("the call waits for the lock", || opened(path) == 2 || keeper.is_finished());
        let begun = boot_time();
        // The end is rounded up.
        wait_until("a while", || boot_time() > begun + Duration::from_millis(2));
        let freed = boot_time();
        lock.unlock().expect("it is locked");
        keeper.join().expect("it does not panic").is_ok().then_some(freed)
    })
}

#[test]
fn a_lease_is_counted_from_before_the_wait_for_the_lock() {
    let (_folder, path, registry) = registry();
    let node = NodeId::random();
    // On a loaded machine, the call may have given up before the lock is free.
    let freed = loop {
        if let Some(freed) = keep_while_locked(&registry, &path, node) {
            break freed;
        }
    };
    let text = fs::read_to_string(leases(&path).join(node.to_string())).expect("it is there");
    let (_, end) = text.split_once("\"end_ms\":").expect("it has an end");
    let digits: String = end.chars().take_while(char::is_ascii_digit).collect();
    let end: u128 = digits.parse().expect("a number");
    assert!(end <= (freed + LONG).as_millis(), "{text}");
}

#[test]
fn leases_that_ended_long_ago_are_removed() {
    let (_folder, path, registry) = registry();
    let (gone, present) = (NodeId::random(), NodeId::random());
    registry.keep(present, &presence(1, 0), LONG).expect("nobody has it");
    let file = |node: NodeId| leases(&path).join(node.to_string());
    let text = fs::read_to_string(file(present)).expect("it is there");
    let (before, end) = text.split_once("\"end_ms\":").expect("it has an end");
    let after = end.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let ended = |ago: Duration| {
        let end = boot_time().saturating_sub(ago).as_millis();
        fs::write(file(gone), format!("{before}\"end_ms\":{end}{after}")).expect("a file");
    };
    ended(Duration::from_secs(10));
    registry.swap(None, None, &topology(1)).expect("there is none");
    assert!(file(gone).exists(), "it ended lately");
    ended(Duration::from_secs(100));
    registry.swap(Some(Revision(1)), None, &topology(2)).expect("it is the revision");
    assert!(!file(gone).exists() && file(present).exists());
}

#[test]
fn folders_that_cannot_be_used_are_refused_with_the_reason() {
    let (folder, path, registry) = registry();
    let file = folder.path().join("file");
    fs::write(&file, "").expect("it can be written");
    let error = open(&format!("file:{}/registry", file.display())).err().expect("it is a file");
    assert!(error.to_string().contains("cannot make"), "{error}");
    let error = open("file:/proc/registry").err().expect("nobody can write there").to_string();
    assert!(error.contains("cannot make /proc/registry"), "{error}");
    fs::remove_dir_all(&path).expect("it is there");
    let error = registry.read().expect_err("it was removed").to_string();
    assert!(error.contains("it was removed"), "{error}");
}
