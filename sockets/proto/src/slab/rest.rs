// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the stream of a connection that both sides have closed becomes the stream of the next
//! connection.
//!
//! Each [`Step`] is one compare-and-exchange of a word, so only one side takes it, and a process
//! that dies or is stopped anywhere leaves the word at one of these values. The model in the tests
//! below explores every interleaving of the two sides.

/// A connection uses the stream.
pub const IN_USE: u64 = 0;
/// One side has closed the connection and keeps the stream.
pub const RESTING: u64 = 1;
/// Both sides have: the next connection may use the stream.
pub const READY: u64 = 2;
/// As [`READY`], but the accepting side does not watch the word.
pub const SHUT: u64 = 3;
/// The connecting side has opened a connection, which is not accepted yet.
pub const OPENED: u64 = 4;
/// No further connection uses the stream: one side did not keep it, or requires that the other side
/// has closed it.
pub const DEAD: u64 = 5;
/// As [`OPENED`], and the connecting side has already closed that connection.
pub const LEFT: u64 = 6;

/// A transition of the word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// The first side closes the connection and keeps the stream.
    Rest,
    /// The second side closes it and keeps the stream; the accepting side watches the word.
    Ready,
    /// As [`Step::Ready`], where the accepting side does not watch the word, or where that is
    /// unknown.
    Shut,
    /// The accepting side starts to watch the word.
    Look,
    /// The accepting side stops watching the word: only the kernel can wake it.
    LookAway,
    /// The connecting side opens a connection.
    Open,
    /// The connecting side withdraws the connection it opened, because it cannot use it.
    Retract,
    /// The accepting side accepts the opened connection.
    Accept,
    /// A side does not keep the stream of the connection it has.
    Refuse,
    /// A side drops the stream, unless a connection waits to be accepted.
    End,
    /// The accepting side drops the stream in any case.
    Drop,
    /// The connecting side drops the stream. A connection it has left is still accepted.
    Leave,
}

impl Step {
    /// Returns the value after the step; `None` if the step is not allowed at `rest`.
    pub const fn from(self, rest: u64) -> Option<u64> {
        match (self, rest) {
            (Self::Rest, IN_USE) | (Self::Accept, LEFT) => Some(RESTING),
            (Self::Rest, OPENED) => Some(LEFT),
            (Self::Ready, RESTING) | (Self::Look, SHUT) | (Self::Retract, OPENED) => Some(READY),
            (Self::Shut, RESTING) | (Self::LookAway, READY) => Some(SHUT),
            (Self::Open, READY) => Some(OPENED),
            (Self::Accept, OPENED) => Some(IN_USE),
            (Self::Refuse, IN_USE | RESTING) => Some(DEAD),
            (Self::End, OPENED | LEFT) | (Self::Leave, LEFT) => None,
            (Self::End | Self::Drop | Self::Leave, _) => Some(DEAD),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::{vec, vec::Vec};

    const CLIENT: usize = 0;
    const SERVER: usize = 1;

    /// State of a side: what the library does in sequence, split where the other side may act in
    /// between.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    enum At {
        /// The program uses the connection.
        Uses,
        /// It has checked that the stream can be kept.
        Closes,
        /// It has published that.
        HasSaid,
        /// The peer closed first, and is checked for whether it keeps the stream.
        IsSecond,
        /// The flags of both sides are about to be cleared, first the client's, then the server's.
        TakesBack,
        HasTakenBack,
        /// It keeps the stream.
        Rests,
        /// It has cleared the flag that it keeps the stream, and is about to drop it.
        Drops,
        /// The accepting side sleeps in the kernel.
        Sleeps,
        /// It has dropped the stream.
        Gone,
    }
    use At::{
        Closes, Drops, Gone, HasSaid, HasTakenBack, IsSecond, Rests, Sleeps, TakesBack, Uses,
    };

    /// Flags of a side, as far as this protocol uses them.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    struct Said {
        closed: bool,
        rests: bool,
        reuses: bool,
    }

    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    struct World {
        rest: u64,
        at: [At; 2],
        said: [Said; 2],
        /// A connection was opened and is not accepted yet.
        waits: bool,
    }

    impl World {
        const BEGIN: Self = Self {
            rest: IN_USE,
            at: [Uses; 2],
            said: [Said { closed: false, rests: false, reuses: true }; 2],
            waits: false,
        };

        fn does(mut self, step: Step) -> Option<Self> {
            self.rest = step.from(self.rest)?;
            Some(self)
        }

        fn goes(mut self, side: usize, to: At) -> Self {
            self.at[side] = to;
            self
        }

        /// Ends the stream together with the connection.
        fn ends(mut self, side: usize) -> Self {
            self.said[side] = Said { closed: true, rests: false, reuses: false };
            self.goes(side, Gone)
        }

