// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cases of calls, and of time.

use super::server::{Request, host, serve};
use super::{Stage, aside, ask};
use freeport_study_verbs::{Counted, Counts, Fault, Place, Verbs, Way};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

pub async fn answers_come_in_any_order<V: Verbs>(here: V, stage: Stage) {
    stage.serve(Place::Soc).await;
    let order: Rc<RefCell<Vec<u32>>> = Rc::default();
    let mut held = vec![];
    for number in 0..5 {
        let (asking, order) = (here.clone(), Rc::clone(&order));
        held.push(aside(&here, async move {
            let answer = ask(&asking, Place::Soc, Request::Hold).await;
            order.borrow_mut().push(number);
            answer
        }));
        // An answer to a later call says that the server has this one.
        ask(&here, Place::Soc, Request::Reverse(vec![])).await.expect("it is alive");
    }
    assert_eq!(*order.borrow(), [0; 0], "the server holds them");
    ask(&here, Place::Soc, Request::Release).await.expect("it is alive");
    for held in held {
        assert_eq!(held.await.expect("it ends"), Ok(vec![]));
    }
    assert_eq!(*order.borrow(), [4, 3, 2, 1, 0]);
}

/// More calls than a connection has at the same time.
pub async fn many_calls_wait_at_the_same_time<V: Verbs>(here: V, stage: Stage) {
    const CALLS: u32 = 3000;
    stage.serve(Place::Host).await;
    let mut held = vec![];
    for _ in 0..20 {
        let asking = here.clone();
        held.push(aside(&here, async move { ask(&asking, Place::Host, Request::Hold).await }));
    }
    let mut answers = vec![];
    for number in 0..CALLS {
        let asking = here.clone();
        answers.push(aside(&here, async move {
            let data = [number.to_le_bytes().to_vec(), vec![0; number as usize % 1000]].concat();
            let answer = ask(&asking, Place::Host, Request::Reverse(data.clone())).await;
            assert_eq!(answer, Ok(data.into_iter().rev().collect()));
        }));
    }
    for answer in answers {
        answer.await.expect("it ends");
    }
    ask(&here, Place::Host, Request::Release).await.expect("it is alive");
    for held in held {
        assert_eq!(held.await.expect("it ends"), Ok(vec![]));
    }
}

/// Both begin at the same time, so that each connects to the other.
pub async fn places_call_each_other<V: Verbs>(here: V, stage: Stage) {
    here.spawn(serve(here.clone()));
    let others = [Place::Host, Place::Soc, Place::Peer(1)];
    for place in others {
        stage.serve(place).await;
    }
    let calls = others.map(|place| {
        let asking = here.clone();
        aside(&here, async move {
            for number in 0..20 {
                let answer = ask(&asking, place, Request::CallBack(vec![number, 1])).await;
                assert_eq!(answer, Ok(vec![1, number]));
            }
        })
    });
    for calls in calls {
        calls.await.expect("it ends");
    }
}

pub async fn calls_that_are_dropped_fail<V: Verbs>(here: V, stage: Stage) {
    stage.serve(Place::Host).await;
    let gone = Err(Fault::Gone(Place::Host));
    assert_eq!(ask(&here, Place::Host, Request::Drop).await, gone);
    // The place is alive nevertheless.
    assert_eq!(ask(&here, Place::Host, Request::Reverse(vec![1])).await, Ok(vec![1]));
}

pub async fn operations_are_counted<V: Verbs>(here: V, stage: Stage) {
    stage.serve(Place::Host).await;
    let counted = Counted::new(here);
    counted.write(host(0), vec![1; 64], Way::Nic).await.expect("it is alive");
    let before = counted.counts();
    assert_eq!(before, Counts { writes: 1, bytes: 64, ..Counts::default() });
    // A clone counts together with the place.
    let clone = counted.clone();
    clone.read(host(0), 8, Way::Nic).await.expect("it is alive");
    clone.call(Place::Host, Request::Reverse(vec![1]).to_bytes()).await.expect("it is alive");
    let since = counted.counts().since(before);
    assert_eq!(since, Counts { reads: 1, calls: 1, bytes: 10, ..Counts::default() });
    assert_eq!(counted.counts().round_trips(), 3);
}

pub async fn sleeps_last<V: Verbs>(here: V, _: Stage) {
    let begin = here.now();
    let order: Rc<RefCell<Vec<u64>>> = Rc::default();
    let sleeps = [3, 1, 2].map(|number| {
        let (sleeping, order) = (here.clone(), Rc::clone(&order));
        aside(&here, async move {
            sleeping.sleep(Duration::from_millis(number)).await;
            assert!(sleeping.now() >= begin + Duration::from_millis(number));
            order.borrow_mut().push(number);
        })
    });
    for sleep in sleeps {
        sleep.await.expect("it ends");
    }
    assert_eq!(order.borrow().len(), 3);
    here.work(Duration::from_micros(1)).await;
    assert!(here.now() >= begin + Duration::from_millis(3));
}
