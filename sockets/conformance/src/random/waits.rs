// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls that block, the calls that wake them, and actions of several actors.

use super::world::{Family, Held, Object, World};

const EVENTS: [&str; 5] = ["IN", "OUT", "IN|OUT", "IN|RDHUP", "IN|OUT|RDHUP|PRI"];

impl World {
    /// Returns names and events for a `poll` list.
    fn list_of(&mut self, actor: usize, most: usize) -> String {
        let held = self.held_by(actor);
        let held: Vec<Held> = held
            .into_iter()
            .filter(|it| self.goes_everywhere() || self.both(it.object).is_some())
            .collect();
        let mut list = String::new();
        for _ in 0..self.rng.usize(1..=most) {
            let Some(one) = self.one_of(&held) else { break };
            let events = self.one_of(&EVENTS).unwrap_or("IN");
            list.push_str(&format!(" s{} {events}", one.name));
        }
        list
    }

    pub fn poll(&mut self) {
        let living = self.living();
        let Some(actor) = self.one_of(&living) else { return };
        let list = self.list_of(actor, 5);
        let way = self.one_of(&["poll", "poll", "ppoll", "select", "pselect"]).unwrap_or("poll");
        let time = if self.chance(10) { 20 } else { 0 };
        if !list.is_empty() {
            self.say(format!("a{actor} {way} {time}{list}"));
        }
    }

    fn any_set(&mut self) -> Option<Held> {
        self.any_held(|world, object| matches!(world.objects[object], Object::Set))
    }

    pub fn new_set(&mut self) {
        let living = self.living();
        let Some(actor) = self.one_of(&living).filter(|_| self.has_names_left(1)) else { return };
        let name = self.new_name();
        let object = self.new_object(Object::Set);
        self.say(format!("a{actor} epoll s{name}"));
        self.name(actor, name, object);
        for held in self.held_by(actor) {
            let is_end = self.both(held.object).is_some();
            if held.name != name && (is_end || self.goes_everywhere()) && self.chance(60) {
                self.register(Held { actor, name, object }, held, "epoll_add");
            }
        }
    }

    fn register(&mut self, set: Held, member: Held, way: &str) {
        let mut events = self.one_of(&EVENTS).unwrap_or("IN");
        let more = match self.rng.u32(..10) {
            0..=4 => "",
            5..=7 => "|ET",
            _ if way == "epoll_add" && events == "IN" => "|EXCLUSIVE",
            8 => "|ONESHOT",
            _ => "|ET|ONESHOT",
        };
        if more.starts_with("|ET") && !self.goes_everywhere() {
            // The kernel has its own rules for edge-triggered events about room.
            events = "IN|RDHUP";
        }
        let (actor, name) = (set.actor, set.name);
        self.registered.insert(member.object);
        self.say(format!("a{actor} {way} s{name} s{} {events}{more}", member.name));
    }

    pub fn change_set(&mut self) {
        let Some(set) = self.any_set() else { return self.new_set() };
        let mut held = self.held_by(set.actor);
        held.retain(|it| self.goes_everywhere() || self.both(it.object).is_some());
        let Some(member) = self.one_of(&held) else { return };
        match self.rng.u32(..8) {
            0..=3 => self.register(set, member, "epoll_add"),
            4..=6 => self.register(set, member, "epoll_mod"),
            _ => self.say(format!("a{} epoll_del s{} s{}", set.actor, set.name, member.name)),
        }
    }

    pub fn wait_for_set(&mut self) {
        let Some(set) = self.any_set() else { return self.new_set() };
        let ways = ["epoll_wait", "epoll_wait", "epoll_pwait", "epoll_pwait2"];
        let way = self.one_of(&ways).unwrap_or("epoll_wait");
        let time = if self.chance(10) { 20 } else { 0 };
        self.say(format!("a{} {way} s{} {time}", set.actor, set.name));
    }

    /// Returns an end on which a call blocks until another actor, which holds the peer, sends.
    fn quiet_end(&mut self) -> Option<(Held, Held)> {
        let held = self.any_held(|world, object| {
            world.both(object).is_some_and(|(end, _)| end.unread == 0 && !end.is_vague)
                && !world.is_over(object)
        })?;
        let (end, peer) = self.both(held.object)?;
        let (other, blocked) = (end.peer, peer.writing_shut || end.low_water > 1);
        let process = self.actors[held.actor].process;
        let names = self.all_held();
        // Another reader of the same connection would take the bytes.
        let alone = names
            .iter()
            .all(|it| it.object != held.object || self.actors[it.actor].process == process);
        let waker = self.holder(other, held.actor).filter(|_| alone && !blocked)?;
        Some((held, waker))
    }

