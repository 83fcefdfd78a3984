// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The client's side of a running program: finds the program by name, sends requests, and reads
//! answers.

use super::folder::{FolderError, RunFolder};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Maximum time to wait for an answer: a worker answers between two batches.
const MOST_WAIT: Duration = Duration::from_secs(60);

/// A connection to a running program.
pub struct Client {
    name: String,
    answers: BufReader<UnixStream>,
}

/// Reason why a request to a running program has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The folder of sockets cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// No program of that name runs.
    #[error("no program named {name} is running{}", others(known))]
    NotThere {
        /// The requested name.
        name: String,
        /// Names of the running programs.
        known: Vec<String>,
    },
    /// No program runs.
    #[error("no program is running; start one with `freeport run --name NAME`")]
    NobodyThere,
    /// Several programs run, and none was named.
    #[error("several programs are running; select one with --to: {}", .0.join(", "))]
    Several(Vec<String>),
    /// The connection failed.
    #[error("{name}: {source}; check with `freeport ps` whether it is still running")]
    Connection {
        /// Name of the program.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The answer is malformed.
    #[error("{0} sent a malformed answer")]
    Answer(String),
    /// The program refuses the request, with its reason.
    #[error("{0}")]
    Refused(String),
}

fn others(known: &[String]) -> String {
    match known.is_empty() {
        true => ", nor any other; `freeport ps` lists running programs".to_owned(),
        false => format!("; there are {}", known.join(", ")),
    }
}

impl Client {
    /// Connects to the program of that name, or without a name to the only running one.
    ///
    /// # Errors
    /// No such program, several programs without a name, or a refused connection.
    pub fn connect(folder: &RunFolder, name: Option<&str>) -> Result<Self, ClientError> {
        match name {
            Some(name) => match Self::try_connect(folder, name)? {
                Some(client) => Ok(client),
                None => {
                    let known = Self::living(folder)?;
                    Err(ClientError::NotThere { name: name.to_owned(), known })
                }
            },
            None => {
                let mut living = Self::living(folder)?;
                match (living.pop(), living.is_empty()) {
                    (None, _) => Err(ClientError::NobodyThere),
                    (Some(only), true) => Self::connect(folder, Some(&only)),
                    (Some(last), false) => {
                        living.push(last);
                        Err(ClientError::Several(living))
                    }
                }
            }
        }
    }

    /// Returns the names of the running programs.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn living(folder: &RunFolder) -> Result<Vec<String>, ClientError> {
        let mut living = vec![];
        for name in folder.names()? {
            if let Ok(Some(_)) = Self::try_connect(folder, &name) {
                living.push(name);
            }
        }
        Ok(living)
    }

    /// Connects to a program; returns none if no process listens at the socket.
    fn try_connect(folder: &RunFolder, name: &str) -> Result<Option<Self>, ClientError> {
        let failed = |source| ClientError::Connection { name: name.to_owned(), source };
        let stream = match UnixStream::connect(folder.socket(name)?) {
            Ok(stream) => stream,
            Err(error)
                if [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused]
                    .contains(&error.kind()) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(failed(error)),
        };
        stream.set_read_timeout(Some(MOST_WAIT)).map_err(failed)?;
        stream.set_write_timeout(Some(MOST_WAIT)).map_err(failed)?;
        Ok(Some(Self { name: name.to_owned(), answers: BufReader::new(stream) }))
    }

    /// Returns the program's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends a request and waits for the result.
    ///
    /// # Errors
    /// The connection failed, or the program refuses the request.
    pub fn ask(&mut self, request: &Value) -> Result<Value, ClientError> {
        self.send(format!("{request}\n").as_bytes())?;
        self.next_answer()
    }

    /// Sends lines, each with one request; the answers arrive in the same order.
    ///
    /// # Errors
    /// The connection failed.
    pub fn send(&mut self, lines: &[u8]) -> Result<(), ClientError> {
        let sent = self.answers.get_mut().write_all(lines);
        sent.map_err(|source| ClientError::Connection { name: self.name.clone(), source })
    }

    /// Waits for the result of the oldest unanswered request.
    ///
    /// # Errors
    /// The connection failed, or the program refuses the request.
    pub fn next_answer(&mut self) -> Result<Value, ClientError> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line);
        let failed = |source| ClientError::Connection { name: self.name.clone(), source };
        if read.map_err(failed)? == 0 {
            return Err(failed(io::ErrorKind::UnexpectedEof.into()));
        }
        let no_answer = || ClientError::Answer(self.name.clone());
        let mut answer: Value = serde_json::from_str(&line).map_err(|_| no_answer())?;
        match (answer.get_mut("ok").map(Value::take), &answer["error"]) {
            (Some(result), _) => Ok(result),
            (None, Value::String(error)) => Err(ClientError::Refused(error.clone())),
            _ => Err(no_answer()),
        }
    }
}
