// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that transfer files.

use super::{MODES, run, run_with_own, shell};
use crate::harness::{Mode, Node, Program, content, find, find_or_skip, free_port};
use crate::languages::server_listens;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Size of a file in bytes.
const fn size() -> usize {
    5 << 20
}

/// Starts a server, and waits until it listens, without connecting.
fn serve(node: &Node, name: &str, command: Command, port: u16) -> Program {
    let mut server = node.start(name, command);
    server.wait_until("it listens", || server_listens(&port.to_string()));
    server
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn netcat_sends_a_file() {
    let Some(nc) = find_or_skip("nc") else { return };
    for modes in MODES {
        let (node, _monitor) = Node::new();
        let port = free_port();
        node.write("sent", content(8, size()));
        let send = || {
            let mut command = node.command(modes[0], &find("sh").expect("it is there"));
            let listens = format!("exec {} -l 127.0.0.1 {port} > got", nc.display());
            command.args(["-c", &listens]);
            let server = serve(&node, "nc", command, port);
            shell(&node, modes[1], &format!("{} -N 127.0.0.1 {port} < sent", nc.display()));
            server.finish();
            shell(&node, Mode::Plain, "cmp sent got");
        };
        run(&node, modes, [1, 1], send);
    }
}

/// A folder with files of many sizes, some of them alike.
fn make_tree(at: &Path) {
    for (number, bytes) in [0, 1, 700, 5000, 70_000, 700_000, size()].into_iter().enumerate() {
        let folder = at.join(format!("folder {number}"));
        fs::create_dir_all(&folder).expect("it can be made");
        for own in 0..5 {
            let file = folder.join(own.to_string());
            fs::write(file, content(own / 2, bytes)).expect("it can be written");
        }
    }
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn rsync_makes_folders_the_same() {
    let Some(rsync) = find_or_skip("rsync") else { return };
    for modes in MODES {
        let (node, _monitor) = Node::new();
        let port = free_port();
        make_tree(&node.path().join("there"));
        make_tree(&node.path().join("here"));
        fs::create_dir(node.path().join("empty")).expect("it can be made");
        let at = node.path().display();
        // SAFETY: the call has no arguments and cannot fail.
        let user = match unsafe { libc::geteuid() } {
            0 => "uid = root\ngid = root\n",
            _ => "",
        };
        let settings = node.write(
            "rsyncd.conf",
            format!("use chroot = no\n{user}[files]\npath = {at}\nread only = no\n"),
        );
        let mut command = node.command(modes[0], &rsync);
        command.args(["--daemon", "--no-detach", "--address=127.0.0.1"]);
        command.arg(format!("--port={port}")).arg(format!("--config={}", settings.display()));
        let server = serve(&node, "rsync", command, port);
        let text = "
            R=rsync://127.0.0.1:PORT/files; rm -rf got put
            rsync -a $R/there/ got; diff -r there got
            rsync -a --delete $R/empty/ got; [ -z \"$(ls got)\" ]
            rsync -a here/ $R/put/; diff -r here put
            date > here/new; dd if=/dev/urandom of=here/folder\\ 6/0 conv=notrunc bs=10k count=3
            rsync -a --checksum --no-whole-file -z here/ $R/put/; diff -r here put
            rsync --list-only $R/put/ | tail -n +2 | wc -l";
        run_with_own(&node, modes, [1, size() as u64], || {
            let printed = shell(&node, modes[1], &text.replace("PORT", &port.to_string()));
            assert_eq!(printed.lines().last().map(str::trim), Some("8"), "{printed}");
        });
        drop(server);
    }
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn git_clones_from_its_daemon_and_pushes_to_it() {
    let Some(git) = find_or_skip("git") else { return };
    for modes in MODES {
        let (node, _monitor) = Node::new();
        let port = free_port();
        let text = "
            git init -q --bare base.git; git -C base.git config daemon.receivepack true
            git init -q here; cd here; git config user.name me; git config user.email me@here
            for n in 1 2 3 4 5; do
              head -c 900000 /dev/urandom > file$n; git add .; git commit -q -m commit$n
            done
            git push -q ../base.git HEAD:refs/heads/main
            git -C ../base.git symbolic-ref HEAD refs/heads/main";
        shell(&node, Mode::Plain, text);
        let mut command = node.command(modes[0], &git);
        command.args(["daemon", "--export-all", "--listen=127.0.0.1", "--reuseaddr"]);
        command.arg(format!("--port={port}"));
        command.arg(format!("--base-path={}", node.path().display()));
        let _server = serve(&node, "git", command, port);
        let text = "
            U=git://127.0.0.1:PORT/base.git
            git clone -q $U there; git -C there fsck --strict
            diff -r --exclude=.git here there
            cd there; git config user.name you; git config user.email you@there
            head -c 2000000 /dev/urandom > more; git add more; git commit -q -m more
            git push -q $U HEAD:refs/heads/main; cd ../here; git pull -q $U main
            cmp more ../there/more; git rev-parse HEAD; git -C ../base.git rev-parse main
            git ls-remote $U refs/heads/main | cut -f 1";
        let printed = shell(&node, modes[1], &text.replace("PORT", &port.to_string()));
        let mut heads = printed.lines().rev();
        let last = [heads.next(), heads.next(), heads.next()];
        assert!(last[0].is_some_and(|it| it.len() == 40), "{printed}");
        assert!(last[0] == last[1] && last[1] == last[2], "{printed}");
    }
}

/// Buffer size of socat. A pipe that is writable may have room for one page only, so with two
/// pages, its default, socat may deadlock on its own reader, also without the library: after a
/// first piece of less than a page, with a slow client.
const PIECES: [&str; 2] = ["-b", "4096"];

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn socat_gives_back_what_comes_by_itself_and_by_others() {
    let Some(socat) = find_or_skip("socat") else { return };
    // The handling of a connection, and whether it is accelerated until its end: by the loop of
    // socat, by a child process connected by a socket pair, or by one that has it as its standard
    // streams.
    for (way, leaves) in [("PIPE", true), ("EXEC:cat", true), ("EXEC:cat,nofork", false)] {
        for modes in MODES {
            let (node, _monitor) = Node::new();
            let port = free_port();
            let mut command = node.command(modes[0], &socat);
            command
                .args(PIECES)
                .arg(format!("TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork"))
                .arg(way);
            let _server = serve(&node, "socat", command, port);
            node.write("sent", content(5, size()));
            let text = format!(
                "for n in 1 2 3; do socat -t 60 - TCP:127.0.0.1:{port} < sent > got
                 cmp sent got; rm got; done"
            );
            let least = if leaves { [3, 3 * (size() as u64)] } else { [0, 0] };
            run_with_own(&node, modes, least, || {
                shell(&node, modes[1], &text);
            });
        }
    }
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn socat_leads_from_paths_to_ports() {
    let Some(socat) = find_or_skip("socat") else { return };
    for modes in MODES {
        let (node, _monitor) = Node::new();
        let port = free_port();
        let mut command = node.command(modes[0], &socat);
        command
            .args(PIECES)
            .arg(format!("TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork"))
            .arg("PIPE");
        let _behind = serve(&node, "socat", command, port);
        let path = node.path().join("socket");
        let mut command = node.command(modes[1], &socat);
        command.arg(format!("UNIX-LISTEN:{},fork", path.display()));
        command.arg(format!("TCP:127.0.0.1:{port}"));
        let mut before = node.start("socat", command);
        before.wait_until("it listens", || path.exists());
        node.write("sent", content(6, size()));
        let text = "socat -t 60 - UNIX-CONNECT:socket < sent > got; cmp sent got";
        run(&node, modes, [2, 2 * (size() as u64)], || {
            shell(&node, modes[0], text);
        });
    }
}
