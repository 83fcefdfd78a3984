// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that run as another user than the tests.

use crate::harness::{Mode, Node, find};
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A user of this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    pub name: String,
    uid: u32,
    gid: u32,
    shell: String,
}

impl User {
    /// The first of these users that exists. `None`: the tests do not run as root, and cannot start
    /// programs as another user.
    pub fn first_of(names: &[&str]) -> Option<Self> {
        // SAFETY: the call has no arguments and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return None;
        }
        names.iter().find_map(|name| Self::find(name))
    }

    fn find(name: &str) -> Option<Self> {
        let all = fs::read_to_string("/etc/passwd").ok()?;
        let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
        let own = all.lines().map(fields).find(|it| it.first().is_some_and(|it| it == name))?;
        let number = |at: usize| own.get(at)?.parse().ok();
        let shell = own.get(6)?.clone();
        Some(Self { name: name.to_owned(), uid: number(2)?, gid: number(3)?, shell })
    }

    /// Whether the user may log in.
    pub fn has_shell(&self) -> bool {
        self.shell.ends_with("sh")
    }

    /// Creates a folder of the user.
    pub fn make_folder(user: Option<&Self>, path: &Path) -> PathBuf {
        fs::create_dir_all(path).expect("it can be made");
        if let Some(user) = user {
            chown(path, Some(user.uid), Some(user.gid)).expect("root may do that");
        }
        path.to_owned()
    }
}

/// A program that is started as a user; `None`: as the user of the tests.
pub fn command_as(node: &Node, mode: Mode, user: Option<&User>, program: &Path) -> Command {
    let Some(user) = user else { return node.command(mode, program) };
    let setpriv = find("setpriv").expect("every system has it");
    let mut command = node.command(mode, &setpriv);
    let (uid, gid) = (user.uid.to_string(), user.gid.to_string());
    command.args(["--reuid", &uid, "--regid", &gid, "--clear-groups"]).arg(program);
    // Other users have no access to the build folder.
    command.env("FREEPORT_PRELOAD", node.library()).env("HOME", node.path());
    command.env("USER", &user.name).env("LOGNAME", &user.name);
    command
}
