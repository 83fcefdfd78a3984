// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Regions and operations on them.

use super::{Case, PATIENCE, Party, get, put, word};
use crate::support::bytes;
use fastrand::Rng;
use freeport_fabric::endpoint::{Region, Target, Transfer};
use freeport_fabric::{Arrival, Completion, Endpoint, Error, Key, WriteOrder};
use std::collections::BTreeSet;
use std::thread;
use std::time::Instant;

pub fn cases<E: Endpoint>() -> Vec<Case<E>> {
    let case = |name, first, second| Case { name, first, second };
    vec![
        case("regions", regions, regions),
        case("bounds", bounds, bounds),
        case("arrivals", write_with_data, await_data),
        case("polled_words", write_words, poll_words),
        case("completions", complete, |party| drop((party.regions(4096), party.meet()))),
        case("reads", read, read),
        case("atomics", |party| count(&party, true), |party| count(&party, false)),
    ]
}

fn regions<E: Endpoint>(party: Party<E>) {
    for size in [8, 64, 4096, 4104, 1 << 20] {
        let (region, target) = party.regions(size);
        assert_eq!((region.bytes(), target.bytes()), (size, size));
        assert!(get(&region, 0, size).iter().all(|byte| *byte == 0), "it begins as zero");
        put(&region, size - 8, &[7; 8]);
        assert_eq!(get(&region, size - 8, 8), [7; 8]);
    }
    for size in [0, 1, 12, E::REGION_BYTES_MAX + 8, usize::MAX & !7] {
        let refused = party.endpoint.register(size);
        let bytes = size;
        assert!(
            matches!(refused, Err(Error::RegionBytes { bytes: said, .. }) if said == bytes),
            "{size}: {refused:?}"
        );
    }
    for garbage in [&[][..], &[1, 2, 3], &[0xff; 8], &[0; 8], &[0x5a; 64]] {
        let key = Key::new(garbage, None).expect("a short key");
        let refused = party.endpoint.import(key);
        assert!(matches!(refused, Err(Error::Key { .. })), "{garbage:?}: {refused:?}");
    }
    party.meet();
}

fn bounds<E: Endpoint>(party: Party<E>) {
    let (region, target) = party.regions(64);
    let source = party.endpoint.register(72).expect("memory");
    put(&source, 0, &[9; 72]);
    let transfer = |here_at, there_at, bytes| Transfer::<E> {
        here: &source,
        here_at,
        there: &target,
        there_at,
        bytes,
        token: 0,
    };
    let refused = |what: &str, done: Result<(), Error>| {
        assert!(matches!(done, Err(Error::OutOfRange { .. })), "{what}: {done:?}");
    };
    for (here_at, there_at, bytes) in [
        (0, 0, 65),
        (0, 64, 1),
        (0, 60, 8),
        (72, 0, 1),
        (70, 0, 8),
        (0, usize::MAX, 1),
        (usize::MAX, 0, 8),
        (8, 8, usize::MAX),
        (0, usize::MAX - 7, 8),
    ] {
        let what = format!("{bytes} bytes from {here_at} to {there_at}");
        refused(&what, party.endpoint.write(transfer(here_at, there_at, bytes)));
        let with_data = party.endpoint.write_with_data(transfer(here_at, there_at, bytes), 1);
        refused(&what, with_data);
        if E::READS {
            refused(&what, party.endpoint.read(transfer(here_at, there_at, bytes)));
        }
    }
    for at in [1, 4, 60, 64, usize::MAX - 7, usize::MAX] {
        if E::ATOMICS {
            refused("add", party.endpoint.fetch_add(&target, at, 1, 0));
            refused("swap", party.endpoint.compare_swap(&target, at, 0, 1, 0));
        }
    }
    party.meet();
    assert_eq!(get(&region, 0, 64), [0; 64]);
    assert_eq!(party.endpoint.poll().expect("an honest peer"), None);
    party.meet();
    // A range that just fits is not an error.
    party.endpoint.write(transfer(8, 0, 64)).expect("it fits");
    party.endpoint.write(transfer(72, 64, 0)).expect("nothing fits everywhere");
    party.done(2);
    party.meet();
    if E::ARRIVAL == Arrival::Memory {
        assert_eq!(get(&region, 0, 64), [9; 64]);
    }
}

