// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A running program as a child process, with a separate folder of sockets.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Limit against hangs.
pub const PATIENCE: Duration = Duration::from_secs(180);

pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A folder of sockets.
pub struct Folder(pub tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
        command.args(arguments).current_dir(repository()).stdin(Stdio::null());
        command.env("FREEPORT_RUN", self.path()).env_remove("FREEPORT_ELEMENTS");
        // Native code of tests does not go to the user's cache.
        command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
        command
    }

    /// Runs a command to its end.
    pub fn freeport(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Output of a command, which must succeed.
    pub fn reported(&self, arguments: &[&str]) -> String {
        let output = self.freeport(arguments);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Errors of a command, which must fail.
    pub fn complaint(&self, arguments: &[&str]) -> String {
        let output = self.freeport(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Starts a program, and waits until it answers.
    pub fn start(&self, name: &str, arguments: &[&str]) -> Running<'_> {
        let mut command = self.command(&[&["run", "--name", name], arguments].concat());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut running = Running { folder: self, name: name.to_owned(), child: Some(child) };
        let answers = || self.freeport(&["stats", "--to", name]).status.success();
        running.wait_until("the program answers", answers);
        running
    }
}

/// A running program; dropping it kills the process.
pub struct Running<'f> {
    folder: &'f Folder,
    name: String,
    child: Option<Child>,
}

impl Running<'_> {
    pub fn process(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(&self.name).with_extension("sock")
    }

    /// Output of a command about this program, which must succeed.
    pub fn reported(&self, arguments: &[&str]) -> String {
        self.folder.reported(&[arguments, &["--to", &self.name]].concat())
    }

    pub fn complaint(&self, arguments: &[&str]) -> String {
        self.folder.complaint(&[arguments, &["--to", &self.name]].concat())
    }

    pub fn stats(&self) -> Value {
        serde_json::from_str(&self.reported(&["stats", "--json"])).unwrap()
    }

    pub fn frames_in(&self) -> u64 {
        self.stats()["endpoints"][0]["frames"].as_u64().unwrap()
    }

    /// The rest of the line of standard error that starts with `mark`. Can be called only once.
    pub fn announced(&mut self, mark: &str) -> String {
        let stderr = self.child.as_mut().expect("it runs").stderr.as_mut().expect("it is piped");
        let mut lines = BufReader::new(stderr).lines().map(Result::unwrap);
        lines.find_map(|line| line.strip_prefix(mark).map(str::to_owned)).expect("it is told")
    }

    pub fn wait_until(&mut self, what: &str, mut is_so: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !is_so() {
            let ended = self.child.as_mut().expect("it runs").try_wait().unwrap();
            if let Some(status) = ended {
                let child = self.child.take().expect("it ran").wait_with_output().unwrap();
                panic!("{what}: {status}: {}", String::from_utf8_lossy(&child.stderr));
            }
            assert!(begin.elapsed() < PATIENCE, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn signal(&self, signal: i32) {
        let process = i32::try_from(self.process()).unwrap();
        // SAFETY: no memory is passed, and the process is a child that was not waited for.
        assert_eq!(unsafe { libc::kill(process, signal) }, 0);
    }

    /// Its output, after waiting for its end.
    pub fn ended(mut self) -> Output {
        self.child.take().expect("it runs").wait_with_output().unwrap()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
