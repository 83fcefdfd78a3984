// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key-value servers that the bench starts: ours, and its peers with the settings that suit them
//! best. Each is pinned to one core, listens on a free port, and ends with its value.

use super::super::PIPELINE_MAX;
use super::super::load::script::{Contents, Script};
use super::super::load::wire::Wire;
use super::super::load::{self, Plan, Span};
use crate::sockets::applications::{Site, memcached, redis};
use crate::sockets::launcher::{Launcher, Mode};
use crate::sockets::programs::{Program, does_answer, free_port, is_installed, until};
use anyhow::{Context, Error, Result, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// A program that serves keys and values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Ours,
    Redis,
    Memcached,
}

impl Kind {
    /// Name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "freeport",
            Self::Redis => "redis",
            Self::Memcached => "memcached",
        }
    }

    /// Returns what is missing, with the command that installs it on Debian.
    pub fn missing(self) -> Option<String> {
        let (program, package) = match self {
            Self::Ours => return None,
            Self::Redis => (redis::PROGRAMS[0], "redis-server"),
            Self::Memcached => (memcached::PROGRAMS[0], "memcached"),
        };
        let is_missing = !is_installed(program);
        is_missing.then(|| format!("{program} is not installed: apt-get install {package}"))
    }
}

/// When a server that keeps a log of all changes makes sure that it is on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sync {
    /// Once a second.
    EverySecond,
    /// Before a change is acknowledged.
    Always,
}

impl Sync {
    /// Its name, as all servers have it.
    fn name(self) -> &'static str {
        match self {
            Self::EverySecond => "everysec",
            Self::Always => "always",
        }
    }
}

/// How servers are started.
#[derive(Clone, Copy)]
pub struct Starting<'a> {
    /// Accelerates servers and clients, if given.
    pub launcher: Option<&'a Launcher>,
    /// The core of servers.
    pub core: usize,
    /// Memory for keys and values.
    pub memory_mib: usize,
    /// The command of our server, if it is not this program: see `ours`.
    pub command: Option<&'a str>,
    /// Folder for files of servers.
    pub folder: &'a Path,
    /// They keep a log there.
    pub sync: Option<Sync>,
}

/// Time limit for the start of a server.
const BEGINNING: Duration = Duration::from_secs(20);
/// Number of attempts to start a server: another process may take its port before it does.
const ATTEMPTS: usize = 3;
/// Threads of a server that execute commands.
const THREADS: usize = 1;
/// Records and bytes that are stored by one script.
const RECORDS: u64 = 1 << 16;
const FILL_BYTES: u64 = 64 << 20;
const FILL_PIPELINE: usize = 64;

impl Starting<'_> {
    fn command(&self, program: &str) -> Command {
        match self.launcher {
            Some(launcher) => launcher.command(Mode::Accelerated, program),
            None => Command::new(program),
        }
    }

    /// Returns the command of our server. In a given command, `{port}` stands for the port of RESP
    /// and `{memcached-port}` for the other.
    fn ours(&self, ports: [u16; 2], itself: &str, log: &Path) -> Result<Command> {
        let [port, memcached_port] = ports.map(|port| port.to_string());
        let memory = match self.memory_mib {
            mib if mib.is_multiple_of(1024) => format!("{}GiB", mib / 1024),
            mib => format!("{mib}MiB"),
        };
        let Some(given) = self.command else {
            let mut command = self.command(itself);
            command.args(["kv", "serve", "--bind", "127.0.0.1", "--port", &port]);
            command.args(["--memcached-port", &memcached_port, "--workers", "1"]);
            command.args(["--memory", &memory, "--memcached-memory", &memory]);
            if let Some(sync) = self.sync {
                command.arg("--dir").arg(log).args(["--appendfsync", sync.name()]);
            }
            return Ok(command);
        };
        let filled =
            |word: &str| word.replace("{port}", &port).replace("{memcached-port}", &memcached_port);
        let mut words = given.split_whitespace().map(filled);
        let mut command = self.command(&words.next().context("the command of --server is empty")?);
        command.args(words);
        Ok(command)
    }
}

/// A running server.
pub struct Server {
    pub kind: Kind,
    pub port: u16,
    program: Program,
    /// Is removed after the program has ended.
    _log: TempDir,
}

