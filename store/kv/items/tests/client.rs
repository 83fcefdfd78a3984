// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection to the items of a worker, which keeps what was received and the replies.

use freeport_kv_items::{Connection, Control, Items, Next, Now, Options};

/// A time at which tests begin.
pub const BEGIN: Now = Now(1_700_000_000);

/// Items with one connection and a clock.
pub struct Client {
    pub items: Items,
    pub now: Now,
    pub is_closed: bool,
    connection: Connection,
    received: Vec<u8>,
}

impl Default for Client {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Client {
    pub fn new(options: Options) -> Self {
        let items = Items::new(options).expect("options are sound");
        let connection = Connection::new(items.options().limits);
        Self { items, now: BEGIN, is_closed: false, connection, received: vec![] }
    }

    /// Receives some more bytes, and returns the replies to what is complete.
    pub fn receive(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.received.extend_from_slice(bytes);
        let mut output = vec![];
        while !self.is_closed {
            let served =
                self.items.serve(&mut self.connection, &self.received, self.now, &mut output);
            self.received.drain(..served.taken);
            match served.next {
                Next::Receive { needs } => {
                    assert!(needs > self.received.len(), "it waits for what is not there");
                    break;
                }
                Next::Send => {}
                Next::Control(Control::Dump(dump)) => {
                    let mut dump = Some(dump);
                    while let Some(next) = dump {
                        dump = self.items.dump(next, self.now, &mut output);
                    }
                    output.extend_from_slice(b"END\r\n");
                }
                Next::Control(_) => self.is_closed = true,
            }
        }
        output
    }

    /// Returns the replies to a line, as text.
    pub fn ask(&mut self, text: &str) -> String {
        let replies = self.receive(text.as_bytes());
        String::from_utf8(replies).expect("the tests have no other bytes")
    }

    /// A number that `stats` reports.
    pub fn stat(&mut self, name: &str) -> u64 {
        let stats = self.ask("stats\r\n");
        let mut lines = stats.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let line = lines.find(|line| line.get(1) == Some(&name));
        line.unwrap_or_else(|| panic!("no {name}"))[2].parse().expect("a number")
    }
}