/// Writes of a round, each to a place of its own; between rounds the places are free again.
const ROUND: u32 = 8;
const ROUNDS: u32 = 40;
const PLACE_BYTES: usize = 512;

fn length(number: u32) -> usize {
    Rng::with_seed(u64::from(number)).usize(0..=PLACE_BYTES)
}

fn write_with_data<E: Endpoint>(party: Party<E>) {
    let (_, target) = party.regions(ROUND as usize * PLACE_BYTES);
    let source = party.endpoint.register(ROUND as usize * PLACE_BYTES).expect("memory");
    for round in 0..ROUNDS {
        let (mut posted, mut done) = (0, 0);
        for place in 0..ROUND {
            let number = round * ROUND + place;
            let (at, bytes_of_it) = (place as usize * PLACE_BYTES, length(number));
            put(&source, at, &bytes(number as usize * 1000, bytes_of_it));
            let transfer = |bytes| Transfer::<E> {
                here: &source,
                here_at: at,
                there: &target,
                there_at: at,
                bytes,
                token: u64::from(number),
            };
            // If writes keep their order, a later write may carry the data.
            let apart = E::WRITE_ORDER != WriteOrder::Nothing && number.is_multiple_of(3);
            if apart {
                done += party.post(|| party.endpoint.write(transfer(bytes_of_it)));
                posted += 1;
            }
            let bytes = if apart { 0 } else { bytes_of_it };
            done += party.post(|| party.endpoint.write_with_data(transfer(bytes), number));
            posted += 1;
        }
        party.done(posted - done);
        party.meet();
    }
}

fn await_data<E: Endpoint>(party: Party<E>) {
    let (region, _) = party.regions(ROUND as usize * PLACE_BYTES);
    for round in 0..ROUNDS {
        let numbers = round * ROUND..(round + 1) * ROUND;
        let mut missing: BTreeSet<u32> = numbers.clone().collect();
        for expected in numbers {
            let Completion::Arrived { data } = party.next() else { panic!("nothing was posted") };
            assert!(missing.remove(&data), "{data} came twice, or is none of this round");
            if E::WRITE_ORDER != WriteOrder::Nothing {
                assert_eq!(data, expected, "in the order in which they were written");
            }
            let at = (data % ROUND) as usize * PLACE_BYTES;
            let expected = bytes(data as usize * 1000, length(data));
            assert_eq!(get(&region, at, expected.len()), expected, "behind the data {data}");
        }
        party.meet();
    }
}

const WORD_ROUNDS: u64 = 200;

fn write_words<E: Endpoint>(party: Party<E>) {
    let (region, target) = party.regions(1032);
    if E::ARRIVAL != Arrival::Memory || E::WRITE_ORDER == WriteOrder::Nothing {
        return;
    }
    let source = party.endpoint.register(1032).expect("memory");
    for round in 1..=WORD_ROUNDS {
        put(&source, 8, &bytes(round as usize, 1024));
        put(&source, 0, &round.to_ne_bytes());
        for (at, length) in [(8, 1024), (0, 8)] {
            let transfer = Transfer::<E> {
                here: &source,
                here_at: at,
                there: &target,
                there_at: at,
                bytes: length,
                token: round,
            };
            party.endpoint.write(transfer).expect("there is room for two");
        }
        await_word(&party, &region, round);
        party.done(2);
    }
}

fn poll_words<E: Endpoint>(party: Party<E>) {
    let (region, target) = party.regions(1032);
    if E::ARRIVAL != Arrival::Memory || E::WRITE_ORDER == WriteOrder::Nothing {
        return;
    }
    for round in 1..=WORD_ROUNDS {
        await_word(&party, &region, round);
        assert_eq!(get(&region, 8, 1024), bytes(round as usize, 1024), "round {round}");
        // Writing the received word back is the answer.
        let (here, there, token) = (&region, &target, round);
        let answer = Transfer::<E> { here, here_at: 0, there, there_at: 0, bytes: 8, token };
        party.endpoint.write(answer).expect("there is room for one");
        party.done(1);
    }
}

