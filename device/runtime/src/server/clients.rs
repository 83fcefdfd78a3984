// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server's side of the socket: a thread that accepts clients, and one thread per client, which
//! reads lines, limits their size, has the worker execute them and writes the answers.
//!
//! Requests that have arrived together go to the worker together, so that a stream of a hundred
//! thousand rules costs one hand-over per batch and not one per rule.

use super::folder::{FolderError, RunFolder, Taken};
use super::handle::{Answer, Handle};
use super::members::RequestError;
use super::request::MOST_REQUEST_BYTES;
use super::work::Protocol;
use crate::layout::parse_json;
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum number of connected clients.
const MOST_CLIENTS: usize = 256;
/// Maximum number of requests that go to the worker together.
const MOST_TOGETHER: usize = 256;
/// Time after which a silent client is disconnected.
const MOST_SILENCE: Duration = Duration::from_secs(600);
/// Time after which a client that does not read its answer is disconnected.
const MOST_UNREAD: Duration = Duration::from_secs(30);
/// Maximum time that a closing server waits for answers to be written.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// Stack size of a client's thread, which may compile a program.
const STACK_BYTES: usize = 8 << 20;

/// A server of a program's socket, until it is dropped.
pub struct Server {
    taken: Taken,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    clients: usize,
    /// Clients whose requests the worker has, or whose answers are being written.
    busy: usize,
    is_closing: bool,
}

impl Server {
    /// Takes `name` in `folder` and serves clients: `protocol` turns their requests into work, and
    /// `handle` passes it to the worker.
    ///
    /// # Errors
    /// A name that is taken or invalid, a folder that other users can access, or no thread.
    pub fn start<P: Protocol>(
        folder: &RunFolder,
        name: &str,
        handle: Handle<P::Work>,
        protocol: P,
    ) -> Result<Self, FolderError> {
        let protocol = Arc::new(protocol);
        let taken = folder.take(name)?;
        let shared = Arc::new(Shared::default());
        let failed = |source| FolderError::File { path: taken.socket.clone(), source };
        let listener = taken.listener.try_clone().map_err(failed)?;
        let for_clients = shared.clone();
        let accepting = std::thread::Builder::new().name("control".into()).spawn(move || {
            for stream in listener.incoming() {
                if for_clients.state().is_closing {
                    return;
                }
                match stream {
                    Ok(stream) => for_clients.let_in(stream, &handle, &protocol),
                    // No descriptors, or no memory: a later attempt may succeed.
                    Err(_) => std::thread::sleep(Duration::from_millis(10)),
                }
            }
        });
        let accepting = Some(accepting.map_err(failed)?);
        tracing::info!(path = %taken.socket.display(), "listening");
        Ok(Self { taken, shared, accepting })
    }

