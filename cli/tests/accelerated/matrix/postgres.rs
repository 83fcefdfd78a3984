// SPDX-License-Identifier: Apache-2.0 OR MIT
//! PostgreSQL: a process per connection, forked by a supervisor; clients of another user, over TCP
//! and over a Unix socket.

use super::users::{User, command_as};
use super::{MODES, are_accelerated};
use crate::harness::{Mode, Node, Program, content, find, free_port, is_long, wait_until};
use freeport_testbed::skip;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// A server with separate data.
struct Cluster<'a> {
    node: &'a Node,
    server: Program,
    port: u16,
    tools: PathBuf,
    /// Folder of its Unix socket.
    sockets: PathBuf,
    /// Folder that clients write to.
    files: PathBuf,
    client: Option<User>,
}

/// Folder of the programs: Debian installs those of each version outside the path.
#[track_caller]
fn tools() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    let beside = || Some(find("postgres")?.parent()?.to_owned());
    let found = folders.filter(|it| it.join("postgres").is_file()).max().or_else(beside);
    if found.is_none() {
        skip("postgres is not installed");
    }
    found
}

impl<'a> Cluster<'a> {
    /// `None`: PostgreSQL is not installed.
    fn begin(node: &'a Node, mode: Mode) -> Option<Self> {
        let tools = tools()?;
        // It refuses to run as root.
        let user = User::first_of(&["postgres", "nobody"]);
        let client = User::first_of(&["nobody", "daemon"]);
        let folder =
            |user: &Option<User>, name| User::make_folder(user.as_ref(), &node.path().join(name));
        let [data, sockets] = ["data", "sockets"].map(|name| folder(&user, name));
        let mut command = command_as(node, mode, user.as_ref(), &tools.join("initdb"));
        command.args(["-N", "-A", "trust", "-U", "freeport", "-E", "UTF8", "--locale=C", "-D"]);
        command.arg(&data);
        node.start("initdb", command).finish();
        let port = free_port();
        let mut command = command_as(node, mode, user.as_ref(), &tools.join("postgres"));
        command.args(["-F", "-h", "127.0.0.1", "-p", &port.to_string(), "-D"]).arg(&data);
        command.arg("-k").arg(&sockets);
        let server = node.serve("postgres", command, port);
        let files = folder(&client, "files");
        let cluster = Self { node, server, port, tools, sockets, files, client };
        cluster.wait_until_ready();
        Some(cluster)
    }

    fn wait_until_ready(&self) {
        wait_until("it takes questions", || {
            let mut command = self.tool(Mode::Plain, Place::Port, "psql");
            command.args(["-X", "-c", "select 1"]).output().is_ok_and(|it| it.status.success())
        });
    }

    /// One of its programs, for this server.
    fn tool(&self, mode: Mode, place: Place, name: &str) -> Command {
        let program = self.tools.join(name);
        let mut command = command_as(self.node, mode, self.client.as_ref(), &program);
        match place {
            Place::Port => command.env("PGHOST", "127.0.0.1"),
            Place::Path => command.env("PGHOST", &self.sockets),
        };
        command.env("PGPORT", self.port.to_string()).env("PGUSER", "freeport");
        command.env("PGDATABASE", "postgres").current_dir(&self.files);
        command
    }

    /// Starts a query in a client.
    fn start(&self, mode: Mode, place: Place, name: &str, text: &str) -> Program {
        let file = self.node.write(&format!("{name}.sql"), text);
        let mut command = self.tool(mode, place, "psql");
        command.args(["-X", "-A", "-t", "-q", "-f"]).arg(file);
        self.node.start(name, command)
    }

    /// Runs a query; returns the answer.
    fn ask(&self, mode: Mode, place: Place, text: &str) -> String {
        let text = format!("\\set ON_ERROR_STOP on\n{text}");
        self.start(mode, place, "question", &text).finish().trim_end().to_owned()
    }

    /// Runs pgbench, which must succeed.
    fn benchmark(&self, modes: [Mode; 2], place: Place, arguments: &str) {
        let mut command = self.tool(modes[1], place, "pgbench");
        command.args(arguments.split(' '));
        let printed = self.node.start("pgbench", command).finish();
        assert!(!printed.contains("aborted"), "{arguments}: {printed}");
    }

    /// Waits until this query runs; returns the server process.
    fn asked(&self, query: &str) -> i32 {
        let query = query.replace('\'', "''");
        let text = format!(
            "select pid from pg_stat_activity where state = 'active' and query = '{query}'"
        );
        let mut pid = None;
        wait_until("it is asked", || {
            pid = self.ask(Mode::Plain, Place::Port, &text).parse().ok();
            pid.is_some()
        });
        pid.expect("it is asked")
    }

    /// Stops the server after each of its processes has noticed that its client has exited: a
    /// process that is stopped before logs an error.
    fn end(mut self) {
        let others = "select count(*) from pg_stat_activity
                      where backend_type = 'client backend' and pid <> pg_backend_pid()";
        wait_until("nobody is served any more", || {
            self.ask(Mode::Plain, Place::Port, others) == "0"
        });
        self.server.signal(libc::SIGINT);
        let status = self.server.wait();
        assert!(status.success(), "{status}:\n{}", self.server.printed());
        let said = self.server.printed();
        for complaint in ["PANIC", "segmentation", "could not send", "could not receive"] {
            assert!(!said.contains(complaint), "{said}");
        }
    }
}

