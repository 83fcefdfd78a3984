// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A Freeport program between the hosts: the real command, run as a process on a host and
//! controlled over its socket.

use super::Host;
use super::wait::until_within;
use anyhow::{Context, Result, bail};
use freeport_runtime::server::{Client, RunFolder};
use serde_json::{Value, json};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Time limit for the start of a program, which may have to be compiled on a busy machine.
const COMPILING: Duration = Duration::from_secs(120);

/// How to run the command.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Path of the `freeport` program.
    pub program: PathBuf,
    /// Working directory. Paths of files are relative to it, and so is the element library if
    /// `library` is empty.
    pub folder: PathBuf,
    /// Folders of library elements.
    pub library: Vec<PathBuf>,
    /// Cache of native code; the user's, if this is none.
    pub cache: Option<PathBuf>,
}

/// A running program; it is killed when this is dropped.
#[derive(Debug)]
pub struct Freeport {
    launch: Launch,
    host: Host,
    name: String,
    arguments: Vec<String>,
    child: Child,
    /// Folder of its socket and its log.
    folder: TempDir,
}

impl Freeport {
    /// Starts `freeport run` on a host under a name, with the words of `arguments`, and waits until
    /// it responds.
    ///
    /// # Errors
    /// The program cannot be started, or it exits; the message has its output.
    pub fn start(launch: &Launch, host: &Host, name: &str, arguments: &str) -> Result<Self> {
        let folder =
            tempfile::tempdir().context("no temporary folder can be created for the socket")?;
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let child = spawn(launch, host, name, &arguments, folder.path())?;
        let (launch, host, name) = (launch.clone(), host.clone(), name.to_owned());
        let mut it = Self { launch, host, name, arguments, child, folder };
        it.wait_until_it_answers()?;
        Ok(it)
    }

    /// Returns its process ID.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Kills the program with SIGKILL and waits until it has exited.
    ///
    /// # Errors
    /// It had exited by itself.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} had exited: {status}: {}", self.name, self.said());
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Starts the program again with the same arguments.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn restart(&mut self) -> Result<()> {
        let folder = self.folder.path();
        self.child = spawn(&self.launch, &self.host, &self.name, &self.arguments, folder)?;
        self.wait_until_it_answers()
    }

    /// Runs another Freeport command on the program, such as `["call", "cnt.clear()"]`; returns its
    /// output.
    ///
    /// # Errors
    /// The command fails; the message has its standard error.
    pub fn reported(&self, arguments: &[&str]) -> Result<String> {
        let mut command = command(&self.launch, self.folder.path());
        let output = command.args(arguments).args(["--to", &self.name]).output()?;
        if !output.status.success() {
            bail!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Connects to its socket.
    ///
    /// # Errors
    /// It is not running.
    pub fn connect(&self) -> Result<Client> {
        Ok(Client::connect(&RunFolder::at(self.folder.path()), Some(&self.name))?)
    }

    /// Returns the value of a variable as JSON.
    ///
    /// # Errors
    /// It is not running, or has no such variable.
    pub fn get(&self, path: &str) -> Result<Value> {
        Ok(self.connect()?.ask(&json!({"do": "get", "path": path}))?)
    }

    /// Returns the value of a numeric variable.
    ///
    /// # Errors
    /// As for `get`, or the variable is not a number.
    pub fn number(&self, path: &str) -> Result<u64> {
        self.get(path)?.as_u64().with_context(|| format!("{path} is not a number"))
    }

    /// Calls a method, as written; returns its result.
    ///
    /// # Errors
    /// It is not running, or the call is wrong.
    pub fn call(&self, call: &str) -> Result<Value> {
        Ok(self.connect()?.ask(&json!({"do": "call", "call": call}))?)
    }

    /// Returns all counters.
    ///
    /// # Errors
    /// It is not running.
    pub fn statistics(&self) -> Result<Value> {
        Ok(self.connect()?.ask(&json!({"do": "stats", "format": "json"}))?)
    }

    /// Returns a counter of an endpoint, such as `frames`.
    ///
    /// # Errors
    /// It is not running, or has no such counter.
    pub fn endpoint(&self, endpoint: &str, counter: &str) -> Result<u64> {
        let statistics = self.statistics()?;
        let rows = statistics["endpoints"].as_array().into_iter().flatten();
        let row = rows.into_iter().find(|row| row["endpoint"] == endpoint);
        let count = row.and_then(|row| row[counter].as_u64());
        count.with_context(|| format!("no counter {counter} of {endpoint} in {statistics}"))
    }

    /// Returns the last lines of its output.
    pub fn said(&self) -> String {
        std::fs::read_to_string(log(self.folder.path())).unwrap_or_default()
    }

    fn wait_until_it_answers(&mut self) -> Result<()> {
        let answers = |it: &Self| it.connect()?.ask(&json!({"do": "status"})).map_err(Into::into);
        // The program is compiled first.
        let what = format!("{} answers", self.name);
        let ended = until_within(COMPILING, &what, || match answers(self) {
            Ok::<Value, anyhow::Error>(_) => Some(None),
            Err(_) => self.child.try_wait().ok().flatten().map(Some),
        });
        match ended.with_context(|| self.said())? {
            None => Ok(()),
            Some(status) => bail!("{} ends: {status}: {}", self.name, self.said()),
        }
    }
}

fn log(folder: &Path) -> PathBuf {
    folder.join("said")
}

fn command(launch: &Launch, folder: &Path) -> Command {
    let mut command = Command::new(&launch.program);
    command.current_dir(&launch.folder).stdin(Stdio::null());
    command.env("FREEPORT_RUN", folder).env_remove("FREEPORT_ELEMENTS");
    if let Some(cache) = &launch.cache {
        command.env("XDG_CACHE_HOME", cache);
    }
    command
}

fn spawn(
    launch: &Launch,
    host: &Host,
    name: &str,
    arguments: &[String],
    folder: &Path,
) -> Result<Child> {
    let said = File::create(log(folder)).context("the file for its output cannot be created")?;
    let mut command = command(launch, folder);
    command.args(["run", "--name", name]).args(arguments);
    for folder in &launch.library {
        command.arg("--library").arg(folder);
    }
    command.stdout(said.try_clone()?).stderr(said);
    let prepare = || {
        // Killed with the test or measurement that started it.
        // SAFETY: no memory is passed.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        Ok(())
    };
    // SAFETY: between fork and exec, only this one system call is made.
    unsafe { command.pre_exec(prepare) };
    host.start(&mut command)
}

impl Drop for Freeport {
    fn drop(&mut self) {
        // A process that has exited need not be killed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
