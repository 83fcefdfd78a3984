// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A separate monitor for a test, the programs that the test starts, and the accelerated traffic.

use crate::roles::{ARGUMENT_VARIABLE, ROLE_VARIABLE};
use crate::stuck;
pub use freeport_testbed::port::free_port;
pub use freeport_testbed::wait::PATIENCE;
pub use freeport_testbed::{is_long, wait_until};
use freeport_testbed::{preload, skip};
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(10);

/// Path of a program on this machine.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/bin".into()]);
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The same for a program that a test needs; without it the test is skipped.
#[track_caller]
pub fn find_or_skip(name: &str) -> Option<PathBuf> {
    let found = find(name);
    if found.is_none() {
        skip(format_args!("{name} is not installed"));
    }
    found
}

/// Whether a program is started by `freeport exec`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Plain,
    Accelerated,
}

/// Pseudorandom bytes that programs can verify: the same for the same seed.
pub fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut content = vec![0; bytes];
    random.fill(&mut content);
    content
}

/// Accelerated traffic.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Moved {
    /// Number of connections, past and present.
    pub connections: u64,
    /// Number of bytes of both directions.
    pub bytes: u64,
}

/// A folder with a monitor and the programs of a test.
pub struct Node {
    folder: tempfile::TempDir,
}

impl Node {
    /// Makes a folder without a monitor: the first program starts one.
    pub fn without_monitor() -> Self {
        preload::library();
        let folder = tempfile::tempdir().expect("a temporary folder");
        // Programs that drop root privileges need access.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("it is ours");
        let run = folder.path().join("run");
        fs::create_dir(&run).expect("it can be made");
        fs::set_permissions(run, Permissions::from_mode(0o755)).expect("it is ours");
        Self { folder }
    }

    /// Makes a folder with a running monitor.
    pub fn new() -> (Self, Program) {
        let node = Self::without_monitor();
        let monitor = node.monitor();
        (node, monitor)
    }

    /// Starts a monitor.
    pub fn monitor(&self) -> Program {
        let mut monitor = self.start("monitor", self.freeport(&["node"]));
        let path = self.monitor_path();
        monitor.wait_until("the monitor listens", || {
            std::os::unix::net::UnixStream::connect(&path).is_ok()
                || self.ask(&["sockets", "stats", "--json"]).is_some()
        });
        // Redis and others may run as any user here.
        assert!(self.ask(&["sockets", "policy", "allow", "any", "--json"]).is_some());
        monitor
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Path of its monitor's socket.
    pub fn monitor_path(&self) -> PathBuf {
        self.path().join("run/monitor.sock")
    }

    /// Writes a file that all users can read. It is replaced atomically, for programs that read it
    /// late.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        let unfinished = self.path().join(format!("{name}.{}", fastrand::u32(..)));
        fs::write(&unfinished, content).expect("it can be written");
        fs::rename(&unfinished, &path).expect("it is in the same folder");
        path
    }

    /// A copy of the library that every user can read.
    pub fn library(&self) -> PathBuf {
        let copy = self.path().join(preload::NAME);
        if !copy.exists() {
            fs::copy(preload::library(), &copy).expect("it was built");
        }
        copy
    }

    /// The command itself.
    pub fn freeport(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
        command.args(arguments).stdin(Stdio::null());
        command.env("FREEPORT_MONITOR", self.monitor_path()).current_dir(self.path());
        command.env_remove("LD_PRELOAD").env_remove("FREEPORT_PRELOAD");
        // The command finds the library in its own folder.
        let library = preload::library();
        if library.parent() != Path::new(env!("CARGO_BIN_EXE_freeport")).parent() {
            command.env("FREEPORT_PRELOAD", library);
        }
        command
    }

    /// A program, accelerated or not.
    pub fn command(&self, mode: Mode, program: &Path) -> Command {
        match mode {
            Mode::Accelerated => {
                let mut command = self.freeport(&["exec", "--"]);
                command.arg(program);
                command
            }
            Mode::Plain => {
                let mut command = Command::new(program);
                command.env_remove("LD_PRELOAD").stdin(Stdio::null()).current_dir(self.path());
                command
            }
        }
    }

    /// Starts one of the [roles](crate::roles).
    pub fn role(&self, mode: Mode, role: &str, argument: &str) -> Program {
        self.role_with(mode, role, argument, &[])
    }

    /// The same, with additional environment variables.
    pub fn role_with(
        &self,
        mode: Mode,
        role: &str,
        argument: &str,
        environment: &[(&str, &str)],
    ) -> Program {
        let test = std::env::current_exe().expect("this test");
        let mut command = self.command(mode, &test);
        command.args(["--exact", "roles::play", "--nocapture", "--test-threads=1"]);
        command.env(ROLE_VARIABLE, role).env(ARGUMENT_VARIABLE, argument);
        command.env_remove("RUST_TEST_THREADS").envs(environment.iter().copied());
        self.start(role, command)
    }

    /// Starts a program with its output in a file. Its child processes end with it.
    pub fn start(&self, name: &str, mut command: Command) -> Program {
        let log = self.path().join(format!("{name}-{}.log", fastrand::u32(..)));
        let output = File::create(&log).expect("it can be made");
        let errors = output.try_clone().expect("it can be opened twice");
        command.stdout(output).stderr(errors).process_group(0);
        let child = command.spawn().unwrap_or_else(|error| panic!("{name}: {error}"));
        Program { name: name.to_owned(), child, log, status: None }
    }

    /// Starts a server, and waits until its port accepts connections.
    pub fn serve(&self, name: &str, command: Command, port: u16) -> Program {
        let mut server = self.start(name, command);
        let answers = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        server.wait_until("it answers", answers);
        server
    }

