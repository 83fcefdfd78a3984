// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that send datagrams. There are two bounded tables, by address:
//!
//! 1. A hello makes a *greeting*, and its token goes back to the address. Anybody can send a hello
//!    with the address of somebody else, so greetings replace the oldest ones when they are many.
//! 2. The first datagram with the token shows that the client receives at its address: the greeting
//!    becomes a *session*, in place of an earlier one of the address. A session ends only when it
//!    was not used for long.
//!
//! So hellos with false addresses neither end nor change a session. They can only make a client
//! repeat its hello.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// Hellos whose tokens were not used yet.
const GREETINGS_MAX: usize = 16_384;
/// Sessions at most.
const SESSIONS_MAX: usize = 65_536;
/// Bytes of the longest datagram that every client can receive: 1,500 of Ethernet without the
/// headers of IP and UDP.
pub const USUAL_BYTES: usize = 1_472;
/// A session that was not used for this time ends.
const IDLE_MS: u64 = 300_000;
/// The same while there are as many as are allowed.
const IDLE_WHEN_FULL_MS: u64 = 10_000;
/// Time between two searches for idle sessions.
const SWEEP_MS: u64 = 1_000;

/// A client that has shown that it receives at its address.
#[derive(Debug)]
pub struct Session<C> {
    token: u64,
    /// Bytes of the longest datagram that it has sent, at least [`USUAL_BYTES`]. No longer ones are
    /// sent to it.
    pub longest: usize,
    /// When it sent the last one, in milliseconds since 1970.
    pub active_ms: u64,
    /// The client.
    pub client: C,
}

/// Clients of one socket: `G` is what a hello has asked for, `C` is a client.
#[derive(Debug)]
pub struct Sessions<G, C> {
    open: HashMap<SocketAddr, Session<C>>,
    greeted: HashMap<SocketAddr, (u64, G)>,
    /// Addresses of greetings, the oldest first, and of some that became sessions.
    order: VecDeque<SocketAddr>,
    next_sweep_ms: u64,
}

impl<G, C> Default for Sessions<G, C> {
    /// Nobody.
    fn default() -> Self {
        Self {
            open: HashMap::new(),
            greeted: HashMap::new(),
            order: VecDeque::new(),
            next_sweep_ms: 0,
        }
    }
}

impl<G, C> Sessions<G, C> {
    /// Notes a hello and its token.
    pub fn greet(&mut self, address: SocketAddr, token: u64, greeting: G) {
        if self.greeted.insert(address, (token, greeting)).is_some() {
            return;
        }
        if self.order.len() >= GREETINGS_MAX
            && let Some(oldest) = self.order.pop_front()
            && oldest != address
        {
            self.greeted.remove(&oldest);
        }
        self.order.push_back(address);
    }

    /// The session of a datagram's sender, if the token is its token.
    #[inline]
    pub fn get(&mut self, address: SocketAddr, token: u64) -> Option<&mut Session<C>> {
        self.open.get_mut(&address).filter(|session| session.token == token)
    }

    /// Takes the greeting of a datagram's sender, if the token is its token.
    pub fn prove(&mut self, address: SocketAddr, token: u64) -> Option<G> {
        let (expected, _) = self.greeted.get(&address)?;
        if *expected != token {
            return None;
        }
        self.greeted.remove(&address).map(|(_, greeting)| greeting)
    }

    /// There is no room for another session.
    pub fn is_full(&self) -> bool {
        self.open.len() >= SESSIONS_MAX
    }

    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Begins a session. The caller has ended an earlier one of this address.
    pub fn begin(&mut self, address: SocketAddr, (token, now_ms): (u64, u64), client: C) {
        let session = Session { token, longest: USUAL_BYTES, active_ms: now_ms, client };
        self.open.insert(address, session);
    }

    /// Ends a session.
    pub fn end(&mut self, address: SocketAddr) -> Option<C> {
        self.open.remove(&address).map(|session| session.client)
    }

    /// Ends the sessions of clients.
    pub fn end_all(&mut self, mut is_ended: impl FnMut(&mut C) -> bool) -> Vec<C> {
        self.open
            .extract_if(|_, session| is_ended(&mut session.client))
            .map(|(_, session)| session.client)
            .collect()
    }