fn await_word<E: Endpoint>(party: &Party<E>, region: &E::Region, round: u64) {
    let since = Instant::now();
    loop {
        // Checked before the word, whose write may be the other party's last action.
        let is_alive = party.endpoint.peer_is_alive().expect("a look");
        if word(region, 0) == round {
            return;
        }
        assert!(is_alive, "the other party is gone");
        assert!(since.elapsed() < PATIENCE, "round {round} does not come");
        thread::yield_now();
    }
}

fn complete<E: Endpoint>(party: Party<E>) {
    let (_, target) = party.regions(4096);
    let source = party.endpoint.register(4096).expect("memory");
    // More operations than any queue accepts.
    let count = if E::ARRIVAL == Arrival::Memory { 6000 } else { 300 };
    let (mut token, mut seen) = (0, vec![0; count as usize]);
    let mut refused = 0;
    while token < count || seen.contains(&0) {
        let (here, there, at) = (&source, &target, token as usize % 4088);
        let transfer = Transfer::<E> { here, here_at: at, there, there_at: at, bytes: 8, token };
        let posted = if token < count { party.endpoint.write(transfer) } else { Ok(()) };
        match posted {
            Ok(()) if token < count => token += 1,
            Ok(()) | Err(Error::QueueFull { .. }) => {
                refused += 1;
                let Completion::Done { token } = party.next() else { panic!("not a write") };
                seen[token as usize] += 1;
            }
            Err(error) => panic!("refused: {error}"),
        }
    }
    assert!(refused > 0 && seen.iter().all(|times| *times == 1), "each is done once");
    assert_eq!(party.endpoint.poll().expect("an honest peer"), None, "and nothing else");
    party.meet();
}

fn read<E: Endpoint>(party: Party<E>) {
    let (region, target) = party.regions(4096);
    put(&region, 0, &bytes(77, 4096));
    let into = party.endpoint.register(4096).expect("memory");
    party.meet();
    let read = |here_at, there_at, bytes| {
        let (here, there) = (&into, &target);
        party.endpoint.read(Transfer { here, here_at, there, there_at, bytes, token: 5 })
    };
    if !E::READS {
        assert!(matches!(read(0, 0, 8), Err(Error::Unsupported { .. })));
        return party.meet();
    }
    for (here_at, there_at, length) in [(0, 0, 4096), (3, 1000, 77), (8, 8, 8), (4096, 0, 0)] {
        read(here_at, there_at, length).expect("it fits");
        assert_eq!(party.done(1), [5]);
        assert_eq!(get(&into, here_at, length), bytes(77 + there_at, length));
    }
    party.meet();
}

/// Both sides count in words of the first side's memory.
fn count<E: Endpoint>(party: &Party<E>, is_first: bool) {
    let (region, target) = party.regions(64);
    if !E::ATOMICS {
        let refused = party.endpoint.fetch_add(&target, 8, 1, 0);
        assert!(matches!(refused, Err(Error::Unsupported { .. })));
        let refused = party.endpoint.compare_swap(&target, 8, 0, 1, 0);
        assert!(matches!(refused, Err(Error::Unsupported { .. })));
        return;
    }
    let own = party.endpoint.export(&region).expect("a key");
    let own = party.endpoint.import(own).expect("a key of one's own");
    let counted = if is_first { own } else { target };
    let fetched = || match party.next() {
        Completion::Fetched { token: 3, value } => value,
        other => panic!("{other:?}"),
    };
    let (mut before, mut value) = (None, 0);
    for _ in 0..2000 {
        party.endpoint.fetch_add(&counted, 8, 1, 3).expect("it is inside");
        let found = Some(fetched());
        assert!(found > before, "what was there rises");
        before = found;
    }
    for _ in 0..500 {
        loop {
            party.endpoint.compare_swap(&counted, 16, value, value + 1, 3).expect("inside");
            let found = fetched();
            if found == value {
                break;
            }
            value = found;
        }
    }
    party.meet();
    if is_first {
        assert_eq!((word(&region, 8), word(&region, 16)), (4000, 1000));
    }
    party.meet();
}
