// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Turns of a node: tasks, connections, and sleep while there is nothing to do.

use super::greeting::{Greeting, Next};
use super::guest::Guest;
use super::peer::Peer;
use super::refusal::Refusal;
use super::shared::{Connecting, Shared};
use super::{Node, Refusals, turns};
use crate::fault::Fault;
use crate::place::Place;
use freeport_fabric::Endpoint;
use freeport_fabric::shm::ShmEndpoint;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::rc::Rc;
use std::time::Duration;

/// Number of turns without anything to do before the thread sleeps. They are few, and do not yield
/// the core: on a loaded machine a thread that yields waits for the time slices of others, and one
/// that is woken runs before them.
const IDLE_TURNS: u32 = 20;
/// Number of turns between two looks at the descriptors, while there is something to do.
const TURNS_BETWEEN_LOOKS: u32 = 64;
/// Number of connections to a place, including those in their handshake.
const GUESTS_MAX: usize = 256;

/// Connections from other places.
pub struct Guests {
    listener: UnixListener,
    greetings: Vec<(Greeting, Duration)>,
    open: Vec<Rc<Guest<ShmEndpoint>>>,
    refusals: Refusals,
}

/// Owner of a descriptor.
#[derive(Clone, Copy)]
enum Source {
    Listener,
    Greeting(usize),
    Guest(usize),
    Dial(Place),
    Peer(usize),
}

impl Guests {
    /// Accepts connections of a listener that does not block.
    pub fn new(listener: UnixListener) -> Self {
        Self { listener, greetings: vec![], open: vec![], refusals: Refusals::default() }
    }

    /// Returns the connections that were refused so far.
    pub fn refusals(&self) -> Refusals {
        self.refusals.clone()
    }

    fn refuse(&mut self, refusal: Refusal) {
        // A place that leaves is none of them.
        if refusal != Refusal::HungUp {
            self.refusals.count += 1;
            self.refusals.last = Some(refusal);
        }
    }

    /// Accepts those who have connected.
    fn accept(&mut self, shared: &Shared) {
        // An error means that nobody is left, or that the system has no descriptors; then it is
        // tried again later.
        while let Ok((stream, _)) = self.listener.accept() {
            if self.open.len() + self.greetings.len() >= GUESTS_MAX {
                self.refuse(Refusal::Connections(GUESTS_MAX));
                continue;
            }
            let end = turns::now().saturating_add(shared.options.patience);
            match Greeting::accept(stream, shared.mine) {
                Ok(greeting) => self.greetings.push((greeting, end)),
                Err(refusal) => self.refuse(refusal),
            }
        }
    }

    /// Takes a step of the handshakes whose sockets are readable, and ends those that take too
    /// long.
    fn greet(&mut self, shared: &Shared, readable: &[usize]) {
        let now = turns::now();
        for (number, (greeting, end)) in std::mem::take(&mut self.greetings).into_iter().enumerate()
        {
            if !readable.contains(&number) {
                match now < end {
                    true => self.greetings.push((greeting, end)),
                    false => self.refuse(Refusal::Silent),
                }
                continue;
            }
            match greeting.step(|endpoint| endpoint.export(&shared.memory.region())) {
                Ok(Next::Wait(greeting)) => self.greetings.push((greeting, end)),
                Ok(Next::Open(met)) => {
                    self.open.push(Guest::new(met.hello.place, met.endpoint, met.wire));
                }
                Err(refusal) => self.refuse(refusal),
            }
        }
    }

    fn progress(&mut self, shared: &Shared) -> bool {
        let mut is_busy = false;
        for guest in &self.open {
            is_busy |= guest.progress(|call| shared.inbox.deliver(call));
        }
        let ended: Vec<Refusal> = self.open.iter().filter_map(|guest| guest.ended()).collect();
        if !ended.is_empty() {
            self.open.retain(|guest| guest.ended().is_none());
            ended.into_iter().for_each(|refusal| self.refuse(refusal));
        }
        is_busy
    }
}

impl Node {
    /// Runs the tasks of the place, and serves the places that have connected, until this returns
    /// true. It is asked in each turn. The thread sleeps while there is nothing to do.
    ///
    /// # Errors
    /// The system refuses to wait.
    pub fn run_until(&mut self, mut is_over: impl FnMut() -> bool) -> Result<(), Fault> {
        let mut idle_turns = 0;
        loop {
            self.pool.run_until_stalled();
            if is_over() {
                return Ok(());
            }
            let is_busy = self.turn();
            self.turns = self.turns.wrapping_add(1);
            idle_turns = if is_busy { 0 } else { idle_turns + 1 };
            if idle_turns > IDLE_TURNS {
                self.sleep()?;
                idle_turns = 0;
            } else if self.turns.is_multiple_of(TURNS_BETWEEN_LOOKS) {
                self.look(Duration::ZERO)?;
            }
        }
    }

