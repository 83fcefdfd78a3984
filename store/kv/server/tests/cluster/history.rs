// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The requests of a client on keys of one hash slot, and which of them a server has executed.
//!
//! Their order is that in which they were sent. So a server has the first ones up to some request,
//! whichever of its predecessors it follows: at least those that are *confirmed*, which means that
//! a later `WAIT` found them on a replica.

use crate::crash::explain::{differences, differing};
use crate::crash::model::{Model, Times};
use crate::crash::reading::Reading;
use crate::crash::step::Request;
use freeport_kv_protocol::resp::Value;

/// Time after which a key that has expired is forgotten here, in milliseconds.
const FORGOTTEN_MS: u64 = 10_000;

/// The requests of a client, and what it knows of their effects.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// After all confirmed requests.
    confirmed: Model,
    /// Those after them, in their order.
    since: Vec<Sent>,
    /// After all requests with a reply.
    model: Model,
}

#[derive(Clone, Debug)]
struct Sent {
    request: Request,
    /// None: nobody knows whether it was executed.
    reply: Option<Value>,
    times: Times,
}

/// Requests whose fate a reading has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settled {
    /// Number of acknowledged requests that are gone.
    pub lost: u64,
    /// Number of requests without a reply that were executed.
    pub executed: u64,
}

impl History {
    /// A request has a reply.
    ///
    /// # Errors
    /// It cannot be the reply to this request after those before.
    pub fn acknowledge(
        &mut self,
        request: Request,
        reply: Value,
        times: Times,
    ) -> Result<(), String> {
        self.model.execute(&request, Some(&reply), times)?;
        self.since.push(Sent { request, reply: Some(reply), times });
        Ok(())
    }

    /// The connection ended before the reply to a request.
    pub fn doubt(&mut self, request: Request, times: Times) {
        self.since.push(Sent { request, reply: None, times });
    }

    /// All requests are confirmed.
    pub fn confirm(&mut self, now_ms: u64) {
        self.model.entries.retain(|_, entry| {
            entry.expires.is_none_or(|expires| expires.latest_ms + FORGOTTEN_MS > now_ms)
        });
        self.confirmed = self.model.clone();
        self.since.clear();
    }

    /// Finds the last request that was executed, from all keys of the client.
    ///
    /// # Errors
    /// A confirmed request is missing, or a part of one, or something that nobody wrote is there.
    pub fn settle(&mut self, seen: Reading) -> Result<Settled, String> {
        let mut model = self.confirmed.clone();
        let mut end = differing(&model, &seen).next().is_none().then_some(0);
        for (number, Sent { request, reply, times }) in self.since.iter().enumerate() {
            model.execute(request, reply.as_ref(), *times)?;
            if differing(&model, &seen).next().is_none() {
                end = Some(number + 1);
            }
        }
        let Some(end) = end else { return Err(self.contradiction(&seen)) };
        let gone = self.since.split_off(end);
        let lost = gone.iter().filter(|sent| sent.reply.is_some()).count() as u64;
        let executed = self.since.iter().filter(|sent| sent.reply.is_none()).count() as u64;
        // A later reply depends on what the server has chosen.
        self.model.entries = seen.entries;
        Ok(Settled { lost, executed })
    }

    /// All requests with a reply were executed, and no others.
    ///
    /// # Errors
    /// How the keys differ.
    pub fn check(&self, seen: &Reading) -> Result<(), String> {
        match differences(&self.model, seen) {
            lines if lines.is_empty() => Ok(()),
            lines => Err(format!("acknowledged requests are missing:\n{lines}")),
        }
    }

    fn contradiction(&self, seen: &Reading) -> String {
        let mut lines = String::new();
        for sent in &self.since {
            let word = if sent.reply.is_some() { "acknowledged" } else { "without a reply" };
            lines += &format!("  {word}: {:.200}\n", format!("{:?}", sent.request));
        }
        format!(
            "no number of the requests explains what is there. Difference to what is confirmed:\n\
             {}to what is acknowledged:\n{}requests that are not confirmed:\n{lines}",
            differences(&self.confirmed, seen),
            differences(&self.model, seen),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::examples::{NO_TIME, reading, set};

    /// `a` = 1 is confirmed, `a` = 2 acknowledged; then a transaction has no reply.
    fn history() -> History {
        let mut history = History::default();
        let ok = || Value::Status(b"OK".to_vec());
        for (text, is_confirmed) in [("1", true), ("2", false)] {
            let request = Request::One(set("a", text));
            history.acknowledge(request, ok(), NO_TIME).expect("it is the reply");
            if is_confirmed {
                history.confirm(0);
            }
        }
        history.doubt(Request::Exec(vec![set("a", "3"), set("b", "3")]), NO_TIME);
        history
    }

    fn settle(pairs: &[(&str, &str)]) -> Result<Settled, String> {
        history().settle(reading(pairs))
    }

    #[test]
    fn some_of_the_first_requests_were_executed() {
        assert_eq!(settle(&[("a", "1")]), Ok(Settled { lost: 1, executed: 0 }));
        assert_eq!(settle(&[("a", "2")]), Ok(Settled { lost: 0, executed: 0 }));
        let all = settle(&[("a", "3"), ("b", "3")]);
        assert_eq!(all, Ok(Settled { lost: 0, executed: 1 }));
    }

    #[test]
    fn losses_and_halves_and_foreign_values_are_errors() {
        for pairs in [&[][..], &[("a", "3")], &[("a", "2"), ("b", "3")], &[("a", "0")]] {
            settle(pairs).expect_err("nothing explains it");
        }
        let mut history = history();
        history.settle(reading(&[("a", "2")])).expect("it is explained");
        history.check(&reading(&[("a", "2")])).expect("it is the same");
        history.check(&reading(&[("a", "1")])).expect_err("a request is missing");
        history.confirm(0);
        history.settle(reading(&[("a", "1")])).expect_err("the second one is confirmed");
    }
}
