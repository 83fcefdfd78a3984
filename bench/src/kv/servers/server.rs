// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key-value servers that the bench starts: ours, and its peers with the settings that suit them
//! best. Each is pinned to one core, listens on a free port, and ends with its value.

use super::super::PIPELINE_MAX;
use super::super::load;
use super::super::load::contents::{Contents, Form};
use super::super::load::target::{Link, Target};
use super::super::load::wire::Wire;
use super::deployment::Deployment;
use crate::sockets::applications::{Site, memcached, redis};
use crate::sockets::launcher::{Launcher, Mode};
use crate::sockets::programs::{Program, free_port, is_installed, until};
use anyhow::{Context, Error, Result, ensure};
use std::net::{Ipv4Addr, UdpSocket};
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
    pub const fn name(self) -> &'static str {
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

/// The transport that carries requests to our server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// TCP on the loopback.
    Tcp,
    /// Rings in shared memory.
    Fabric,
    /// Datagrams on the loopback.
    Udp,
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
    /// Name of the server in results.
    pub name: &'static str,
    /// The company of the server; none, if its command is given.
    pub deployment: Deployment,
    /// The core of its replica.
    pub replica_core: usize,
}

/// Time limit for the start of a server.
const BEGINNING: Duration = Duration::from_secs(20);
/// Number of attempts to start a server: another process may take its port before it does.
const ATTEMPTS: usize = 3;
/// Threads of a server that execute commands.
const THREADS: usize = 1;

impl Starting<'_> {
    fn command(&self, program: &str) -> Command {
        match self.launcher {
            Some(launcher) => launcher.command(Mode::Accelerated, program),
            None => Command::new(program),
        }
    }

    /// Returns the command of our server. In a given command, the names of entrances in braces
    /// stand for ports and paths.
    fn ours(&self, entrances: &Entrances, itself: &str, log: &Path) -> Result<Command> {
        let memory = match self.memory_mib {
            mib if mib.is_multiple_of(1024) => format!("{}GiB", mib / 1024),
            mib => format!("{mib}MiB"),
        };
        let Some(given) = self.command else {
            let mut command = self.command(itself);
            command.args(["kv", "serve", "--bind", "127.0.0.1", "--workers", "1"]);
            command.args(["--memory", &memory, "--memcached-memory", &memory]);
            for (name, value) in entrances.named() {
                // A node of a cluster serves no clients of memcached.
                if name != "memcached-port" || self.deployment != Deployment::Clustered {
                    command.arg(format!("--{name}")).arg(value);
                }
            }
            if let Some(sync) = self.sync {
                command.arg("--dir").arg(log).args(["--appendfsync", sync.name()]);
            }
            self.deployment.configure(Kind::Ours, log, &mut command);
            return Ok(command);
        };
        let filled = |word: &str| {
            let names = entrances.named().into_iter();
            names.fold(word.to_owned(), |word, (name, value)| {
                word.replace(&format!("{{{name}}}"), &value)
            })
        };
        let mut words = given.split_whitespace().map(filled);
        let mut command = self.command(&words.next().context("the command of --server is empty")?);
        command.args(words);
        Ok(command)
    }
}

/// Where a server of ours listens.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Entrances {
    resp: u16,
    memcached: u16,
    /// Option and entrance of the batched protocol, if that is measured.
    batch: Option<(&'static str, Target)>,
}

impl Entrances {
    fn new(form: Form, over: Over, folder: &Path) -> Result<Self> {
        let batch = match (form, over) {
            (Form::Single(_), Over::Tcp) => None,
            (Form::Packets { .. }, Over::Tcp) => Some(("batch-port", Target::local(free_port()?))),
            (_, Over::Fabric) => Some(("batch-fabric", Target::Fabric(folder.join("fabric")))),
            (_, Over::Udp) => {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("no UDP")?;
                Some(("batch-udp-port", Target::Udp(socket.local_addr()?)))
            }
        };
        Ok(Self { resp: free_port()?, memcached: free_port()?, batch })
    }

    /// The options with their values.
    fn named(&self) -> Vec<(&'static str, String)> {
        let batch = self.batch.iter().map(|(name, target)| match target {
            Target::Tcp(address) | Target::Udp(address) => (*name, address.port().to_string()),
            Target::Unix(path) | Target::Fabric(path) => (*name, path.display().to_string()),
        });
        let ports = [("port", self.resp), ("memcached-port", self.memcached)];
        ports.map(|(name, port)| (name, port.to_string())).into_iter().chain(batch).collect()
    }

    /// The entrance for requests of a form.
    fn target(&self, form: Form) -> Target {
        match (&self.batch, form) {
            (Some((_, target)), _) => target.clone(),
            (None, Form::Single(Wire::Text | Wire::Meta)) => Target::local(self.memcached),
            (None, _) => Target::local(self.resp),
        }
    }
}

