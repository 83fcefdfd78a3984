// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What people ask a monitor, and its answers: each an object of JSON.
//!
//! A question is the first and only message of a connection. The answer comes in parts, and is
//! complete when the monitor hangs up. Users see their own connections; root and the user of the
//! monitor see all of them, and may change the rules.

use crate::activity::Family;
use crate::end::Place;
use crate::kept;
use crate::ledger::{EndNote, Refusal};
use crate::member::Member;
use crate::monitor::{Connection, Monitor};
use crate::slab::{Slab, Words, why_in_kernel};
use crate::sums;
use crate::text::printable;
use crate::{Error, Location, socket};
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::slab::{flag, word};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// What a question begins with, and no message of a member does.
pub const MARK: u8 = b'{';

/// The question of who wants the monitor to stay for as long as they live.
pub const STAY: &str = r#"{"do":"stay"}"#;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same where a command waits that can do without.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);
/// Longest part of an answer.
const PART_BYTES_MAX: usize = 64 << 10;

/// A monitor that can be asked.
pub struct Control {
    location: Location,
}

/// Which socket `why` is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// The process.
    pub pid: i32,
    /// The number of the descriptor in it.
    pub number: i32,
    /// The inode of the socket, if that is known.
    pub inode: Option<u64>,
}

impl Control {
    /// The monitor at that place. Each question makes a connection of its own.
    pub fn at(location: Location) -> Self {
        Self { location }
    }

    /// All connections that have a slot, and what was refused last.
    ///
    /// # Errors
    /// No monitor answers.
    pub fn list(&self) -> Result<Value, Error> {
        self.ask(&json!({"do": "list"}))
    }

    /// The counters.
    ///
    /// # Errors
    /// No monitor answers.
    pub fn stats(&self) -> Result<Value, Error> {
        self.ask(&json!({"do": "stats"}))
    }

    /// What the monitor knows of one socket: `state` is `accelerated`, `refused` or `unknown`.
    ///
    /// # Errors
    /// No monitor answers.
    pub fn why(&self, socket: Descriptor) -> Result<Value, Error> {
        let Descriptor { pid, number, inode } = socket;
        self.ask(&json!({"do": "why", "pid": pid, "descriptor": number, "inode": inode}))
    }

    /// Asks whether the rules let this user have accelerated connections at all. Does not wait for
    /// long: there may be another monitor.
    ///
    /// # Errors
    /// No monitor answers, it is of another release, or they do not.
    pub fn may(&self) -> Result<(), Error> {
        let answer = self.ask_within(&json!({"do": "may"}), SHORT_PATIENCE)?;
        if answer["version"] != freeport_sockets_proto::VERSION {
            return Err(Error::Answer);
        }
        Ok(())
    }

    /// Where it is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The rules, in their order.
    ///
    /// # Errors
    /// No monitor answers.
    pub fn rules(&self) -> Result<Value, Error> {
        self.ask(&json!({"do": "rules"}))
    }

    /// Puts a rule before the others.
    ///
    /// # Errors
    /// No monitor answers, or it refuses.
    pub fn put_rule(&self, rule: &str) -> Result<Value, Error> {
        self.ask(&json!({"do": "put rule", "rule": rule}))
    }

    /// Takes out the rule at a place, from 1 on.
    ///
    /// # Errors
    /// No monitor answers, or there is no such rule.
    pub fn remove_rule(&self, place: usize) -> Result<Value, Error> {
        self.ask(&json!({"do": "remove rule", "place": place}))
    }

    /// Wants those connections back in the kernel that the rules do not allow any more; gives how
    /// many of them are `pending`, and have `returned`.
    ///
    /// # Errors
    /// No monitor answers, or it refuses.
    pub fn recall(&self) -> Result<Value, Error> {
        self.ask(&json!({"do": "recall"}))
    }

    /// Wants the monitor to stay for as long as this process lives, whatever becomes of it. Does
    /// not wait for the answer.
    ///
    /// # Errors
    /// No monitor listens.
    pub fn stay(&self) -> Result<(), Error> {
        let connection = self.location.connect()?;
        let sent = socket::send(connection.as_fd(), STAY.as_bytes(), &[]);
        sent.map_err(|source| Error::System { what: "asking the monitor", source })
    }

