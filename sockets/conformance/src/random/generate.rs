// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Generates a program from a seed.

use super::program::Program;
use super::world::{Family, Reach, World};

/// Adds one action to a program.
type Action = fn(&mut World);

/// Actions with their weights.
const ACTIONS: [(u32, Action); 24] = [
    (26, World::send),
    (28, World::receive),
    (9, World::poll),
    (3, World::new_set),
    (6, World::change_set),
    (12, World::wait_for_set),
    (5, World::look),
    (6, World::set_option),
    (4, World::copy),
    (4, World::close),
    (2, World::shut),
    (8, World::blocked),
    (2, World::stream),
    (1, World::fill),
    (4, World::warm_somewhere),
    (2, World::connect_again),
    (2, World::fork_somewhere),
    (1, World::spawn_somewhere),
    (2, World::thread_somewhere),
    (1, World::exec_somewhere),
    (1, World::end_somewhere),
    (2, World::pass_somewhere),
    (1, World::urgent),
    (3, World::probe_somebody),
];

/// Generates the program of a seed.
pub fn generate(seed: u64, reach: Reach) -> Program {
    let mut world = World::new(seed, reach);
    if world.chance(30) {
        world.say("cores together");
    }
    for _ in 0..if world.chance(25) { 2 } else { 1 } {
        let ends = world.first_connection();
        if let Some(ends) = ends.filter(|_| !world.chance(10)) {
            world.warm(ends);
        }
    }
    let actions = world.rng.u32(8..45);
    world.act(actions);
    world.finish();
    Program { lines: world.lines }
}

/// Generates the program of a seed in which processes connect repeatedly, among other actions.
pub fn generate_in_turn(seed: u64, reach: Reach) -> Program {
    let mut world = World::new(seed, reach);
    let family = if world.chance(25) { Family::V6 } else { Family::V4 };
    let by = world.rng.usize(..2);
    world.listen(by, family);
    for _ in 0..world.rng.u32(2..6) {
        world.connect_in_turn();
        let actions = world.rng.u32(..8);
        world.act(actions);
    }
    world.finish();
    Program { lines: world.lines }
}

impl World {
    /// Performs this number of random actions.
    fn act(&mut self, actions: u32) {
        let total: u32 = ACTIONS.iter().map(|(weight, _)| weight).sum();
        for _ in 0..actions {
            let mut left = self.rng.u32(..total);
            let chosen = ACTIONS.iter().find(|(weight, _)| {
                let hit = left < *weight;
                left = left.saturating_sub(*weight);
                hit
            });
            if let Some((_, action)) = chosen {
                action(self);
            }
        }
    }

    /// Queries the state of all descriptors of an actor.
    fn probe(&mut self, actor: usize) {
        let mut list = String::new();
        for held in self.held_by(actor).into_iter().take(9) {
            if self.both(held.object).is_some() {
                self.say(format!("a{actor} fionread s{}", held.name));
                list.push_str(&format!(" s{} IN|OUT|PRI|RDHUP", held.name));
            }
        }
        if !list.is_empty() {
            self.say(format!("a{actor} poll 0{list}"));
        }
    }

    fn probe_somebody(&mut self) {
        let living = self.living();
        if let Some(actor) = self.one_of(&living) {
            self.probe(actor);
        }
    }

    /// Finally reads and closes everything, in random order, and queries state in between.
    fn finish(&mut self) {
        for actor in self.living() {
            self.probe(actor);
        }
        let mut all = self.all_held();
        for held in &all {
            if self.both(held.object).is_some() {
                let (actor, name) = (held.actor, held.name);
                self.say(format!("a{actor} recv s{name} 100000 DONTWAIT"));
                self.say(format!("a{actor} getopt s{name} SO_ERROR"));
            }
        }
        self.rng.shuffle(&mut all);
        for held in all {
            let process = self.actors[held.actor].process;
            if self.processes[process].contains_key(&held.name) {
                self.close_by(held);
                if self.chance(50) {
                    self.probe_somebody();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_program() {
        assert_eq!(generate(5, Reach::Settled), generate(5, Reach::Settled));
        assert_ne!(generate(5, Reach::Settled), generate(6, Reach::Settled));
    }

    #[test]
    fn programs_do_all_there_is_to_do() {
        let of_seed = |seed| generate(seed, Reach::Settled).to_string();
        let text: String = (0..300).map(of_seed).collect();
        for word in ["fork", "exec", "spawn", "thread", "pass", "pair", "INET6", "ET", "finish"] {
            assert!(text.contains(word), "{word}");
        }
        assert!(text.lines().all(|line| line.len() < 240), "a line is too long");
    }
}
