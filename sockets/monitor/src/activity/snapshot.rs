// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State at one time: accelerated connections, connections of the same programs in the kernel, and
//! the programs.

use super::{Counts, Existence, Existing, Family};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

/// An end of an accelerated connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// PID of its process.
    pub pid: i32,
    /// Name of its program.
    pub command: String,
    /// Number of its descriptor.
    pub descriptor: i64,
    /// Address of this end; `None` if the monitor does not report it.
    pub local: Option<String>,
    /// Address of the peer.
    pub remote: Option<String>,
    /// PID of the peer's process.
    pub peer_pid: i32,
    /// Name of the peer's program.
    pub peer_command: String,
    /// Kind of socket.
    pub family: Family,
    /// Its counts.
    pub counts: Counts,
    /// Slab, slot and inode: unique to this end.
    pub(super) name: (u64, u64, u64),
}

/// A connection in the kernel, of a program that has the library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InKernel {
    /// PID of its process.
    pub pid: i32,
    /// Name of its program.
    pub command: String,
    /// Number of its descriptor, if known.
    pub descriptor: Option<i64>,
    /// Address of this end, if reported.
    pub local: Option<String>,
    /// Address of the peer, if reported.
    pub remote: Option<String>,
    /// Reason, as the name of a `Reason`.
    pub reason: String,
    /// Explanation of the reason.
    pub text: String,
}

/// A process that has the library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// PID of the process.
    pub pid: i32,
    /// Name of the program.
    pub command: String,
    /// Counts of its TCP connections and of its Unix sockets since it connected to the monitor,
    /// ended ones included.
    pub counts: [Counts; 2],
}

/// Connections and programs at one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Time of the snapshot.
    pub at: Instant,
    /// Accelerated ends.
    pub ends: Vec<End>,
    /// Ends in the kernel that still exist.
    pub in_kernel: Vec<InKernel>,
    /// Programs that are connected to the monitor, or have an end.
    pub programs: Vec<Program>,
}

