// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client that writes until its server is killed.

use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;

use fastrand::Rng;

use super::explain::Knowledge;
use super::model::{Model, Times};
use super::reading::now_ms;
use super::step::{Maker, Request, database};
use crate::client::{Client, request};

/// A client with what it knows about its keys.
pub struct Writer {
    pub model: Model,
    database: usize,
    maker: Maker,
    random: Rng,
}

impl Writer {
    pub fn new(maker: Maker, seed: u64) -> Self {
        let random = Rng::with_seed(seed * 1000 + maker.client as u64);
        Self { model: Model::default(), database: database(maker.client), maker, random }
    }

    /// Sends requests, several at once, and receives their replies until the server is gone.
    /// `acknowledged` is called after each reply. The server has begun at `began_ms`.
    ///
    /// # Errors
    /// A reply that is not the expected one, or none for a long time.
    pub fn write(
        &mut self,
        address: SocketAddr,
        began_ms: u64,
        mut acknowledged: impl FnMut(),
    ) -> Result<Knowledge, String> {
        let mut client = match self.connect(address) {
            Ok(client) => client,
            Err(error) => {
                is_end(&error)?;
                return Ok(self.knowledge(vec![], began_ms));
            }
        };
        loop {
            let most = if self.random.u32(..3) == 0 { 2 } else { 10 };
            let count = self.random.usize(1..most);
            let mut requests: Vec<_> =
                (0..count).map(|_| self.maker.request(&mut self.random)).collect();
            let commands = requests.iter().map(|request| request.commands());
            let counts: Vec<usize> = commands.clone().map(|commands| commands.len()).collect();
            let bytes: Vec<u8> = commands.flatten().flat_map(|words| bytes_of(&words)).collect();
            let sent = client.stream.write_all(&bytes);
            let mut known = 0;
            let mut end = sent.err();
            while end.is_none() && known < counts.len() {
                // The replies before the last one say that commands are queued.
                match (0..counts[known]).try_fold(None, |_, _| client.try_reply().map(Some)) {
                    Err(error) => end = Some(error),
                    Ok(reply) => {
                        let times = Times { earliest_ms: began_ms, latest_ms: now_ms() };
                        self.model.execute(&requests[known], reply.as_ref(), times)?;
                        acknowledged();
                        known += 1;
                    }
                }
            }
            if let Some(error) = end {
                is_end(&error)?;
                return Ok(self.knowledge(requests.split_off(known), began_ms));
            }
        }
    }

    fn connect(&self, address: SocketAddr) -> io::Result<Client> {
        let mut client = Client::try_connect(address)?;
        client.stream.write_all(&request(&[b"SELECT", self.database.to_string().as_bytes()]))?;
        client.try_reply()?;
        Ok(client)
    }

    fn knowledge(&self, unknown: Vec<Request>, earliest_ms: u64) -> Knowledge {
        let times = Times { earliest_ms, latest_ms: now_ms() };
        Knowledge { model: self.model.clone(), unknown, times }
    }
}

fn bytes_of(words: &[String]) -> Vec<u8> {
    request(&words.iter().map(String::as_bytes).collect::<Vec<_>>())
}

/// Whether an error comes from the end of the server.
fn is_end(error: &io::Error) -> Result<(), String> {
    use ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, UnexpectedEof};
    match error.kind() {
        BrokenPipe | ConnectionRefused | ConnectionReset | UnexpectedEof => Ok(()),
        _ => Err(format!("a client gets no reply: {error}")),
    }
}
