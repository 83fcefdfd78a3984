// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The players: servers of all kinds and their clients, each restarted after its end.

use crate::harness::{Mode, Node, Program, find_or_skip, free_port};
use crate::nginx::{self, PLAIN, Settings};
use crate::soak::{board::now_ms, processes};
use std::collections::HashMap;
use std::process::Command;
use std::time::{Duration, Instant};

/// Starts a player with a seed.
type Begin = Box<dyn Fn(&Node, u64) -> Program>;

/// A player.
pub struct Player {
    pub name: String,
    pub role: Role,
    begin: Begin,
    pub program: Option<Program>,
    /// Time of the next start.
    again_at: Instant,
    /// Signals that were sent to its first process.
    signals: Vec<i32>,
    pub begun: u64,
}

/// Kind of a player.
#[derive(Clone, Debug)]
pub enum Role {
    Server {
        /// Its address: a port or a path.
        place: String,
        /// Number of its processes without clients.
        processes: usize,
        /// Whether the process that accepts a connection keeps it until its end.
        keeps: bool,
        /// Whether it exits with success at SIGTERM.
        obeys: bool,
    },
    Client {
        desk: usize,
    },
}

impl Player {
    fn new(name: &str, role: Role, begin: impl Fn(&Node, u64) -> Program + 'static) -> Self {
        let begin = Box::new(begin);
        let (name, again_at) = (name.to_owned(), Instant::now());
        Self { name, role, begin, program: None, again_at, signals: vec![], begun: 0 }
    }

    pub fn is_client(&self) -> bool {
        matches!(self.role, Role::Client { .. })
    }

    /// Its current processes.
    pub fn processes(&self) -> Vec<i32> {
        self.program.as_ref().map_or(vec![], |program| processes::of_group(program.pid()))
    }

    /// Starts it, if its time has come.
    pub fn proceed(&mut self, node: &Node, seed: u64) {
        if self.program.is_none() && Instant::now() >= self.again_at {
            self.program = Some((self.begin)(node, seed));
            self.begun += 1;
            self.signals.clear();
        }
    }

    /// Notes that one of its processes was sent a signal.
    pub fn is_sent(&mut self, pid: i32, signal: i32) {
        if self.program.as_ref().is_some_and(|program| program.pid() == pid) {
            self.signals.push(signal);
        }
    }

    /// Whether its first process has ended; schedules the next start. The end must be due to a
    /// signal that was sent, or a regular exit.
    pub fn has_ended(&mut self, pause: Duration) -> bool {
        let Some(status) = self.program.as_mut().and_then(Program::ended) else { return false };
        let obeys = matches!(self.role, Role::Server { obeys: true, .. }) || self.is_client();
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        let is_asked = signal.map_or(status.success() && obeys, |it| self.signals.contains(&it));
        let printed = self.program.as_ref().map_or(String::new(), Program::printed);
        assert!(is_asked, "{} ends by itself: {status}:\n{printed}", self.name);
        self.again_at = Instant::now() + pause;
        true
    }

    pub fn end(&mut self) {
        self.program = None;
    }
}

fn server(place: &str, processes: usize, keeps: bool, obeys: bool) -> Role {
    Role::Server { place: place.to_owned(), processes, keeps, obeys }
}

/// Servers of these tests: kinds and addresses.
const OURS: [(&str, char, usize); 11] = [
    ("epoll", '4', 1),
    ("epoll", 'u', 1),
    ("poll", '6', 1),
    ("threads", '4', 1),
    ("threads", 'u', 1),
    ("fork", '4', 1),
    ("fork", 'u', 1),
    ("prefork", '4', 4),
    ("exec", '4', 1),
    ("pass", '4', 4),
    ("pass", '6', 4),
];