    /// One actor blocks in a call, and another wakes it.
    pub fn blocked(&mut self) {
        let Some((held, waker)) = self.quiet_end() else { return };
        let Some(end) = self.end(held.object) else { return };
        let blocks = !end.nonblocking && !end.times_out;
        let (actor, name) = (held.actor, held.name);
        let length = self.rng.usize(1..3000);
        let line = match self.rng.u32(..9) {
            0..=1 if blocks => format!("recv s{name} {length} 0"),
            2 if blocks => format!("read s{name} {length}"),
            3 if blocks => format!("recvmsg s{name} {length} 3 0"),
            4 if blocks => format!("recv s{name} {length} WAITALL"),
            5 if blocks => format!("recv s{name} {length} PEEK"),
            6 => format!("poll 2000 s{name} IN|RDHUP"),
            7 => format!("select 2000 s{name} IN"),
            8 if self.has_names_left(1) => {
                let set = self.new_name();
                let object = self.new_object(Object::Set);
                self.name(actor, set, object);
                self.say(format!("a{actor} epoll s{set}"));
                self.registered.insert(held.object);
                let edge = self.one_of(&["", "|ET", "|ONESHOT"]).unwrap_or("");
                self.say(format!("a{actor} epoll_add s{set} s{name} IN|RDHUP{edge}"));
                format!("epoll_wait s{set} 2000")
            }
            _ => format!("ppoll 2000 s{name} IN"),
        };
        let grace = self.one_of(&[0, 1, 6, 6, 6]).unwrap_or(6);
        self.say(format!("a{actor}&{grace} {line}"));
        if self.chance(15) {
            self.interrupt(held, &line, waker);
        } else {
            self.wake(held, &line, waker, length);
        }
        self.say(format!("a{actor} finish"));
    }

    fn interrupt(&mut self, held: Held, line: &str, waker: Held) {
        let restarts = line.starts_with("re") && self.rng.bool();
        let how = if restarts { "restart" } else { "plain" };
        self.say(format!("signal a{} {how}", held.actor));
        if restarts {
            self.wake(held, line, waker, 3000);
        }
    }

    /// Wakes a blocked call, by bytes or by the end of the stream.
    fn wake(&mut self, held: Held, line: &str, waker: Held, length: usize) {
        if self.chance(12) {
            return self.shut_by(waker, "WR");
        }
        let all = line.ends_with("WAITALL");
        let sent = if all { length } else { self.rng.usize(1..3000) };
        let first = if all { self.rng.usize(..=sent) } else { 0 };
        for piece in [first, sent - first] {
            if piece > 0 {
                self.say(format!("a{} send s{} {piece} NOSIGNAL", waker.actor, waker.name));
            }
        }
        let takes = line.starts_with("re") && !line.ends_with("PEEK");
        if let Some(end) = self.end(held.object) {
            end.unread = if takes { sent - sent.min(length) } else { sent };
            end.calls = 4;
            end.is_vague |= takes && length == 3000;
        }
    }

    /// Sends much in one direction while the other side reads it.
    pub fn stream(&mut self) {
        let Some(held) = self.any_end() else { return };
        let Some((end, peer)) = self.both(held.object) else { return };
        let (there, other) = (end.unread, end.peer);
        if end.is_vague || end.low_water > 1 || peer.writing_shut || self.is_over(held.object) {
            return;
        }
        let Some(sender) = self.holder(other, held.actor) else { return };
        let bits = self.rng.u32(12..23);
        let length = self.rng.usize(1000..1 << bits);
        let pieces = [self.rng.usize(500..300_000), self.rng.usize(500..300_000)];
        let (from, name) = (sender.actor, sender.name);
        self.say(format!("a{from}&0 sendall s{name} {length} {}", pieces[0]));
        let (to, name) = (held.actor, held.name);
        self.say(format!("a{to} recvall s{name} {} {}", there + length, pieces[1]));
        self.say(format!("a{from} finish"));
        if let Some(end) = self.end(held.object) {
            (end.unread, end.calls) = (0, 0);
        }
    }

    /// Fills a connection until nothing fits, and drains it.
    pub fn fill(&mut self) {
        let Some(held) = self.any_end() else { return };
        let Some((end, peer)) = self.both(held.object) else { return };
        let (there, other) = (peer.unread, end.peer);
        if peer.is_vague || peer.low_water > 1 || end.writing_shut || self.is_over(other) {
            return;
        }
        let Some(reader) = self.holder(other, held.actor) else { return };
        let (from, name) = (held.actor, held.name);
        self.say(format!("a{from} fill s{name}"));
        if self.rng.bool() {
            self.say(format!("a{from} poll 0 s{name} OUT"));
        }
        self.say(format!("a{} empty s{} s{name} {there}", reader.actor, reader.name));
        self.say(format!("a{from} poll 1000 s{name} OUT"));
        if let Some(peer) = self.end(other) {
            (peer.unread, peer.calls) = (0, 0);
        }
    }

    pub fn warm_somewhere(&mut self) {
        let Some(held) = self.any_end() else { return };
        let Some((end, _)) = self.both(held.object) else { return };
        if let Some(other) = self.holder(end.peer, held.actor) {
            self.warm([held, other]);
        }
    }

    /// Adds a dialogue of some length.
    pub fn warm(&mut self, ends: [Held; 2]) {
        let rounds = if self.chance(80) { 40 } else { self.rng.u32(1..4) };
        let [one, other] = ends;
        let (first, second) = (one.actor, other.actor);
        let is_tcp = self.both(one.object).is_some_and(|(end, _)| end.family != Family::Unix);
        let may_wait = is_tcp || self.goes_everywhere() || self.is_drained(one.object);
        if first != second && may_wait {
            let (name, other) = (one.name, other.name);
            self.say(format!("warm a{first} s{name} a{second} s{other} {rounds}"));
        }
    }
}
