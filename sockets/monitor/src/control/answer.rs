// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Answers in JSON, from snapshots.

use super::question::Asked;
use super::snapshot::{Connection, Known, Listing, Program, Statistics};
use crate::activity::Family;
use crate::end;
use crate::kept;
use crate::ledger::{EndNote, Refusal};
use crate::slab::{Words, why_in_kernel};
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::slab::{flag, word};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Instant;

/// Returns an error object with a message for users.
pub fn error(what: &str) -> Value {
    json!({ "error": what })
}

/// The answer to [`List`](super::Question::List).
pub fn list(listing: &Listing<'_>, now: Instant) -> Value {
    let connections = listing.connections.iter().map(|it| connection_as_json(it, now));
    let connections: Vec<Value> = connections.collect();
    let refused: Vec<Value> = listing.refusals.iter().map(|it| refusal_as_json(it, now)).collect();
    let kept: Vec<Value> = listing.programs.iter().flat_map(|it| kept_as_json(it, now)).collect();
    let programs: Vec<Value> = listing.programs.iter().map(program_as_json).collect();
    json!({"connections": connections, "refused": refused, "kept": kept, "programs": programs})
}

/// Returns the sockets that a member keeps in the kernel.
fn kept_as_json(program: &Program<'_>, now: Instant) -> Vec<Value> {
    let reported = |socket: &kept::Socket| {
        let mut reported = process_as_json(program);
        reported["inode"] = socket.inode.into();
        reported["reason"] = socket.reason.name().into();
        reported["text"] = socket.reason.text().into();
        reported["seconds_ago"] = seconds(socket.at, now).into();
        reported
    };
    program.kept.all_sockets().map(reported).collect()
}

/// Returns a member with the counts of its ended connections.
fn program_as_json(program: &Program<'_>) -> Value {
    let mut reported = process_as_json(program);
    let families = [Family::Tcp, Family::Unix].into_iter().zip(program.ended);
    let ended = families.map(|(family, it)| (family.name().to_owned(), it.to_json()));
    reported["ended"] = ended.collect::<serde_json::Map<String, Value>>().into();
    reported
}

fn process_as_json(program: &Program<'_>) -> Value {
    let process = program.process;
    json!({"pid": process.pid, "user": process.user, "command": process.command})
}

fn connection_as_json(connection: &Connection<'_>, now: Instant) -> Value {
    let Connection { slab, slot, words, .. } = connection;
    let ends = connection.ends.iter().zip(words).map(|(end, words)| {
        let mut reported = end_as_json(end);
        let flags = words.at(word::FLAGS);
        let said = [
            ("attached", flag::ATTACHED),
            ("switched", flag::SWITCHED),
            ("closed", flag::CLOSED),
            ("declined", flag::DECLINED),
            ("leaves", flag::LEAVES),
        ];
        for (name, bit) in said {
            reported[name] = (flags & bit != 0).into();
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
            reported[name] = words.at(at).into();
        }
        reported["sends"] = words.sends().into();
        reported
    });
    let ends: Vec<Value> = ends.collect();
    let seconds = seconds(connection.since, now);
    let transport = if words.iter().any(Words::has_returned) { "kernel" } else { "shm" };
    let reason = why_in_kernel(words).map(Reason::name);
    json!({
        "transport": transport,
        "reason": reason,
        "slab": slab,
        "slot": slot,
        "seconds": seconds,
        "ends": ends,
    })
}

fn end_as_json(end: &EndNote) -> Value {
    let address = |it: &Option<end::Place>| it.as_ref().map(end::Place::to_string);
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

fn refusal_as_json(refusal: &Refusal, now: Instant) -> Value {
    let mut reported = end_as_json(&refusal.end);
    reported["reason"] = refusal.reason.name().into();
    reported["text"] = refusal.reason.text().into();
    reported["seconds_ago"] = seconds(refusal.at, now).into();
    reported["times"] = refusal.times.into();
    reported
}

fn seconds(since: Instant, now: Instant) -> f64 {
    let seconds = now.saturating_duration_since(since).as_secs_f64();
    (seconds * 1000.0).round() / 1000.0
}

/// The answer to [`Statistics`](super::Question::Statistics).
pub fn statistics(statistics: &Statistics<'_>, now: Instant) -> Value {
    let ledger = statistics.ledger;
    let reasons = |counts: &HashMap<Reason, u64>| {
        let named = counts.iter().map(|(why, count)| (why.name().to_owned(), (*count).into()));
        named.collect::<serde_json::Map<String, Value>>()
    };
    let (refused, kept) = (reasons(&ledger.refused), reasons(&ledger.kept));
    let returned_for = reasons(&ledger.returned_for);
    let dropped = ledger.dropped.iter().map(|(why, count)| (format!("{why:?}"), (*count).into()));
    let dropped: serde_json::Map<String, Value> = dropped.collect();
    json!({
        "pid": std::process::id(),
        "version": freeport_sockets_proto::VERSION,
        "seconds": seconds(statistics.begun, now),
        "members": statistics.members,
        "members_ever": ledger.members,
        "members_dropped": dropped,
        "turned_away": ledger.turned_away,
        "claims": ledger.claims,
        "paired": ledger.paired,
        "refused": refused,
        "kept": kept,
        "kept_forgotten": ledger.kept_forgotten,
        "connections": statistics.connections,
        "reused": statistics.reused.saturating_add(ledger.sums.reused),
        "slabs": statistics.slabs,
        "slabs_ever": ledger.slabs,
        "slab_bytes": statistics.slab_bytes,
        "passed": {
            "sockets": statistics.passed.sockets,
            "times": statistics.passed.times,
            "forgotten": statistics.passed.forgotten,
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

/// The answer to [`Why`](super::Question::Why).
pub fn why(known: &Known<'_>, asked: Asked, now: Instant) -> Value {
    let kept = known.program.and_then(|it| it.kept.of(asked.inode?));
    if let Some(connection) = &known.connection {
        if let Some(reason) = why_in_kernel(&connection.words) {
            let unused = kept.filter(|_| reason == Reason::Leaving);
            return in_kernel(unused.map_or(reason, |kept| kept.reason));
        }
        let connection = connection_as_json(connection, now);
        return json!({"state": "accelerated", "connection": connection});
    }
    if known.is_waiting {
        return in_kernel(Reason::Waiting);
    }
    match (known.refusal, kept) {
        (Some(refusal), kept) if kept.is_none_or(|kept| kept.at < refusal.at) => {
            json!({"state": "refused", "refusal": refusal_as_json(refusal, now)})
        }
        (_, Some(kept)) => in_kernel(kept.reason),
        _ => {
            let process = known.program.and_then(|it| it.kept.all()).map(Reason::name);
            json!({"state": "unknown", "member": known.program.is_some(), "process": process})
        }
    }
}

fn in_kernel(reason: Reason) -> Value {
    json!({"state": "kernel", "reason": reason.name(), "text": reason.text()})
}

/// The answer to [`May`](super::Question::May).
pub fn may(may_have_any: bool) -> Value {
    match may_have_any {
        true => json!({"version": freeport_sockets_proto::VERSION}),
        false => error("the rules forbid all connections of this user"),
    }
}

/// The rules, in their order.
pub fn rules(rules: impl Iterator<Item = String>) -> Value {
    json!({ "rules": rules.collect::<Vec<_>>() })
}

/// The answer to [`Recall`](super::Question::Recall).
pub fn recalled(pending: usize, returned: usize) -> Value {
    json!({"pending": pending, "returned": returned})
}
