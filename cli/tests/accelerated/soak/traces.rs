// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Resources that remain after processes have ended: connections, processes, descriptors, memory.

use super::cast::{Player, Role};
use super::{Soak, processes};
use crate::harness::Node;
use std::collections::{BTreeSet, HashMap};

/// Additional descriptors of a server that clients may cause: to the monitor, and to logs.
const MORE_DESCRIPTORS: usize = 2;
/// Connections that the monitor may still list: some end before its answer arrives, which a resting
/// process does not read.
const KEPT: u64 = 100;
/// Memory of their slabs, in KiB.
const KEPT_KIB: u64 = 1 << 10;
/// Memory of slabs that one process has mapped, in KiB: those of an ended monitor stay mapped until
/// the next upgrade.
const SLABS_KIB: u64 = 128 << 10;
/// Allowed growth of the monitor's memory, in KiB.
const MONITOR_KIB: u64 = 16 << 10;

/// Earlier observations.
#[derive(Default)]
pub struct Traces {
    /// Number of descriptors of each process of a server.
    descriptors: HashMap<(i32, String), usize>,
    /// Memory of the monitor, by process.
    memory: HashMap<(i32, String), u64>,
    /// Slabs that are mapped by all processes, and the maximum of one process.
    slabs: usize,
    most_slabs: usize,
    monitor: (usize, u64),
}

impl Traces {
    pub fn reported(&self) -> String {
        format!(
            "{} slabs mapped, {} by one; the monitor has {} descriptors and {} KiB",
            self.slabs, self.most_slabs, self.monitor.0, self.monitor.1
        )
    }
}

/// Checks the processes while all clients rest.
pub fn look(soak: &mut Soak) {
    let ports = ports(&soak.players);
    soak.wait("no connection is left", |_| processes::sockets(&ports, false).is_empty());
    // A killed worker may be missing until there is a request.
    soak.wait("no server has more processes than at its start", |soak| {
        soak.players.iter().all(|player| match player.role {
            Role::Server { processes, .. } => (1..=processes).contains(&player.processes().len()),
            Role::Client { .. } => true,
        })
    });
    if !soak.monitor.is_gone() {
        soak.wait("the monitor knows of no connection", |soak| {
            let stats = soak.node.stats();
            let number = |name: &str| stats[name].as_u64().expect("a number");
            number("connections") <= KEPT && number("slab_bytes") <= KEPT_KIB << 10
        });
        look_at_monitor(soak);
    }
    soak.wait("servers have as many descriptors as before", |soak| {
        let before = &mut soak.traces.descriptors;
        let mut servers = soak.players.iter().filter(|player| !player.is_client());
        servers.all(|server| {
            server.processes().into_iter().all(|pid| {
                let now = processes::descriptors(pid).len();
                now <= *before.entry(processes::name(pid)).or_insert(now) + MORE_DESCRIPTORS
            })
        })
    });
    let pids: Vec<i32> = soak.players.iter().flat_map(Player::processes).collect();
    let slabs: Vec<(i32, (usize, u64))> =
        pids.into_iter().map(|pid| (pid, processes::slabs(pid))).collect();
    soak.traces.slabs = slabs.iter().map(|(_, (count, _))| count).sum();
    soak.traces.most_slabs = slabs.iter().map(|(_, (count, _))| *count).max().unwrap_or(0);
    for (pid, (count, kibibytes)) in slabs {
        if kibibytes > SLABS_KIB {
            let what =
                format!("process {pid} has {kibibytes} KiB of {count} slabs without clients");
            soak.watch.fail(&what, &[pid], &soak.node);
        }
    }
}

fn look_at_monitor(soak: &mut Soak) {
    let pid = soak.monitor.pid;
    let descriptors = processes::descriptors(pid);
    let slabs = descriptors.iter().filter(|it| it.contains("freeport-slab")).count();
    let stats = soak.node.stats();
    let known = stats["slabs"].as_u64().expect("a number") as usize;
    if slabs > known + 1 {
        soak.watch.fail(&format!("{slabs} slabs are open, {stats}"), &[pid], &soak.node);
    }
    let members = stats["members"].as_u64().expect("a number") as usize;
    let most = members + slabs + 40;
    if descriptors.len() > most {
        let what = format!("the monitor has {} descriptors, {stats}", descriptors.len());
        soak.watch.fail(&what, &[pid], &soak.node);
    }
    let memory = processes::memory(pid);
    let before = *soak.traces.memory.entry(processes::name(pid)).or_insert(memory);
    soak.traces.monitor = (descriptors.len(), memory);
    if memory > before + MONITOR_KIB {
        let what = format!("the monitor has {memory} KiB, and had {before}");
        soak.watch.fail(&what, &[pid], &soak.node);
    }
}

/// Checks after the end of all processes except the monitor.
pub fn look_at_end(soak: &mut Soak) {
    let ports = ports(&soak.players);
    soak.wait_alone("no port is taken", || processes::sockets(&ports, true).is_empty());
    if !soak.monitor.is_gone() {
        let node: &Node = &soak.node;
        soak.wait_alone("the monitor has no slab", || {
            let stats = node.stats();
            stats["members"] == 0 && stats["slabs"] == 0 && stats["connections"] == 0
        });
        look_at_monitor(soak);
        soak.monitor.end();
    }
    let node = &soak.node;
    soak.wait_alone("no process is left", || processes::in_folder(node.path()).is_empty());
}

fn ports(players: &[Player]) -> BTreeSet<u16> {
    let place = |player: &Player| match &player.role {
        Role::Server { place, .. } => place.rsplit(':').next()?.parse().ok(),
        Role::Client { .. } => None,
    };
    players.iter().filter_map(place).collect()
}
