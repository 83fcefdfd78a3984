// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes between two snapshots: the rate of each count, and the estimated saving.

use super::{Costs, Counts, End, Estimate, Family, InKernel, Snapshot};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Counts over a period, and an estimate of their cost.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Rates {
    /// Counts of the whole period.
    pub counts: Counts,
    /// Their estimated cost.
    pub estimate: Estimate,
    seconds: f64,
}

/// Rates of an accelerated end.
#[derive(Clone, PartialEq, Debug)]
pub struct EndRates {
    /// The end.
    pub end: End,
    /// Its rates.
    pub rates: Rates,
}

/// Rates of a program, including its connections that ended during the period.
#[derive(Clone, PartialEq, Debug)]
pub struct ProgramRates {
    /// PID of the program.
    pub pid: i32,
    /// Name of the program.
    pub command: String,
    /// Number of its accelerated ends.
    pub accelerated: usize,
    /// Number of its ends in the kernel that the monitor knows of.
    pub in_kernel: usize,
    /// Its rates.
    pub rates: Rates,
}

/// Sort key: the largest value comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// Bytes in both directions.
    Bytes,
    /// Operations in both directions.
    Messages,
    /// Doorbells.
    Doorbells,
    /// Estimated processor time saved.
    Saved,
}

/// Rates of all programs and ends between two snapshots.
#[derive(Clone, Debug)]
pub struct Activity {
    /// Length of the period in seconds.
    pub seconds: f64,
    /// Programs with ends or traffic.
    pub programs: Vec<ProgramRates>,
    /// Accelerated ends.
    pub ends: Vec<EndRates>,
    /// Ends in the kernel.
    pub in_kernel: Vec<InKernel>,
}

impl Rates {
    fn of(counts: Counts, family: Family, seconds: f64, costs: &Costs) -> Self {
        Self { counts, estimate: costs.estimate(&counts, family), seconds }
    }

    fn plus(self, other: Self) -> Self {
        let estimate = self.estimate.plus(other.estimate);
        Self { counts: self.counts.plus(&other.counts), estimate, seconds: self.seconds }
    }

    /// Converts a count of the period to a rate per second.
    pub fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }

    /// Estimated saving in processors: 1.0 is one processor's full time.
    pub fn saved_processors(&self) -> f64 {
        if self.seconds > 0.0 { self.estimate.saved_seconds() / self.seconds } else { 0.0 }
    }

    fn weight(&self, key: Key) -> f64 {
        match key {
            Key::Bytes => self.counts.bytes() as f64,
            Key::Messages => self.counts.messages() as f64,
            Key::Doorbells => self.counts.doorbells as f64,
            Key::Saved => self.estimate.saved_seconds(),
        }
    }

    /// Adds the rates to a JSON object.
    fn put_into(&self, reported: &mut Value) {
        let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
        let counts = &self.counts;
        for (name, count) in [
            ("sent_messages_per_second", counts.sends),
            ("received_messages_per_second", counts.receives),
            ("sent_bytes_per_second", counts.sent_bytes),
            ("received_bytes_per_second", counts.received_bytes),
            ("doorbells_per_second", counts.doorbells),
            ("sleeps_per_second", counts.sleeps),
        ] {
            reported[name] = rounded(self.per_second(count)).into();
        }
        reported["slept_share"] = counts.slept_share().map(rounded).into();
        let saved = (self.saved_processors() * 1e6).round() / 1e6;
        reported["estimated_saved_processors"] = saved.into();
        reported["estimated_gain"] = self.estimate.gain().map(rounded).into();
    }
}

