// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport exec`, the monitors that it starts, and requests to them.

use freeport_testbed::skip;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(180);

/// A folder with a library that does nothing, and the socket of a monitor. Dropping it ends a
/// monitor that still runs.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        // Only the header of a library: the loader prints an error and continues.
        let mut start = vec![];
        let own = File::open("/proc/self/exe").unwrap();
        own.take(64).read_to_end(&mut start).unwrap();
        fs::write(place.library(), start).unwrap();
        place
    }

    fn library(&self) -> PathBuf {
        self.0.path().join("empty.so")
    }

    fn socket(&self) -> PathBuf {
        self.0.path().join("monitor.sock")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
        command.args(words).env_remove("LD_PRELOAD");
        command.env("FREEPORT_MONITOR", self.socket()).env("FREEPORT_PRELOAD", self.library());
        command
    }

    fn output(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn asked(&self, words: &[&str]) -> Value {
        let output = self.output(words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn monitor(&self) -> Option<i32> {
        let reported = fs::read_to_string(self.0.path().join("monitor.sock.lock"));
        reported.ok()?.trim().parse().ok()
    }

    fn end_monitor(&self) {
        if let Some(pid) = self.monitor() {
            end(pid);
            eventually("the monitor ends", || !self.socket().exists());
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(pid) = self.monitor() {
            end(pid);
        }
    }
}

fn end(pid: i32) {
    // SAFETY: no memory is passed; the process was started by this test.
    unsafe { libc::kill(pid, libc::SIGTERM) };
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "{what}: it should be so by now");
        thread::sleep(Duration::from_millis(10));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_process_becomes_the_command() {
    let place = Place::new();
    let script = "echo $$ $LD_PRELOAD $FREEPORT_MONITOR \"$@\"; exit 7";
    let mut command = place.command(&["exec", "sh", "-c", script, "it", "--help", "a b"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let (library, socket) = (place.library(), place.socket());
    let expected = format!("{pid} {} {} --help a b\n", library.display(), socket.display());
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn what_is_preloaded_already_stays() {
    let place = Place::new();
    let mut command = place.command(&["exec", "--", "sh", "-c", "echo $LD_PRELOAD"]);
    let output = command.env("LD_PRELOAD", "/nothing/there.so").output().unwrap();
    let expected = format!("/nothing/there.so:{}\n", place.library().display());
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn failures_have_the_statuses_of_shells() {
    let place = Place::new();
    let status = |words: &[&str]| place.output(words).status.code();
    assert_eq!(status(&["exec", "no-such-command"]), Some(127));
    assert_eq!(status(&["exec", "/no/such/command"]), Some(127));
    assert_eq!(status(&["exec", "/proc/self/maps"]), Some(126));
    let output = place.command(&["exec", "true"]).env("FREEPORT_PRELOAD", "/gone").output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("FREEPORT_PRELOAD is /gone"), "{output:?}");
}

#[test]
fn a_command_runs_even_if_no_monitor_can() {
    let place = Place::new();
    let mut command = place.command(&["exec", "sh", "-c", "echo \"<$LD_PRELOAD>\"; exit 5"]);
    let output = command.env("FREEPORT_MONITOR", "/proc/none/monitor.sock").output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stderr).contains("stay in the kernel"), "{output:?}");
    assert_eq!(text(&output.stdout), "<>\n", "it is not preloaded");
}

/// Only a monitor of the same user or of root is given sockets.
#[test]
fn a_command_is_told_of_no_stranger() {
    // SAFETY: the call takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return skip("only root has processes of two users");
    }
    let place = Place::new();
    fs::set_permissions(place.0.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let folder = place.0.path().join("theirs");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::chown(&folder, Some(65_534), None).unwrap();
    let socket = folder.join("monitor.sock");
    let mut command = place.command(&["node"]);
    command.env("FREEPORT_MONITOR", &socket).stderr(Stdio::null());
    std::os::unix::process::CommandExt::uid(&mut command, 65_534);
    let Ok(mut stranger) = command.spawn() else {
        return skip("another user cannot reach the command");
    };
    eventually("it listens", || socket.exists());
    let mut command = place.command(&["exec", "sh", "-c", "echo \"<$LD_PRELOAD>\""]);
    let output = command.env("FREEPORT_MONITOR", &socket).output().unwrap();
    end(stranger.id() as i32);
    stranger.wait().unwrap();
    assert_eq!(text(&output.stdout), "<>\n");
    assert!(text(&output.stderr).contains("neither you nor root"), "{output:?}");
}

#[test]
fn commands_that_begin_at_once_share_one_monitor() {
    let place = Place::new();
    let begin = || {
        let mut command = place.command(&["exec", "true"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..6).map(|_| begin()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let pid = place.monitor().expect("one listens");
    assert_eq!(place.asked(&["sockets", "stats", "--json"])["pid"], pid);
    let log = fs::read_to_string(place.0.path().join("monitor.sock.log")).unwrap();
    assert_eq!(log.matches("listens at").count(), 1, "{log}");
    place.end_monitor();
}

/// A process that waits for the end of file on descriptors of the command does not wait for the
/// monitor.
#[test]
fn a_monitor_in_the_background_keeps_nothing_of_who_began_it() {
    let place = Place::new();
    let mut command = place.command(&["exec", "sh", "-c", "echo $PPID"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    // Both have ended, and the monitor still runs.
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(out.trim(), std::process::id().to_string(), "our child, and no other's");
    let pid = place.monitor().expect("it lives");
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // After the state: parent, group, session, terminal.
    assert_ne!(fields[1], std::process::id().to_string());
    assert_eq!(fields[4], "0", "no terminal");
    assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), Path::new("/"));
    place.end_monitor();
}

#[test]
fn one_monitor_at_a_place() {
    let place = Place::new();
    let mut command = place.command(&["node", "--json"]);
    let mut first = command.stderr(Stdio::piped()).spawn().unwrap();
    eventually("it listens", || place.output(&["sockets", "stats"]).status.success());
    let second = place.output(&["node"]);
    assert!(!second.status.success());
    let reported = text(&second.stderr);
    assert!(reported.contains(&format!("(process {})", first.id())), "{reported}");
    // In the background, an existing monitor serves as well.
    assert!(place.output(&["node", "--background"]).status.success());
    end(first.id() as i32);
    assert!(first.wait().unwrap().success());
    let mut log = String::new();
    first.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 2, "{log}");
    assert_eq!(
        (&events[0]["event"], &events[1]["event"]),
        (&"listening".into(), &"stopped".into())
    );
    assert!(!place.socket().exists());
    let gone = place.output(&["sockets", "list"]);
    assert!(text(&gone.stderr).contains("start one with `freeport node`"), "{gone:?}");
}

#[test]
fn who_reads_only_the_first_lines_is_told_no_failure() {
    let place = Place::new();
    let mut monitor = place.command(&["node"]).stderr(Stdio::null()).spawn().unwrap();
    eventually("it listens", || place.output(&["sockets", "stats"]).status.success());
    let (to, from) = UnixStream::pair().unwrap();
    drop(from);
    let mut command = place.command(&["sockets", "stats"]);
    let asked = command.stdout(OwnedFd::from(to)).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(text(&asked.stderr), "");
    end(monitor.id() as i32);
    monitor.wait().unwrap();
}

#[test]
fn rules_come_from_a_file_and_are_printed_as_one() {
    let place = Place::new();
    let rules = place.0.path().join("rules");
    fs::write(&rules, "# Ours.\nallow user root with port 80\ndeny any\n").unwrap();
    let file = rules.display().to_string();
    assert!(place.output(&["node", "--background", "--policy", &file]).status.success());
    let added = place.output(&["sockets", "policy", "deny", "port", "22"]);
    assert!(added.status.success(), "{added:?}");
    let shown = text(&place.output(&["sockets", "policy", "show"]).stdout);
    assert!(shown.starts_with("deny port 22\nallow user 0 with port 80\ndeny any\n#"), "{shown}");
    fs::write(&rules, &shown).unwrap();
    place.end_monitor();
    assert!(place.output(&["node", "--background", "--policy", &file]).status.success());
    let reported = place.asked(&["sockets", "policy", "show", "--json"]);
    assert_eq!(reported["rules"].as_array().unwrap().len(), 3);
    let wrong = place.output(&["sockets", "policy", "deny", "prot", "22"]);
    assert!(text(&wrong.stderr).contains("`prot` where"), "{wrong:?}");
    place.end_monitor();
    fs::write(&rules, "deny prot 22").unwrap();
    let wrong = place.output(&["node", "--background", "--policy", &file]);
    assert!(!wrong.status.success() && text(&wrong.stderr).contains("`prot` where"), "{wrong:?}");
}

#[test]
fn why_needs_no_monitor() {
    let place = Place::new();
    let me = std::process::id();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&listener);
    let reported = place.asked(&["sockets", "why", &format!("{me}:{number}"), "--json"]);
    assert!(reported["text"].as_str().unwrap().contains("it is a listener"), "{reported}");
    assert!(!place.output(&["sockets", "why", "4711"]).status.success());
}

#[test]
fn a_command_that_takes_no_library_is_told_of() {
    let place = Place::new();
    let path = place.0.path().join("static");
    // The header of a statically linked program, without contents.
    let mut header = vec![0; 64];
    header[..5].copy_from_slice(b"\x7fELF\x02");
    fs::write(&path, header).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = place.output(&["exec", &path.display().to_string()]);
    assert!(text(&output.stderr).contains("it is linked statically"), "{output:?}");
    let mut command = place.command(&["exec", "static"]);
    let output = command.env("PATH", place.0.path()).output().unwrap();
    assert!(text(&output.stderr).contains("it is linked statically"), "{output:?}");
    let output = place.output(&["exec", "true"]);
    assert!(!text(&output.stderr).contains("freeport exec"), "{output:?}");
}
