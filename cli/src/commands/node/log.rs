// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log of a monitor: lines on standard error, as text or as JSON. Lines that other processes
//! cause are [limited](Limit).

use super::limit::Limit;
use crate::diagnostics::monitor_line;
use freeport_monitor::Event;
use serde_json::{Value, json};
use std::time::Instant;

/// Writes the log.
pub struct Log {
    json: bool,
    limit: Limit,
}

impl Log {
    pub fn new(json: bool) -> Self {
        Self { json, limit: Limit::new(Instant::now()) }
    }

    /// Logs an event, unless its user has caused too many.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Dropped { pid, user, command, why } => {
                let why = why.text();
                let about = json!({"pid": pid, "user": user, "command": command, "why": why});
                let text = format!("process {pid} ({command}) dropped: {why}");
                self.caused("dropped", *user, &about, &text);
            }
            Event::TurnedAway { pid, user } => {
                let about = json!({"pid": pid, "user": user});
                let text = format!("process {pid} of user {user} refused: too many connections");
                self.caused("turned away", *user, &about, &text);
            }
            Event::Stopped => self.last("stopped", "stops: a signal was received"),
            Event::Idle => self.last("idle", "stops: it had no members for the time of --idle"),
            _ => {}
        }
    }

    /// Logs an event of the monitor itself.
    pub fn line(&self, event: &str, about: &Value, text: &str) {
        if self.json {
            let mut about = about.clone();
            about["event"] = event.into();
            monitor_line(&about.to_string());
        } else {
            monitor_line(&format!("freeport node: {text}"));
        }
    }

    fn caused(&mut self, event: &'static str, user: u32, about: &Value, text: &str) {
        if let Some(left_out) = self.limit.admit((event, Some(user)), Instant::now()) {
            self.tell_left_out(left_out);
            self.line(event, about, text);
        }
    }

    fn last(&mut self, event: &str, text: &str) {
        let left_out = self.limit.left_out();
        self.tell_left_out(left_out);
        self.line(event, &json!({}), text);
    }

    fn tell_left_out(&self, lines: u64) {
        if lines > 0 {
            let text = format!("{lines} lines were left out: too many events");
            self.line("left out", &json!({ "lines": lines }), &text);
        }
    }
}