/// How a client connects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Port,
    Path,
}

/// Invariant of the tables after pgbench: each sum is that of all changes.
const SUMS: &str = "
    select (select sum(abalance) from pgbench_accounts) = sum(delta),
           (select sum(tbalance) from pgbench_tellers) = sum(delta),
           (select sum(bbalance) from pgbench_branches) = sum(delta), count(*)
    from pgbench_history";

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn its_benchmark_leaves_the_sums_that_it_has_to() {
    let rounds = if is_long() { 2000 } else { 50 };
    for modes in MODES {
        let (node, _monitor) = Node::new();
        let Some(cluster) = Cluster::begin(&node, modes[0]) else { return };
        for place in [Place::Port, Place::Path] {
            let before = node.moved();
            cluster.benchmark(modes, place, "-i -q -s 1");
            for protocol in ["simple", "extended", "prepared"] {
                let arguments = format!("-n -c 4 -j 2 -t {rounds} -M {protocol}");
                cluster.benchmark(modes, place, &arguments);
            }
            cluster.benchmark(modes, place, &format!("-n -S -c 4 -t {rounds}"));
            // A connection for each transaction.
            cluster.benchmark(modes, place, &format!("-n -C -c 4 -t {}", rounds / 5));
            let transactions = 4 * (3 * rounds + rounds / 5);
            let sums = cluster.ask(modes[1], place, SUMS);
            assert_eq!(sums, format!("t|t|t|{transactions}"), "{modes:?}, {place:?}");
            if are_accelerated(modes) {
                // The number of connections that live long enough depends on timing.
                node.assert_moved(before.connections + 4, before.bytes + 10_000);
            } else {
                assert_eq!(node.moved().bytes, before.bytes, "{modes:?}, {place:?}");
            }
        }
        cluster.end();
    }
}