impl Activity {
    /// Computes the changes from one snapshot to the next.
    pub fn between(before: &Snapshot, after: &Snapshot, costs: &Costs) -> Self {
        let seconds = after.at.saturating_duration_since(before.at).as_secs_f64();
        let known: HashMap<_, _> = before.ends.iter().map(|it| (it.name, it.counts)).collect();
        let ends = after.ends.iter().map(|end| {
            let counts = end.counts.since(known.get(&end.name).unwrap_or(&Counts::default()));
            let rates = Rates::of(counts, end.family, seconds, costs);
            EndRates { end: end.clone(), rates }
        });
        let earlier: HashMap<_, _> = before.programs.iter().map(|it| (it.pid, it.counts)).collect();
        let has = [
            how_often(after.ends.iter().map(|it| it.pid)),
            how_often(after.in_kernel.iter().map(|it| it.pid)),
        ];
        let programs = after.programs.iter().map(|program| {
            let earlier = earlier.get(&program.pid).copied().unwrap_or_default();
            let counts = [0, 1].map(|at| program.counts[at].since(&earlier[at]));
            let [accelerated, in_kernel] =
                [0, 1].map(|at| has[at].get(&program.pid).copied().unwrap_or_default());
            let [tcp, unix] = [(counts[0], Family::Tcp), (counts[1], Family::Unix)]
                .map(|(counts, family)| Rates::of(counts, family, seconds, costs));
            let command = program.command.clone();
            let rates = tcp.plus(unix);
            ProgramRates { pid: program.pid, command, accelerated, in_kernel, rates }
        });
        let programs = programs.filter(ProgramRates::is_reported).collect();
        Self { seconds, programs, ends: ends.collect(), in_kernel: after.in_kernel.clone() }
    }

    /// Computes the totals of a snapshot's programs, since they connected to the monitor.
    pub fn until(snapshot: &Snapshot, costs: &Costs) -> Self {
        let nothing =
            Snapshot { at: snapshot.at, ends: vec![], in_kernel: vec![], programs: vec![] };
        Self::between(&nothing, snapshot, costs)
    }

    /// Sorts by this key, descending; ties by process and descriptor.
    pub fn sort(&mut self, key: Key) {
        let order = |one: &Rates, other: &Rates| other.weight(key).total_cmp(&one.weight(key));
        self.programs
            .sort_by(|one, other| order(&one.rates, &other.rates).then(one.pid.cmp(&other.pid)));
        self.ends.sort_by(|one, other| {
            let place = |it: &EndRates| (it.end.pid, it.end.descriptor);
            order(&one.rates, &other.rates).then(place(one).cmp(&place(other)))
        });
        self.in_kernel.sort_by_key(|it| (it.pid, it.reason.clone(), it.descriptor));
    }

    /// Returns the rates as a JSON object.
    pub fn to_json(&self) -> Value {
        let programs = self.programs.iter().map(|program| {
            let mut reported = json!({
                "pid": program.pid,
                "command": program.command,
                "accelerated": program.accelerated,
                "in_kernel": program.in_kernel,
            });
            program.rates.put_into(&mut reported);
            reported
        });
        let past = self.ends.iter().map(|it| {
            let end = &it.end;
            let mut reported = json!({
                "pid": end.pid,
                "command": end.command,
                "descriptor": end.descriptor,
                "local": end.local,
                "remote": end.remote,
                "peer_pid": end.peer_pid,
                "peer_command": end.peer_command,
                "family": end.family.name(),
                "transport": "shm",
            });
            it.rates.put_into(&mut reported);
            reported
        });
        let kernel = self.in_kernel.iter().map(|end| {
            json!({
                "pid": end.pid,
                "command": end.command,
                "descriptor": end.descriptor,
                "local": end.local,
                "remote": end.remote,
                "transport": "kernel",
                "reason": end.reason,
                "text": end.text,
            })
        });
        let connections: Vec<Value> = past.chain(kernel).collect();
        json!({
            "seconds": (self.seconds * 1000.0).round() / 1000.0,
            "programs": programs.collect::<Vec<Value>>(),
            "connections": connections,
        })
    }
}

