// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program of ours between the hosts: the real command in a process of its own, on a host, and
//! steered over its socket.

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

/// How long a program may take to begin, which may have to be compiled on a busy machine.
const COMPILING: Duration = Duration::from_secs(120);

/// How the command is run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The `freeport` program.
    pub program: PathBuf,
    /// Where it is run: the files it is given are found from there, and its element library, if
    /// `library` is empty.
    pub folder: PathBuf,
    /// Folders of library elements.
    pub library: Vec<PathBuf>,
    /// Where native code is kept; where the user's is, if this is none.
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
    /// Its socket, and what it says.
    folder: TempDir,
}

impl Freeport {
    /// Begins `freeport run` on a host under a name, with the words of `arguments`, and waits until
    /// it answers.
    ///
    /// # Errors
    /// It cannot be started, or it ends instead: with what it said.
    pub fn start(launch: &Launch, host: &Host, name: &str, arguments: &str) -> Result<Self> {
        let folder = tempfile::tempdir().context("a folder for its socket")?;
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let child = spawn(launch, host, name, &arguments, folder.path())?;
        let (launch, host, name) = (launch.clone(), host.clone(), name.to_owned());
        let mut it = Self { launch, host, name, arguments, child, folder };
        it.wait_until_it_answers()?;
        Ok(it)
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, as `kill -9` does, and waits until it is gone.
    ///
    /// # Errors
    /// It had ended by itself.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} had ended: {status}: {}", self.name, self.said());
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Begins it anew, as it was begun the first time.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn restart(&mut self) -> Result<()> {
        let folder = self.folder.path();
        self.child = spawn(&self.launch, &self.host, &self.name, &self.arguments, folder)?;
        self.wait_until_it_answers()
    }

    /// Runs another command of ours on it, such as `["call", "cnt.clear()"]`; what that printed.
    ///
    /// # Errors
    /// It failed: with what it complained of.
    pub fn told(&self, arguments: &[&str]) -> Result<String> {
        let mut command = command(&self.launch, self.folder.path());
        let output = command.args(arguments).args(["--to", &self.name]).output()?;
        if !output.status.success() {
            bail!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// A connection to its socket.
    ///
    /// # Errors
    /// It does not run.
    pub fn connect(&self) -> Result<Client> {
        Ok(Client::connect(&RunFolder::at(self.folder.path()), Some(&self.name))?)
    }

    /// The value of a variable, as JSON.
    ///
    /// # Errors
    /// It does not run, or has no such variable.
    pub fn get(&self, path: &str) -> Result<Value> {
        Ok(self.connect()?.ask(&json!({"do": "get", "path": path}))?)
    }

    /// The value of a variable that is a number.
    ///
    /// # Errors
    /// As for `get`, or another kind of variable.
    pub fn number(&self, path: &str) -> Result<u64> {
        self.get(path)?.as_u64().with_context(|| format!("{path} is no number"))
    }

    /// Calls a method, as written; what it gives.
    ///
    /// # Errors
    /// It does not run, or what is wrong with the call.
    pub fn call(&self, call: &str) -> Result<Value> {
        Ok(self.connect()?.ask(&json!({"do": "call", "call": call}))?)
    }

    /// All counters.
    ///
    /// # Errors
    /// It does not run.
    pub fn statistics(&self) -> Result<Value> {
        Ok(self.connect()?.ask(&json!({"do": "stats", "format": "json"}))?)
    }

    /// A counter of an outer end, such as `frames`.
    ///
    /// # Errors
    /// It does not run, or there is no such counter.
    pub fn endpoint(&self, endpoint: &str, counter: &str) -> Result<u64> {
        let statistics = self.statistics()?;
        let rows = statistics["endpoints"].as_array().into_iter().flatten();
        let row = rows.into_iter().find(|row| row["endpoint"] == endpoint);
        let count = row.and_then(|row| row[counter].as_u64());
        count.with_context(|| format!("no counter {counter} of {endpoint} in {statistics}"))
    }

    /// The last that it said on either output.
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
    let said = File::create(log(folder)).context("a file for what it says")?;
    let mut command = command(launch, folder);
    command.args(["run", "--name", name]).args(arguments);
    for folder in &launch.library {
        command.arg("--library").arg(folder);
    }
    command.stdout(said.try_clone()?).stderr(said);
    let prepare = || {
        // Not to be left behind by a test or measurement that is killed.
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
        // One that has ended, or was killed, is not there to be killed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
