// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers and clients of many kinds under one monitor. Any process, including the monitor, may be
//! killed or stopped at any moment: received bytes are a prefix of those that were sent, no process
//! hangs, and no resources of ended processes remain.
//!
//! `FREEPORT_SOAK_SECONDS` sets the duration, and `FREEPORT_SEED` repeats random choices.

pub mod board;
mod cast;
mod processes;
mod traces;
pub mod visitors;
mod watch;

use crate::harness::{Node, Program};
use board::{Board, Word};
use cast::{Player, Role, Signals};
use fastrand::Rng;
use freeport_testbed::{number, usual_or_long, variable};
use std::thread;
use std::time::{Duration, Instant};
use watch::Watch;

/// Duration of a usual and of a long run.
const SECONDS: u64 = 15;
const SECONDS_LONG: u64 = 3600;
/// Number of concurrent clients.
const CLIENTS: usize = 16;
/// Interval at which all clients rest, so that remaining resources can be checked.
const REST_EVERY: Duration = Duration::from_secs(120);
/// Longest time that a process is stopped, in milliseconds.
const STOPPED_MAX: u64 = 400;
const TICK: Duration = Duration::from_millis(5);

#[test]
fn whoever_is_killed_at_whatever_moment_nobody_else_is_harmed() {
    let seconds = number("FREEPORT_SOAK_SECONDS");
    let seconds = seconds.unwrap_or(usual_or_long(SECONDS, SECONDS_LONG));
    let seed = number(variable::SEED).unwrap_or_else(|| fastrand::u64(..));
    eprintln!("FREEPORT_SEED={seed} FREEPORT_SOAK_SECONDS={seconds}");
    let mut soak = Soak::new(seed);
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        let rest = Instant::now() + REST_EVERY;
        soak.proceed_until(rest.min(until));
        soak.rest();
    }
    soak.end();
}

/// The state of a run.
pub struct Soak {
    random: Rng,
    board: Board,
    players: Vec<Player>,
    signals: Signals,
    watch: Watch,
    /// Stopped processes, and when they continue.
    stopped: Vec<(Instant, i32)>,
    next_at: Instant,
    monitor: Monitor,
    traces: traces::Traces,
    begun: Instant,
    // Dropped last, with its folder.
    node: Node,
}

impl Soak {
    fn new(seed: u64) -> Self {
        let node = Node::without_monitor();
        let board = Board::make(node.path());
        let players = cast::all(&node, CLIENTS);
        let (random, now) = (Rng::with_seed(seed), Instant::now());
        let mut monitor = Monitor { program: None, pid: 0, again_at: now };
        monitor.proceed(&node);
        Self {
            random,
            board,
            players,
            signals: Signals::default(),
            watch: Watch::default(),
            stopped: vec![],
            next_at: now,
            monitor,
            traces: traces::Traces::default(),
            begun: now,
            node,
        }
    }

    /// Sends signals, and restarts players that have ended.
    fn proceed_until(&mut self, until: Instant) {
        while Instant::now() < until {
            self.tick();
            if Instant::now() >= self.next_at {
                self.next_at = Instant::now() + Duration::from_millis(self.random.u64(10..200));
                self.strike();
            }
        }
    }

    /// Periodic work.
    fn tick(&mut self) {
        thread::sleep(TICK);
        let now = Instant::now();
        self.wake(|until| until <= now);
        self.begin_again();
        self.watch.look(&self.board, &self.players, &mut self.signals, &self.node);
    }

    fn begin_again(&mut self) {
        for (number, player) in self.players.iter_mut().enumerate() {
            let pause = Duration::from_millis(self.random.u64(..300));
            if player.has_ended(pause) {
                // Its remaining processes end too.
                self.signals.note_rest(number);
                player.end();
            }
            player.proceed(&self.node, self.random.u64(1..1 << 40));
        }
        if Instant::now() >= self.monitor.again_at && self.monitor.is_gone() {
            self.monitor.proceed(&self.node);
        }
    }

    /// Continues processes that were stopped long enough.
    fn wake(&mut self, is_enough: impl Fn(Instant) -> bool) {
        self.stopped.retain(|(until, pid)| {
            if is_enough(*until) {
                send(*pid, libc::SIGCONT);
            }
            !is_enough(*until)
        });
    }

    /// Sends a random signal to a random process.
    fn strike(&mut self) {
        let signal = match self.random.u32(..100) {
            ..62 => libc::SIGKILL,
            62..88 => libc::SIGSTOP,
            _ => libc::SIGTERM,
        };
        let choice = self.random.u32(..100);
        if choice < 5 {
            return self.strike_monitor(signal);
        }
        let wants_client = choice < 45;
        let fits = |player: &&Player| player.is_client() == wants_client;
        let count = self.players.iter().filter(fits).count();
        let at = self.random.usize(..count);
        let chosen = self.players.iter().enumerate().filter(|(_, it)| fits(it)).nth(at);
        let Some((number, player)) = chosen else { return };
        let processes = player.processes();
        let Some(pid) = processes.get(self.random.usize(..processes.len().max(1))) else { return };
        self.signals.note(number, &player.name, signal);
        self.players[number].is_sent(*pid, signal);
        send(*pid, signal);
        if signal == libc::SIGSTOP {
            self.is_stopped(*pid);
        }
    }

