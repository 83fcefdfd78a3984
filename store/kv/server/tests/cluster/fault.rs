// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults and changes of a cluster, and how they are mended.

use std::thread;
use std::time::Duration;

use fastrand::Rng;

use super::fleet::Fleet;
use super::moves::Moving;
use super::process::Node;
use super::progress::{Progress, advance, wait_for};

/// Something that happens to a shard while clients write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// `kill -9` of the primary. It comes back when its replica has taken its place.
    KillPrimary,
    /// `kill -9` of the replicas.
    KillReplicas,
    /// `kill -9` of all nodes.
    KillShard,
    /// The primary stands still until its replica has taken its place.
    PausePrimary,
    /// The replicas are killed. After some requests, which no replica has, the primary is killed,
    /// and the replicas come back.
    LoseNewest,
    /// A replica takes the place of its primary on demand.
    HandOver,
    /// Slots of a client move to another shard.
    Move,
    /// The same, while the primary that has them is killed.
    MoveFromKilled,
    /// The same, while the primary that gets them is killed.
    MoveToKilled,
}

impl Fault {
    /// No acknowledged request is lost, even if it was not confirmed.
    pub fn is_harmless(self) -> bool {
        matches!(self, Self::KillReplicas | Self::HandOver | Self::Move)
    }

    /// Terms that it begins in one shard, at most: at a hand-over, the old primary ends its own by
    /// one, and the new one begins another.
    pub fn terms(self) -> u64 {
        if self == Self::HandOver { 2 } else { 0 }
    }
}

/// A whole cluster with clients that write.
pub struct Scene<'a> {
    pub fleet: &'a mut Fleet,
    pub progress: &'a [Progress],
    /// The slot of a client.
    pub slot: u16,
    pub random: &'a mut Rng,
}

impl Scene<'_> {
    /// Has a fault happen, and returns when it is mended and all clients write again.
    ///
    /// # Errors
    /// A client has ended, or something takes too long.
    pub fn happen(&mut self, fault: Fault) -> Result<(), String> {
        let shards = self.fleet.shards();
        let shard = &shards[self.random.usize(..shards.len())];
        let (primary, replicas) = shard.split_first().expect("a shard has a primary");
        self.pause(3);
        match fault {
            Fault::KillPrimary => self.kill_for_a_while(&[*primary]),
            Fault::KillReplicas => self.kill_for_a_while(replicas),
            Fault::KillShard => {
                self.kill(shard);
                self.start();
                self.advance()
            }
            Fault::PausePrimary => {
                self.fleet.nodes[*primary].pause();
                let end = self.advance();
                self.fleet.nodes[*primary].resume();
                end
            }
            Fault::LoseNewest => {
                self.kill(replicas);
                advance(self.progress, 5)?;
                self.kill(&[*primary]);
                replicas.iter().for_each(|replica| self.fleet.nodes[*replica].start());
                self.advance()
            }
            Fault::HandOver => {
                self.fleet.ask_to_lead(replicas[0]);
                let fleet = &self.fleet;
                wait_for("the replica leads", self.progress, || fleet.is_primary(replicas[0]))
            }
            Fault::Move => self.move_slots(|_| None),
            Fault::MoveFromKilled => self.move_slots(|moving| Some(moving.from)),
            Fault::MoveToKilled => self.move_slots(|moving| Some(moving.to)),
        }?;
        self.start();
        self.advance()
    }

    fn move_slots(&mut self, victim: impl Fn(&Moving) -> Option<usize>) -> Result<(), String> {
        let moving = Moving::begin(self.fleet, self.slot, self.random);
        if let Some(victim) = victim(&moving) {
            self.pause(100);
            self.kill_for_a_while(&[victim])?;
            self.start();
        }
        let fleet = &self.fleet;
        wait_for("the slots have moved", self.progress, || moving.has_ended(fleet))
    }

    /// The time of a fault is a random one.
    fn pause(&mut self, most_ms: u64) {
        thread::sleep(Duration::from_micros(self.random.u64(..most_ms * 1000)));
    }

    fn kill(&mut self, nodes: &[usize]) {
        nodes.iter().for_each(|node| self.fleet.nodes[*node].kill());
    }

    /// Starts all nodes that were killed.
    fn start(&mut self) {
        self.fleet.nodes.iter_mut().for_each(Node::start);
    }

    fn kill_for_a_while(&mut self, nodes: &[usize]) -> Result<(), String> {
        self.kill(nodes);
        self.advance()
    }

    /// All clients have written since.
    fn advance(&self) -> Result<(), String> {
        advance(self.progress, 2)
    }
}
