// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients of Redis that connect while the server reads its folder.
//!
//! Until the workers begin, a thread accepts these clients and reads their requests, as far as it
//! can answer them without keys and users:
//!
//! - a command that needs the data is refused with `LOADING`, as in Redis;
//! - `INFO` says how far the server is;
//! - commands that Redis executes meanwhile, such as `AUTH`, `HELLO` and `CLIENT`, change or show
//!   what only workers have. They wait, with everything behind them.
//!
//! Then the thread ends, and the workers take the clients over, with the bytes that were not
//! answered. Clients of other protocols and those that encrypt wait until then to be accepted. If
//! there is a file of users, so do all.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use freeport_kv_commands::arguments::is;
use freeport_kv_commands::{Flags, Table};
use freeport_kv_journal::Progress;
use freeport_kv_protocol::resp::{Read as Next, RequestLimits, RequestReader, Version, Writer};
use mio::event::Event;
use mio::{Events, Poll, Token, Waker};
use smallvec::SmallVec;

use crate::commands::{Action, table};
use crate::listener::{Listener, Stream};
use crate::shared::now_ms;

/// Token of the waker. Those of listeners are their numbers.
const WAKER: Token = Token(usize::MAX);
/// Token of the first client.
const GUESTS: usize = 1 << 10;
/// Bytes that are read at once.
const BUFFER_BYTES: usize = 16 << 10;
/// Bytes of one request, or of replies that a client has not taken, above which it has to wait.
const PATIENT_BYTES: usize = 64 << 10;
const REFUSAL: &str = "LOADING Redis is loading the dataset in memory";

/// The thread that accepts clients. It ends when this value is dropped.
#[derive(Debug)]
pub struct Loading {
    state: Arc<State>,
    waker: Waker,
    thread: Option<JoinHandle<Desk>>,
}

/// How far the server is.
#[derive(Debug)]
struct State {
    is_over: AtomicBool,
    bytes: AtomicU64,
    total_bytes: AtomicU64,
    started: Instant,
    started_s: u64,
}

/// A client that was accepted.
#[derive(Debug)]
pub struct Guest {
    /// Its socket, of which no worker hears at present.
    pub stream: Stream,
    /// Its address as text.
    pub address: String,
    /// Bytes that were received and not answered.
    pub input: Vec<u8>,
    output: Vec<u8>,
    reader: RequestReader,
    waits: bool,
}

/// State of the thread.
struct Desk {
    poll: Poll,
    listeners: Vec<Listener>,
    guests: HashMap<usize, Guest>,
    guests_max: usize,
    last: usize,
    table: Table<Action>,
    state: Arc<State>,
}

impl Loading {
    /// Accepts clients at those of the listeners that are for clients of Redis without encryption.
    ///
    /// # Errors
    /// Those of the system.
    pub fn begin(mut listeners: Vec<Listener>, guests_max: usize) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        for (number, listener) in listeners.iter_mut().enumerate() {
            if listener.is_plain() {
                listener.register(poll.registry(), Token(number))?;
            }
        }
        let state = Arc::new(State {
            is_over: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
            total_bytes: AtomicU64::new(0),
            started: Instant::now(),
            started_s: now_ms() / 1_000,
        });
        let desk = Desk {
            poll,
            listeners,
            guests: HashMap::new(),
            guests_max,
            last: GUESTS,
            table: table(),
            state: state.clone(),
        };
        let thread = std::thread::Builder::new().name("kv-loading".into());
        let thread = Some(thread.spawn(move || desk.run())?);
        Ok(Self { state, waker, thread })
    }

    /// Notes how far the server is.
    pub fn note(&self, progress: Progress) {
        self.state.bytes.store(progress.bytes, Ordering::Relaxed);
        self.state.total_bytes.store(progress.total_bytes, Ordering::Relaxed);
    }

    /// Ends the thread. Returns the listeners in their order, and the clients.
    ///
    /// # Errors
    /// Those of the system.
    pub fn end(mut self) -> io::Result<(Vec<Listener>, Vec<Guest>)> {
        let Some(desk) = self.stop() else { return Err(io::Error::other("the thread failed")) };
        let Desk { poll, mut listeners, guests, .. } = desk;
        for listener in listeners.iter_mut().filter(|listener| listener.is_plain()) {
            listener.deregister(poll.registry())?;
        }
        let is_heard = |guest: &mut Guest| {
            // One that does not take its replies is disconnected.
            guest.output.is_empty() && guest.stream.deregister(poll.registry()).is_ok()
        };
        let mut guests: Vec<_> = guests.into_iter().collect();
        guests.sort_unstable_by_key(|(token, _)| *token);
        let guests = guests.into_iter().map(|(_, guest)| guest);
        Ok((listeners, guests.filter_map(|mut it| is_heard(&mut it).then_some(it)).collect()))
    }

    fn stop(&mut self) -> Option<Desk> {
        let thread = self.thread.take()?;
        self.state.is_over.store(true, Ordering::Release);
        // The descriptor exists while this does.
        let _ = self.waker.wake();
        // A panic was reported by the thread.
        thread.join().ok()
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Desk {
    fn run(mut self) -> Self {
        let mut events = Events::with_capacity(64);
        while !self.state.is_over.load(Ordering::Acquire) {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
                _ => {}
            }
            for event in &events {
                match event.token() {
                    WAKER => {}
                    Token(number) if number < GUESTS => self.accept(number),
                    _ => self.serve(event),
                }
            }
        }
        self
    }

    /// Accepts clients. Those above the limit, and those that descriptors are missing for, wait for
    /// the workers.
    fn accept(&mut self, number: usize) {
        while self.guests.len() < self.guests_max {
            let Ok((mut stream, address)) = self.listeners[number].accept() else { return };
            self.last += 1;
            if stream.register(self.poll.registry(), Token(self.last)).is_ok() {
                let reader = RequestReader::new(RequestLimits::default());
                let (input, output, waits) = (vec![], vec![], false);
                let guest = Guest { stream, address, input, output, reader, waits };
                self.guests.insert(self.last, guest);
            }
        }
    }

    fn serve(&mut self, event: &Event) {
        let Token(token) = event.token();
        let Some(guest) = self.guests.get_mut(&token) else { return };
        if !guest.serve(|words, output| self.state.answer(&self.table, words, output)) {
            self.guests.remove(&token);
        }
    }
}