    fn is_stopped(&mut self, pid: i32) {
        let time = Duration::from_millis(self.random.u64(1..STOPPED_MAX));
        self.stopped.push((Instant::now() + time, pid));
    }

    fn strike_monitor(&mut self, signal: i32) {
        if self.monitor.is_gone() || processes::is_stopped(self.monitor.pid) {
            return;
        }
        self.signals.note(usize::MAX, "monitor", signal);
        send(self.monitor.pid, signal);
        if signal == libc::SIGSTOP {
            self.is_stopped(self.monitor.pid);
        } else {
            self.monitor.again_at = Instant::now() + Duration::from_millis(self.random.u64(..1500));
        }
    }

    /// All clients close their connections, and remaining resources are checked.
    fn rest(&mut self) {
        self.wake(|_| true);
        self.board.rest(true);
        let begun = Instant::now();
        self.wait("all clients rest", |soak| {
            let is_late = begun.elapsed() > Duration::from_millis(500);
            // All idle clients are notified at once, and not one after the other.
            let clients = soak.players.iter().filter(|player| player.is_client());
            let restless = clients.filter(|player| {
                let Role::Client { desk } = player.role else { return false };
                let pid = player.program.as_ref().map_or(0, Program::pid);
                let is_it = pid > 0 && soak.board.get(desk, Word::Pid) == pid as u64;
                let state = soak.board.get(desk, Word::State);
                if is_it && is_late && state == board::state::IDLES {
                    send(pid, libc::SIGUSR1);
                }
                !is_it || state != board::state::RESTS
            });
            restless.count() == 0
        });
        traces::look(self);
        self.tell();
        self.board.rest(false);
    }

    /// Waits for a condition while all processes keep running.
    fn wait(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            self.tick();
            thread::sleep(Duration::from_millis(20));
            if begun.elapsed() > watch::PATIENCE {
                let all: Vec<i32> = self.players.iter().flat_map(Player::processes).collect();
                self.watch.fail(&format!("it never came to this: {what}"), &all, &self.node);
            }
        }
    }

    /// The same after the players have stopped.
    fn wait_alone(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            thread::sleep(Duration::from_millis(20));
            if begun.elapsed() > watch::PATIENCE {
                let left = processes::in_folder(self.node.path());
                self.watch.fail(&format!("it never came to this: {what}"), &left, &self.node);
            }
        }
    }

    /// Prints progress.
    fn tell(&self) {
        let sum = |word| self.board.sum(word);
        let began: u64 = self.players.iter().map(|player| player.begun).sum();
        eprintln!(
            "{} s: {} connections ended well and {} were cut, {} of all past the kernel; {} MiB \
             came; {began} programs begun; {:?}; {}",
            self.begun.elapsed().as_secs(),
            sum(Word::Talks),
            sum(Word::Cuts),
            sum(Word::Past),
            sum(Word::Bytes) >> 20,
            self.signals.counts,
            self.traces.reported(),
        );
    }

    /// Ends all processes, and checks that no resources remain.
    fn end(mut self) {
        let past = self.board.sum(Word::Past);
        assert!(past > 10, "only {past} connections were past the kernel");
        self.players.iter_mut().for_each(Player::end);
        traces::look_at_end(&mut self);
    }
}

/// The monitor, which a command may have started in the background.
struct Monitor {
    program: Option<Program>,
    pid: i32,
    again_at: Instant,
}

impl Monitor {
    fn is_gone(&self) -> bool {
        !processes::exists(self.pid)
    }

    /// Starts one, unless another process was faster.
    fn proceed(&mut self, node: &Node) {
        let begun = Instant::now();
        self.program = None;
        loop {
            if let Some(pid) = node.monitor_pid() {
                self.pid = pid;
                return;
            }
            let ended = self.program.as_mut().is_none_or(|program| program.ended().is_some());
            if ended {
                self.program = Some(node.start("monitor", node.freeport(&["node"])));
            }
            assert!(begun.elapsed() < watch::PATIENCE, "no monitor answers");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends it.
    fn end(&mut self) {
        send(self.pid, libc::SIGTERM);
        let begun = Instant::now();
        while !self.is_gone() {
            assert!(begun.elapsed() < watch::PATIENCE, "the monitor does not end");
            if let Some(program) = &mut self.program {
                program.ended();
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Sends a signal to a process, if it still exists.
fn send(pid: i32, signal: i32) {
    assert!(pid > 1);
    // SAFETY: no memory is passed. The process was looked up just before, and process IDs are not
    // reused that soon.
    unsafe { libc::kill(pid, signal) };
}
