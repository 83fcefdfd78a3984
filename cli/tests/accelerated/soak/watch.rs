// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Watches the state of clients: none may stay in one state for long, and no connection may be cut
//! unless a process was killed.

use super::board::{Board, Word, state};
use super::cast::{Player, Role, Signals};
use super::processes;
use crate::harness::Node;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Limit for every step. It does not measure speed: there are many processes and few cores.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// Limit for noticing the death of a process.
const DEATH: Duration = PATIENCE;
/// Interval of checks.
const PAUSE: Duration = Duration::from_millis(100);

/// The last observation.
#[derive(Default)]
pub struct Watch {
    looked: Option<Instant>,
    /// By desk: the step counter and its time, and the time since when the peer is dead.
    seen: HashMap<usize, Seen>,
}

struct Seen {
    steps: u64,
    pid: u64,
    since: Instant,
    dead_since: Option<Instant>,
}

impl Watch {
    pub fn look(&mut self, board: &Board, players: &[Player], signals: &mut Signals, node: &Node) {
        let now = Instant::now();
        if self.looked.is_some_and(|looked| now - looked < PAUSE) {
            return;
        }
        self.looked = Some(now);
        self.look_at_events(board, players, signals, node);
        for player in players {
            if let Role::Client { desk } = player.role
                && player.program.is_some()
            {
                self.look_at_client(board, players, (player, desk), node);
            }
        }
    }

    fn look_at_events(&self, board: &Board, players: &[Player], signals: &Signals, node: &Node) {
        for line in board.reported().lines() {
            let Some(rest) = line.strip_prefix("cut: ") else { self.fail(line, &[], node) };
            let numbers: Vec<u64> = rest.split(' ').filter_map(|word| word.parse().ok()).collect();
            let [server, _, since, until, ..] = numbers[..] else { panic!("{line}") };
            if !signals.is_excused(server as usize, since, until) {
                let name = &players[server as usize].name;
                let all = players[server as usize].processes();
                self.fail(&format!("{name} has cut a connection: {line}"), &all, node);
            }
        }
    }

    fn look_at_client(
        &mut self,
        board: &Board,
        players: &[Player],
        (player, desk): (&Player, usize),
        node: &Node,
    ) {
        let now = Instant::now();
        let word = |word| board.get(desk, word);
        let (steps, pid) = (word(Word::Steps), player.program.as_ref().map_or(0, |it| it.pid()));
        let new = || Seen { steps, pid: pid as u64, since: now, dead_since: None };
        let seen = self.seen.entry(desk).or_insert_with(new);
        if seen.steps != steps || seen.pid != pid as u64 {
            *seen = new();
        }
        let (stays, state, peer) = (now - seen.since, word(Word::State), word(Word::Peer));
        let server = (word(Word::Server) as usize).checked_sub(1).and_then(|it| players.get(it));
        let keeps = server.is_some_and(|it| matches!(it.role, Role::Server { keeps: true, .. }));
        if state == state::IDLES && keeps && peer != 0 && !processes::exists(peer as i32) {
            seen.dead_since.get_or_insert(now);
        }
        let notices_late = seen.dead_since.is_some_and(|since| now - since > DEATH);
        let may_stay = state == state::IDLES || state == state::RESTS;
        if notices_late || !may_stay && stays > PATIENCE {
            let what = if notices_late { "does not notice a death" } else { "waits" };
            let with = server.map_or("nobody", |it| &it.name);
            let mut all = player.processes();
            all.extend(server.into_iter().flat_map(Player::processes));
            let what = format!(
                "{} {what}, in state {state}, process {peer} of {with} being the peer",
                player.name
            );
            self.fail(&what, &all, node);
        }
    }

    /// Prints the state, and fails.
    pub fn fail(&self, what: &str, processes: &[i32], node: &Node) -> ! {
        eprintln!("FAILED: {what}");
        eprintln!("{}", node.listed());
        for pid in processes {
            eprintln!("{}", processes::dump(*pid));
        }
        // The state of the programs themselves is available too.
        if std::env::var_os("FREEPORT_SOAK_HOLD").is_some() {
            eprintln!("held in {}", node.path().display());
            std::thread::sleep(Duration::from_secs(3600));
        }
        panic!("{what}");
    }
}