    /// Ends idle sessions, from time to time, and returns their clients.
    pub fn sweep(&mut self, now_ms: u64) -> Vec<C> {
        if now_ms < self.next_sweep_ms {
            return vec![];
        }
        self.next_sweep_ms = now_ms + SWEEP_MS;
        let idle_ms = if self.is_full() { IDLE_WHEN_FULL_MS } else { IDLE_MS };
        let is_idle = |session: &Session<C>| now_ms.saturating_sub(session.active_ms) >= idle_ms;
        self.open
            .extract_if(|_, session| is_idle(session))
            .map(|(_, session)| session.client)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: usize) -> SocketAddr {
        let [high, middle, low] = [port >> 16, port >> 8, port].map(|byte| byte as u8);
        ([127, 0, high, middle], u16::from(low) + 1).into()
    }

    #[test]
    fn a_hello_changes_nothing_before_its_token_is_used() {
        let mut sessions = Sessions::default();
        sessions.greet(address(0), 7, "first");
        assert!(sessions.get(address(0), 7).is_none());
        assert!(sessions.prove(address(0), 8).is_none(), "another token");
        assert!(sessions.prove(address(1), 7).is_none(), "another address");
        assert_eq!(sessions.prove(address(0), 7), Some("first"));
        sessions.begin(address(0), (7, 100), 'a');
        // Somebody else says hello in the name of this address.
        sessions.greet(address(0), 9, "second");
        assert!(sessions.get(address(0), 9).is_none());
        assert_eq!(sessions.get(address(0), 7).expect("it is open").client, 'a');
        assert_eq!(sessions.prove(address(0), 9), Some("second"));
        assert_eq!(sessions.end(address(0)), Some('a'));
        sessions.begin(address(0), (9, 100), 'b');
        assert!(sessions.get(address(0), 7).is_none(), "it has another token");
    }

    #[test]
    fn greetings_are_bounded_and_replace_the_oldest() {
        let mut sessions: Sessions<usize, char> = Sessions::default();
        let count = 3 * GREETINGS_MAX;
        for number in 0..count {
            sessions.greet(address(number), 1, number);
            // One that became a session is not in the way of others.
            if number % 7 == 0 {
                assert_eq!(sessions.prove(address(number), 1), Some(number));
            }
        }
        assert!(sessions.greeted.len() <= GREETINGS_MAX && sessions.order.len() <= GREETINGS_MAX);
        assert_eq!(sessions.prove(address(0), 1), None);
        assert_eq!(sessions.prove(address(count - 1), 1), Some(count - 1));
        // A repeated hello takes no more room.
        (0..10).for_each(|_| sessions.greet(address(count), 2, 0));
        assert!(sessions.order.len() <= GREETINGS_MAX);
    }

    #[test]
    fn idle_sessions_end_sooner_when_there_are_many() {
        let mut sessions: Sessions<(), usize> = Sessions::default();
        sessions.begin(address(0), (1, 0), 0);
        sessions.begin(address(1), (1, IDLE_MS / 2), 1);
        assert!(sessions.sweep(IDLE_MS - 1).is_empty());
        assert!(sessions.sweep(IDLE_MS).is_empty(), "the last search was a moment ago");
        assert_eq!(sessions.sweep(IDLE_MS + SWEEP_MS), [0]);
        let now_ms = 10 * IDLE_MS;
        for number in 0..SESSIONS_MAX {
            sessions.begin(address(number), (1, now_ms), number);
        }
        assert!(sessions.is_full());
        sessions.get(address(5), 1).expect("it is open").active_ms = now_ms + IDLE_WHEN_FULL_MS;
        assert_eq!(sessions.sweep(now_ms + IDLE_WHEN_FULL_MS).len(), SESSIONS_MAX - 1);
        assert_eq!(sessions.len(), 1);
        assert_eq!(sessions.end_all(|client| *client == 5), [5]);
        assert_eq!(sessions.end(address(5)), None);
    }
}
