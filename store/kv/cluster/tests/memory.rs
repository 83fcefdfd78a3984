// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time by hand, and faults.

use std::thread;
use std::time::Duration;

use freeport_kv_cluster::{
    Fault, MemoryRegistry, NodeId, Registry, RegistryError, State, SwapError,
};
use freeport_testbed::wait_until;

use crate::fixture::{presence, topology};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn leases_end_when_the_time_is_advanced() {
    let registry = MemoryRegistry::with_time_by_hand();
    let (client, node) = (registry.client(), NodeId::random());
    client.keep(node, &presence(1, 0), SECOND).expect("nobody has it");
    registry.advance(SECOND - Duration::from_nanos(1));
    assert_eq!(client.swap(None, Some(node), &topology(1)), Err(SwapError::Present));
    registry.advance(Duration::from_nanos(1));
    client.swap(None, Some(node), &topology(1)).expect("the lease has ended");
    assert_eq!(registry.now(), SECOND);
}

#[test]
fn waiting_lasts_until_the_time_is_advanced() {
    let registry = MemoryRegistry::with_time_by_hand();
    let client = registry.client();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| client.wait(&State::default(), SECOND));
        // The wait may begin between two steps, so they continue until it ends.
        wait_until("the wait ends", || {
            registry.advance(SECOND / 4);
            waiting.is_finished()
        });
        assert_eq!(waiting.join().expect("no panic"), Ok(State::default()));
    });
    assert!(registry.now() >= SECOND);
}

#[test]
fn a_fault_is_of_one_client_and_says_what_happened() {
    let registry = MemoryRegistry::with_time_by_hand();
    let (broken, sound, node) = (registry.client(), registry.client(), NodeId::random());
    broken.set_fault(Fault::Unreachable);
    let error = broken.swap(None, None, &topology(1));
    assert!(matches!(error, Err(SwapError::Failed(_))), "{error:?}");
    assert_eq!(sound.read(), Ok(State::default()));

    broken.set_fault(Fault::AnswerLost);
    let error = broken.swap(None, None, &topology(1));
    assert!(matches!(error, Err(SwapError::Unknown(_))), "{error:?}");
    assert!(sound.read().expect("it answers").topology.is_some());
    let error = broken.keep(node, &presence(1, 0), SECOND);
    assert!(matches!(error, Err(RegistryError::Unavailable(_))), "{error:?}");
    assert_eq!(sound.keep(node, &presence(2, 0), SECOND), Err(RegistryError::Taken));

    broken.set_fault(Fault::None);
    assert_eq!(broken.read(), sound.read());
}

#[test]
fn a_delay_lets_time_pass_before_and_after_a_call() {
    let registry = MemoryRegistry::with_time_by_hand();
    let (client, node) = (registry.client(), NodeId::random());
    client.set_fault(Fault::Delayed { request: SECOND, answer: 2 * SECOND });
    client.keep(node, &presence(1, 0), 3 * SECOND).expect("nobody has it");
    assert_eq!(registry.now(), 3 * SECOND);
    client.set_fault(Fault::None);
    registry.advance(SECOND / 2);
    assert!(client.read().expect("it answers").nodes.contains_key(&node));
    registry.advance(SECOND / 2);
    assert!(client.read().expect("it answers").nodes.is_empty());
}