/// All players; compiles the programs of these tests.
pub fn all(node: &Node, clients: usize) -> Vec<Player> {
    compile(node);
    let mut players = vec![];
    let mut places = vec![];
    for (kind, family, processes) in OURS {
        let place = match family {
            'u' => format!("u:{}", node.path().join(format!("{kind}.sock")).display()),
            _ => format!("{family}:{}", free_port()),
        };
        places.push(place.clone());
        let role = server(&place, processes, kind != "pass", false);
        let name = format!("{kind} {family}");
        players.push(Player::new(&name, role, move |node, _| {
            let mut command = node.command(Mode::Accelerated, &node.path().join("server"));
            command.args([kind, &place]);
            node.start(kind, command)
        }));
    }
    let ours = places.len();
    players.extend(real_servers(node));
    for number in 0..clients {
        let (desk, places) = (number + 1, places.clone());
        let visited = players.iter().enumerate().skip(ours).filter(|(_, it)| !it.is_client());
        let visited: Vec<_> =
            visited.map(|(at, it)| (at, it.name.clone(), it.role.clone())).collect();
        // One in four talks to a real server.
        let real = visited.get(number / 4 % visited.len().max(1)).filter(|_| number % 4 == 3);
        let begin: Begin = match real.cloned() {
            Some((at, kind, Role::Server { place, .. })) => Box::new(move |node, seed| {
                let argument = format!("{desk} {seed} {at} {kind} {place}");
                node.role(Mode::Accelerated, "soak visitor", &argument)
            }),
            _ => Box::new(move |node, seed| {
                let mut command = node.command(Mode::Accelerated, &node.path().join("client"));
                command.args([desk.to_string(), seed.to_string()]).args(&places);
                node.start("client", command)
            }),
        };
        players.push(Player::new(&format!("client {desk}"), Role::Client { desk }, begin));
    }
    players
}

fn compile(node: &Node) {
    node.write("soak.h", include_str!("../programs/soak/soak.h"));
    node.write("server.c", include_str!("../programs/soak/server.c"));
    node.write("client.c", include_str!("../programs/soak/client.c"));
    for name in ["server", "client"] {
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-g", "-Wall", "-Werror", "-pthread", "-o", name]);
        compiler.arg(format!("{name}.c")).arg("-ldl").current_dir(node.path());
        let output = compiler.output().expect("there is a compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

fn real_servers(node: &Node) -> Vec<Player> {
    let mut players = vec![];
    if let Some(redis) = find_or_skip("redis-server") {
        let place = free_port().to_string();
        let role = server(&place, 1, true, true);
        players.push(Player::new("redis", role, move |node, _| {
            let mut command = node.command(Mode::Accelerated, &redis);
            command.args(["--bind", "127.0.0.1", "--save", "", "--port", &place]);
            node.start("redis", command)
        }));
    }
    if find_or_skip("nginx").is_some() {
        let settings = Settings { workers: 2, ..PLAIN };
        // Built once; later starts use the same command.
        let (command, port) = nginx::configure(node, "site", &settings);
        let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let role = server(&port.to_string(), 3, true, true);
        players.push(Player::new("nginx", role, move |node, _| {
            let mut command = node.freeport(&[]);
            command.args(&arguments);
            node.start("nginx", command)
        }));
    }
    if let Some(memcached) = find_or_skip("memcached") {
        let place = node.path().join("memcached.sock").display().to_string();
        let role = server(&place, 1, true, true);
        players.push(Player::new("memcached", role, move |node, _| {
            let mut command = node.command(Mode::Accelerated, &memcached);
            command.args(["-u", "root", "-t", "4", "-I", "2m", "-m", "512", "-s", &place]);
            node.start("memcached", command)
        }));
    }
    players
}

/// Record of signals that were sent.
#[derive(Default)]
pub struct Signals {
    /// Times of deadly signals, by player.
    deaths: HashMap<usize, Vec<u64>>,
    /// Numbers of signals by kind and player, for messages.
    pub counts: std::collections::BTreeMap<String, u64>,
}

impl Signals {
    /// Records a signal that is about to be sent.
    pub fn note(&mut self, player: usize, name: &str, signal: i32) {
        let what = match signal {
            libc::SIGKILL => "KILL",
            libc::SIGTERM => "TERM",
            libc::SIGSTOP => "STOP",
            _ => "other",
        };
        let name = name.split(' ').next().unwrap_or_default();
        *self.counts.entry(format!("{what} {name}")).or_default() += 1;
        if signal != libc::SIGSTOP {
            self.deaths.entry(player).or_default().push(now_ms());
        }
    }

    /// The same without counting, for processes that end with their first process.
    pub fn note_rest(&mut self, player: usize) {
        self.deaths.entry(player).or_default().push(now_ms());
    }

    /// Whether a process of a player was killed within an interval.
    pub fn is_excused(&self, player: usize, since: u64, until: u64) -> bool {
        let (since, until) = (since.saturating_sub(1000), until + 1000);
        let deaths = self.deaths.get(&player);
        deaths.is_some_and(|deaths| deaths.iter().any(|at| (since..=until).contains(at)))
    }
}
