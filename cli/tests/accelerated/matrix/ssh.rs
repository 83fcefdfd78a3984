// SPDX-License-Identifier: Apache-2.0 OR MIT
//! OpenSSH on one machine: commands, copies, forwarded ports, and sessions that share a connection
//! whose descriptors are passed over a Unix socket.
//!
//! The connections of the server itself stay in the kernel: sshd makes each a standard stream of
//! the program that serves it, and the monitoring process holds it too.

use super::users::User;
use super::{MODES, run_with_own, shell};
use crate::harness::{Mode, Node, Program, content, find, find_or_skip, free_port, is_long};
use freeport_testbed::skip;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Bytes of a copied file.
const COPIED: usize = 10 << 20;

/// A server with separate keys, and the files of a client.
struct Host<'a> {
    node: &'a Node,
    server: Program,
    /// Options of every client command, without the program.
    options: String,
}

/// `None`: OpenSSH is not installed.
fn begin<'a>(node: &'a Node, mode: Mode, user: Option<&User>) -> Option<Host<'a>> {
    let (sshd, _) = (find_or_skip("sshd")?, find_or_skip("ssh")?);
    let at = node.path().join("ssh");
    // The server checks the owner of all files.
    fs::create_dir_all(&at).expect("it can be made");
    for key in ["host", "client"] {
        let mut command = Command::new(find("ssh-keygen").expect("it comes with ssh"));
        command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(at.join(key));
        assert!(command.status().expect("it can be begun").success());
    }
    let port = free_port();
    write_settings(&at, port, user);
    // SAFETY: the call has no arguments and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        // Root folder of the sandboxed part, which the service unit creates too.
        fs::create_dir_all("/run/sshd").expect("root may do that");
    }
    let mut command = node.command(mode, &sshd);
    command.args(["-D", "-e", "-f"]).arg(at.join("server"));
    let server = node.serve("sshd", command, port);
    Some(Host { node, server, options: format!("-F {}", at.join("settings").display()) })
}

fn write_settings(at: &Path, port: u16, user: Option<&User>) {
    let folder = at.display();
    // Without this, users without a password are locked out.
    let pam = if user.is_some() { "yes" } else { "no" };
    let passed = "FREEPORT_MONITOR LD_PRELOAD";
    let server = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n\
         AuthorizedKeysFile {folder}/client.pub\nStrictModes no\nUsePAM {pam}\n\
         PasswordAuthentication no\nPermitRootLogin prohibit-password\nMaxStartups 100\n\
         Subsystem sftp internal-sftp\nAcceptEnv {passed}\nLogLevel VERBOSE\n"
    );
    fs::write(at.join("server"), server).expect("it can be written");
    let user = user.map(|user| format!("User {}\n", user.name)).unwrap_or_default();
    let settings = format!(
        "Host here\nHostName 127.0.0.1\nPort {port}\n{user}IdentityFile {folder}/client\n\
         IdentitiesOnly yes\nBatchMode yes\nStrictHostKeyChecking accept-new\n\
         UserKnownHostsFile {folder}/known\nLogLevel ERROR\nControlPath {folder}/shared\n"
    );
    fs::write(at.join("settings"), settings).expect("it can be written");
    fs::set_permissions(at.join("client"), Permissions::from_mode(0o600)).expect("it is ours");
}

impl Host<'_> {
    /// Runs shell commands, in which a word in capitals stands for a client program with its
    /// options.
    fn run(&self, mode: Mode, text: &str) -> String {
        let options = &self.options;
        let text = text
            .replace("SSH", &format!("ssh {options}"))
            .replace("SCP", &format!("scp -q {options}"))
            .replace("SFTP", &format!("sftp -q {options}"));
        shell(self.node, mode, &text)
    }

    /// Checks that the log of the server has no errors.
    fn assert_quiet(&self) {
        let said = self.server.printed();
        for complaint in ["fatal:", "error:", "sandbox", "violation", "Segmentation"] {
            assert!(!said.contains(complaint), "{said}");
        }
    }
}

/// A folder with the files to copy, writable for all users.
fn prepare(node: &Node) -> String {
    let folder = node.path().join("files");
    fs::create_dir(&folder).expect("it can be made");
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("it is ours");
    let bytes = if is_long() { 10 * COPIED } else { COPIED };
    fs::write(folder.join("sent"), content(22, bytes)).expect("it can be written");
    folder.display().to_string()
}

