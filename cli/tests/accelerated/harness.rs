// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A monitor of a test's own, the programs that it begins, and what was moved past the kernel.

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

/// Where a program of this machine is.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/bin".into()]);
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The same for a program without which a test is skipped.
#[track_caller]
pub fn find_or_skip(name: &str) -> Option<PathBuf> {
    let found = find(name);
    if found.is_none() {
        skip(format_args!("{name} is not installed"));
    }
    found
}

/// Whether a program is begun by `freeport exec`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Plain,
    Accelerated,
}

/// Bytes that programs find again: the same ones for the same seed.
pub fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut content = vec![0; bytes];
    random.fill(&mut content);
    content
}

/// What has been moved past the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Moved {
    /// Connections, those that have ended and those that are.
    pub connections: u64,
    /// Bytes of both directions.
    pub bytes: u64,
}

/// A folder with a monitor, and what a test begins there.
pub struct Node {
    folder: tempfile::TempDir,
}

impl Node {
    /// With a folder alone: who is begun first begins the monitor.
    pub fn without_monitor() -> Self {
        preload::library();
        let folder = tempfile::tempdir().expect("a temporary folder");
        // Programs that give up being root have to get there.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("it is ours");
        let run = folder.path().join("run");
        fs::create_dir(&run).expect("it can be made");
        fs::set_permissions(run, Permissions::from_mode(0o755)).expect("it is ours");
        Self { folder }
    }

    /// With a monitor that runs.
    pub fn new() -> (Self, Program) {
        let node = Self::without_monitor();
        let monitor = node.monitor();
        (node, monitor)
    }

    /// Begins a monitor.
    pub fn monitor(&self) -> Program {
        let mut monitor = self.start("monitor", self.freeport(&["node"]));
        let path = self.monitor_path();
        monitor.wait_until("the monitor listens", || {
            std::os::unix::net::UnixStream::connect(&path).is_ok()
                || self.ask(&["sockets", "stats", "--json"]).is_some()
        });
        // Redis and others may run as who they like here.
        assert!(self.ask(&["sockets", "policy", "allow", "any", "--json"]).is_some());
        monitor
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where its monitor listens.
    pub fn monitor_path(&self) -> PathBuf {
        self.path().join("run/monitor.sock")
    }

    /// Writes a file that anybody can read. A program that was begun with it before, and reads it
    /// only now, finds it whole.
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
        // The command finds the library that lies beside it.
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

    /// Begins one of the [roles](crate::roles).
    pub fn role(&self, mode: Mode, role: &str, argument: &str) -> Program {
        self.role_with(mode, role, argument, &[])
    }

    /// The same, with some more in its environment.
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

    /// Begins a program, with what it prints in a file. What it begins ends with it.
    pub fn start(&self, name: &str, mut command: Command) -> Program {
        let log = self.path().join(format!("{name}-{}.log", fastrand::u32(..)));
        let output = File::create(&log).expect("it can be made");
        let errors = output.try_clone().expect("it can be opened twice");
        command.stdout(output).stderr(errors).process_group(0);
        let child = command.spawn().unwrap_or_else(|error| panic!("{name}: {error}"));
        Program { name: name.to_owned(), child, log, status: None }
    }

    /// Begins a server, and waits until somebody answers on its port.
    pub fn serve(&self, name: &str, command: Command, port: u16) -> Program {
        let mut server = self.start(name, command);
        let answers = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        server.wait_until("it answers", answers);
        server
    }

    /// What a command that answers in JSON says; `None`: it fails.
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

    /// What the monitor knows of connections, for people.
    pub fn listed(&self) -> String {
        let output = self.freeport(&["sockets", "list"]).output().expect("it can be begun");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The connections that are accelerated now.
    pub fn connections(&self) -> Vec<Value> {
        let list = self.ask(&["sockets", "list", "--json"]).expect("the monitor answers");
        list["connections"].as_array().expect("a list").clone()
    }

    /// What has been moved past the kernel until now.
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

    /// How many connections that have ended had come back into the kernel.
    pub fn returned(&self) -> u64 {
        self.stats()["ended"]["returned"].as_u64().expect("a number")
    }

    /// How many connections of a process are accelerated now, to whomever they lead.
    pub fn accelerated_by(&self, pid: i32) -> usize {
        let has = |it: &&Value| {
            let mut ends = it["ends"].as_array().into_iter().flatten();
            it["transport"] == "shm" && ends.any(|end| end["pid"].as_i64() == Some(pid.into()))
        };
        self.connections().iter().filter(has).count()
    }

    /// Runs something until at least so much is moved past the kernel by one run of it: how soon
    /// a connection leaves is a question of time, and those of programs may end before.
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

    /// Sees to it that at least so much has been moved past the kernel.
    pub fn assert_moved(&self, connections: u64, bytes: u64) {
        let moved = self.moved();
        let is_enough = moved.connections >= connections && moved.bytes >= bytes;
        assert!(is_enough, "{moved:?}, {}", self.stats());
    }
}

/// A program that was begun. It ends with this, and so does what it has begun.
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

    /// Where what it prints is.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// What it has printed.
    pub fn printed(&self) -> String {
        let bytes = fs::read(&self.log).expect("its output can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub fn signal(&self, signal: i32) {
        assert_eq!(self.status, None, "{} has ended", self.name);
        // SAFETY: its own child, which nobody has waited for.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0, "{}", self.name);
    }

    /// Its end, if it has come to that.
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

    /// The same for what may take longer.
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

    /// Waits for its end, which has to be good; gives what it printed.
    pub fn finish(self) -> String {
        self.finish_within(PATIENCE)
    }

    /// The same for what may take longer.
    pub fn finish_within(mut self, patience: Duration) -> String {
        let status = self.wait_for(patience);
        let printed = self.printed();
        assert!(status.success(), "{}: {status}:\n{printed}", self.name);
        printed
    }

    /// Waits until something is so; it must not end before.
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
        // SAFETY: its own group; the number is nobody else's while the child is not waited for,
        // and while others of the group live.
        unsafe { libc::kill(-self.pid(), libc::SIGKILL) };
        if self.status.is_none() {
            let _ = self.child.wait();
        }
        if thread::panicking() {
            // Its folder may be gone already.
            let printed = fs::read(&self.log).unwrap_or_default();
            let printed = String::from_utf8_lossy(&printed);
            let end = printed.len().saturating_sub(3000);
            let end = (end..).find(|at| printed.is_char_boundary(*at)).unwrap_or_default();
            eprintln!("-- {} printed last:\n{}", self.name, &printed[end..]);
        }
    }
}