/// Lines with a number and words of printable bytes.
fn table(lines: usize) -> String {
    let random = content(7, lines * 60);
    let mut table = String::new();
    for (number, words) in random.chunks(60).enumerate() {
        let words: String = words.iter().map(|byte| char::from(b'a' + byte % 26)).collect();
        writeln!(table, "{number}\t{words}").expect("there is memory");
    }
    table
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn what_is_copied_in_comes_out_as_it_was() {
    let lines = if is_long() { 1_000_000 } else { 60_000 };
    for modes in MODES {
        let (node, _monitor) = Node::new();
        let Some(cluster) = Cluster::begin(&node, modes[0]) else { return };
        let sent = node.write("sent", table(lines));
        for place in [Place::Port, Place::Path] {
            let before = node.moved();
            let text = format!(
                "create table {place:?} (number int, words text);
                 \\copy {place:?} from '{}'
                 \\copy (select * from {place:?} order by number) to 'got'
                 select count(*), sum(number) from {place:?};
                 select length(string_agg(words, '' order by number)) from {place:?};",
                sent.display()
            );
            let sum = lines * (lines - 1) / 2;
            let expected = format!("{lines}|{sum}\n{}", lines * 60);
            assert_eq!(cluster.ask(modes[1], place, &text), expected);
            assert_same(&sent, &cluster.files.join("got"));
            dump_and_restore(&cluster, modes[1], place);
            if are_accelerated(modes) {
                let bytes = fs::metadata(&sent).expect("it is there").len();
                node.assert_moved(before.connections + 1, before.bytes + bytes);
            }
        }
        cluster.end();
    }
}

/// A database that is dumped and restored is unchanged.
fn dump_and_restore(cluster: &Cluster, mode: Mode, place: Place) {
    let dump = |base: &str, file: &str| {
        let mut command = cluster.tool(mode, place, "pg_dump");
        command.args(["--inserts", "--rows-per-insert=50", "-f", file, base]);
        cluster.node.start("pg_dump", command).finish();
    };
    dump("postgres", "first");
    let file = cluster.files.join("first");
    let text = format!(
        "drop database if exists other; create database other;\n\\c other\n\\o rest\n\\i {}\n",
        file.display()
    );
    cluster.ask(mode, place, &text);
    dump("other", "second");
    let [first, second] = [file, cluster.files.join("second")].map(|path| {
        let text = fs::read_to_string(path).expect("it can be read");
        // Each dump has a random word at the beginning and the end of its commands.
        text.lines().filter(|line| !line.contains("restrict ")).map(str::to_owned).collect()
    });
    let [first, second]: [Vec<String>; 2] = [first, second];
    assert!(first == second, "{} lines and {}: they differ", first.len(), second.len());
}

fn assert_same(one: &Path, other: &Path) {
    let [one, other] = [one, other].map(|path| fs::read(path).expect("it can be read"));
    assert!(one == other, "{} bytes and {}: they differ", one.len(), other.len());
}

/// Enough queries for an upgrade, and enough time for it.
fn settle() -> String {
    format!("\\o rest\n{}\\o\n", "select pg_sleep(0.002);\n".repeat(250))
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn notifications_come_to_who_listens() {
    for modes in MODES {
        let (node, _monitor) = Node::new();
        let Some(cluster) = Cluster::begin(&node, modes[0]) else { return };
        cluster.ask(Mode::Plain, Place::Port, "create table steps (name text);");
        let wait = |step: &str| {
            format!(
                "do $$ begin while not exists (select from steps where name = '{step}')
                 loop perform pg_sleep(0.01); end loop; end $$;\n"
            )
        };
        for place in [Place::Port, Place::Path] {
            cluster.ask(Mode::Plain, place, "delete from steps;");
            let hears = format!(
                "{}listen news;\ninsert into steps values ('listens');\n{}select 'end';\n",
                settle(),
                wait("told")
            );
            let listener = cluster.start(modes[1], place, "listener", &hears);
            let mut tells = settle() + &wait("listens");
            for number in 0..200 {
                writeln!(tells, "notify news, '{number}';").expect("there is memory");
            }
            tells += "select pg_notify('news', repeat('x', 7900));\n\
                      insert into steps values ('told');\n";
            cluster.ask(modes[1], place, &tells);
            let heard = listener.finish();
            let payloads = heard.lines().filter_map(|line| line.split("payload \"").nth(1));
            let payloads: Vec<_> = payloads.filter_map(|it| it.split('"').next()).collect();
            let expected = (0..200).map(|number| number.to_string());
            let expected: Vec<_> = expected.chain(["x".repeat(7900)]).collect();
            assert_eq!(payloads, expected, "{modes:?}, {place:?}: {heard}");
        }
        if are_accelerated(modes) {
            node.assert_moved(4, 4 * 1000);
        }
        cluster.end();
    }
}

/// Message of psql if its query was cancelled.
const STOPPED: i32 = 3;
/// Message of psql if its connection was lost.
const LOST: i32 = 2;

/// Waits until the connection is accelerated, if both ends may be.
fn assert_left(node: &Node, modes: [Mode; 2], connections: usize) {
    let expected = if are_accelerated(modes) { connections } else { 0 };
    wait_until("it has left the kernel", || node.connections().len() >= expected);
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn questions_are_cancelled_over_another_connection() {
    for modes in MODES {
        let (node, _monitor) = Node::new();
        let Some(cluster) = Cluster::begin(&node, modes[0]) else { return };
        for place in [Place::Port, Place::Path] {
            let text = "select pg_sleep(1001);\nselect 'goes on';\nselect pg_sleep(1002);\n";
            let mut session = cluster.start(modes[1], place, "session", &(settle() + text));
            let pid = cluster.asked("select pg_sleep(1001);");
            assert_left(&node, modes, 1);
            cluster.ask(modes[1], place, &format!("select pg_cancel_backend({pid});"));
            assert_eq!(cluster.asked("select pg_sleep(1002);"), pid);
            // It opens another connection to cancel.
            session.signal(libc::SIGINT);
            let status = session.wait();
            let printed = session.printed();
            assert_eq!(status.code(), Some(STOPPED), "{printed}");
            let cancelled = printed.matches("canceling statement due to user request").count();
            assert_eq!(cancelled, 2, "{printed}");
            assert!(printed.contains("goes on"), "{printed}");
        }
        cluster.end();
    }
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn all_begin_anew_when_a_process_of_it_is_killed() {
    for modes in MODES {
        let (node, _monitor) = Node::new();
        let Some(cluster) = Cluster::begin(&node, modes[0]) else { return };
        cluster.benchmark(modes, Place::Port, "-i -q -s 1");
        for place in [Place::Port, Place::Path] {
            let sleep = |number: u32| format!("{}select pg_sleep({number});\n", settle());
            let start = |number| {
                cluster.start(modes[1], place, &format!("session-{number}"), &sleep(number))
            };
            let mut sessions = [1001, 1002].map(start);
            let victim = cluster.asked("select pg_sleep(1001);");
            cluster.asked("select pg_sleep(1002);");
            assert_left(&node, modes, 2);
            // SAFETY: no memory is passed; the process belongs to the server of this test.
            assert_eq!(unsafe { libc::kill(victim, libc::SIGKILL) }, 0);
            let ends: Vec<ExitStatus> = sessions.iter_mut().map(Program::wait).collect();
            for (session, end) in sessions.iter().zip(ends) {
                assert_eq!(end.code(), Some(LOST), "{}", session.printed());
            }
            let other = sessions[1].printed();
            assert!(other.contains("because of crash of another server process"), "{other}");
            cluster.wait_until_ready();
            let before = cluster.ask(modes[1], place, "select count(*) from pgbench_history;");
            cluster.benchmark(modes, place, "-n -c 4 -j 2 -t 20");
            let rows: u32 = before.parse().expect("a number");
            assert_eq!(cluster.ask(modes[1], place, SUMS), format!("t|t|t|{}", rows + 80));
        }
        cluster.end();
    }
}