impl ProgramRates {
    /// Returns the counts, not the rates, as a JSON object: for [`Activity::until`].
    pub fn totals_to_json(&self) -> Value {
        let mut reported = self.rates.counts.to_json();
        reported["pid"] = self.pid.into();
        reported["command"] = self.command.clone().into();
        reported["accelerated"] = self.accelerated.into();
        reported["in_kernel"] = self.in_kernel.into();
        let rounded = |value: f64| (value * 1e6).round() / 1e6;
        let estimate = self.rates.estimate;
        reported["estimated_saved_seconds"] = rounded(estimate.saved_seconds()).into();
        reported["estimated_gain"] = estimate.gain().map(rounded).into();
        reported
    }

    fn is_reported(&self) -> bool {
        self.accelerated + self.in_kernel > 0 || self.rates.counts != Counts::default()
    }
}

fn how_often(pids: impl Iterator<Item = i32>) -> HashMap<i32, usize> {
    let mut times = HashMap::new();
    pids.for_each(|pid| *times.entry(pid).or_default() += 1);
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn list(ends: &[(u64, u64)], ended: u64) -> Value {
        let connection = |(inode, sends): &(u64, u64)| {
            let side = |pid: i32, inode: u64| {
                json!({"pid": pid, "inode": inode, "family": "tcp", "sends": sends,
                       "sent_bytes": 10 * sends, "receives": 2 * sends, "sleeps": sends})
            };
            json!({"slab": 1, "slot": inode, "ends": [side(1, *inode), side(2, inode + 1)]})
        };
        let connections: Vec<Value> = ends.iter().map(connection).collect();
        let ended = json!({"tcp": {"sends": ended}});
        json!({"connections": connections, "programs": [{"pid": 1, "ended": ended}]})
    }

    #[test]
    fn rates_are_of_the_time_between() {
        let begun = Instant::now();
        let before = Snapshot::of(&list(&[(10, 100), (20, 7)], 0), begun);
        // The second connection has ended at 20, and a third one is new.
        let after = Snapshot::of(&list(&[(10, 300), (30, 4)], 20), begun + Duration::from_secs(2));
        let mut activity = Activity::between(&before, &after, &Costs::assumed());
        activity.sort(Key::Messages);
        let reported = activity.to_json();
        assert_eq!(
            (&reported["seconds"], &reported["connections"][0]["pid"]),
            (&json!(2.0), &json!(1))
        );
        let first = &reported["connections"][0];
        assert_eq!(first["sent_messages_per_second"], 100.0);
        assert_eq!(first["received_messages_per_second"], 200.0);
        assert_eq!(
            (&first["sent_bytes_per_second"], &first["slept_share"]),
            (&json!(1000.0), &json!(0.5))
        );
        assert!(first["estimated_gain"].as_f64().unwrap() > 1.0, "{first}");
        assert_eq!(reported["connections"][2]["sent_messages_per_second"], 2.0);
        let program = &reported["programs"][0];
        // 200 of the first, 13 of the second before it ended, 4 of the third.
        assert_eq!(
            (&program["pid"], &program["sent_messages_per_second"]),
            (&json!(1), &json!(108.5))
        );
        assert_eq!(program["accelerated"], 2);
    }

    #[test]
    fn each_key_puts_its_most_first() {
        let side = |pid: i32, bytes: u64, sends: u64, doorbells: u64| {
            json!({"pid": pid, "inode": pid, "sent_bytes": bytes, "sends": sends,
                   "doorbells": doorbells})
        };
        let ends = [side(1, 9000, 1, 0), side(2, 10, 500, 0)];
        let others = [side(3, 20, 2, 90), side(4, 0, 0, 0)];
        let list = json!({"connections": [{"ends": ends}, {"ends": others}]});
        let snapshot = Snapshot::of(&list, Instant::now());
        let mut activity = Activity::until(&snapshot, &Costs::assumed());
        for (key, expected) in
            [(Key::Bytes, 1), (Key::Messages, 2), (Key::Doorbells, 3), (Key::Saved, 2)]
        {
            activity.sort(key);
            assert_eq!((activity.programs[0].pid, activity.ends[0].end.pid), (expected, expected));
        }
        assert_eq!(activity.programs.len(), 4);
        assert_eq!(activity.to_json()["connections"][0]["sent_bytes_per_second"], 0.0);
    }
}
