// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cases of reads and writes.

use super::server::{BLOCK_BYTES, Request, Role, host, pattern, serve};
use super::{MEMORY_BYTES, Stage, ask};
use freeport_study_verbs::{Fault, Memory, Place, Verbs, Way};
use std::collections::BTreeSet;
use std::time::Duration;

/// Number of reads that find a transport which copies byte by byte.
const READS: u32 = 3000;
/// Length of long data in bytes.
pub const LONG_BYTES: usize = 1 << 20;

pub async fn memory_is_read_as_it_was_written<V: Verbs>(here: V, stage: Stage) {
    stage.serve(Place::Host).await;
    let zero = here.read(host(0), MEMORY_BYTES, Way::Nic).await;
    assert_eq!(zero, Ok(vec![0; MEMORY_BYTES]));
    for (at, bytes) in [(0, 8), (8, 16), (3, 1), (5, 30), (100, 0), (4000, 96)] {
        let data = pattern(at as usize + bytes, bytes);
        for way in [Way::Nic, Way::Dma] {
            here.write(host(at), data.clone(), way).await.expect("the host is alive");
            assert_eq!(
                here.read(host(at), bytes, way).await,
                Ok(data.clone()),
                "{bytes} B at {at}"
            );
        }
        // The place itself has the same bytes.
        assert_eq!(ask(&here, Place::Host, Request::Load(at, bytes as u64)).await, Ok(data));
    }
    let stored = vec![7; 20];
    ask(&here, Place::Host, Request::Store(stored.clone())).await.expect("the host is alive");
    assert_eq!(here.read(host(0), 20, Way::Nic).await, Ok(stored));
}

pub async fn accesses_outside_are_refused<V: Verbs>(here: V, stage: Stage) {
    stage.begin(Place::Host, 100, Role::Server).await;
    stage.begin(Place::Soc, 0, Role::Server).await;
    let soc = Place::Soc.at(0);
    for (address, bytes) in [(host(100), 1), (host(96), 8), (host(u64::MAX), 8), (soc, 1)] {
        let (place, at) = (address.place, address.at);
        let size = if place == Place::Host { 100 } else { 0 };
        let expected = Fault::OutOfRange { place, at, bytes, size };
        let read = here.read(address, bytes as usize, Way::Nic).await;
        assert_eq!(read, Err(expected.clone()));
        let written = here.write(address, vec![1; bytes as usize], Way::Nic).await;
        assert_eq!(written, Err(expected));
    }
    assert_eq!(here.read(soc, 0, Way::Nic).await, Ok(vec![]));
    assert_eq!(here.read(host(92), 8, Way::Nic).await, Ok(vec![0; 8]));
    assert_eq!(here.write(host(99), vec![1], Way::Nic).await, Ok(()));
}

/// Others write while this place reads: each word is of one write.
pub async fn words_are_whole<V: Verbs>(here: V, stage: Stage) {
    stage.serve(Place::Host).await;
    for (number, byte) in [(1, 0x11), (2, 0x22)] {
        stage.begin(Place::Client(number), 0, Role::Writer(byte)).await;
    }
    let mut seen = BTreeSet::new();
    let mut reads = 0;
    while seen.len() < 2 || reads < READS {
        let block = here.read(host(0), BLOCK_BYTES, Way::Nic).await.expect("the host is alive");
        for word in block.as_chunks::<8>().0.iter().filter(|word| word[0] != 0) {
            assert_eq!(*word, [word[0]; 8]);
            seen.insert(word[0]);
        }
        reads += 1;
        here.sleep(Duration::from_nanos(100)).await;
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0x11, 0x22]);
}

pub async fn long_data_arrive<V: Verbs>(here: V, stage: Stage) {
    stage.begin(Place::Host, LONG_BYTES + 64, Role::Server).await;
    for (at, bytes) in [(0, LONG_BYTES), (13, LONG_BYTES - 3)] {
        let data = pattern(at, bytes);
        let to = host(at as u64);
        here.write(to, data.clone(), Way::Nic).await.expect("the host is alive");
        assert!(here.read(to, bytes, Way::Nic).await.as_ref() == Ok(&data));
        let load = Request::Load(at as u64, bytes as u64);
        assert!(ask(&here, Place::Host, load).await.as_ref() == Ok(&data));
        let answer = ask(&here, Place::Host, Request::Reverse(data.clone())).await;
        assert!(answer == Ok(data.into_iter().rev().collect()));
    }
}

pub async fn memory_of_this_place_can_be_reached_like_that_of_others<V: Verbs>(here: V, _: Stage) {
    here.spawn(serve(here.clone()));
    let place = here.place();
    here.memory().store_word(16, 5);
    let word = here.read(place.at(16), 8, Way::Nic).await;
    assert_eq!(word, Ok(vec![5, 0, 0, 0, 0, 0, 0, 0]));
    here.write(place.at(16), vec![6], Way::Nic).await.expect("this place is alive");
    assert_eq!(here.memory().load_word(16), 6);
    assert_eq!(ask(&here, place, Request::Reverse(vec![1, 2])).await, Ok(vec![2, 1]));
}
