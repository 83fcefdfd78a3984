// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The generator's model of a program's sockets: precise enough for calls that make sense and
//! return. Where the model is wrong, a program is less useful, but still valid.

use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Number of descriptor names.
const NAMES: u32 = 64;
/// Maximum number of actors in the interpreter.
pub const ACTORS: usize = 8;
/// Maximum number of unread bytes of a connection; any kernel accepts this many.
pub const UNREAD: usize = 40_000;
/// Limit for Unix sockets, which report a lack of room beyond it.
pub const UNREAD_UNIX: usize = 2_000;
/// Limit in calls: each takes additional kernel memory.
pub const UNREAD_CALLS: usize = 40;

/// Families of sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    V4,
    V6,
    Unix,
}

impl Family {
    pub fn word(self) -> &'static str {
        match self {
            Self::V4 => "INET",
            Self::V6 => "INET6",
            Self::Unix => "UNIX",
        }
    }
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct End {
    pub family: Family,
    pub peer: usize,
    /// Unread bytes, and the calls that sent them.
    pub unread: usize,
    pub calls: usize,
    pub nonblocking: bool,
    pub times_out: bool,
    pub low_water: usize,
    pub reading_shut: bool,
    pub writing_shut: bool,
    /// No descriptor of it is left.
    pub closed: bool,
    /// The amount of unread bytes is uncertain.
    pub is_vague: bool,
}

/// Object behind a descriptor.
#[derive(Clone, Debug)]
pub enum Object {
    End(End),
    /// A listener, with connections that are not accepted yet.
    Listener(Family, VecDeque<usize>),
    /// An epoll set.
    Set,
}

/// An entry in a process's table of names.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub object: usize,
    pub closed_on_exec: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Actor {
    pub process: usize,
    pub lives: bool,
}

/// A descriptor of an actor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    pub actor: usize,
    pub name: u32,
    pub object: usize,
}

/// Range of generated programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Only calls known to behave identically: any difference is new.
    Settled,
    /// All calls, including those with known differences (`known-differences.txt`).
    Everything,
}

pub struct World {
    pub rng: Rng,
    pub reach: Reach,
    pub lines: Vec<String>,
    pub objects: Vec<Object>,
    pub actors: Vec<Actor>,
    pub processes: Vec<BTreeMap<u32, Entry>>,
    /// Objects that are or were in a set.
    pub registered: BTreeSet<usize>,
    next_name: u32,
}

impl World {
    pub fn new(seed: u64, reach: Reach) -> Self {
        let actors = (0..2).map(|process| Actor { process, lives: true }).collect();
        Self {
            rng: Rng::with_seed(seed),
            reach,
            lines: vec![],
            objects: vec![],
            actors,
            processes: vec![BTreeMap::new(); 2],
            registered: BTreeSet::new(),
            next_name: 1,
        }
    }

    pub fn say(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// Returns whether programs may use all calls.
    pub fn goes_everywhere(&self) -> bool {
        self.reach == Reach::Everything
    }

    /// Returns whether no bytes are in flight in either direction. If there are some while a
    /// connection leaves the kernel or returns, only a part of them is reported for a moment.
    pub fn is_drained(&self, object: usize) -> bool {
        let quiet = |end: &End| end.unread == 0 && !end.is_vague;
        self.both(object).is_none_or(|(end, peer)| quiet(end) && quiet(peer))
    }

    /// Returns whether a descriptor may be closed. If closing the last descriptor resets the
    /// connection, the kernel reports that in its own way; and an object in a set stays there under
    /// a closed number as long as another process holds it.
    pub fn may_close(&self, object: usize) -> bool {
        let names = self.processes.iter().flat_map(BTreeMap::values);
        let copies = names.filter(|entry| entry.object == object).count();
        let is_settled = match copies {
            2.. => !self.registered.contains(&object) || self.is_in_one_process(object),
            _ => self.is_drained(object),
        };
        is_settled || self.goes_everywhere()
    }

    /// Returns whether only one process holds it.
    pub fn is_in_one_process(&self, object: usize) -> bool {
        let has = |names: &&BTreeMap<u32, Entry>| names.values().any(|it| it.object == object);
        self.processes.iter().filter(has).count() == 1
    }

    /// Returns whether an actor may pass on everything its process has.
    pub fn may_hand_on(&self, actor: usize) -> bool {
        self.goes_everywhere()
            || self.held_by(actor).iter().all(|held| self.is_drained(held.object))
    }

    /// Returns true with this probability in percent.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(..100) < percent
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        if choices.is_empty() { None } else { Some(choices[self.rng.usize(..choices.len())]) }
    }

    pub fn has_names_left(&self, count: u32) -> bool {
        self.next_name + count <= NAMES
    }

    pub fn new_name(&mut self) -> u32 {
        self.next_name += 1;
        self.next_name - 1
    }

