// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decides whether a concurrent history is linearizable: whether each operation can have taken
//! effect at one moment between its call and its return, so that all replies are the model's.
//!
//! The search is that of Wing and Gong, which takes one operation after the other that may be the
//! next one, and returns to the last choice when replies differ. As Lowe found, the rest depends
//! only on the set of operations taken and on the state, so each such pair is visited once. An
//! operation that only reads and whose reply is right is taken without a choice: whatever order
//! explains the history without it here, does so with it here. That does not hold for one that
//! writes and happens to leave all as it was, because elsewhere it may leave something else.

use std::collections::HashSet;
use std::fmt::{Debug, Display};
use std::hash::Hash;

/// A server as one client at a time sees it; the default is its state at the begin of a history.
pub trait Model: Clone + Eq + Hash + Default {
    /// A request of a client, which takes effect at once.
    type Call: Clone + Debug;
    /// A reply.
    type Reply: Clone + PartialEq + Display;

    /// Executes what a client asks for, by the number of the client.
    fn apply(&mut self, client: usize, call: &Self::Call) -> Self::Reply;

    /// Whether a request changes nothing, whatever the state is.
    fn only_reads(call: &Self::Call) -> bool;
}

/// A request of a client, with its times.
#[derive(Clone, Debug)]
pub struct Operation<M: Model> {
    /// Number of the client.
    pub client: usize,
    /// The request.
    pub call: M::Call,
    /// The reply; none if it had not come when the history ended: then it may have taken effect.
    pub reply: Option<M::Reply>,
    /// Nanoseconds from the begin of the history until the request was sent.
    pub called_ns: u64,
    /// And until the reply was received.
    pub returned_ns: u64,
    /// Earlier operations of the history that have to take effect before, beside those that
    /// returned before this one was called.
    pub after: Vec<usize>,
}

/// A set of operations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Taken(Vec<u64>);

impl Taken {
    fn none(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn has(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    fn with(&self, number: usize) -> Self {
        let mut taken = self.clone();
        taken.0[number / 64] |= 1 << (number % 64);
        taken
    }
}

/// Whether a history is linearizable. Operations are in the order of their calls.
pub fn is_linearizable<M: Model>(history: &[Operation<M>]) -> bool {
    debug_assert!(history.is_sorted_by_key(|operation| operation.called_ns));
    let mut seen = HashSet::new();
    let mut left = vec![(Taken::none(history.len()), M::default())];
    while let Some((taken, state)) = left.pop() {
        let Some(candidates) = candidates(history, &taken) else { return true };
        let mut next = vec![];
        for number in candidates {
            let operation = &history[number];
            let mut after = state.clone();
            let reply = after.apply(operation.client, &operation.call);
            if operation.reply.as_ref().is_some_and(|wanted| *wanted != reply) {
                continue;
            }
            if M::only_reads(&operation.call) && operation.reply.is_some() {
                next = vec![(taken.with(number), after)];
                break;
            }
            next.push((taken.with(number), after));
        }
        // The one that was called first is tried first.
        left.extend(next.into_iter().rev().filter(|one| seen.insert(one.clone())));
    }
    false
}

/// Operations that can be the next one; none if all that have a reply are taken.
fn candidates<M: Model>(history: &[Operation<M>], taken: &Taken) -> Option<Vec<usize>> {
    let mut candidates = vec![];
    let (mut first_return_ns, mut is_complete) = (u64::MAX, true);
    for (number, operation) in history.iter().enumerate() {
        // All that follow were called later still.
        if operation.called_ns > first_return_ns {
            break;
        }
        if taken.has(number) {
            continue;
        }
        if operation.reply.is_some() {
            is_complete = false;
            first_return_ns = first_return_ns.min(operation.returned_ns);
        }
        if operation.after.iter().all(|one| taken.has(*one)) {
            candidates.push(number);
        }
    }
    (!is_complete).then_some(candidates)
}

/// The smallest part found of a history that is not linearizable, which is not either: it ends with
/// the first reply that cannot be explained, and has no operation that only reads and that is not
/// needed for the contradiction.
pub fn contradiction<M: Model>(history: &[Operation<M>]) -> Vec<Operation<M>> {
    let mut returns: Vec<u64> = history.iter().map(|operation| operation.returned_ns).collect();
    returns.sort_unstable();
    let end = returns.partition_point(|end_ns| is_linearizable(&until(history, *end_ns)));
    let mut history = until(history, returns.get(end).copied().unwrap_or(u64::MAX));
    for number in (0..history.len()).rev() {
        if M::only_reads(&history[number].call) {
            let without = without(&history, number);
            if !is_linearizable(&without) {
                history = without;
            }
        }
    }
    history
}

/// The history until some time. Operations that had not returned then may have taken
/// effect or not.
fn until<M: Model>(history: &[Operation<M>], end_ns: u64) -> Vec<Operation<M>> {
    let mut part: Vec<Operation<M>> =
        history.iter().take_while(|operation| operation.called_ns <= end_ns).cloned().collect();
    for operation in part.iter_mut().filter(|operation| operation.returned_ns > end_ns) {
        operation.reply = None;
    }
    part
}

/// The history without an operation.
fn without<M: Model>(history: &[Operation<M>], number: usize) -> Vec<Operation<M>> {
    let before = &history[number].after;
    let mut part = history.to_vec();
    part.remove(number);
    for operation in &mut part {
        if operation.after.contains(&number) {
            operation.after.extend(before);
        }
        operation.after.retain(|one| *one != number);
        operation.after.iter_mut().for_each(|one| *one -= usize::from(*one > number));
    }
    part
}

/// A history as lines of text.
pub fn show<M: Model>(history: &[Operation<M>]) -> String {
    let mut lines = String::new();
    for Operation { client, call, reply, called_ns, returned_ns, .. } in history {
        let text = |reply: &M::Reply| reply.to_string().replace('\n', " ");
        let reply = reply.as_ref().map_or("no reply yet".into(), text);
        let (from, to) = (called_ns / 1000, returned_ns / 1000);
        lines += &format!("client {client}, {from} to {to} µs: {call:?} -> {reply}\n");
    }
    lines
}
