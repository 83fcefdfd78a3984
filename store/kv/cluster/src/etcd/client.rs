// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls of an etcd cluster: the members are tried in turn until a deadline.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::endpoint::{Answer, Connection, Endpoint};
use super::messages::{AuthenticateAnswer, Refusal};
use super::options::EtcdOptions;
use crate::registry::RegistryError;

/// Numbers of gRPC.
mod code {
    pub(super) const INVALID_ARGUMENT: u32 = 3;
    pub(super) const NOT_FOUND: u32 = 5;
    pub(super) const PERMISSION_DENIED: u32 = 7;
    pub(super) const RESOURCE_EXHAUSTED: u32 = 8;
    pub(super) const FAILED_PRECONDITION: u32 = 9;
    pub(super) const OUT_OF_RANGE: u32 = 11;
    pub(super) const UNIMPLEMENTED: u32 = 12;
    pub(super) const UNAUTHENTICATED: u32 = 16;
}

/// An etcd cluster.
pub(super) struct Client {
    endpoints: Vec<Endpoint>,
    /// The member that answered last, or the one after a member that did not.
    preferred: AtomicUsize,
    user: Option<(String, String)>,
    /// The session of the user, as an HTTP header has it.
    token: Mutex<Option<String>>,
}

/// A call has failed.
#[derive(Debug)]
pub(super) enum CallError {
    /// Nothing was changed: why.
    Failed(String),
    /// The answer is missing, so the request may have been executed: why.
    Unknown(String),
    /// The session of the user has ended, and nothing was changed.
    Unauthenticated(String),
}

/// The treatment of a request whose answer is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// It is sent to the next member.
    Yes,
    /// It could be executed twice, so the caller has to find out.
    No,
}

impl Client {
    pub(super) fn new(options: &EtcdOptions) -> Self {
        Self {
            endpoints: options.endpoints.iter().cloned().map(Endpoint::new).collect(),
            preferred: AtomicUsize::new(0),
            user: options.user.clone(),
            token: Mutex::default(),
        }
    }

    /// Sends a request, and returns its answer.
    pub(super) fn call<T: DeserializeOwned>(
        &self,
        path: &str,
        request: &Value,
        deadline: Instant,
        repeat: Repeat,
    ) -> Result<T, CallError> {
        let body = serde_json::to_vec(request).expect("a value of JSON has a text");
        let token = self.authenticate(deadline)?;
        match self.call_members(path, &body, token.as_deref(), deadline, repeat) {
            Err(CallError::Unauthenticated(_)) if token.is_some() => {
                self.forget_token();
                let token = self.authenticate(deadline)?;
                self.call_members(path, &body, token.as_deref(), deadline, repeat)
            }
            result => result,
        }
    }

    /// The token of the user, from an earlier call or a new one; none if no user is configured.
    fn authenticate(&self, deadline: Instant) -> Result<Option<String>, CallError> {
        let Some((name, password)) = &self.user else { return Ok(None) };
        if let Some(token) = &*self.token.lock().expect("no holder of the lock panics") {
            return Ok(Some(token.clone()));
        }
        let body = json!({"name": name, "password": password}).to_string();
        let path = "/v3/auth/authenticate";
        let answer = self.call_members(path, body.as_bytes(), None, deadline, Repeat::Yes);
        let AuthenticateAnswer { token } = answer.map_err(|error| match error {
            CallError::Unknown(reason) => CallError::Failed(reason),
            error => error,
        })?;
        // It becomes a line of a header.
        if token.chars().any(char::is_control) {
            return Err(CallError::Failed("the token of the user is malformed".to_owned()));
        }
        *self.token.lock().expect("no holder of the lock panics") = Some(token.clone());
        Ok(Some(token))
    }

    fn forget_token(&self) {
        *self.token.lock().expect("no holder of the lock panics") = None;
    }

