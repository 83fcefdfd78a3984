// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of how connections end.

use super::rings::{leave, open};
use super::{Case, PATIENCE, Party};
use crate::support::bytes;
use freeport_fabric::{Endpoint, Error};
use freeport_ring::messages::{MessageReceiver, MessageSender, Received};
use std::thread;
use std::time::{Duration, Instant};

pub fn cases<E: Endpoint>() -> Vec<Case<E>> {
    let case = |name, first, second| Case { name, first, second };
    vec![
        case("last_words", hear, |party| speak(&party)),
        case("sudden_end", stay, |party| {
            party.meet();
            (party.vanish)();
        }),
    ]
}

/// Sends messages and the end, and exits.
fn speak<E: Endpoint>(party: &Party<E>) {
    let (channel, (sender, _)) = open(party, 1 << 16, 0);
    let mut sender = MessageSender::new(sender);
    for number in 0..100 {
        let wake = sender.send(&[&bytes(number, number)]).expect("there is room for all");
        channel.wake(wake).expect("an honest peer");
    }
    channel.wake(sender.end().expect("there is room for all")).expect("an honest peer");
    leave(&channel);
}

/// Receives only when the other party is gone: its messages still arrive.
fn hear<E: Endpoint>(party: Party<E>) {
    let (channel, (_, receiver)) = open(&party, 1 << 16, 0);
    let mut receiver = MessageReceiver::new(receiver);
    await_end(&party.endpoint);
    channel.progress(|other| panic!("{other:?}")).expect("what came before the end");
    let mut buffer = [0; 100];
    for number in 0..100 {
        let outcome = receiver.receive(&mut buffer).expect("an honest peer").outcome;
        assert_eq!(outcome, Received::Message(number));
        assert_eq!(buffer[..number], bytes(number, number));
    }
    assert_eq!(receiver.receive(&mut buffer).expect("an honest peer").outcome, Received::End);
}

fn await_end<E: Endpoint>(endpoint: &E) {
    let since = Instant::now();
    while endpoint.peer_is_alive().expect("a look") {
        assert!(since.elapsed() < PATIENCE, "the other party does not end");
        thread::yield_now();
    }
}

/// Sleeps until the other party is gone, which is an error.
fn stay<E: Endpoint>(party: Party<E>) {
    party.meet();
    let since = Instant::now();
    let error = loop {
        assert!(since.elapsed() < PATIENCE, "the other party does not end");
        if !party.endpoint.arm().expect("an honest peer") {
            assert_eq!(party.endpoint.poll().expect("an honest peer"), None);
            // A side that cannot be woken has to poll.
            if !party.endpoint.peer_is_alive().expect("a look") {
                return;
            }
            thread::yield_now();
            continue;
        }
        if let Err(error) = party.endpoint.sleep(Duration::from_secs(10)) {
            break error;
        }
    };
    assert!(matches!(error, Error::PeerDied { .. } | Error::Closed { .. }), "{error}");
    assert!(!party.endpoint.peer_is_alive().expect("a look"));
}