        /// Returns every state that a step of this side leads to.
        fn next(self, side: usize) -> Vec<Self> {
            let (other, server) = (self.said[1 - side], side == SERVER);
            match self.at[side] {
                Uses => {
                    let refused = self.does(Step::Refuse).unwrap_or(self).ends(side);
                    let keeps = other.reuses && (!other.closed || other.rests);
                    if keeps { vec![refused, self.goes(side, Closes)] } else { vec![refused] }
                }
                Closes => {
                    let mut said = self.goes(side, HasSaid);
                    said.said[side] = Said { closed: true, rests: true, reuses: true };
                    vec![said]
                }
                HasSaid => {
                    let first = self.does(Step::Rest).map(|world| world.goes(side, Rests));
                    vec![first.unwrap_or(self.goes(side, IsSecond))]
                }
                IsSecond => {
                    // Something may be unread, so the stream may end here in any case.
                    let over = Self { rest: DEAD, ..self }.ends(side);
                    if other.rests { vec![over, self.goes(side, TakesBack)] } else { vec![over] }
                }
                TakesBack => {
                    let mut taken = self.goes(side, HasTakenBack);
                    taken.said[CLIENT] = Said { closed: false, rests: false, ..self.said[CLIENT] };
                    vec![taken]
                }
                HasTakenBack => {
                    let mut taken = self;
                    taken.said[SERVER] = Said { closed: false, rests: false, ..self.said[SERVER] };
                    let steps: &[Step] =
                        if server { &[Step::Ready, Step::Shut] } else { &[Step::Shut] };
                    let done = |step: &Step| {
                        let done = taken.does(*step).map(|world| world.goes(side, Rests));
                        done.unwrap_or(taken.ends(side))
                    };
                    steps.iter().map(done).collect()
                }
                Rests if server => self.server_rests(),
                Rests => self.client_rests(),
                Drops => vec![self.does(Step::Leave).unwrap_or(self).ends(side)],
                Sleeps => {
                    let awake = self.goes(side, Rests);
                    vec![awake, awake.does(Step::Look).unwrap_or(awake)]
                }
                Gone => vec![],
            }
        }

        fn client_rests(self) -> Vec<Self> {
            let mut drops = self.goes(CLIENT, Drops);
            drops.said[CLIENT].rests = false;
            let opened = self.does(Step::Open).map(|mut world| {
                assert!(!self.said.iter().any(|said| said.closed || said.rests), "{self:?}");
                assert!(!world.waits, "{self:?}");
                world.waits = true;
                world.goes(CLIENT, Uses)
            });
            [Some(drops), opened].into_iter().flatten().collect()
        }

        fn server_rests(self) -> Vec<Self> {
            let is_opened = matches!(self.rest, OPENED | LEFT);
            let mut next = Vec::new();
            if is_opened {
                let mut accepted = self.does(Step::Accept).unwrap().goes(SERVER, Uses);
                assert!(self.waits, "nobody has connected: {self:?}");
                accepted.waits = false;
                next.push(accepted);
            }
            // Before a fork: the listener stays open, so a waiting connection is accepted.
            next.extend(self.does(Step::End).map(|world| {
                assert!(!self.waits, "{self:?}");
                world.ends(SERVER)
            }));
            // The listener is closed: a waiting connection is reset, and its peer sees that.
            next.push(Self { waits: false, ..self.does(Step::Drop).unwrap() }.ends(SERVER));
            // It finds the opened connection and continues, or sleeps.
            let away = self.does(Step::LookAway).unwrap_or(self);
            next.push(if matches!(away.rest, OPENED | LEFT) {
                away
            } else {
                away.goes(SERVER, Sleeps)
            });
            next
        }

        /// Asserts what holds in every reachable state.
        fn is_sound(&self) {
            let [client, server] = self.at;
            if self.waits && server != Gone {
                assert!(matches!(self.rest, OPENED | LEFT), "lost: {self:?}");
            }
            if server == Sleeps {
                assert!(!matches!(self.rest, READY | OPENED | LEFT), "nobody wakes it: {self:?}");
            }
            if client == Rests && matches!(server, Rests | Sleeps) {
                let fits = if self.waits { LEFT } else { READY };
                assert!(self.rest == fits || !self.waits && self.rest == SHUT, "stuck: {self:?}");
            }
        }
    }

    fn all() -> HashSet<World> {
        let (mut known, mut open) = (HashSet::from([World::BEGIN]), vec![World::BEGIN]);
        while let Some(world) = open.pop() {
            world.is_sound();
            for next in [CLIENT, SERVER].into_iter().flat_map(|side| world.next(side)) {
                if known.insert(next) {
                    open.push(next);
                }
            }
        }
        known
    }

    #[test]
    fn no_order_of_steps_loses_a_connection_or_leaves_one_to_who_sleeps() {
        let known = all();
        // The search reaches every value of the word, and every state of a side.
        for rest in [IN_USE, RESTING, READY, SHUT, OPENED, DEAD, LEFT] {
            assert!(known.iter().any(|world| world.rest == rest), "never at {rest}");
        }
        let places =
            [Uses, Closes, HasSaid, IsSecond, TakesBack, HasTakenBack, Rests, Drops, Sleeps, Gone];
        for at in places {
            assert!(known.iter().any(|world| world.at.contains(&at)), "never at {at:?}");
        }
    }
}