impl Guest {
    /// Reads requests, and answers as many as possible. Returns false if the client has gone.
    fn serve(&mut self, answer: impl Fn(&[&[u8]], &mut Vec<u8>) -> bool) -> bool {
        let mut buffer = [0; BUFFER_BYTES];
        loop {
            if !self.send() {
                return false;
            }
            if self.waits || self.output.len() > PATIENT_BYTES {
                return true;
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(bytes) => self.input.extend_from_slice(&buffer[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return false,
            }
            let used = self.answer_requests(&answer);
            self.input.drain(..used);
            self.waits |= self.input.len() > PATIENT_BYTES;
        }
    }

    /// Returns the bytes of answered requests.
    fn answer_requests(&mut self, answer: impl Fn(&[&[u8]], &mut Vec<u8>) -> bool) -> usize {
        let mut used = 0;
        while !self.waits {
            match self.reader.read(&self.input[used..]) {
                Ok(Next::Complete(request)) => {
                    let words: SmallVec<[&[u8]; 16]> = request.iter().collect();
                    match answer(&words, &mut self.output) {
                        true => used += request.bytes(),
                        false => self.waits = true,
                    }
                }
                Ok(Next::Incomplete { .. }) => break,
                // Its worker answers it, and ends the connection.
                Err(_) => self.waits = true,
            }
        }
        used
    }

    /// Sends as much as the socket takes. Returns false if the client has gone.
    fn send(&mut self) -> bool {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(0) => return false,
                Ok(bytes) => _ = self.output.drain(..bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

impl State {
    /// Answers a request. Returns false if it has to wait.
    fn answer(&self, table: &Table<Action>, words: &[&[u8]], output: &mut Vec<u8>) -> bool {
        let Some(name) = words.first() else { return true };
        let mut reply = Writer::new(output, Version::Two);
        if is(name, "info") {
            reply.bulk(self.info(&words[1..]).as_bytes());
            return true;
        }
        let command = table.get(name);
        if command.is_some_and(|command| command.spec.of(words).flags.has(Flags::LOADING)) {
            return false;
        }
        reply.error(REFUSAL);
        true
    }

    /// The section of `INFO` that can be written without data, if it is asked for.
    fn info(&self, words: &[&[u8]]) -> String {
        let shown = ["persistence", "default", "all", "everything"];
        if !words.is_empty() && !words.iter().any(|word| shown.iter().any(|it| is(word, it))) {
            return String::new();
        }
        let bytes = self.bytes.load(Ordering::Relaxed);
        let total = self.total_bytes.load(Ordering::Relaxed).max(bytes).max(1);
        let percent = bytes as f64 * 100.0 / total as f64;
        let left = (total - bytes) as f64 / bytes.max(1) as f64;
        let eta_s = match bytes {
            0 => -1,
            _ => (self.started.elapsed().as_secs_f64() * left).ceil() as i64,
        };
        format!(
            "# Persistence\r\nloading:1\r\nasync_loading:0\r\nloading_start_time:{}\r\n\
             loading_total_bytes:{total}\r\nloading_loaded_bytes:{bytes}\r\n\
             loading_loaded_perc:{percent:.2}\r\nloading_eta_seconds:{eta_s}\r\n",
            self.started_s
        )
    }
}
