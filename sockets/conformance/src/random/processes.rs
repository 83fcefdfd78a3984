// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Actions that make connections, start and end processes, and pass descriptors.

use super::world::{ACTORS, Family, Held, Object, World};
use std::collections::VecDeque;

/// A backlog as many programs use it: streams are not kept for listeners with a small one.
const BACKLOG: u32 = 32;

impl World {
    /// Makes a listener of an actor.
    pub fn listen(&mut self, actor: usize, family: Family) -> Held {
        let name = self.new_name();
        self.say(format!("a{actor} socket s{name} {}", family.word()));
        self.say(format!("a{actor} bind s{name} {}", family.word()));
        self.say(format!("a{actor} listen s{name} {BACKLOG}"));
        let object = self.new_object(Object::Listener(family, VecDeque::new()));
        self.name(actor, name, object);
        Held { actor, name, object }
    }

    /// Connects an actor to a listener; the connection waits there.
    pub fn connect(&mut self, actor: usize, listener: Held) -> Option<Held> {
        let family = self.listener(listener.object)?;
        let name = self.new_name();
        self.say(format!("a{actor} socket s{name} {}", family.word()));
        self.say(format!("a{actor} connect s{name} s{}", listener.name));
        let [own, other] = self.new_connection(family);
        self.name(actor, name, own);
        if let Object::Listener(_, waiting) = &mut self.objects[listener.object] {
            waiting.push_back(other);
        }
        Some(Held { actor, name, object: own })
    }

    /// Accepts a connection that waits at a listener.
    pub fn accept(&mut self, listener: Held) -> Option<Held> {
        let Object::Listener(_, waiting) = &mut self.objects[listener.object] else { return None };
        let object = waiting.pop_front()?;
        let name = self.new_name();
        let nonblocking = self.chance(15);
        let flags = if nonblocking { "NONBLOCK" } else { "0" };
        self.say(format!("a{} accept s{name} s{} {flags}", listener.actor, listener.name));
        self.name(listener.actor, name, object);
        self.end(object)?.nonblocking = nonblocking;
        Some(Held { actor: listener.actor, name, object })
    }

    /// Makes a connection between the first actors, before anything else happens.
    pub fn first_connection(&mut self) -> Option<[Held; 2]> {
        match self.rng.u32(..20) {
            0..=3 => self.first_pair(),
            kind => {
                let family = match kind {
                    4..=7 => Family::Unix,
                    8..=10 => Family::V6,
                    _ => Family::V4,
                };
                let by = self.rng.usize(..2);
                let listener = self.listen(by, family);
                let there = self.connect(1 - by, listener)?;
                let here = self.accept(listener)?;
                if self.chance(50) {
                    self.close_by(listener);
                }
                Some([here, there])
            }
        }
    }

    /// Makes a socket pair, one end of which a child inherits.
    fn first_pair(&mut self) -> Option<[Held; 2]> {
        let names = [self.new_name(), self.new_name()];
        self.say(format!("a0 pair s{} s{}", names[0], names[1]));
        let ends = self.new_connection(Family::Unix);
        for (name, end) in names.into_iter().zip(ends) {
            self.name(0, name, end);
        }
        let child = self.fork(0)?;
        let own = Held { actor: 0, name: names[0], object: ends[0] };
        let its = Held { actor: child, name: names[1], object: ends[1] };
        self.close_by(Held { name: names[1], object: ends[1], ..own });
        self.close_by(Held { name: names[0], object: ends[0], ..its });
        Some([own, its])
    }

    /// Makes another connection to an existing listener.
    pub fn connect_again(&mut self) {
        if !self.has_names_left(2) {
            return;
        }
        let listens = |world: &Self, object: usize| world.listener(object).is_some();
        let Some(listener) = self.any_held(listens) else { return };
        let living = self.living();
        let Some(actor) = self.one_of(&living) else { return };
        let Some(there) = self.connect(actor, listener) else { return };
        if let Some(here) = self.accept(listener).filter(|_| self.chance(60)) {
            self.warm([here, there]);
        }
    }

    /// Makes several connections in sequence, like a client with one per request. The first one is
    /// accepted by a waiting thread: both sides agree to keep its stream if they get to it at the
    /// same time. A sleeping thread is woken only by the kernel, so other connections come first.
    pub fn connect_in_turn(&mut self) {
        let is_free = |world: &Self, object: usize| match &world.objects[object] {
            Object::Listener(_, waiting) => waiting.is_empty(),
            _ => false,
        };
        let Some(listener) = self.any_held(is_free).filter(|_| self.has_names_left(2)) else {
            return;
        };
        let mut others = self.living();
        let own = self.actors[listener.actor].process;
        others.retain(|actor| self.actors[*actor].process != own);
        let Some(actor) = self.one_of(&others) else { return };
        let Some(family) = self.listener(listener.object) else { return };
        let names = [self.new_name(), self.new_name()];
        for round in 0..self.rng.u32(3..8) {
            let waits = round == 0 || self.chance(30);
            let nonblocking = self.chance(15);
            let flags = if nonblocking { "NONBLOCK" } else { "0" };
            let accepts = format!("accept s{} s{} {flags}", names[0], listener.name);
            if waits {
                self.say(format!("a{}&5 {accepts}", listener.actor));
            }
            self.say(format!("a{actor} socket s{} {}", names[1], family.word()));
            self.say(format!("a{actor} connect s{} s{}", names[1], listener.name));
            let then = if waits { "finish" } else { accepts.as_str() };
            self.say(format!("a{} {then}", listener.actor));
            let ends = self.new_connection(family);
            if let Some(end) = self.end(ends[0]) {
                end.nonblocking = nonblocking;
            }
            let held = [
                Held { actor: listener.actor, name: names[0], object: ends[0] },
                Held { actor, name: names[1], object: ends[1] },
            ];
            held.iter().for_each(|it| self.name(it.actor, it.name, it.object));
            self.use_shortly(held);
            let first = self.rng.usize(..2);
            self.close_by(held[first]);
            self.close_by(held[1 - first]);
        }
    }