    /// Gives an object a name in an actor's process.
    pub fn name(&mut self, actor: usize, name: u32, object: usize) {
        let entry = Entry { object, closed_on_exec: false };
        let process = self.actors[actor].process;
        self.processes[process].insert(name, entry);
    }

    pub fn new_object(&mut self, object: Object) -> usize {
        self.objects.push(object);
        self.objects.len() - 1
    }

    /// Makes both ends of a new connection.
    pub fn new_connection(&mut self, family: Family) -> [usize; 2] {
        let first = self.objects.len();
        [first, first + 1].map(|at| {
            let peer = 2 * first + 1 - at;
            self.new_object(Object::End(End {
                family,
                peer,
                unread: 0,
                calls: 0,
                nonblocking: false,
                times_out: false,
                low_water: 1,
                reading_shut: false,
                writing_shut: false,
                closed: false,
                is_vague: false,
            }))
        })
    }

    pub fn end(&mut self, object: usize) -> Option<&mut End> {
        match &mut self.objects[object] {
            Object::End(end) => Some(end),
            _ => None,
        }
    }

    /// Returns an end and its peer.
    pub fn both(&self, object: usize) -> Option<(&End, &End)> {
        let Object::End(end) = &self.objects[object] else { return None };
        let Object::End(peer) = &self.objects[end.peer] else { return None };
        Some((end, peer))
    }

    /// Returns whether nothing more can arrive at an end.
    pub fn is_over(&self, object: usize) -> bool {
        self.both(object)
            .is_none_or(|(end, peer)| peer.closed || peer.writing_shut || end.reading_shut)
    }

    /// Returns all descriptors of living actors.
    pub fn all_held(&self) -> Vec<Held> {
        let living = (0..self.actors.len()).filter(|actor| self.actors[*actor].lives);
        living.flat_map(|actor| self.held_by(actor)).collect()
    }

    pub fn held_by(&self, actor: usize) -> Vec<Held> {
        let names = &self.processes[self.actors[actor].process];
        names.iter().map(|(name, it)| Held { actor, name: *name, object: it.object }).collect()
    }

    /// Returns a random descriptor of an object that meets a condition.
    pub fn any_held(&mut self, fits: impl Fn(&Self, usize) -> bool) -> Option<Held> {
        let all = self.all_held();
        let fitting: Vec<_> = all.into_iter().filter(|held| fits(self, held.object)).collect();
        self.one_of(&fitting)
    }

    pub fn any_end(&mut self) -> Option<Held> {
        self.any_held(|world, object| world.both(object).is_some())
    }

    /// Returns an actor that holds an object, other than the given actor, which is busy.
    pub fn holder(&mut self, object: usize, but: usize) -> Option<Held> {
        let all = self.all_held();
        let fits = |held: &Held| held.object == object && held.actor != but;
        let fitting: Vec<_> = all.into_iter().filter(fits).collect();
        self.one_of(&fitting)
    }

    pub fn living(&self) -> Vec<usize> {
        (0..self.actors.len()).filter(|actor| self.actors[*actor].lives).collect()
    }

    /// Records that a process has closed a name.
    pub fn drop_name(&mut self, process: usize, name: u32) {
        let Some(entry) = self.processes[process].remove(&name) else { return };
        let mut names = self.processes.iter().flat_map(BTreeMap::values);
        if !names.any(|other| other.object == entry.object) {
            self.close_object(entry.object);
        }
    }

    fn close_object(&mut self, object: usize) {
        match &mut self.objects[object] {
            Object::End(end) => {
                end.closed = true;
                let (peer, unread) = (end.peer, end.unread > 0 || end.is_vague);
                if let Some(peer) = self.end(peer).filter(|_| unread) {
                    peer.is_vague = true;
                }
            }
            Object::Listener(_, waiting) => {
                let waiting: Vec<usize> = waiting.drain(..).collect();
                waiting.into_iter().for_each(|end| self.close_object(end));
            }
            Object::Set => {}
        }
    }

    /// Records that a process has exited.
    pub fn end_process(&mut self, process: usize) {
        let names: Vec<u32> = self.processes[process].keys().copied().collect();
        names.into_iter().for_each(|name| self.drop_name(process, name));
        for actor in self.actors.iter_mut().filter(|actor| actor.process == process) {
            actor.lives = false;
        }
    }

    /// Returns a new actor, in that process or in a new one; `None` if there are enough.
    pub fn new_actor(&mut self, process: Option<usize>) -> Option<usize> {
        if self.actors.len() == ACTORS {
            return None;
        }
        let process = process.unwrap_or_else(|| {
            self.processes.push(BTreeMap::new());
            self.processes.len() - 1
        });
        self.actors.push(Actor { process, lives: true });
        Some(self.actors.len() - 1)
    }
}
