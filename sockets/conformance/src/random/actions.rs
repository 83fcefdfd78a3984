// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls on one descriptor that return at once.

use super::world::{End, Entry, Family, Held, Object, UNREAD, UNREAD_CALLS, UNREAD_UNIX, World};

/// Lengths at boundaries: words, entries, blocks, small areas of rings.
const LENGTHS: [usize; 16] =
    [0, 1, 2, 7, 8, 9, 63, 64, 65, 255, 1000, 4095, 4096, 4097, 9000, 20_000];

impl World {
    pub fn length(&mut self) -> usize {
        if self.chance(50) {
            return self.one_of(&LENGTHS).unwrap_or(1);
        }
        let bits = self.rng.u32(1..15);
        self.rng.usize(1..1 << bits)
    }

    /// Returns some of the flags, each with a chance of 25 %, and those of `must`; 0 if there are
    /// none.
    pub fn flags(&mut self, choices: &[&str], must: &str) -> String {
        let mut chosen: Vec<&str> = vec![];
        for choice in choices {
            if self.chance(25) {
                chosen.push(choice);
            }
        }
        if !must.is_empty() && !chosen.contains(&must) {
            chosen.push(must);
        }
        if chosen.is_empty() { "0".to_owned() } else { chosen.join("|") }
    }

    pub fn send(&mut self) {
        let Some(held) = self.any_end() else { return };
        self.send_by(held);
    }

    /// Sends something, if there is room. Returns whether something was sent and has arrived.
    pub fn send_by(&mut self, held: Held) -> bool {
        let Some((end, peer)) = self.both(held.object) else { return false };
        // TCP accepts bytes after the reader has shut down reading, and delivers them if it reads
        // anyway.
        let refused = peer.reading_shut && end.family == Family::Unix;
        let fails = end.writing_shut || peer.closed || refused;
        let (at, peer_at) = (peer.unread, end.peer);
        if peer.closed && !self.goes_everywhere() {
            return false;
        }
        let is_small = end.family == Family::Unix && !self.goes_everywhere();
        let (most, most_calls) = if is_small { (UNREAD_UNIX, 8) } else { (UNREAD, UNREAD_CALLS) };
        if peer.calls >= most_calls || at >= most || (fails && self.chance(70)) {
            return false;
        }
        let mut length = self.length().min(most - at);
        if fails && !self.goes_everywhere() {
            length = length.max(1);
        }
        let (actor, name) = (held.actor, held.name);
        let flags = self.flags(&["NOSIGNAL", "DONTWAIT"], "");
        let pieces = self.rng.u32(1..9);
        let mut sent = length;
        let line = match self.rng.u32(..14) {
            0..=3 => format!("send s{name} {length} {flags}"),
            4..=5 => format!("write s{name} {length}"),
            6..=7 => format!("writev s{name} {length} {pieces}"),
            8..=9 => format!("sendmsg s{name} {length} {pieces} {flags}"),
            10 => format!("sendto s{name} {length} {flags}"),
            11 => {
                let messages = self.rng.usize(1..5);
                sent = length / 4 * messages;
                format!("sendmmsg s{name} {length} {messages} {flags}")
            }
            12 => format!("sendfile s{name} {length}"),
            _ => format!("splice_to s{name} {length} 0"),
        };
        self.say(format!("a{actor} {line}"));
        if fails || sent == 0 {
            return false;
        }
        if let Some(peer) = self.end(peer_at) {
            peer.unread += sent;
            peer.calls += 4;
        }
        true
    }

    pub fn receive(&mut self) {
        // Prefer an end that has something to read.
        let full =
            |world: &Self, object: usize| world.both(object).is_some_and(|it| it.0.unread > 0);
        let held = if self.chance(70) { self.any_held(full) } else { self.any_end() };
        if let Some(held) = held {
            self.receive_by(held);
        }
    }