/// A running server.
pub struct Server {
    /// Name in results.
    pub name: &'static str,
    pub target: Target,
    program: Program,
    _replica: Option<Box<Server>>,
    /// Is removed after the program has ended.
    log: TempDir,
}

impl Server {
    /// Starts a server that listens for requests of a form.
    ///
    /// # Errors
    /// It cannot be started, or does not listen.
    pub fn start(kind: Kind, form: Form, over: Over, with: &Starting<'_>) -> Result<Self> {
        let mut server = Self::listening(kind, form, over, with)?;
        if let (None, Target::Tcp(address)) = (with.command, &server.target) {
            let port = address.port();
            if with.deployment == Deployment::Replicated {
                let (core, deployment) = (with.replica_core, Deployment::ReplicaOf(port));
                let with = Starting { core, deployment, ..*with };
                let replica = Self::listening(kind, form, over, &with)?;
                server._replica = Some(Box::new(replica));
            }
            let program = &mut server.program;
            with.deployment.complete(kind, server.log.path(), port, program)?;
        }
        Ok(server)
    }

    /// Starts a server that listens.
    fn listening(kind: Kind, form: Form, over: Over, with: &Starting<'_>) -> Result<Self> {
        let mut attempts = 1;
        loop {
            let mut server = Self::launch(kind, form, over, with)?;
            let target = server.target.clone();
            let is_ready = || Ok(Link::open(&target).is_ok());
            match until(BEGINNING, is_ready, &mut server.program) {
                Ok(()) => return Ok(server),
                Err(_) if attempts < ATTEMPTS && server.program.end().is_some() => attempts += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn launch(kind: Kind, form: Form, over: Over, with: &Starting<'_>) -> Result<Self> {
        let folder = with.folder.join(with.name);
        std::fs::create_dir_all(&folder).context("no folder can be created for a server")?;
        // Each start begins without contents.
        let log = tempfile::tempdir_in(&folder).context("no folder can be created for a log")?;
        let entrances = Entrances::new(form, over, log.path())?;
        let target = entrances.target(form);
        let port = if kind == Kind::Memcached { entrances.memcached } else { entrances.resp };
        let (site, new) = (Site { folder: &folder, port }, |program: &str| with.command(program));
        let command = match kind {
            Kind::Ours => {
                let itself = std::env::current_exe().context("this program has no path")?;
                with.ours(&entrances, &itself.to_string_lossy(), log.path())?
            }
            Kind::Redis => {
                let mut command = redis::server(new, &site);
                if let Some(sync) = with.sync {
                    // The last of several values of an option counts.
                    command.args(["--appendonly", "yes", "--appendfsync", sync.name()]);
                    command.arg("--dir").arg(log.path());
                }
                with.deployment.configure(kind, log.path(), &mut command);
                command
            }
            Kind::Memcached => {
                let mut command = memcached::server(new, &site, THREADS, with.memory_mib);
                // A whole batch is answered at once.
                command.args(["-R", &PIPELINE_MAX.to_string()]);
                command
            }
        };
        let messages = log.path().join("messages");
        let program = Program::start(kind.name(), command, &[with.core], &messages)?;
        Ok(Self { name: with.name, target, program, _replica: None, log })
    }

    /// Stores all pairs; returns by how many bytes the memory of the server has grown for each.
    ///
    /// # Errors
    /// A pair is not stored.
    pub fn fill(&self, contents: &Contents) -> Result<f64> {
        let before = self.program.resident_bytes();
        load::fill(&self.target, contents, &mut |_| true)?;
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

    fn starting(command: Option<&str>) -> Starting<'_> {
        Starting {
            launcher: None,
            core: 0,
            memory_mib: 64,
            command,
            folder: Path::new("/nowhere"),
            sync: None,
            name: "freeport",
            deployment: Deployment::Alone,
            replica_core: 0,
        }
    }

    fn words(command: &Command) -> Vec<&OsStr> {
        std::iter::once(command.get_program()).chain(command.get_args()).collect()
    }

    #[test]
    fn ours_is_this_program_or_a_given_command() {
        let folder = Path::new("/nowhere");
        let starting = Starting { folder, core: 0, ..starting(None) };
        let batch = Some(("batch-port", Target::local(3)));
        let entrances = Entrances { resp: 1, memcached: 2, batch };
        let ours = |with: &Starting<'_>| with.ours(&entrances, "freeport", Path::new("/log"));
        let command = ours(&starting).expect("a command");
        let expected = "freeport kv serve --bind 127.0.0.1 --workers 1 --memory 64MiB \
                        --memcached-memory 64MiB --port 1 --memcached-port 2 --batch-port 3";
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
        let given = starting(Some("echo {port} is not served"));
        let starting = Starting { core, folder: folder.path(), ..given };
        let error = Server::start(Kind::Ours, Form::Single(Wire::Resp), Over::Tcp, &starting)
            .err()
            .expect("it ends");
        assert!(error.to_string().contains("is not served"), "{error:#}");
    }
}