    fn call_members<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &[u8],
        token: Option<&str>,
        deadline: Instant,
        repeat: Repeat,
    ) -> Result<T, CallError> {
        self.each_member(deadline, |endpoint, deadline| {
            let request = endpoint.request(path, token, body);
            let called = match repeat {
                Repeat::Yes => endpoint.call(&request, deadline),
                Repeat::No => endpoint.call_once(&request, deadline),
            };
            let name = endpoint.name();
            match called {
                Ok(answer) => parse(&name, &answer).map_err(|error| Tried { error, repeat }),
                Err(failure) if failure.was_sent => {
                    let error = CallError::Unknown(describe(&name, &failure.error));
                    Err(Tried { error, repeat })
                }
                Err(failure) => {
                    let error = CallError::Failed(describe(&name, &failure.error));
                    Err(Tried { error, repeat: Repeat::Yes })
                }
            }
        })
    }

    /// Begins a request whose answer does not end, and returns the connection behind the head.
    pub(super) fn begin(
        &self,
        path: &str,
        request: &Value,
        deadline: Instant,
    ) -> Result<Connection, CallError> {
        let body = serde_json::to_vec(request).expect("a value of JSON has a text");
        let token = self.authenticate(deadline)?;
        self.each_member(deadline, |endpoint, deadline| {
            let name = endpoint.name();
            let begun = endpoint.begin(&endpoint.request(path, token.as_deref(), &body), deadline);
            let reason = match begun {
                Ok((connection, head)) if head.status == 200 => return Ok(connection),
                Ok((_, head)) => format!("{name}: HTTP status {} for {path}", head.status),
                Err(error) => describe(&name, &error),
            };
            // The token may be too old. The next call gets another.
            self.forget_token();
            Err(Tried { error: CallError::Failed(reason), repeat: Repeat::Yes })
        })
    }

    /// Tries the members in turn, the preferred one first. Each gets an equal part of the time that
    /// is left.
    fn each_member<T>(
        &self,
        deadline: Instant,
        mut attempt: impl FnMut(&Endpoint, Instant) -> Result<T, Tried>,
    ) -> Result<T, CallError> {
        let (count, first) = (self.endpoints.len(), self.preferred.load(Ordering::Relaxed));
        let mut reasons = vec![];
        let mut is_unknown = false;
        for number in 0..count {
            let at = (first + number) % count;
            let left = deadline.saturating_duration_since(Instant::now());
            let part = left / (count - number) as u32;
            match attempt(&self.endpoints[at], Instant::now() + part) {
                Ok(value) => {
                    self.preferred.store(at, Ordering::Relaxed);
                    return Ok(value);
                }
                Err(Tried { error: error @ CallError::Unauthenticated(_), .. }) => {
                    return Err(error);
                }
                Err(Tried { error, repeat }) => {
                    // The next call begins with another, also if this one ends here.
                    self.preferred.store((at + 1) % count, Ordering::Relaxed);
                    match error {
                        CallError::Unknown(_) if repeat == Repeat::No => return Err(error),
                        CallError::Failed(reason) => reasons.push(reason),
                        CallError::Unknown(reason) | CallError::Unauthenticated(reason) => {
                            is_unknown = true;
                            reasons.push(reason);
                        }
                    }
                }
            }
        }
        let reason = reasons.join("; ");
        Err(if is_unknown { CallError::Unknown(reason) } else { CallError::Failed(reason) })
    }
}

/// An attempt that has failed, and what may be done next.
struct Tried {
    error: CallError,
    repeat: Repeat,
}

fn parse<T: DeserializeOwned>(name: &str, answer: &Answer) -> Result<T, CallError> {
    if answer.status == 200 {
        return serde_json::from_slice(&answer.body).map_err(|error| {
            CallError::Unknown(format!("{name}: the answer is malformed: {error}"))
        });
    }
    let refusal = match serde_json::from_slice::<Refusal>(&answer.body) {
        Ok(refusal) => refusal,
        Err(_) if answer.status == 404 => {
            return Err(CallError::Failed(format!(
                "{name}: this is no etcd of version 3.4 or later"
            )));
        }
        Err(_) => {
            return Err(CallError::Unknown(format!("{name}: HTTP status {}", answer.status)));
        }
    };
    let reason = format!("{name}: {}{}", refusal.words(), advice(&refusal));
    Err(match refusal.code {
        code::INVALID_ARGUMENT if refusal.words().contains("auth store is old") => {
            CallError::Unauthenticated(reason)
        }
        code::UNAUTHENTICATED => CallError::Unauthenticated(reason),
        code::INVALID_ARGUMENT
        | code::NOT_FOUND
        | code::PERMISSION_DENIED
        | code::RESOURCE_EXHAUSTED
        | code::FAILED_PRECONDITION
        | code::OUT_OF_RANGE
        | code::UNIMPLEMENTED => CallError::Failed(reason),
        // It may have been handed to the other members before.
        _ => CallError::Unknown(reason),
    })
}

/// Advice to the operator for refusals that nodes cannot mend.
fn advice(refusal: &Refusal) -> &'static str {
    match refusal.code {
        code::INVALID_ARGUMENT if refusal.words().contains("user name is empty") => {
            "; etcd wants a user: etcd://USER:PASSWORD@HOST:PORT/PREFIX"
        }
        code::PERMISSION_DENIED => "; grant the user all keys of the registry's prefix",
        code::RESOURCE_EXHAUSTED => "; compact and defragment etcd, then disarm its alarm",
        _ => "",
    }
}

fn describe(name: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => format!("{name}: no answer in time"),
        io::ErrorKind::UnexpectedEof => format!("{name}: the connection was closed"),
        _ => format!("{name}: {error}"),
    }
}

impl From<CallError> for RegistryError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Failed(reason)
            | CallError::Unknown(reason)
            | CallError::Unauthenticated(reason) => Self::Unavailable(reason),
        }
    }
}