    pub fn receive_by(&mut self, held: Held) {
        let over = self.is_over(held.object);
        let mut length = self.length();
        let Some(end) = self.end(held.object) else { return };
        let there = end.unread;
        let returns = end.nonblocking || end.times_out || over && !end.is_vague;
        let enough = there >= end.low_water.min(length).max(1) && !end.is_vague;
        let calls = end.calls;
        let must = if returns || enough { "" } else { "DONTWAIT" };
        let mut flags = self.flags(&["PEEK", "DONTWAIT", "TRUNC", "NOSIGNAL"], must);
        if (there >= length || !must.is_empty()) && !flags.contains("PEEK") && self.chance(20) {
            flags.push_str("|WAITALL");
        }
        let (actor, name) = (held.actor, held.name);
        let pieces = self.rng.u32(1..9);
        let plainly = must.is_empty() && length > 0;
        let mut takes = !flags.contains("PEEK");
        let line = match self.rng.u32(..16) {
            4..=6 if plainly => {
                takes = true;
                format!("read s{name} {length}")
            }
            7..=8 if plainly => {
                takes = true;
                format!("readv s{name} {length} {pieces}")
            }
            9..=10 => format!("recvmsg s{name} {length} {pieces} {flags}"),
            11 => format!("recvfrom s{name} {length} {flags}"),
            12 => {
                let messages = self.rng.usize(1..5);
                takes = true;
                length = length / 4 * messages;
                format!("recvmmsg s{name} {} {messages} DONTWAIT", length / messages * 4)
            }
            13 if calls <= 8 && length <= 8000 && plainly => {
                takes = true;
                format!("splice_from s{name} {length} 0")
            }
            _ => format!("recv s{name} {length} {flags}"),
        };
        self.say(format!("a{actor} {line}"));
        let Some(end) = self.end(held.object).filter(|_| takes) else { return };
        end.unread -= end.unread.min(length);
        if end.unread == 0 {
            end.calls = 0;
        }
    }

    pub fn look(&mut self) {
        let Some(held) = self.any_end() else { return };
        let (actor, name) = (held.actor, held.name);
        let line = match self.rng.u32(..10) {
            0..=3 => format!("fionread s{name}"),
            4 => format!("getfl s{name}"),
            5 => format!("getfd s{name}"),
            6 => format!("sockname s{name}"),
            7 => format!("peername s{name}"),
            _ => {
                let options = ["SO_ERROR", "SO_TYPE", "SO_DOMAIN", "SO_RCVTIMEO", "SO_RCVLOWAT"];
                let option = self.one_of(&options).unwrap_or_default();
                format!("getopt s{name} {option}")
            }
        };
        self.say(format!("a{actor} {line}"));
    }

    pub fn set_option(&mut self) {
        let Some(held) = self.any_end() else { return };
        let (actor, name) = (held.actor, held.name);
        let choice = self.rng.u32(..20);
        let on = self.chance(50);
        let low_water = self.one_of(&[1, 1, 10, 2000]).unwrap_or(1);
        let everywhere = self.goes_everywhere();
        let is_own = self.is_in_one_process(held.object);
        let Some(end) = self.end(held.object) else { return };
        // This makes a Unix socket return to the kernel.
        let has_low_water = everywhere || is_own && end.family != Family::Unix;
        let number = u32::from(on);
        let line = match choice {
            0..=5 => {
                end.nonblocking = on;
                let way = if choice < 3 { "nonblock" } else { "fionbio" };
                format!("{way} s{name} {number}")
            }
            6..=9 => {
                end.times_out = on;
                format!("setopt s{name} SO_RCVTIMEO {}", 20 * number)
            }
            10..=12 if has_low_water => {
                end.low_water = low_water;
                format!("setopt s{name} SO_RCVLOWAT {low_water}")
            }
            13 => format!("setopt s{name} SO_SNDTIMEO {}", 20 * number),
            14 => format!("setopt s{name} SO_KEEPALIVE {number}"),
            15 => format!("setopt s{name} TCP_NODELAY 1"),
            16 => format!("setopt s{name} SO_LINGER {number} {}", 2 * number),
            17 => {
                end.is_vague |= on;
                format!("setopt s{name} SO_OOBINLINE {number}")
            }
            _ => format!("cloexec s{name} {number}"),
        };
        self.say(format!("a{actor} {line}"));
        if choice >= 18 {
            let process = self.actors[actor].process;
            if let Some(entry) = self.processes[process].get_mut(&name) {
                entry.closed_on_exec = on;
            }
        }
    }

