// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections over shared memory that a worker looks at in every turn, because bytes were
//! exchanged on them a moment ago. Neither side makes a system call for them meanwhile.
//!
//! Such a connection is *hot*. After some time without a byte it is armed, and only its doorbell
//! makes it hot again. While there is a hot connection the worker does not sleep, and asks the
//! system for events of the others only after a while, because that costs as much as several
//! operations.

use std::io;
use std::mem;
use std::time::{Duration, Instant};

use mio::Events;

use super::network::Network;
use super::{Core, Worker};
use crate::connection::Connection;
use crate::fabric::Wanted;
use crate::listener::Stream;

/// Time without a byte after which a connection is armed. A doorbell and the sleep before it cost
/// both sides about 10 us; some times as much is lost at most if no byte comes.
const HOT: Duration = Duration::from_micros(50);
/// Time between two questions for events while there is a hot connection: other clients wait for
/// so long at most, besides the turns of the worker.
const EVENTS_EVERY: Duration = Duration::from_micros(20);
/// Turns in a row without a byte after which the worker lets others use its core: the client may
/// run on the same one.
const IDLE_TURNS: u32 = 32;

/// The hot connections of a worker.
#[derive(Debug)]
pub struct Polled {
    hot: Vec<Hot>,
    /// Memory for the next list.
    spare: Vec<Hot>,
    /// When events were asked for.
    asked: Instant,
    idle_turns: u32,
}

#[derive(Debug)]
struct Hot {
    client: u64,
    /// Bytes that were exchanged until `since`.
    moved: u64,
    since: Instant,
}

impl Polled {
    /// There are none.
    pub fn new() -> Self {
        Self { hot: vec![], spare: vec![], asked: Instant::now(), idle_turns: 0 }
    }

    /// There is a hot connection.
    #[inline]
    pub fn is_hot(&self) -> bool {
        !self.hot.is_empty()
    }
}

impl Network {
    /// Looks at a connection in every turn, if it goes over shared memory. Otherwise nobody would
    /// notice its next bytes: a read or a write disarms it.
    #[inline]
    pub(super) fn heat(&mut self, client: u64, connection: &mut Connection) {
        if let Stream::Fabric(stream) = &mut connection.stream
            && stream.is_open()
            && !mem::replace(&mut stream.is_hot, true)
        {
            self.polled.hot.push(Hot { client, moved: stream.moved(), since: Instant::now() });
        }
    }
}

impl Core {
    /// Asks for events without waiting, if they were not asked for just now.
    pub(super) fn ask_for_events(&mut self, events: &mut Events) -> io::Result<()> {
        let Network { poll, polled, .. } = &mut self.network;
        if polled.asked.elapsed() < EVENTS_EVERY {
            events.clear();
            return Ok(());
        }
        polled.asked = Instant::now();
        match poll.poll(events, Some(Duration::ZERO)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }
}

impl Worker {
    /// Gives every hot connection a turn.
    pub(super) fn poll_hot(&mut self) {
        let polled = &mut self.core.network.polled;
        let spare = mem::take(&mut polled.spare);
        let mut hot = mem::replace(&mut polled.hot, spare);
        let now = Instant::now();
        let mut is_idle = true;
        for mut one in hot.drain(..) {
            if self.poll_one(&mut one, now) {
                is_idle &= one.since != now;
                self.core.network.polled.hot.push(one);
            }
        }
        let polled = &mut self.core.network.polled;
        polled.spare = hot;
        polled.idle_turns = if is_idle { polled.idle_turns.saturating_add(1) } else { 0 };
        if polled.idle_turns > IDLE_TURNS {
            std::thread::yield_now();
        }
    }

    /// Gives a connection its turn. Returns whether it stays hot.
    fn poll_one(&mut self, one: &mut Hot, now: Instant) -> bool {
        let connections = &mut self.core.network.connections;
        let Some(connection) = connections.get_mut(&one.client) else { return false };
        connection.is_readable = true;
        self.serve(one.client);
        let connections = &mut self.core.network.connections;
        let Some(connection) = connections.get_mut(&one.client) else { return false };
        let wanted = wanted(connection);
        let Stream::Fabric(stream) = &mut connection.stream else { return false };
        if stream.moved() != one.moved {
            (one.moved, one.since) = (stream.moved(), now);
            return true;
        }
        if now.saturating_duration_since(one.since) < HOT {
            return true;
        }
        match stream.arm(wanted) {
            Ok(true) => {
                stream.is_hot = false;
                false
            }
            Ok(false) => {
                one.since = now;
                true
            }
            Err(_) => {
                self.disconnect(one.client);
                false
            }
        }
    }
}

/// The things that a connection needs to continue. A client that waits for something else, as for
/// a shard, gets a turn when that comes.
fn wanted(connection: &Connection) -> Wanted {
    Wanted { data: connection.takes_requests(), room: connection.has_sendable() }
}
