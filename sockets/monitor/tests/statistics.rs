// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Members count in memory that they share, so each can write arbitrary values there. Such values
//! do not enter the monitor's sums.

use crate::harness::{Running, connection, eventually, patient};
use freeport_sockets_proto::message::{Reply, Request};
use freeport_sockets_proto::slab::{self, Side, word};
use serde_json::Value;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

/// More than any process moves in a year.
const ABSURD: u64 = 1 << 62;

fn ended(running: &Running) -> Value {
    running.control().stats().unwrap()["ended"].clone()
}

/// Writes a word of both sides of a slot.
fn write(memory: &File, slot: u32, word: usize, value: u64) {
    for side in [Side::First, Side::Second] {
        let place = slab::page(slot).unwrap() + slab::state(side) + word;
        memory.write_all_at(&value.to_ne_bytes(), place as u64).unwrap();
    }
}

#[test]
fn what_nobody_can_have_moved_is_not_added() {
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    let mut memory = None;
    for (round, value) in [u64::MAX, ABSURD, 1000].into_iter().enumerate() {
        let ends = connection("127.0.0.1:0");
        one.claim(1, ends.0.as_fd());
        other.claim(2, ends.1.as_fd());
        let heard = [one.hear(), other.hear()];
        let Reply::Paired { slab, slot, .. } = heard[0].reply else { panic!("{:?}", heard[0]) };
        let [first, _] = heard;
        memory = memory.or(first.slab);
        let memory = memory.as_ref().expect("it came with the first");
        for word in [word::SENT_BYTES, word::WRITING, word::REUSED] {
            write(memory, slot, word, value);
        }
        let live = &running.control().stats().unwrap()["reused"];
        assert!(live.as_u64().unwrap() <= 1000, "{live}");
        for member in [&one, &other] {
            member.say(&Request::Release { slab, slot });
        }
        let count = round as u64 + 1;
        eventually("it has ended", || ended(&running)["connections"] == count);
    }
    let ended = ended(&running);
    assert_eq!((&ended["bytes"], &ended["operations"]), (&2000.into(), &1000.into()), "{ended}");
    assert_eq!((&ended["reused"], &ended["left_out"]), (&1000.into(), &4.into()), "{ended}");
    // Nor the counts of the members.
    let list = running.control().list().unwrap();
    let programs = list["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 2, "{list}");
    for program in programs {
        let ended = &program["ended"]["tcp"];
        assert_eq!((&ended["sent_bytes"], &ended["sends"]), (&1000.into(), &500.into()));
        assert_eq!(program["ended"]["unix"]["sent_bytes"], 0);
    }
}