impl Snapshot {
    /// Parses the [listing](crate::Control::list) of a monitor. Sockets it remembers that no longer
    /// exist are left out, as far as their processes can be inspected.
    pub fn of(list: &Value, at: Instant) -> Self {
        let (mut ends, mut in_kernel) = (vec![], vec![]);
        for connection in array(&list["connections"]) {
            let sides = connection["ends"].as_array().map_or(&[][..], Vec::as_slice);
            let [first, second] = sides else { continue };
            for (own, peer) in [(first, second), (second, first)] {
                match connection["reason"].as_str() {
                    None => ends.push(end(connection, own, peer)),
                    Some(reason) => in_kernel.push(kernel_end(own, reason)),
                }
            }
        }
        in_kernel.extend(remembered(list, &in_kernel, &mut Existing::default()));
        let programs = programs(list, &ends, &in_kernel);
        Self { at, ends, in_kernel, programs }
    }
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn end(connection: &Value, own: &Value, peer: &Value) -> End {
    let mut counts = Counts::from_json(own);
    counts.peer_doorbells = peer["doorbells"].as_u64().unwrap_or_default();
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    End {
        pid: pid(own),
        command: text(own, "command"),
        descriptor: own["descriptor"].as_i64().unwrap_or(-1),
        local: address(own, "local"),
        remote: address(own, "remote"),
        peer_pid: pid(peer),
        peer_command: text(peer, "command"),
        family: Family::named(own["family"].as_str().unwrap_or_default()).unwrap_or(Family::Tcp),
        counts,
        name: (number(&connection["slab"]), number(&connection["slot"]), number(&own["inode"])),
    }
}

fn kernel_end(end: &Value, reason: &str) -> InKernel {
    let known = freeport_sockets_proto::Reason::named(reason);
    let words = end["text"].as_str().or(known.map(|it| it.text())).unwrap_or(reason);
    InKernel {
        pid: pid(end),
        command: text(end, "command"),
        descriptor: end["descriptor"].as_i64(),
        local: address(end, "local"),
        remote: address(end, "remote"),
        reason: reason.to_owned(),
        text: words.to_owned(),
    }
}

/// Returns the sockets that were refused or are kept in the kernel and still exist; each once, with
/// its most recent reason.
fn remembered(list: &Value, known: &[InKernel], existing: &mut Existing) -> Vec<InKernel> {
    let key = |it: &InKernel| (it.pid, it.descriptor);
    let mut seen: HashSet<_> = known.iter().map(key).collect();
    let past = array(&list["connections"]).filter(|it| it["reason"].is_null());
    let past = past.flat_map(|it| array(&it["ends"])).map(|it| (pid(it), it["inode"].as_u64()));
    let past: HashSet<_> = past.collect();
    let mut all: Vec<&Value> = array(&list["refused"]).chain(array(&list["kept"])).collect();
    let age = |it: &Value| it["seconds_ago"].as_f64().unwrap_or(f64::MAX);
    all.sort_by(|one, other| age(one).total_cmp(&age(other)));
    let mut found = vec![];
    for reported in all {
        let inode = reported["inode"].as_u64().unwrap_or_default();
        if past.contains(&(pid(reported), Some(inode))) {
            continue;
        }
        let mut end = kernel_end(reported, reported["reason"].as_str().unwrap_or_default());
        match existing.look(end.pid, inode) {
            Existence::Gone => continue,
            Existence::Open(number) => end.descriptor = Some(number.into()),
            Existence::Hidden => {}
        }
        if seen.insert(key(&end)) {
            found.push(end);
        }
    }
    found
}

/// Returns the programs with the counts of their ended and present connections.
fn programs(list: &Value, ends: &[End], in_kernel: &[InKernel]) -> Vec<Program> {
    let member = |reported: &Value| Program {
        pid: pid(reported),
        command: text(reported, "command"),
        counts: [Family::Tcp, Family::Unix]
            .map(|family| Counts::from_json(&reported["ended"][family.name()])),
    };
    let mut programs: BTreeMap<i32, Program> = BTreeMap::new();
    let nothing = |pid: i32, command: &str| {
        let (command, counts) = (command.to_owned(), [Counts::default(); 2]);
        Program { pid, command, counts }
    };
    for program in array(&list["programs"]).map(member) {
        let same =
            programs.entry(program.pid).or_insert_with(|| nothing(program.pid, &program.command));
        same.counts = [0, 1].map(|at| same.counts[at].plus(&program.counts[at]));
    }
    let kernel = in_kernel.iter().map(|it| (it.pid, &it.command));
    for (pid, command) in ends.iter().map(|it| (it.pid, &it.command)).chain(kernel) {
        programs.entry(pid).or_insert_with(|| nothing(pid, command));
    }
    for end in ends {
        let Some(program) = programs.get_mut(&end.pid) else { continue };
        let counts = &mut program.counts[end.family as usize];
        *counts = counts.plus(&end.counts);
    }
    programs.into_values().collect()
}

fn pid(end: &Value) -> i32 {
    end["pid"].as_i64().and_then(|it| it.try_into().ok()).unwrap_or_default()
}

fn text(end: &Value, name: &str) -> String {
    end[name].as_str().unwrap_or_default().to_owned()
}

fn address(end: &Value, name: &str) -> Option<String> {
    end[name].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_list_becomes_ends_and_programs() {
        let side = |pid: i32, sent: u64, doorbells: u64| {
            json!({"pid": pid, "command": "it", "descriptor": 5, "inode": 9, "family": "unix",
                   "local": "/run/a", "sent_bytes": sent, "sends": 2, "doorbells": doorbells})
        };
        let connection = |reason: Value| {
            let ends = [side(7, 100, 1), side(8, 50, 3)];
            json!({"slab": 1, "slot": 2, "reason": reason, "ends": ends})
        };
        let ended = json!({"tcp": {"sent_bytes": 11}, "unix": {"sent_bytes": 1000}});
        let list = json!({
            "connections": [connection(Value::Null), connection("HandedOn".into())],
            "programs": [{"pid": 7, "command": "it", "ended": ended}],
        });
        let snapshot = Snapshot::of(&list, Instant::now());
        assert_eq!(snapshot.ends.len(), 2);
        let first = &snapshot.ends[0];
        assert_eq!((first.pid, first.peer_pid, first.family), (7, 8, Family::Unix));
        assert_eq!((first.counts.doorbells, first.counts.peer_doorbells), (1, 3));
        assert_eq!(first.local.as_deref(), Some("/run/a"));
        let reasons: Vec<_> = snapshot.in_kernel.iter().map(|it| it.reason.as_str()).collect();
        assert_eq!(reasons, ["HandedOn"; 2]);
        let of = |pid| snapshot.programs.iter().find(|it| it.pid == pid).unwrap().counts;
        assert_eq!(of(7).map(|it| it.sent_bytes), [11, 1100]);
        assert_eq!(of(8).map(|it| it.sent_bytes), [0, 50]);
    }

    #[test]
    fn only_sockets_that_exist_are_in_the_kernel_and_each_is_there_once() {
        let pid = std::process::id();
        let (one, _other) = UnixStream::pair().unwrap();
        let inode = std::fs::metadata(format!("/proc/self/fd/{}", one.as_raw_fd())).unwrap().ino();
        let reported = |inode: u64, reason: &str, ago: f64| {
            json!({"pid": pid, "descriptor": 3, "inode": inode, "reason": reason,
                   "seconds_ago": ago})
        };
        let list = json!({
            "refused": [reported(inode, "PeerPlain", 9.0), reported(u64::MAX, "PeerPlain", 1.0)],
            "kept": [reported(inode, "Stdio", 2.0)],
        });
        let found = Snapshot::of(&list, Instant::now()).in_kernel;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].reason.as_str(), found[0].descriptor),
            ("Stdio", Some(one.as_raw_fd().into()))
        );
        assert_eq!(found[0].text, "a stream of the C library (FILE) uses it");
    }

    #[test]
    fn a_list_of_anything_gives_nothing() {
        for list in [json!(null), json!({"connections": [1, {"ends": [{}]}], "refused": "x"})] {
            let snapshot = Snapshot::of(&list, Instant::now());
            assert!(snapshot.ends.is_empty() && snapshot.programs.is_empty(), "{snapshot:?}");
        }
    }
}
