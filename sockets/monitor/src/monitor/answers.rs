// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Questions of users: takes snapshots for the answers, and makes the changes that users request.

use super::{Connection, Monitor};
use crate::control::{Asked, Asker, Question, answer, snapshot};
use crate::member::Member;
use crate::slab::Slab;
use crate::sums;
use serde_json::{Value, json};
use std::time::Instant;

impl Monitor {
    /// Answers a user's question, in JSON.
    pub fn answer(&mut self, question: &[u8], user: u32, now: Instant) -> String {
        let asker = Asker::of(user);
        let answer = match Question::parse(question) {
            None => answer::error("a question is a JSON object"),
            Some(question) if question.needs_trust() && !asker.is_trusted() => answer::error(
                "only root and the user of the monitor may change its rules or recall connections",
            ),
            Some(question) => self.answer_question(question, asker, now),
        };
        answer.to_string()
    }

    fn answer_question(&mut self, question: Question, asker: Asker, now: Instant) -> Value {
        tracing::debug!(user = asker.user(), ?question, "request");
        match question {
            Question::List => answer::list(&self.listing(asker), now),
            Question::Statistics => answer::statistics(&self.statistics(now), now),
            Question::Why(asked) => answer::why(&self.known(asked, asker), asked, now),
            Question::May => answer::may(self.policy.may_have_any(asker.user())),
            Question::Rules => self.rules(),
            Question::Stay => json!({}),
            Question::PutRule(rule) => {
                match rule.parse().and_then(|rule| self.policy.put_first(rule)) {
                    Ok(()) => {
                        tracing::info!(rules = self.policy.rules().len(), "policy: rule added");
                        self.rules()
                    }
                    Err(wrong) => answer::error(&wrong.to_string()),
                }
            }
            Question::RemoveRule(place) => match place.and_then(|it| self.policy.remove(it)) {
                Some(_) => {
                    tracing::info!(rules = self.policy.rules().len(), "policy: rule removed");
                    self.rules()
                }
                None => answer::error(
                    "there is no rule at that place; `freeport sockets policy show` lists them",
                ),
            },
            Question::Recall => {
                let recalled = self.recall();
                answer::recalled(recalled.pending, recalled.returned)
            }
            Question::Unknown => {
                answer::error("this monitor does not know the question: use one release for both")
            }
        }
    }

    fn rules(&self) -> Value {
        answer::rules(self.policy.rules().iter().map(ToString::to_string))
    }

    /// Takes a snapshot of everything the user may see.
    fn listing(&self, asker: Asker) -> snapshot::Listing<'_> {
        let seen = self.slots().filter(|it| it.connection.ends.iter().any(|end| asker.sees(end)));
        let refusals = self.ledger.refusals().rev().filter(|it| asker.sees(&it.end));
        let members = self.members.values().filter(|it| asker.sees_user(it.process.user));
        snapshot::Listing {
            connections: seen.map(Slot::snapshot).collect(),
            refusals: refusals.collect(),
            programs: members.map(program).collect(),
        }
    }

    fn statistics(&self, now: Instant) -> snapshot::Statistics<'_> {
        let reused = self.slots();
        let reused =
            reused.map(|it| sums::believed(it.slab.reused(it.slot), it.connection.since, now));
        snapshot::Statistics {
            begun: self.begun,
            ledger: &self.ledger,
            members: self.members(),
            connections: self.slots().count(),
            reused: reused.fold(0, u64::saturating_add),
            slabs: self.slabs.len(),
            slab_bytes: self.slabs.values().map(Slab::bytes).sum(),
            passed: snapshot::Passed {
                sockets: self.passed.count(),
                times: self.passed.times,
                forgotten: self.passed.forgotten,
            },
        }
    }

    /// Takes a snapshot of one socket, as far as the user may see it.
    fn known(&self, asked: Asked, asker: Asker) -> snapshot::Known<'_> {
        let is_it = |end: &_| asked.is(end) && asker.sees(end);
        let is_member =
            |it: &&Member| asked.pid == Some(it.process.pid) && asker.sees_user(it.process.user);
        let mut slots = self.slots();
        let slot = slots.find(|it| it.connection.ends.iter().any(is_it));
        snapshot::Known {
            program: self.members.values().find(is_member).map(program),
            connection: slot.map(Slot::snapshot),
            is_waiting: self.waiting.values().any(|it| is_it(&it.note)),
            refusal: self.ledger.refusals().rev().find(|it| is_it(&it.end)),
        }
    }

    /// Returns all used slots.
    fn slots(&self) -> impl Iterator<Item = Slot<'_>> {
        self.slabs.iter().flat_map(|(number, slab)| {
            let used = slab.used();
            used.map(|(slot, connection)| Slot { number: *number, slab, slot, connection })
        })
    }
}

/// A used slot.
struct Slot<'m> {
    /// Number of its slab.
    number: u32,
    slab: &'m Slab<Connection>,
    slot: u32,
    connection: &'m Connection,
}

impl<'m> Slot<'m> {
    fn snapshot(self) -> snapshot::Connection<'m> {
        let Self { number, slab, slot, connection } = self;
        let (ends, since, words) = (&connection.ends, connection.since, slab.words(slot));
        snapshot::Connection { slab: number, slot, ends, since, words }
    }
}

fn program(member: &Member) -> snapshot::Program<'_> {
    snapshot::Program { process: &member.process, kept: &member.kept, ended: &member.ended }
}