    fn ask(&self, question: &Value) -> Result<Value, Error> {
        self.ask_within(question, PATIENCE)
    }

    fn ask_within(&self, question: &Value, patience: Duration) -> Result<Value, Error> {
        let connection = self.location.connect()?;
        let failed = |source| Error::System { what: "asking the monitor", source };
        socket::send(connection.as_fd(), question.to_string().as_bytes(), &[]).map_err(failed)?;
        let (mut answer, mut part) = (vec![], vec![0; PART_BYTES_MAX]);
        let until = Instant::now() + patience;
        // The kernel says so as well if the last part and the end come while it looks: it finds
        // nothing, and then the end. So who hears it first looks once more.
        let mut has_ended = false;
        loop {
            match socket::receive(connection.as_fd(), &mut part) {
                Ok(message) if message.length == 0 && has_ended => break,
                Ok(message) if message.length == 0 => has_ended = true,
                Ok(message) => answer.extend_from_slice(&part[..message.length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(&connection, until).map_err(failed)?;
                }
                Err(error) => return Err(failed(error)),
            }
        }
        let answer: Value = serde_json::from_slice(&answer).map_err(|_| Error::Answer)?;
        match answer["error"].as_str() {
            Some(error) => Err(Error::Refused(printable(error).into_owned())),
            None => Ok(answer),
        }
    }
}

fn wait(connection: &impl AsRawFd, until: Instant) -> io::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    let timeout = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
    let mut wanted = libc::pollfd { fd: connection.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor, and the structure lives as long as the call.
    match unsafe { libc::poll(&mut wanted, 1, timeout) } {
        0 => Err(io::ErrorKind::TimedOut.into()),
        1.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Answers a question of a user.
pub fn answer(monitor: &mut Monitor, question: &[u8], user: u32, now: Instant) -> String {
    // SAFETY: the call takes nothing and cannot fail.
    let is_trusted = user == 0 || user == unsafe { libc::geteuid() };
    let sees_user = |of| is_trusted || of == user;
    let Ok(question) = serde_json::from_slice::<Value>(question) else {
        return error("a question is an object of JSON").to_string();
    };
    let answer = match question["do"].as_str() {
        Some("list") => list(monitor, &sees_user, now),
        Some("stats") => stats(monitor, now),
        Some("why") => why(monitor, &question, &sees_user, now),
        Some("may") => may(monitor, user),
        Some("rules") => rules(monitor),
        Some("stay") => json!({}),
        Some("put rule" | "remove rule" | "recall") if !is_trusted => {
            error("only root and the user of the monitor change its rules, or go by them")
        }
        Some("recall") => recall(monitor),
        Some("put rule") => put_rule(monitor, &question),
        Some("remove rule") => remove_rule(monitor, &question),
        _ => error("this monitor cannot do that: use the same release for both"),
    };
    answer.to_string()
}

fn error(what: &str) -> Value {
    json!({ "error": what })
}

fn list(monitor: &Monitor, sees_user: &dyn Fn(u32) -> bool, now: Instant) -> Value {
    let sees = |end: &EndNote| sees_user(end.user);
    let mut connections = vec![];
    for (number, slab) in &monitor.slabs {
        for (slot, connection) in slab.used() {
            if connection.ends.iter().any(sees) {
                let words = slab.words(slot);
                connections.push(told_connection(*number, slot, connection, words, now));
            }
        }
    }
    let refused = monitor.ledger.refusals().rev().filter(|it| sees(&it.end));
    let refused: Vec<Value> = refused.map(|it| told_refusal(it, now)).collect();
    let members = monitor.members.values().filter(|it| sees_user(it.process.user));
    let kept: Vec<Value> = members.clone().flat_map(|it| told_kept(it, now)).collect();
    let programs: Vec<Value> = members.map(told_program).collect();
    json!({"connections": connections, "refused": refused, "kept": kept, "programs": programs})
}

/// What a member keeps in the kernel.
fn told_kept(member: &Member, now: Instant) -> Vec<Value> {
    let told = |socket: &kept::Socket| {
        let mut told = told_process(member);
        told["inode"] = socket.inode.into();
        told["reason"] = socket.reason.name().into();
        told["text"] = socket.reason.text().into();
        told["seconds_ago"] = seconds(socket.at, now).into();
        told
    };
    member.kept.all_sockets().map(told).collect()
}

/// A member, and what it has moved in connections that have ended.
fn told_program(member: &Member) -> Value {
    let mut told = told_process(member);
    let families = [Family::Tcp, Family::Unix].into_iter().zip(&member.ended);
    let ended = families.map(|(family, it)| (family.name().to_owned(), it.to_json()));
    told["ended"] = ended.collect::<serde_json::Map<String, Value>>().into();
    told
}

fn told_process(member: &Member) -> Value {
    let process = &member.process;
    json!({"pid": process.pid, "user": process.user, "command": process.command})
}

fn told_connection(
    slab: u32,
    slot: u32,
    connection: &Connection,
    words: [Words; 2],
    now: Instant,
) -> Value {
    let ends = connection.ends.iter().zip(&words).map(|(end, words)| {
        let mut told = told_end(end);
        let flags = words.at(word::FLAGS);
        let said = [
            ("attached", flag::ATTACHED),
            ("switched", flag::SWITCHED),
            ("closed", flag::CLOSED),
            ("declined", flag::DECLINED),
            ("leaves", flag::LEAVES),
        ];
        for (name, bit) in said {
            told[name] = (flags & bit != 0).into();
        }
        let counts = [
            ("switched_at", word::SWITCHED_AT),
            ("sent_bytes", word::SENT_BYTES),
            ("received_bytes", word::RECEIVED_BYTES),
            ("receives", word::RECEIVES),
            ("doorbells", word::DOORBELLS),
            ("sleeps", word::SLEEPS),
            ("reused", word::REUSED),
        ];
        for (name, at) in counts {
            told[name] = words.at(at).into();
        }
        told["sends"] = words.sends().into();
        told
    });
    let ends: Vec<Value> = ends.collect();
    let seconds = seconds(connection.since, now);
    let transport = if words.iter().any(Words::has_returned) { "kernel" } else { "shm" };
    let reason = why_in_kernel(&words).map(Reason::name);
    json!({
        "transport": transport,
        "reason": reason,
        "slab": slab,
        "slot": slot,
        "seconds": seconds,
        "ends": ends,
    })
}

fn told_end(end: &EndNote) -> Value {
    let address = |it: &Option<Place>| it.as_ref().map(Place::to_string);
    json!({
        "pid": end.pid,
        "user": end.user,
        "command": end.command,
        "descriptor": end.descriptor,
        "inode": end.inode,
        "family": end.local.as_ref().map(|it| it.family().name()),
        "local": address(&end.local),
        "remote": address(&end.remote),
    })
}

fn told_refusal(refusal: &Refusal, now: Instant) -> Value {
    let mut told = told_end(&refusal.end);
    told["reason"] = refusal.reason.name().into();
    told["text"] = refusal.reason.text().into();
    told["seconds_ago"] = seconds(refusal.at, now).into();
    told["times"] = refusal.times.into();
    told
}

fn seconds(since: Instant, now: Instant) -> f64 {
    let seconds = now.saturating_duration_since(since).as_secs_f64();
    (seconds * 1000.0).round() / 1000.0
}

fn stats(monitor: &Monitor, now: Instant) -> Value {
    let ledger = &monitor.ledger;
    let reasons = |counts: &HashMap<Reason, u64>| {
        let named = counts.iter().map(|(why, count)| (why.name().to_owned(), (*count).into()));
        named.collect::<serde_json::Map<String, Value>>()
    };
    let (refused, kept) = (reasons(&ledger.refused), reasons(&ledger.kept));
    let returned_for = reasons(&ledger.returned_for);
    let dropped = ledger.dropped.iter().map(|(why, count)| (format!("{why:?}"), (*count).into()));
    let dropped: serde_json::Map<String, Value> = dropped.collect();
    let open: usize = monitor.slabs.values().map(|slab| slab.used().count()).sum();
    let reused = monitor.slabs.values().flat_map(|slab| {
        slab.used().map(|(slot, it)| sums::believed(slab.reused(slot), it.since, now))
    });
    let reused = reused.fold(0, u64::saturating_add);
    let bytes: u64 = monitor.slabs.values().map(Slab::bytes).sum();
    json!({
        "pid": std::process::id(),
        "version": freeport_sockets_proto::VERSION,
        "seconds": seconds(monitor.begun, now),
        "members": monitor.members(),
        "members_ever": ledger.members,
        "members_dropped": dropped,
        "turned_away": ledger.turned_away,
        "claims": ledger.claims,
        "paired": ledger.paired,
        "refused": refused,
        "kept": kept,
        "kept_forgotten": ledger.kept_forgotten,
        "connections": open,
        "reused": reused.saturating_add(ledger.sums.reused),
        "slabs": monitor.slabs.len(),
        "slabs_ever": ledger.slabs,
        "slab_bytes": bytes,
        "passed": {
            "sockets": monitor.passed.count(),
            "times": monitor.passed.times,
            "forgotten": monitor.passed.forgotten,
        },
        "ended": {
            "connections": ledger.ended,
            "bytes": ledger.sums.bytes,
            "operations": ledger.sums.operations,
            "reused": ledger.sums.reused,
            "left_out": ledger.sums.left_out,
            "returned": ledger.returned,
            "returned_for": returned_for,
        },
    })
}

fn why(
    monitor: &Monitor,
    question: &Value,
    sees_user: &dyn Fn(u32) -> bool,
    now: Instant,
) -> Value {
    let sees = |end: &EndNote| sees_user(end.user);
    let is_it = |end: &EndNote| match question["inode"].as_u64() {
        Some(inode) => end.inode == inode,
        None => question["pid"] == end.pid && question["descriptor"] == end.descriptor,
    };
    let is_member = |it: &&Member| question["pid"] == it.process.pid && sees_user(it.process.user);
    let member = monitor.members.values().find(is_member);
    let kept = member.and_then(|it| it.kept.of(question["inode"].as_u64()?));
    for (number, slab) in &monitor.slabs {
        for (slot, connection) in slab.used() {
            if connection.ends.iter().any(|end| is_it(end) && sees(end)) {
                let words = slab.words(slot);
                if let Some(reason) = why_in_kernel(&words) {
                    let unused = kept.filter(|_| reason == Reason::Leaving);
                    return in_kernel(unused.map_or(reason, |kept| kept.reason));
                }
                let connection = told_connection(*number, slot, connection, words, now);
                return json!({"state": "accelerated", "connection": connection});
            }
        }
    }
    if monitor.waiting().any(|end| is_it(end) && sees(end)) {
        return in_kernel(Reason::Waiting);
    }
    let mut refusals = monitor.ledger.refusals().rev();
    let refusal = refusals.find(|it| is_it(&it.end) && sees(&it.end));
    match (refusal, kept) {
        (Some(refusal), kept) if kept.is_none_or(|kept| kept.at < refusal.at) => {
            json!({"state": "refused", "refusal": told_refusal(refusal, now)})
        }
        (_, Some(kept)) => in_kernel(kept.reason),
        _ => {
            let process = member.and_then(|it| it.kept.all()).map(Reason::name);
            json!({"state": "unknown", "member": member.is_some(), "process": process})
        }
    }
}

fn in_kernel(reason: Reason) -> Value {
    json!({"state": "kernel", "reason": reason.name(), "text": reason.text()})
}

fn may(monitor: &mut Monitor, user: u32) -> Value {
    match monitor.policy().may_have_any(user) {
        true => json!({"version": freeport_sockets_proto::VERSION}),
        false => error("the rules forbid all connections of this user"),
    }
}

fn rules(monitor: &mut Monitor) -> Value {
    let rules: Vec<String> = monitor.policy().rules().iter().map(ToString::to_string).collect();
    json!({ "rules": rules })
}

fn recall(monitor: &mut Monitor) -> Value {
    let recalled = monitor.recall();
    json!({"pending": recalled.pending, "returned": recalled.returned})
}

fn put_rule(monitor: &mut Monitor, question: &Value) -> Value {
    let rule = question["rule"].as_str().unwrap_or_default().parse();
    match rule.and_then(|rule| monitor.policy().put_first(rule)) {
        Ok(()) => rules(monitor),
        Err(wrong) => error(&wrong.to_string()),
    }
}

fn remove_rule(monitor: &mut Monitor, question: &Value) -> Value {
    let place = question["place"].as_u64().and_then(|it| usize::try_from(it).ok());
    match place.and_then(|place| monitor.policy().remove(place)) {
        Some(_) => rules(monitor),
        None => error("there is no rule at that place; `freeport sockets policy show` has them"),
    }
}