    /// Returns the path of the socket.
    pub fn socket(&self) -> &std::path::Path {
        &self.taken.socket
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.state().is_closing = true;
        // This wakes the thread that accepts clients. If no connection is possible, no thread
        // accepts.
        if UnixStream::connect(&self.taken.socket).is_ok()
            && let Some(accepting) = self.accepting.take()
        {
            // A thread that has panicked has ended as well.
            let _ = accepting.join();
        }
        let state = self.shared.state();
        let waits = |state: &mut State| state.busy > 0;
        drop(self.shared.changed.wait_timeout_while(state, LAST_ANSWERS, waits));
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // The counters are consistent at every moment, even after a panic of a thread.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread for a client, or refuses the client if there are too many.
    fn let_in<P: Protocol>(
        self: &Arc<Self>,
        mut stream: UnixStream,
        handle: &Handle<P::Work>,
        protocol: &Arc<P>,
    ) {
        let has_limits = stream.set_read_timeout(Some(MOST_SILENCE)).is_ok()
            && stream.set_write_timeout(Some(MOST_UNREAD)).is_ok();
        if !has_limits {
            return;
        }
        if self.state().clients >= MOST_CLIENTS {
            tracing::warn!(clients = MOST_CLIENTS, "client turned away: too many are connected");
            let error = json!({"error": format!("{MOST_CLIENTS} clients are connected already")});
            // A client that does not read misses the reason.
            let _ = stream.write_all(format!("{error}\n").as_bytes());
            return;
        }
        self.state().clients += 1;
        tracing::debug!("client connected");
        let (shared, handle, protocol) = (self.clone(), handle.clone(), protocol.clone());
        let thread = std::thread::Builder::new().name("client".into()).stack_size(STACK_BYTES);
        let begun = thread.spawn(move || {
            // An error of a client's socket ends only that client.
            let _ = Conversation { stream, handle, protocol, shared: shared.clone() }.proceed();
            shared.state().clients -= 1;
        });
        if begun.is_err() {
            self.state().clients -= 1;
        }
    }
}

/// The connection with a client.
struct Conversation<P: Protocol> {
    stream: UnixStream,
    handle: Handle<P::Work>,
    protocol: Arc<P>,
    shared: Arc<Shared>,
}

/// A line: the client's number for the request, if any, and the requested work or an error.
type Line<W> = (Option<Value>, Result<W, String>);

impl<P: Protocol> Conversation<P> {
    /// Answers requests until the client disconnects.
    fn proceed(&mut self) -> io::Result<()> {
        let mut unread = vec![];
        let mut piece = vec![0; 64 << 10];
        loop {
            let count = self.stream.read(&mut piece)?;
            if count == 0 {
                return Ok(());
            }
            // A line that arrives in several pieces is searched only once.
            let searched = unread.len();
            unread.extend_from_slice(&piece[..count]);
            let Some(end) = unread[searched..].iter().rposition(|byte| *byte == b'\n') else {
                if unread.len() > MOST_REQUEST_BYTES {
                    let error = format!("a request has at most {MOST_REQUEST_BYTES} bytes");
                    return self.write(&[(None, Err(error))]);
                }
                continue;
            };
            let rest = unread.split_off(searched + end + 1);
            let lines = unread.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let lines: Vec<&[u8]> = lines.filter(|line| !line.trim_ascii().is_empty()).collect();
            for together in lines.chunks(MOST_TOGETHER) {
                self.answer(together.iter().map(|line| self.parse(line)).collect())?;
            }
            unread = rest;
        }
    }

    /// Has the worker execute the valid requests, and writes an answer for each line.
    fn answer(&mut self, lines: Vec<Line<P::Work>>) -> io::Result<()> {
        let mut requests = vec![];
        let lines: Vec<(Option<Value>, Option<String>)> = lines
            .into_iter()
            .map(|(id, request)| match request {
                Ok(request) => {
                    requests.push(request);
                    (id, None)
                }
                Err(error) => (id, Some(error)),
            })
            .collect();
        self.shared.state().busy += 1;
        let count = requests.len();
        let answers = if count == 0 { Some(vec![]) } else { self.handle.ask_all(requests) };
        let ended = || vec![Err("the program has ended".to_owned()); count];
        let mut answers = answers.unwrap_or_else(ended).into_iter();
        let answers: Vec<(Option<Value>, Answer)> = lines
            .into_iter()
            .map(|(id, error)| match error {
                Some(error) => (id, Err(error)),
                None => (id, answers.next().unwrap_or(Ok(Value::Null))),
            })
            .collect();
        let written = self.write(&answers);
        self.shared.state().busy -= 1;
        self.shared.changed.notify_all();
        written
    }

    fn write(&mut self, answers: &[(Option<Value>, Answer)]) -> io::Result<()> {
        let mut text = String::new();
        for (id, answer) in answers {
            let mut object = match answer {
                Ok(result) => json!({"ok": result}),
                Err(error) => {
                    tracing::info!(error, "request failed");
                    json!({ "error": error })
                }
            };
            if let Some(id) = id {
                object["id"] = id.clone();
            }
            text += &object.to_string();
            text.push('\n');
        }
        self.stream.write_all(text.as_bytes())
    }

    fn parse(&self, line: &[u8]) -> Line<P::Work> {
        if line.len() > MOST_REQUEST_BYTES {
            return (None, Err(format!("a request has at most {MOST_REQUEST_BYTES} bytes")));
        }
        let mut value: Value = match parse_json(line) {
            Ok(value) => value,
            Err(error) => return (None, Err(RequestError::Json(error.to_string()).to_string())),
        };
        let id = value.as_object_mut().and_then(|members| members.remove("id"));
        (id, self.protocol.work(value))
    }
}
