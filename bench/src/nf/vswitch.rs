// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A private Open vSwitch: the user-space data path (`netdev`) between two interfaces, with its
//! database, sockets and logs in a temporary folder. When it is dropped, both processes end and the
//! folder is removed.

use crate::harness::namespace::{run, tool};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Paths at which packages install the database schema of the switch.
const SCHEMAS: [&str; 2] =
    ["/usr/share/openvswitch/vswitch.ovsschema", "/usr/local/share/openvswitch/vswitch.ovsschema"];
/// Time that a process may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit of one command to the switch, as an option of its tools.
const ORDER_LIMIT: &str = "--timeout=10";
/// Time limit for loading all rules: on a shared core, 128 K rules take about 20 s.
const RULES_LIMIT: &str = "--timeout=60";
/// Maximum number of flows in the data path; the default starts at 10,000 and grows by a thousand
/// at a time.
const FLOW_LIMIT: &str = "1000000";
/// Higher than the priority of the sender on the same core; otherwise most frames would be lost.
const PRIORITY: i32 = -20;

/// A running switch. Fields are dropped in this order.
pub struct Switch {
    switch: Daemon,
    _database: Daemon,
    folder: TempDir,
}

/// A process that ends with its owner.
struct Daemon {
    child: Child,
}

impl Switch {
    /// Starts a switch between the interfaces `input` and `output` of the thread's namespace, with
    /// a file of OpenFlow rules in which `IN` and `OUT` are the ports.
    ///
    /// # Errors
    /// Open vSwitch is not installed, may not run, or does not load the rules in time.
    pub fn start(input: &str, output: &str, rules: &str) -> Result<Self> {
        let folder =
            tempfile::tempdir().context("no temporary folder can be created for Open vSwitch")?;
        let database = start_database(folder.path())?;
        let socket = format!("unix:{}", file(folder.path(), "db.sock"));
        let control = format!("--unixctl={}", file(folder.path(), "switch.ctl"));
        // Its standard error is a file in the folder.
        let arguments = [&socket, "--no-chdir", "-vconsole:err", "-vsyslog:off", &control];
        let switch = Daemon::start("ovs-vswitchd", &arguments, folder.path(), "switch.ctl")?;
        let this = Self { switch, _database: database, folder };
        let order = format!(
            "--db={socket} {ORDER_LIMIT} add-br fp -- set bridge fp datapath_type=netdev \
             fail_mode=secure -- add-port fp {input} -- set interface {input} ofport_request=1 -- \
             add-port fp {output} -- set interface {output} ofport_request=2"
        );
        run("ovs-vsctl", &order.split_whitespace().collect::<Vec<_>>(), "")?;
        this.load(rules)?;
        this.order(&["upcall/set-flow-limit", FLOW_LIMIT])?;
        // The rules no longer change. Revalidation would cost time, and would evict flows that were
        // idle for a while: other subjects are measured between the switch's rounds.
        this.order(&["revalidator/pause"])?;
        Ok(this)
    }

    fn load(&self, rules: &str) -> Result<()> {
        let bridge = file(self.folder.path(), "fp.mgmt");
        let rules = rules.replace("IN", "1").replace("OUT", "2");
        run("ovs-ofctl", &[RULES_LIMIT, "--bundle", "add-flows", &bridge, "-"], &rules)
            .context("the rules cannot be loaded")?;
        Ok(())
    }

    fn order(&self, order: &[&str]) -> Result<String> {
        let control = file(self.folder.path(), "switch.ctl");
        run("ovs-appctl", &[&[ORDER_LIMIT, "-t", &control], order].concat(), "")
    }

    /// Resumes the switch.
    ///
    /// # Errors
    /// It has exited.
    pub fn proceed(&mut self) -> Result<()> {
        self.switch.signal(libc::SIGCONT)
    }

    /// Stops the switch, so that it takes no time from other subjects.
    ///
    /// # Errors
    /// It has exited.
    pub fn pause(&mut self) -> Result<()> {
        self.switch.signal(libc::SIGSTOP)
    }
}

fn start_database(folder: &Path) -> Result<Daemon> {
    let schema = SCHEMAS.iter().find(|path| Path::new(path).exists());
    let schema = schema.context("Open vSwitch is not installed: it has no vswitch.ovsschema")?;
    let data = file(folder, "conf.db");
    run("ovsdb-tool", &["create", &data, schema], "")?;
    let remote = format!("--remote=punix:{}", file(folder, "db.sock"));
    let control = format!("--unixctl={}", file(folder, "database.ctl"));
    let arguments = [&data, "--no-chdir", "-vconsole:err", "-vsyslog:off", &remote, &control];
    let database = Daemon::start("ovsdb-server", &arguments, folder, "db.sock")?;
    let socket = format!("--db=unix:{}", file(folder, "db.sock"));
    run("ovs-vsctl", &[&socket, ORDER_LIMIT, "--no-wait", "init"], "")?;
    Ok(database)
}

/// Returns a path in the folder as text: the paths of temporary folders are UTF-8.
fn file(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

impl Daemon {
    /// Starts a program and waits until it listens on a socket in the folder.
    fn start(program: &str, arguments: &[&str], folder: &Path, socket: &str) -> Result<Self> {
        let said = folder.join(format!("{program}.log"));
        let mut command = tool(program);
        command.args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(File::create(&said)?);
        for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(name, folder);
        }
        let prepare = || {
            // The program is killed when this process exits for any reason.
            // SAFETY: no memory is passed.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            // Failure to raise the priority is ignored.
            // SAFETY: no memory is passed.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, PRIORITY) };
            Ok(())
        };
        // SAFETY: between fork and exec, only system calls are made.
        unsafe { command.pre_exec(prepare) };
        let child = command.spawn().with_context(|| format!("{program} cannot be run"))?;
        let mut this = Self { child };
        this.wait_for(program, &folder.join(socket), said)?;
        Ok(this)
    }

    fn wait_for(&mut self, program: &str, socket: &Path, said: PathBuf) -> Result<()> {
        let begin = Instant::now();
        while !socket.exists() {
            if let Some(status) = self.child.try_wait()? {
                let said = std::fs::read_to_string(said).unwrap_or_default();
                let first = said.lines().next().unwrap_or("no message");
                bail!("{program} ended with {status}: {first}");
            }
            if begin.elapsed() > PATIENCE {
                bail!("{program} does not listen within {} s", PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn signal(&mut self, signal: i32) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the process ended with {status}");
        }
        // SAFETY: the process is a child that has not been waited for, so its ID has not been
        // reused.
        let result = unsafe { libc::kill(self.child.id() as i32, signal) };
        let error = std::io::Error::last_os_error();
        if result == 0 { Ok(()) } else { Err(error).context("the process cannot be signalled") }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A stopped process reacts to no other signal than this one. Both calls fail only if it has
        // exited.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_ends_with_its_owner_and_one_that_ends_early_says_why() {
        let folder = tempfile::tempdir().expect("a folder");
        let listen = "touch \"$0\"; sleep 60";
        let socket = file(folder.path(), "socket");
        let mut daemon = Daemon::start("sh", &["-c", listen, &socket], folder.path(), "socket")
            .expect("it starts");
        let process = PathBuf::from(format!("/proc/{}", daemon.child.id()));
        daemon.signal(libc::SIGSTOP).expect("it can be stopped");
        assert!(process.exists());
        drop(daemon);
        assert!(!process.exists());
        let fail = ["-c", "echo because >&2; exit 3"];
        let error = Daemon::start("sh", &fail, folder.path(), "none").err().expect("it ended");
        assert!(error.to_string().contains("because"), "{error}");
    }
}
