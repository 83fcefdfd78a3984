// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection with requests that wait for replies, to a node that may end or stand still.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::time::Duration;

use freeport_kv_protocol::resp::Value;

use crate::client::{Client, request};
use crate::crash::step::Request;
use crate::refusals::{Refusal, refusal};

/// Time after which a node without a reply is suspected. Nothing is concluded from it.
const SUSPICION: Duration = Duration::from_millis(300);

/// A request that waits for its replies.
#[derive(Clone, Debug)]
pub enum Waiting {
    Request(Request),
    /// `WAIT 1`.
    Confirmation,
    /// A `GET`, whose reply would be an old value if the node has lost its slots.
    Look,
}

/// A node's answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Reply(Value),
    /// It has not executed it. Another node may.
    Refused(Option<SocketAddr>),
}

/// A connection, and requests that wait for replies.
pub struct Connection {
    pub address: SocketAddr,
    pub client: Client,
    waiting: VecDeque<Waiting>,
    /// Number of those that were sent before the node was suspected.
    trusted: Option<usize>,
    /// Replies to the commands of the first request.
    replies: Vec<Value>,
    /// Bytes that the node has not taken yet.
    unsent: VecDeque<u8>,
}

impl Connection {
    /// # Errors
    /// Nobody listens.
    pub fn new(address: SocketAddr) -> io::Result<Self> {
        let client = Client::try_connect(address)?;
        client.stream.set_read_timeout(Some(SUSPICION))?;
        client.stream.set_write_timeout(Some(SUSPICION))?;
        let (waiting, replies, unsent) = (VecDeque::new(), vec![], VecDeque::new());
        Ok(Self { address, client, waiting, trusted: None, replies, unsent })
    }

    /// Sends a request. Bytes that the node does not take now are sent later.
    pub fn send(&mut self, waiting: Waiting, key: &str) {
        for words in commands(&waiting, key) {
            let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
            self.unsent.extend(request(&words));
        }
        self.waiting.push_back(waiting);
    }

    /// The node stands still, or is slow. Requests that are sent from now on are executed after
    /// that.
    pub fn suspect(&mut self) {
        self.trusted = Some(self.waiting.len());
    }

    /// The next request was sent after the node was suspected.
    pub fn is_suspected(&self) -> bool {
        self.trusted == Some(0)
    }

    /// No request waits.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Requests without a reply, of which each may have been executed.
    pub fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.iter()
    }

    /// The next answer.
    ///
    /// # Errors
    /// The connection has ended, or there is no answer yet ([`is_late`]).
    pub fn receive(&mut self) -> io::Result<(Waiting, Answer)> {
        let first = self.waiting.front().expect("a request waits");
        let count = commands(first, "").len();
        while self.replies.len() < count {
            // The node may have to be read before it reads.
            match self.flush() {
                Err(error) if !is_late(&error) => return Err(error),
                _ => self.replies.push(self.client.try_reply()?),
            }
        }
        let answer = answer(std::mem::take(&mut self.replies));
        self.trusted = self.trusted.map(|count| count.saturating_sub(1));
        Ok((self.waiting.pop_front().expect("it waits"), answer))
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            let length = self.client.stream.write(self.unsent.make_contiguous())?;
            self.unsent.drain(..length);
        }
        Ok(())
    }
}

/// There was no answer within a while.
pub fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// The commands of a request, each of which has a reply.
fn commands(waiting: &Waiting, key: &str) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match waiting {
        Waiting::Request(request) => request.commands(),
        Waiting::Confirmation => vec![words(&["WAIT", "1", "100"])],
        Waiting::Look => vec![words(&["GET", key])],
    }
}

/// The answer to a request: the reply to its last command, unless that was refused. Then a reply
/// before it may say where the keys are.
fn answer(mut replies: Vec<Value>) -> Answer {
    let last = replies.pop().expect("a request has commands");
    match refusal(&last) {
        None => Answer::Reply(last),
        Some(Refusal { place }) => {
            let mut places = replies.iter().filter_map(|reply| refusal(reply)?.place);
            Answer::Refused(place.or_else(|| places.next()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> Value {
        Value::Error(text.into())
    }

    #[test]
    fn a_refusal_names_the_node_that_has_the_keys() {
        let address: SocketAddr = "127.0.0.1:7001".parse().expect("an address");
        let moved = || error("MOVED 5 127.0.0.1:7001");
        let ok = || Value::Status(b"OK".to_vec());
        assert_eq!(answer(vec![moved()]), Answer::Refused(Some(address)));
        let replies = vec![ok(), moved(), error("EXECABORT Transaction discarded")];
        assert_eq!(answer(replies), Answer::Refused(Some(address)));
        let down = error("CLUSTERDOWN Hash slot not served");
        assert_eq!(answer(vec![down]), Answer::Refused(None));
        assert_eq!(answer(vec![ok(), ok()]), Answer::Reply(ok()));
        let wrong = error("ERR no such key");
        assert_eq!(answer(vec![wrong.clone()]), Answer::Reply(wrong));
    }
}