const COPIES: &str = "
    SSH here cat AT/sent > AT/got; cmp AT/sent AT/got; rm AT/got
    SSH here 'cat > AT/got' < AT/sent; cmp AT/sent AT/got; rm -f AT/got
    SSH here cat < AT/sent > AT/got; cmp AT/sent AT/got; rm AT/got
    SCP here:AT/sent AT/got; cmp AT/sent AT/got; rm AT/got
    SCP AT/sent here:AT/got; cmp AT/sent AT/got; rm -f AT/got
    printf 'get AT/sent AT/got\\nput AT/got AT/again\\nls -l AT\\n' | SFTP -b - here > AT/listed
    cmp AT/sent AT/got; cmp AT/sent AT/again; grep -q again AT/listed
    if SSH here 'exit 7'; then exit 1; else [ $? = 7 ]; fi
    SSH here 'seq 3; echo complained >&2' 2> AT/complained
    cat AT/complained; rm -f AT/got AT/again
";

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn commands_and_copies_are_as_without() {
    for modes in MODES {
        let (node, _monitor) = Node::new();
        let Some(host) = begin(&node, modes[0], None) else { return };
        let at = prepare(&node);
        let printed = host.run(modes[1], &COPIES.replace("AT", &at));
        assert_eq!(printed, "1\n2\n3\ncomplained\n", "{modes:?}");
        host.assert_quiet();
    }
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn another_user_logs_in_past_the_sandbox() {
    // The process of the user differs from the monitoring process.
    let Some(user) = User::first_of(&["postgres"]).filter(User::has_shell) else {
        skip("there is no other user who can log in");
        return;
    };
    let (node, _monitor) = Node::new();
    let Some(host) = begin(&node, Mode::Accelerated, Some(&user)) else { return };
    let at = prepare(&node);
    let printed = host.run(Mode::Accelerated, &COPIES.replace("AT", &at));
    assert_eq!(printed, "1\n2\n3\ncomplained\n");
    assert_eq!(host.run(Mode::Accelerated, "SSH here id -un"), format!("{}\n", user.name));
    host.assert_quiet();
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn forwarded_ports_lead_to_a_server() {
    let programs = (find_or_skip("redis-server"), find_or_skip("redis-benchmark"));
    let (Some(redis), Some(_)) = programs else { return };
    for modes in MODES {
        let (node, _monitor) = Node::new();
        let Some(host) = begin(&node, modes[0], None) else { return };
        let (behind, before) = (free_port(), free_port());
        let mut command = node.command(modes[0], &redis);
        command.args(["--save", "", "--port", &behind.to_string()]).arg("--dir").arg(node.path());
        let _redis = node.serve("redis", command, behind);
        let mut command = node.command(modes[1], &find("ssh").expect("it is there"));
        command.args(host.options.split(' ')).args(["-N", "-o", "ExitOnForwardFailure=yes"]);
        command.args(["-L", &format!("{before}:127.0.0.1:{behind}"), "here"]);
        let _forwarder = node.serve("forwarder", command, before);
        let text = "head -c 3000000 /dev/urandom > sent
             redis-cli -p PORT -x set sent < sent
             redis-cli -p PORT --raw get sent | head -c 3000000 | cmp - sent
             redis-benchmark -p PORT -c 8 -n 2000 -P 4 -t set,get,lpush -q > told
             redis-cli -p PORT dbsize";
        let text = text.replace("PORT", &before.to_string());
        // From the tools to ssh, and from sshd to Redis.
        run_with_own(&node, modes, [2, 2_000_000], || {
            assert_eq!(host.run(modes[1], &text), "OK\n3\n", "{modes:?}");
        });
        host.assert_quiet();
    }
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn sessions_share_a_connection() {
    for modes in MODES {
        let (node, _monitor) = Node::new();
        let Some(host) = begin(&node, modes[0], None) else { return };
        let at = prepare(&node);
        let text = "SSH -o ControlMaster=yes -o ControlPersist=30 -f -N here > AT/master 2>&1
             SSH -O check here 2>&1 | cut -c 1-14
             for n in 1 2 3 4 5 6; do SSH here echo $n; done
             SSH here cat AT/sent > AT/got; cmp AT/sent AT/got; rm AT/got
             SSH here cat < AT/sent > AT/got; cmp AT/sent AT/got; rm AT/got
             SSH here cat AT/sent > AT/got & SSH here cat AT/sent > AT/other; wait $!
             cmp AT/sent AT/got; cmp AT/sent AT/other; rm AT/got AT/other
             SCP AT/sent here:AT/got; cmp AT/sent AT/got
             SSH -O exit here > AT/master 2>&1";
        let printed = host.run(modes[1], &text.replace("AT", &at));
        assert_eq!(printed, "Master running\n1\n2\n3\n4\n5\n6\n", "{modes:?}");
        host.assert_quiet();
    }
}