impl Server {
    /// Starts a server that listens for a protocol.
    ///
    /// # Errors
    /// It cannot be started, or does not listen.
    pub fn start(kind: Kind, wire: Wire, with: &Starting<'_>) -> Result<Self> {
        let mut attempts = 1;
        loop {
            let mut server = Self::launch(kind, wire, with)?;
            let port = server.port;
            match until(BEGINNING, || Ok(does_answer(port)), &mut server.program) {
                Ok(()) => return Ok(server),
                Err(_) if attempts < ATTEMPTS && server.program.end().is_some() => attempts += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn launch(kind: Kind, wire: Wire, with: &Starting<'_>) -> Result<Self> {
        let folder = with.folder.join(kind.name());
        std::fs::create_dir_all(&folder).context("no folder can be created for a server")?;
        // Each start begins without contents.
        let log = tempfile::tempdir_in(&folder).context("no folder can be created for a log")?;
        let ports = [free_port()?, free_port()?];
        let port = if wire == Wire::Resp { ports[0] } else { ports[1] };
        let (site, new) = (Site { folder: &folder, port }, |program: &str| with.command(program));
        let command = match kind {
            Kind::Ours => {
                let itself = std::env::current_exe().context("this program has no path")?;
                with.ours(ports, &itself.to_string_lossy(), log.path())?
            }
            Kind::Redis => {
                let mut command = redis::server(new, &site);
                if let Some(sync) = with.sync {
                    // The last of several values of an option counts.
                    command.args(["--appendonly", "yes", "--appendfsync", sync.name()]);
                    command.arg("--dir").arg(log.path());
                }
                command
            }
            Kind::Memcached => {
                let mut command = memcached::server(new, &site, THREADS, with.memory_mib);
                // A whole batch is answered at once.
                command.args(["-R", &PIPELINE_MAX.to_string()]);
                command
            }
        };
        let messages = folder.join("server.log");
        let program = Program::start(kind.name(), command, &[with.core], &messages)?;
        Ok(Self { kind, port, program, _log: log })
    }

    /// Stores all pairs; returns by how many bytes the memory of the server has grown for each.
    ///
    /// # Errors
    /// A pair is not stored.
    pub fn fill(&self, contents: &Contents) -> Result<f64> {
        let before = self.program.resident_bytes();
        let pair_bytes = (contents.key_bytes + contents.value_bytes) as u64;
        let records = RECORDS.min(FILL_BYTES / pair_bytes).max(1);
        let (port, pipeline) = (self.port, FILL_PIPELINE);
        let plan = Plan { port, connections: 1, pipeline, span: Span::Once, compares: true };
        let mut first = 0;
        while first < contents.pairs {
            let ranks = first..(first + records).min(contents.pairs);
            first = ranks.end;
            load::run(&Script::fill(*contents, ranks), &plan)?;
        }
        let after = self.program.resident_bytes();
        ensure!(contents.pairs > 0, "there are no pairs to store");
        Ok((after as f64 - before as f64) / contents.pairs as f64)
    }

    /// Processor time that it has used.
    pub fn processor_time(&self) -> Duration {
        self.program.processor_time()
    }

    /// Returns the error of a client, or that of the server if it has exited.
    pub fn blame(&self, error: Error) -> Error {
        match self.program.end() {
            Some(end) => error.context(end),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn words(command: &Command) -> Vec<&OsStr> {
        std::iter::once(command.get_program()).chain(command.get_args()).collect()
    }

    #[test]
    fn ours_is_this_program_or_a_given_command() {
        let folder = Path::new("/nowhere");
        let starting =
            Starting { launcher: None, core: 0, memory_mib: 64, command: None, folder, sync: None };
        let ours = |with: &Starting<'_>| with.ours([1, 2], "freeport", Path::new("/log"));
        let command = ours(&starting).expect("a command");
        let expected = "freeport kv serve --bind 127.0.0.1 --port 1 --memcached-port 2 \
                        --workers 1 --memory 64MiB --memcached-memory 64MiB";
        assert_eq!(words(&command), expected.split(' ').collect::<Vec<_>>());
        let command = ours(&Starting { sync: Some(Sync::Always), ..starting }).expect("a command");
        assert!(
            words(&command)
                .ends_with(&["--dir", "/log", "--appendfsync", "always"].map(OsStr::new))
        );
        let given = Starting { command: Some("a -p {port} -q {memcached-port}"), ..starting };
        let command = ours(&given).expect("a command");
        assert_eq!(words(&command), ["a", "-p", "1", "-q", "2"]);
        assert!(ours(&Starting { command: Some(" "), ..starting }).is_err());
    }

    #[test]
    fn a_server_that_ends_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let core = crate::harness::machine::allowed_cores()[0];
        let starting = Starting {
            launcher: None,
            core,
            memory_mib: 64,
            command: Some("echo {port} is not served"),
            folder: folder.path(),
            sync: None,
        };
        let error = Server::start(Kind::Ours, Wire::Resp, &starting).err().expect("it ends");
        assert!(error.to_string().contains("is not served"), "{error:#}");
    }
}
