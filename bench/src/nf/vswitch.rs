// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An Open vSwitch of the bench's own: the data path in user space (`netdev`) between two
//! interfaces, with its database, sockets and messages in a temporary folder. Both processes end,
//! and the folder goes, when it is dropped.

use crate::harness::namespace::{run, tool};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where packages put the description of the switch's database.
const SCHEMAS: [&str; 2] =
    ["/usr/share/openvswitch/vswitch.ovsschema", "/usr/local/share/openvswitch/vswitch.ovsschema"];
/// How long a process may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same for one order to the switch, in its tools' way.
const ORDER_LIMIT: &str = "--timeout=10";
/// How long all the rules may take: on a core that others use too, 128 K take some 20 s.
const RULES_LIMIT: &str = "--timeout=60";
/// Flows that the data path may keep; at first it would be 10,000, and a thousand more now and
/// then.
const FLOW_LIMIT: &str = "1000000";
/// It goes before the sender, which stays on the same core: else most frames would be lost.
const PRIORITY: i32 = -20;

/// A switch that runs. Fields are dropped in this order.
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
    /// A switch between the interfaces `input` and `output` of the thread's namespace, with a file
    /// of OpenFlow rules in which `IN` and `OUT` are the ports.
    ///
    /// # Errors
    /// It is not installed, may not run, or does not take the rules in time.
    pub fn start(input: &str, output: &str, rules: &str) -> Result<Self> {
        let folder = tempfile::tempdir().context("no folder for Open vSwitch")?;
        let database = start_database(folder.path())?;
        let socket = format!("unix:{}", file(folder.path(), "db.sock"));
        let control = format!("--unixctl={}", file(folder.path(), "switch.ctl"));
        // Its console is a file in the folder.
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
        // Nobody changes the rules any more. It would take time to look through the flows, and
        // forget those that have not come for a while: others are measured between its rounds.
        this.order(&["revalidator/pause"])?;
        Ok(this)
    }

    fn load(&self, rules: &str) -> Result<()> {
        let bridge = file(self.folder.path(), "fp.mgmt");
        let rules = rules.replace("IN", "1").replace("OUT", "2");
        run("ovs-ofctl", &[RULES_LIMIT, "--bundle", "add-flows", &bridge, "-"], &rules)
            .context("the rules were not loaded")?;
        Ok(())
    }

    fn order(&self, order: &[&str]) -> Result<String> {
        let control = file(self.folder.path(), "switch.ctl");
        run("ovs-appctl", &[&[ORDER_LIMIT, "-t", &control], order].concat(), "")
    }

    /// Lets it work.
    ///
    /// # Errors
    /// It has ended.
    pub fn go_on(&mut self) -> Result<()> {
        self.switch.signal(libc::SIGCONT)
    }

    /// Keeps it from taking time of others.
    ///
    /// # Errors
    /// It has ended.
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

/// A path in the folder, as text: folders for temporary files have such names.
fn file(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

impl Daemon {
    /// Starts a program and waits until it listens at a socket in the folder.
    fn start(program: &str, arguments: &[&str], folder: &Path, socket: &str) -> Result<Self> {
        let said = folder.join(format!("{program}.log"));
        let mut command = tool(program);
        command.args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(File::create(&said)?);
        for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(name, folder);
        }
        let prepare = || {
            // It ends with this process, however that ends.
            // SAFETY: no memory is passed.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            // The priority is a wish.
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
                let first = said.lines().next().unwrap_or("it says nothing");
                bail!("{program} ended with {status}: {first}");
            }
            if begin.elapsed() > PATIENCE {
                bail!("{program} does not listen after {} s", PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn signal(&mut self, signal: i32) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("it ended with {status}");
        }
        // SAFETY: the process is a child that nobody has waited for, so the number is still its.
        let result = unsafe { libc::kill(self.child.id() as i32, signal) };
        let error = std::io::Error::last_os_error();
        if result == 0 { Ok(()) } else { Err(error).context("it takes no signal") }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A stopped process takes no other signal than this. Both fail only if it has ended.
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