    /// Lets connections progress, and wakes tasks. Returns whether something happened.
    fn turn(&mut self) -> bool {
        let mut is_busy = self.shared.turns.begin();
        let peers = self.shared.open_peers();
        for peer in &peers {
            is_busy |= peer.progress();
        }
        if peers.iter().any(|peer| peer.has_ended()) {
            self.shared.forget();
        }
        self.guests.progress(&self.shared) | is_busy
    }

    /// Sleeps until a connection or a task has something to do.
    fn sleep(&mut self) -> Result<(), Fault> {
        let peers = self.shared.open_peers();
        let guests = self.guests.open.clone();
        let mut may_sleep = true;
        for peer in &peers {
            may_sleep &= peer.arm();
        }
        for guest in &guests {
            may_sleep &= guest.arm();
        }
        let longest = if may_sleep { self.longest_sleep() } else { Duration::ZERO };
        let looked = self.look(self.shared.turns.rest(longest));
        peers.iter().for_each(|peer| peer.disarm());
        guests.iter().for_each(|guest| guest.disarm());
        looked
    }

    /// Returns the time until the next handshake ends for lack of patience, or the option's.
    fn longest_sleep(&self) -> Duration {
        let greetings = self.guests.greetings.iter().map(|(_, end)| *end);
        let end = greetings.chain(self.shared.first_end()).min();
        let longest = self.shared.options.longest_sleep;
        end.map_or(longest, |end| end.saturating_sub(turns::now()).min(longest))
    }

    /// Waits for at most `longest` until a descriptor is readable, and serves those that are.
    fn look(&mut self, longest: Duration) -> Result<(), Fault> {
        let peers = self.shared.open_peers();
        let readable = self.readable(&peers, longest)?;
        let mut greetings = vec![];
        for source in readable {
            match source {
                Source::Listener => self.guests.accept(&self.shared),
                Source::Greeting(number) => greetings.push(number),
                Source::Guest(number) => {
                    let guest = Rc::clone(&self.guests.open[number]);
                    guest.check_alive();
                }
                Source::Dial(place) => self.shared.step(place),
                // Tasks are told, and the next turn forgets it.
                Source::Peer(number) => drop(peers[number].check_alive()),
            }
        }
        self.guests.greet(&self.shared, &greetings);
        self.shared.forget();
        Ok(())
    }

    fn readable(
        &self,
        peers: &[Rc<Peer<ShmEndpoint>>],
        longest: Duration,
    ) -> Result<Vec<Source>, Fault> {
        let mut sources = vec![(Source::Listener, self.guests.listener.as_fd())];
        let greetings = self.guests.greetings.iter().enumerate();
        sources.extend(
            greetings.map(|(number, (greeting, _))| {
                (Source::Greeting(number), greeting.stream().as_fd())
            }),
        );
        let endpoints = self.guests.open.iter().map(|guest| guest.endpoint()).enumerate();
        sources.extend(endpoints.filter_map(|(number, endpoint)| {
            Some((Source::Guest(number), endpoint.descriptor()?))
        }));
        let endpoints = peers.iter().map(|peer| peer.endpoint()).enumerate();
        sources.extend(
            endpoints.filter_map(|(number, endpoint)| {
                Some((Source::Peer(number), endpoint.descriptor()?))
            }),
        );
        let connecting = self.shared.peers.borrow();
        sources.extend(connecting.iter().filter_map(|(place, connecting)| match connecting {
            Connecting::Greeting(dial) => Some((Source::Dial(*place), dial.stream()?.as_fd())),
            Connecting::Open(_) => None,
        }));
        let ready = wait(sources.iter().map(|(_, descriptor)| *descriptor), longest)
            .map_err(|error| self.broken(error))?;
        Ok(sources
            .iter()
            .zip(ready)
            .filter(|(_, ready)| *ready)
            .map(|(source, _)| source.0)
            .collect())
    }

    fn broken(&self, error: Errno) -> Fault {
        Fault::Broken { place: self.shared.mine.place, reason: format!("poll: {error}") }
    }
}

/// Waits until a descriptor is readable, for at most `longest`. Returns which of them are.
fn wait<'a>(
    descriptors: impl Iterator<Item = BorrowedFd<'a>>,
    longest: Duration,
) -> Result<Vec<bool>, Errno> {
    let mut entries: Vec<PollFd<'_>> =
        descriptors.map(|of| PollFd::from_borrowed_fd(of, PollFlags::IN)).collect();
    let nanoseconds = longest.subsec_nanos().into();
    let tv_sec = i64::try_from(longest.as_secs()).unwrap_or(i64::MAX);
    let longest = Timespec { tv_sec, tv_nsec: nanoseconds };
    match poll(&mut entries, Some(&longest)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error),
    }
    Ok(entries.iter().map(|entry| !entry.revents().is_empty()).collect())
}
