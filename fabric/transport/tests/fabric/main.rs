// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the fabric between threads, between processes, and against peers that die or lie.

mod conformance;
mod connections;
mod death;
mod event_loop;
mod hostile;
mod instances;
mod model;
mod placement;
mod shared_queue;
mod support;

/// Entry point of a second process: does nothing unless the program was started as one.
#[test]
fn player() {
    let Some((part, stream)) = support::part() else { return };
    let (module, part) = part.split_once(' ').expect("a module and its part");
    match module {
        "conformance" => instances::play(part, stream),
        "connections" => connections::play(part, stream),
        "death" => death::play(part, stream),
        "shared_queue" => shared_queue::play(part, stream),
        other => panic!("no module {other}"),
    }
}
