// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the stream of a connection that both have closed becomes the stream of the next one.
//!
//! Each [`Step`] is one exchange of a word, so it is done by one side, and whoever dies, or is
//! stopped anywhere, leaves the word at one of these. The model below goes through all that two
//! sides can do with it, in every order.

/// A connection has it.
pub const IN_USE: u64 = 0;
/// One side has closed the connection, and kept the stream.
pub const RESTING: u64 = 1;
/// Both have: the next connection may be made over it.
pub const READY: u64 = 2;
/// The same, but the accepting side does not look.
pub const SHUT: u64 = 3;
/// The connecting side has one there, which was not accepted yet.
pub const OPENED: u64 = 4;
/// No connection is made over it any more: one side did not keep the stream, or wants the
/// other one to have closed it.
pub const DEAD: u64 = 5;
/// As [`OPENED`], and the connecting side has closed it already.
pub const LEFT: u64 = 6;

/// What a side does with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Closes the connection as the first one, and keeps the stream.
    Rest,
    /// Closes it as the second one, and keeps the stream: the accepting side looks.
    Ready,
    /// The same, where that side does not look, or does not know.
    Shut,
    /// The accepting side looks from now on.
    Look,
    /// It looks no more: only the kernel can wake it.
    LookAway,
    /// The connecting side opens a connection.
    Open,
    /// It cannot use what it has opened.
    Retract,
    /// The accepting side has what was opened.
    Accept,
    /// A side does not keep the stream of a connection that it has.
    Refuse,
    /// A side keeps it no more, unless there is something to be accepted.
    End,
    /// The accepting side keeps it no more, whatever there is.
    Drop,
    /// The connecting side keeps it no more. What it has left is accepted still.
    Leave,
}

impl Step {
    /// Where that leads. `None`: it is not done there.
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

    /// Where a side is: what the library does one after the other, cut where the other side may do
    /// something in between.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    enum At {
        /// The program has the connection.
        Uses,
        /// It has seen that the stream can be kept.
        Closes,
        /// It has said so.
        HasSaid,
        /// The other one was first, and is asked whether it keeps the stream.
        IsSecond,
        /// What this one has said is taken back, and what the other one has.
        TakesBack,
        HasTakenBack,
        /// It keeps the stream.
        Rests,
        /// It has taken back that it keeps it, and is about to drop it.
        Drops,
        /// The accepting side sleeps in the kernel.
        Sleeps,
        /// It keeps nothing.
        Gone,
    }
    use At::{
        Closes, Drops, Gone, HasSaid, HasTakenBack, IsSecond, Rests, Sleeps, TakesBack, Uses,
    };

    /// What a side says, as far as this goes.
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
        /// A connection was opened, and not accepted yet.
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

        /// The stream ends with the connection.
        fn ends(mut self, side: usize) -> Self {
            self.said[side] = Said { closed: true, rests: false, reuses: false };
            self.goes(side, Gone)
        }

        /// All that a side may do next.
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
                    // Something may be unread, so it may end here in any case.
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
            // Before a fork; who listens goes on, so what waits is accepted.
            next.extend(self.does(Step::End).map(|world| {
                assert!(!self.waits, "{self:?}");
                world.ends(SERVER)
            }));
            // The listener is closed: what waits is reset, and told.
            next.push(Self { waits: false, ..self.does(Step::Drop).unwrap() }.ends(SERVER));
            // It finds what was opened, and goes on, or sleeps.
            let away = self.does(Step::LookAway).unwrap_or(self);
            next.push(if matches!(away.rest, OPENED | LEFT) {
                away
            } else {
                away.goes(SERVER, Sleeps)
            });
            next
        }

        /// What holds wherever both are.
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
        // It goes through all of it: each word, and each place that a side can be at.
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
