// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receiving end of a worker's mailbox. A script that runs for long takes the new clients out
//! of it. All other messages wait for the end of the script, in their order.

use std::collections::VecDeque;
use std::sync::mpsc::Receiver;

use crate::listener::{Protocol, Stream};
use crate::mail::Message;

/// Messages to a worker.
#[derive(Debug)]
pub struct Incoming {
    receiver: Receiver<Message>,
    /// Messages that a running script has passed over. They come first.
    passed_over: VecDeque<Message>,
}

/// A new client.
#[derive(Debug)]
pub struct Arrival {
    /// Its socket.
    pub stream: Stream,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its address as text.
    pub address: String,
    /// Bytes that were received and not answered, if somebody else has served it.
    pub input: Option<Vec<u8>>,
}

impl Incoming {
    /// Messages of a mailbox.
    pub fn new(receiver: Receiver<Message>) -> Self {
        Self { receiver, passed_over: VecDeque::new() }
    }

    /// The next message.
    #[inline]
    pub fn next(&mut self) -> Option<Message> {
        self.passed_over.pop_front().or_else(|| self.receiver.try_recv().ok())
    }

    /// The next new client. The messages before it are kept.
    pub fn next_arrival(&mut self) -> Option<Arrival> {
        while let Ok(message) = self.receiver.try_recv() {
            match message {
                Message::Accepted { stream, protocol, address } => {
                    return Some(Arrival { stream, protocol, address, input: None });
                }
                Message::Moved { stream, protocol, address, input } => {
                    return Some(Arrival { stream, protocol, address, input: Some(input) });
                }
                message => self.passed_over.push_back(message),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use mio::net::UnixStream;

    use super::*;

    #[test]
    fn new_clients_overtake_other_messages_which_keep_their_order() {
        let (sender, receiver) = channel();
        let mut incoming = Incoming::new(receiver);
        let borrow = |worker| Message::Borrow { worker };
        let accepted = |address: &str| Message::Accepted {
            stream: Stream::Unix(UnixStream::pair().expect("the system has sockets").0),
            protocol: Protocol::Resp,
            address: address.into(),
        };
        for message in [borrow(1), accepted("a"), borrow(2), accepted("b"), borrow(3)] {
            sender.send(message).expect("there is a receiver");
        }
        for expected in ["a", "b"] {
            let arrival = incoming.next_arrival().expect("there is a client");
            assert_eq!(arrival.address, expected);
        }
        assert!(incoming.next_arrival().is_none());
        sender.send(borrow(4)).expect("there is a receiver");
        for expected in 1..=4 {
            let message = incoming.next();
            assert!(
                matches!(message, Some(Message::Borrow { worker }) if worker == expected),
                "{message:?}"
            );
        }
        assert!(incoming.next().is_none());
    }
}