    /// JSON output of a command; `None`: the command fails.
    pub fn ask(&self, arguments: &[&str]) -> Option<Value> {
        let output = self.freeport(arguments).output().expect("it can be begun");
        if !output.status.success() {
            eprintln!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(serde_json::from_slice(&output.stdout).expect("an answer in JSON"))
    }

    /// The monitor's counters.
    pub fn stats(&self) -> Value {
        self.ask(&["sockets", "stats", "--json"]).expect("the monitor answers")
    }

    /// The monitor's process, if one answers.
    pub fn monitor_pid(&self) -> Option<i32> {
        let output = self.freeport(&["sockets", "stats", "--json"]).output().ok()?;
        let stats: Value = serde_json::from_slice(&output.stdout).ok()?;
        stats["pid"].as_i64().and_then(|pid| pid.try_into().ok())
    }

    /// The monitor's list of connections as text.
    pub fn listed(&self) -> String {
        let output = self.freeport(&["sockets", "list"]).output().expect("it can be begun");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The connections that are accelerated now.
    pub fn connections(&self) -> Vec<Value> {
        let list = self.ask(&["sockets", "list", "--json"]).expect("the monitor answers");
        list["connections"].as_array().expect("a list").clone()
    }

    /// Accelerated traffic until now.
    pub fn moved(&self) -> Moved {
        let live = self.connections();
        let sent = |end: &Value| end["sent_bytes"].as_u64().unwrap_or(0);
        let live = live.iter().map(|it| it["ends"].as_array().into_iter().flatten().map(sent));
        let live: Vec<u64> = live.map(Iterator::sum).filter(|bytes| *bytes > 0).collect();
        let ended = &self.stats()["ended"];
        let number = |name: &str| ended[name].as_u64().expect("a number");
        Moved {
            connections: number("connections") + live.len() as u64,
            bytes: number("bytes") + live.iter().sum::<u64>(),
        }
    }

    /// Number of ended connections that had returned to the kernel.
    pub fn returned(&self) -> u64 {
        self.stats()["ended"]["returned"].as_u64().expect("a number")
    }

    /// Number of accelerated connections of a process.
    pub fn accelerated_by(&self, pid: i32) -> usize {
        let has = |it: &&Value| {
            let mut ends = it["ends"].as_array().into_iter().flatten();
            it["transport"] == "shm" && ends.any(|end| end["pid"].as_i64() == Some(pid.into()))
        };
        self.connections().iter().filter(has).count()
    }

    /// Runs an action until one run of it moves at least this much past the kernel: the upgrade
    /// takes some time, and connections of programs may end before.
    pub fn run_until_moved(&self, connections: u64, bytes: u64, mut run: impl FnMut()) {
        wait_until("enough is moved past the kernel", || {
            let before = self.moved();
            run();
            let moved = self.moved();
            let is_enough = moved.connections >= before.connections + connections
                && moved.bytes >= before.bytes + bytes;
            if !is_enough {
                eprintln!("{before:?}, then {moved:?}: once more; {}", self.stats());
            }
            is_enough
        });
    }

    /// Asserts that at least this much has been moved past the kernel.
    pub fn assert_moved(&self, connections: u64, bytes: u64) {
        let moved = self.moved();
        let is_enough = moved.connections >= connections && moved.bytes >= bytes;
        assert!(is_enough, "{moved:?}, {}", self.stats());
    }
}

/// A running program; dropping it ends the program and its child processes.
pub struct Program {
    name: String,
    child: Child,
    log: PathBuf,
    status: Option<ExitStatus>,
}

impl Program {
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process")
    }

    /// File with its output.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Its output until now.
    pub fn printed(&self) -> String {
        let bytes = fs::read(&self.log).expect("its output can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub fn signal(&self, signal: i32) {
        assert_eq!(self.status, None, "{} has ended", self.name);
        // SAFETY: no memory is passed; the child has not been waited for.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0, "{}", self.name);
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().expect("it is our child");
        }
        self.status
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        self.wait_for(PATIENCE)
    }

    /// The same with a longer limit.
    pub fn wait_for(&mut self, patience: Duration) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            if begin.elapsed() > patience {
                let state = stuck::describe(self.pid());
                panic!("{} does not end:\n{}\n{state}", self.name, self.printed());
            }
            thread::sleep(PAUSE);
        }
    }

    /// Waits for its end, which must be a success; returns its output.
    pub fn finish(self) -> String {
        self.finish_within(PATIENCE)
    }

    /// The same with a longer limit.
    pub fn finish_within(mut self, patience: Duration) -> String {
        let status = self.wait_for(patience);
        let printed = self.printed();
        assert!(status.success(), "{}: {status}:\n{printed}", self.name);
        printed
    }

    /// Waits for a condition; the program must not end before.
    pub fn wait_until(&mut self, what: &str, mut is_so: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !is_so() {
            if let Some(status) = self.ended() {
                panic!("{} ended before {what}: {status}:\n{}", self.name, self.printed());
            }
            let is_late = begin.elapsed() > PATIENCE;
            assert!(!is_late, "{}: never {what}:\n{}", self.name, self.printed());
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: no memory is passed. The group is its own, and its number is not reused before
        // the child is waited for.
        unsafe { libc::kill(-self.pid(), libc::SIGKILL) };
        if self.status.is_none() {
            let _ = self.child.wait();
        }
        if thread::panicking() {
            // Its folder may be removed already.
            let printed = fs::read(&self.log).unwrap_or_default();
            let printed = String::from_utf8_lossy(&printed);
            let end = printed.len().saturating_sub(3000);
            let end = (end..).find(|at| printed.is_char_boundary(*at)).unwrap_or_default();
            eprintln!("-- {} printed last:\n{}", self.name, &printed[end..]);
        }
    }
}