    pub fn copy(&mut self) {
        if !self.has_names_left(1) {
            return;
        }
        let Some(held) = self.any_held(|_, _| true) else { return };
        let (actor, name) = (held.actor, held.name);
        let process = self.actors[actor].process;
        let closed_on_exec = self.rng.bool();
        if self.chance(30) {
            let mut others = self.held_by(actor);
            others.retain(|it| it.name != name && self.may_close(it.object));
            let Some(over) = self.one_of(&others) else { return };
            let way = if closed_on_exec { "dup3" } else { "dup2" };
            self.say(format!("a{actor} {way} s{} s{name}", over.name));
            self.drop_name(process, over.name);
            self.name(actor, over.name, held.object);
            if let Some(entry) = self.processes[process].get_mut(&over.name) {
                entry.closed_on_exec = closed_on_exec;
            }
            return;
        }
        let new = self.new_name();
        let line = match self.rng.u32(..3) {
            0 => format!("dup s{new} s{name}"),
            1 if closed_on_exec => format!("dupfd_cloexec s{new} s{name} 60"),
            _ => format!("dupfd s{new} s{name} 40"),
        };
        let closed_on_exec = line.starts_with("dupfd_cloexec");
        self.say(format!("a{actor} {line}"));
        self.processes[process].insert(new, Entry { object: held.object, closed_on_exec });
    }

    pub fn shut(&mut self) {
        let Some(held) = self.any_end() else { return };
        let all: &[&str] = &["WR", "WR", "WR", "RD", "RDWR"];
        let halves = if self.goes_everywhere() { all } else { &all[..1] };
        let halves = self.one_of(halves).unwrap_or("WR");
        self.shut_by(held, halves);
    }

    pub fn shut_by(&mut self, held: Held, halves: &str) {
        let everywhere = self.goes_everywhere();
        // A socket with both halves shut on both sides is no longer connected.
        let is_first = |end: &&mut End| everywhere || !end.writing_shut;
        if self.end(held.object).filter(is_first).is_none() {
            return;
        }
        self.say(format!("a{} shutdown s{} {halves}", held.actor, held.name));
        let Some(end) = self.end(held.object) else { return };
        end.writing_shut |= halves != "RD";
        end.reading_shut |= halves != "WR";
    }

    pub fn close(&mut self) {
        // Mostly copies, otherwise little would soon be left.
        let Some(held) = self.any_held(|_, _| true) else { return };
        let names = self.processes.iter().flat_map(|names| names.values());
        let copies = names.filter(|entry| entry.object == held.object).count();
        if copies > 1 && self.may_close(held.object)
            || self.chance(15) && self.may_close(held.object)
        {
            self.close_by(held);
        }
    }

    pub fn close_by(&mut self, held: Held) {
        let (actor, name) = (held.actor, held.name);
        if self.chance(10) {
            self.say(format!("a{actor} close_range s{name} s{name} 0"));
        } else {
            self.say(format!("a{actor} close s{name}"));
        }
        self.drop_name(self.actors[actor].process, name);
    }

    pub fn urgent(&mut self) {
        let tcp = |world: &Self, object: usize| {
            world.both(object).is_some_and(|(end, peer)| {
                !end.writing_shut && !peer.closed && peer.calls < UNREAD_CALLS
            })
        };
        if !self.goes_everywhere() {
            return;
        }
        let Some(held) = self.any_held(tcp) else { return };
        let Some(peer) = self.both(held.object).map(|(end, _)| end.peer) else { return };
        self.say(format!("a{} send s{} 1 OOB|NOSIGNAL", held.actor, held.name));
        if let Some(peer) = self.end(peer) {
            peer.is_vague = true;
            peer.calls += 4;
            peer.unread += 1;
        }
        if let Some(other) = self.holder(peer, held.actor) {
            let (actor, name) = (other.actor, other.name);
            self.say(format!("a{actor} poll 0 s{name} IN|PRI|OUT|RDHUP"));
            self.say(format!("a{actor} recv s{name} 1 OOB|DONTWAIT"));
        }
    }

    /// Returns the family of an object that is a listener.
    pub fn listener(&self, object: usize) -> Option<Family> {
        match &self.objects[object] {
            Object::Listener(family, _) => Some(*family),
            _ => None,
        }
    }
}