    /// Uses a connection that is closed soon after.
    fn use_shortly(&mut self, ends: [Held; 2]) {
        let [one, other] = ends;
        let rounds = self.rng.u32(1..5);
        let (first, second) = (one.actor, other.actor);
        self.say(format!("warm a{first} s{} a{second} s{} {rounds}", one.name, other.name));
        for _ in 0..self.rng.u32(..4) {
            let held = ends[self.rng.usize(..2)];
            match self.rng.u32(..6) {
                0 => _ = self.send_by(held),
                1 => self.receive_by(held),
                2 => self.look(),
                3 => self.set_option(),
                4 => self.shut_by(held, "WR"),
                _ => self.poll(),
            }
        }
        // Mostly leaves nothing unread: the kernel resets a connection closed with unread bytes.
        for held in ends {
            if self.chance(80) {
                self.say(format!("a{} recv s{} 100000 DONTWAIT", held.actor, held.name));
                if let Some(end) = self.end(held.object) {
                    (end.unread, end.calls) = (0, 0);
                }
            }
        }
    }

    /// Forks a child of an actor.
    pub fn fork(&mut self, actor: usize) -> Option<usize> {
        let mut names = self.processes[self.actors[actor].process].clone();
        if !self.goes_everywhere() {
            // Parent and child each know only their own registrations in a set that both hold.
            names.retain(|_, entry| !matches!(self.objects[entry.object], Object::Set));
        }
        let child = self.new_actor(None)?;
        self.processes[self.actors[child].process] = names;
        self.say(format!("a{actor} fork a{child}"));
        Some(child)
    }

    fn some_actor(&mut self) -> Option<usize> {
        let living = self.living();
        self.one_of(&living)
    }

    pub fn fork_somewhere(&mut self) {
        if self.actors.len() + 2 > ACTORS {
            return;
        }
        let Some(actor) = self.some_actor() else { return };
        let Some(child) = self.fork(actor) else { return };
        // Mostly one of them closes its copy soon.
        let closes = self.one_of(&[actor, child, child]).unwrap_or(child);
        for held in self.held_by(closes) {
            if self.chance(50) && self.may_close(held.object) {
                self.close_by(held);
            }
        }
    }

    pub fn spawn_somewhere(&mut self) {
        if self.actors.len() + 2 > ACTORS {
            return;
        }
        let Some(actor) = self.some_actor().filter(|it| self.may_hand_on(*it)) else { return };
        let mut names = self.processes[self.actors[actor].process].clone();
        names.retain(|_, entry| !entry.closed_on_exec);
        let Some(child) = self.new_actor(None) else { return };
        self.processes[self.actors[child].process] = names;
        self.say(format!("a{actor} spawn a{child}"));
    }

    pub fn thread_somewhere(&mut self) {
        if self.actors.len() + 2 > ACTORS {
            return;
        }
        let Some(actor) = self.some_actor() else { return };
        let Some(thread) = self.new_actor(Some(self.actors[actor].process)) else { return };
        self.say(format!("a{actor} thread a{thread}"));
    }

    pub fn exec_somewhere(&mut self) {
        let Some(actor) = self.some_actor().filter(|it| self.may_hand_on(*it)) else { return };
        let without = u32::from(self.chance(15));
        self.say(format!("a{actor} exec {without}"));
        let process = self.actors[actor].process;
        for (at, other) in self.actors.iter_mut().enumerate() {
            other.lives &= other.process != process || at == actor;
        }
        let closed: Vec<u32> = self.processes[process]
            .iter()
            .filter(|(_, entry)| entry.closed_on_exec)
            .map(|(name, _)| *name)
            .collect();
        closed.into_iter().for_each(|name| self.drop_name(process, name));
    }

    pub fn end_somewhere(&mut self) {
        // A socket that waits for its upgrade is closed with a small delay.
        let Some(actor) = self.some_actor().filter(|_| self.goes_everywhere()) else { return };
        let process = self.actors[actor].process;
        let others = self.living().into_iter().any(|it| self.actors[it].process != process);
        if !others || self.living().len() < 3 && self.chance(80) {
            return;
        }
        let line =
            if self.rng.bool() { format!("kill a{actor}") } else { format!("a{actor} exit") };
        self.say(line);
        self.end_process(process);
    }

    /// Passes a descriptor to another actor, which receives it immediately.
    pub fn pass_somewhere(&mut self) {
        if !self.has_names_left(1) {
            return;
        }
        let Some(held) = self.any_held(|_, _| true) else { return };
        let is_set = matches!(self.objects[held.object], Object::Set);
        if !self.goes_everywhere() && (is_set || !self.is_drained(held.object)) {
            return;
        }
        let from = self.actors[held.actor].process;
        let others: Vec<usize> =
            self.living().into_iter().filter(|it| self.actors[*it].process != from).collect();
        let Some(to) = self.one_of(&others) else { return };
        let name = self.new_name();
        self.say(format!("a{} pass a{to} s{}", held.actor, held.name));
        let closes_first = self.chance(50);
        if closes_first {
            self.say(format!("a{} close s{}", held.actor, held.name));
        }
        self.say(format!("a{to} take s{name}"));
        self.name(to, name, held.object);
        if closes_first {
            self.drop_name(from, held.name);
        }
    }
}
