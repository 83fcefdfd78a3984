// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two sides on one core do not keep each other from running.

use freeport_fabric::shm::{Connection, Options};
use freeport_fabric::wait::Waiting;
use std::thread;

/// Number of round trips.
const ROUND_TRIPS: usize = 1_000;
const SPINS: u32 = 400;

/// Pins the calling thread to the first core that it may use.
fn stay_on_first_core() {
    // SAFETY: a set of cores is plain memory, for which all zeros is the empty set.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: the call writes the set within the size given.
    assert_eq!(unsafe { libc::sched_getaffinity(0, bytes, &mut allowed) }, 0);
    // SAFETY: numbers below `CPU_SETSIZE` are inside the set.
    let is_allowed = |at: &usize| unsafe { libc::CPU_ISSET(*at, &allowed) };
    let first = (0..libc::CPU_SETSIZE as usize).find(is_allowed);
    // SAFETY: as above.
    let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number is below `CPU_SETSIZE`.
    unsafe { libc::CPU_SET(first.expect("it runs somewhere"), &mut one) };
    // SAFETY: the call reads the set within the size given.
    assert_eq!(unsafe { libc::sched_setaffinity(0, bytes, &one) }, 0);
}

fn exchange(connection: &mut Connection, begins: bool) {
    let mut message = [0; 8];
    for number in 0..ROUND_TRIPS as u64 {
        if begins {
            connection.write_all(&number.to_ne_bytes()).expect("the other side is there");
        }
        assert_eq!(connection.read(&mut message).expect("the other side is there"), 8);
        assert_eq!(u64::from_ne_bytes(message), number);
        if !begins {
            connection.write_all(&message).expect("the other side is there");
        }
    }
}

#[test]
fn who_waits_on_the_core_of_the_other_yields_it_and_does_not_spin() {
    let waiting = Waiting { spins: SPINS, yields: 40, timeout: None };
    let options = Options { waiting, ..Options::default() };
    let (mut here, mut there) = Connection::pair(&options).expect("a pair");
    let other = thread::spawn(move || {
        stay_on_first_core();
        exchange(&mut there, false);
        there.wait_counts()
    });
    stay_on_first_core();
    exchange(&mut here, true);
    let counts = [here.wait_counts(), other.join().expect("the other side is content")];
    for counts in counts {
        // Only until each has waited once, and the other knows on which core.
        assert!(counts.spins <= u64::from(SPINS) * ROUND_TRIPS as u64 / 100, "{counts:?}");
        assert!(counts.yields > 0, "{counts:?}");
    }
}
