// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cases of places that die, and begin anew.

use super::server::{APPEND_BYTES, Request, host, pattern};
use super::{Stage, aside, ask};
use freeport_study_verbs::{Fault, Place, Verbs, Way};
use std::time::Duration;

pub async fn absent_places_are_gone<V: Verbs>(here: V, stage: Stage) {
    let fails = async |place: Place| {
        let gone = Fault::Gone(place);
        assert_eq!(here.read(place.at(0), 8, Way::Nic).await, Err(gone.clone()));
        assert_eq!(here.write(place.at(0), vec![1], Way::Nic).await, Err(gone.clone()));
        assert_eq!(here.call(place, vec![]).await, Err(gone));
    };
    fails(Place::Peer(3)).await;
    stage.serve(Place::Host).await;
    assert_eq!(ask(&here, Place::Host, Request::Reverse(vec![1])).await, Ok(vec![1]));
    stage.kill(Place::Host).await;
    fails(Place::Host).await;
}

pub async fn calls_of_a_place_that_dies_fail<V: Verbs>(here: V, stage: Stage) {
    stage.serve(Place::Soc).await;
    stage.serve(Place::Host).await;
    let held = [Place::Soc, Place::Soc, Place::Host].map(|place| {
        let asking = here.clone();
        aside(&here, async move { ask(&asking, place, Request::Hold).await })
    });
    for place in [Place::Soc, Place::Host] {
        ask(&here, place, Request::Reverse(vec![])).await.expect("it is alive");
    }
    stage.kill(Place::Soc).await;
    let [first, second, other] = held;
    for call in [first, second] {
        assert_eq!(call.await.expect("it ends"), Err(Fault::Gone(Place::Soc)));
    }
    // Operations on other places are not affected.
    ask(&here, Place::Host, Request::Release).await.expect("it is alive");
    assert_eq!(other.await.expect("it ends"), Ok(vec![]));
}

pub async fn places_begin_anew_with_their_file<V: Verbs>(here: V, stage: Stage) {
    let mut contents = vec![];
    for life in 1..=5_u8 {
        stage.serve(Place::Host).await;
        assert_eq!(here.read(host(0), 16, Way::Nic).await, Ok(vec![0; 16]), "life {life}");
        here.write(host(0), vec![life; 16], Way::Nic).await.expect("it is alive");
        assert_eq!(ask(&here, Place::Host, Request::File).await, Ok(contents.clone()));
        let appended = vec![life; 10];
        ask(&here, Place::Host, Request::Append(appended.clone())).await.expect("it is alive");
        contents.extend(appended);
        stage.kill(Place::Host).await;
        if life % 2 == 0 {
            // Otherwise no operation finds the place gone.
            let read = here.read(host(0), 16, Way::Nic).await;
            assert_eq!(read, Err(Fault::Gone(Place::Host)));
        }
    }
}

/// The file has some of the data, from the start on, and it has no more of them later. Whether the
/// death has cut off an append depends on the machine; see the tests of the simulated one.
pub async fn a_file_that_a_death_has_left_stays_so<V: Verbs>(here: V, stage: Stage) {
    let mut before = 0;
    for _ in 0..3 {
        stage.serve(Place::Soc).await;
        ask(&here, Place::Soc, Request::AppendPattern).await.expect("it is alive");
        while file_bytes(&here).await < before + APPEND_BYTES {
            here.sleep(Duration::from_micros(10)).await;
        }
        stage.kill(Place::Soc).await;
        stage.serve(Place::Soc).await;
        let file = ask(&here, Place::Soc, Request::File).await.expect("it is alive");
        assert!(file.len() >= before + APPEND_BYTES);
        assert!(file == pattern(0, file.len()));
        before = file.len();
        here.sleep(Duration::from_millis(1)).await;
        assert_eq!(file_bytes(&here).await, before);
        stage.kill(Place::Soc).await;
    }
}

async fn file_bytes<V: Verbs>(here: &V) -> usize {
    let bytes = ask(here, Place::Soc, Request::FileBytes).await.expect("it is alive");
    u64::from_le_bytes(bytes.try_into().expect("8 bytes")) as usize
}

pub async fn files_are_cut<V: Verbs>(here: V, stage: Stage) {
    stage.serve(Place::Host).await;
    for request in [
        Request::Append(vec![1; 100]),
        Request::Truncate(10),
        // A cut never makes a file longer.
        Request::Truncate(50),
        Request::Append(vec![2; 5]),
    ] {
        assert_eq!(ask(&here, Place::Host, request).await, Ok(vec![]));
    }
    let expected = [vec![1; 10], vec![2; 5]].concat();
    assert_eq!(ask(&here, Place::Host, Request::File).await, Ok(expected));
}
