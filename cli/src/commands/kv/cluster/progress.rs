// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How far moves of slots are, as the nodes that give them report it.

use super::names::counted;
use crate::commands::kv::login::Login;
use crate::progress::ProgressLine;
use freeport_kv_cluster::{Address, SlotSet, Topology};
use freeport_kv_protocol::resp::Value;
use serde::Serialize;
use std::thread::Builder;
use std::time::Duration;

/// Longest time to wait for a node.
pub const REPLYING: Duration = Duration::from_secs(2);

/// Begin of the lines of `INFO cluster` about a move.
const LINE: &str = "cluster_move_";

/// A move, as its source reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The slots.
    pub slots: String,
    /// Name of the step.
    pub state: String,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Bytes to be sent, as far as is known.
    pub total_bytes: u64,
    /// Why the last attempt failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// All moves under way.
pub struct MoveProgress {
    /// Slots that are being moved.
    pub slots: usize,
    /// Reports of the nodes that answer.
    pub reports: Vec<Report>,
}

impl MoveProgress {
    /// Asks the primary of each shard that gives slots. One that does not answer within `limit` is
    /// left out.
    pub fn of(topology: &Topology, login: &Login, limit: Duration) -> Self {
        let slots = topology.moves.iter().map(|one| one.slots.len()).sum();
        let is_giving = |id| topology.moves.iter().any(|one| one.from == id);
        let sources = topology.shards.iter().filter(|shard| is_giving(shard.id));
        let ask = |address: &Address| {
            let mut connection = login.connect(address, limit).ok()?;
            match connection.run(&["INFO", "cluster"]).ok()? {
                Value::Bulk(text) | Value::Verbatim { text, .. } => {
                    Some(reports(&String::from_utf8_lossy(&text)))
                }
                _ => None,
            }
        };
        // All at once, so that several which do not answer take no longer than one.
        let reports = std::thread::scope(|scope| {
            let threads = sources.filter_map(|shard| {
                let address = &shard.primary().address;
                Builder::new().spawn_scoped(scope, move || ask(address)).ok()
            });
            let threads: Vec<_> = threads.collect();
            // Without a thread's answer, the moves are shown without progress.
            let answers = threads.into_iter().filter_map(|thread| thread.join().ok().flatten());
            answers.flatten().collect()
        });
        Self { slots, reports }
    }

    /// The report about a move.
    pub fn report(&self, slots: &SlotSet) -> Option<&Report> {
        let slots = slots.to_string();
        self.reports.iter().find(|report| report.slots == slots)
    }

    /// Asks, and shows a line, if one is due. `left` is the time that is left for it.
    pub fn show(topology: &Topology, login: &Login, left: Duration, line: &mut ProgressLine) {
        if line.is_due() && !topology.moves.is_empty() {
            Self::of(topology, login, left.min(REPLYING)).tell(line);
        }
    }

    fn tell(&self, line: &mut ProgressLine) {
        let (bytes, total) = self.reports.iter().fold((0_u64, 0_u64), |(bytes, total), report| {
            (bytes.saturating_add(report.bytes), total.saturating_add(report.total_bytes))
        });
        let slots = counted(self.slots, "slot");
        line.tell(&format!("{slots} to move; {bytes} of {total} bytes sent"));
    }
}

/// The moves that the source of the text gives away.
fn reports(info: &str) -> Vec<Report> {
    let lines = info.lines().filter(|line| line.starts_with(LINE));
    let moves = lines.filter_map(|line| {
        let (_, fields) = line.split_once(':')?;
        let field = |name: &str| field(fields, name).unwrap_or_default().to_owned();
        let number = |name: &str| field(name).parse().unwrap_or(0);
        Some(Report {
            // Ranges are joined by `+`, because fields are by commas.
            slots: field("slots").replace('+', ","),
            state: field("state"),
            bytes: number("bytes"),
            total_bytes: number("total_bytes"),
            error: field("error"),
        })
    });
    moves.collect()
}

/// The value of a field in `a=1,b=2`.
fn field<'a>(fields: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = fields.split(',').filter_map(|field| field.split_once('='));
    pairs.find_map(|(found, value)| (found == name).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_are_read_from_the_information_of_a_node() {
        let info = "# Cluster\r\ncluster_enabled:1\r\n\
                    cluster_move_0:to=ab,slots=0-5+9,state=copying,bytes=12,total_bytes=30,\
                    error=\r\n\
                    cluster_import_0:from=ab,slots=7,state=following,bytes=1\r\n\
                    cluster_move_1:to=cd,slots=11,state=failed,bytes=x,error=no; not yet\r\n";
        let first = Report {
            slots: "0-5,9".to_owned(),
            state: "copying".to_owned(),
            bytes: 12,
            total_bytes: 30,
            error: String::new(),
        };
        let second = Report {
            slots: "11".to_owned(),
            state: "failed".to_owned(),
            error: "no; not yet".to_owned(),
            ..Report::default()
        };
        assert_eq!(reports(info), [first, second]);
    }
}
