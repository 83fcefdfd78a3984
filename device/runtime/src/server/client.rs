// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The client's side of a running program: finds it by name, asks, and reads answers.

use super::folder::{FolderError, RunFolder};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long an answer may take: a worker answers between two batches.
const MOST_WAIT: Duration = Duration::from_secs(60);

/// A connection to a running program.
pub struct Client {
    name: String,
    answers: BufReader<UnixStream>,
}

/// Why a running program gives no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The folder of sockets.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Nobody is there.
    #[error("no program named {name} runs{}", others(known))]
    NotThere {
        /// Who was looked for.
        name: String,
        /// Who is there.
        known: Vec<String>,
    },
    /// Nobody at all.
    #[error("no program runs; begin one with `freeport run --name NAME`")]
    NobodyThere,
    /// More than one.
    #[error("several programs run; say which with --to: {}", .0.join(", "))]
    Several(Vec<String>),
    /// The connection.
    #[error("{name}: {source}; does it still run? `freeport ps` tells")]
    Connection {
        /// To whom.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The answer is none.
    #[error("{0} gives an answer that is none")]
    Answer(String),
    /// What the program says is wrong with the request.
    #[error("{0}")]
    Refused(String),
}

fn others(known: &[String]) -> String {
    match known.is_empty() {
        true => ", and no other; `freeport ps` tells of those that do".to_owned(),
        false => format!("; there are {}", known.join(", ")),
    }
}

impl Client {
    /// Connects to the program of that name; without a name, to the only one that runs.
    ///
    /// # Errors
    /// None, several, or one that does not let us in.
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

    /// The names of programs that run.
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

    /// None if nobody is at the socket.
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

    /// The program's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks, and waits for the result.
    ///
    /// # Errors
    /// The connection, or what the program says is wrong.
    pub fn ask(&mut self, request: &Value) -> Result<Value, ClientError> {
        self.send(format!("{request}\n").as_bytes())?;
        self.next_answer()
    }

    /// Sends lines, each a request; their answers come in the same order.
    ///
    /// # Errors
    /// The connection.
    pub fn send(&mut self, lines: &[u8]) -> Result<(), ClientError> {
        let sent = self.answers.get_mut().write_all(lines);
        sent.map_err(|source| ClientError::Connection { name: self.name.clone(), source })
    }

    /// The result of the oldest request that has none yet.
    ///
    /// # Errors
    /// The connection, or what the program says is wrong.
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
