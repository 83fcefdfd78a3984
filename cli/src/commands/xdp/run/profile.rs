// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which ways the packets of a capture take through a program: a run in the interpreter beforehand.

use super::Arguments;
use super::feed::Feed;
use super::options::Time;
use super::targets::environment;
use anyhow::Context;
use freeport_ebpf::interpreter::Clock;
use freeport_ebpf::object::{Object, Program};
use freeport_xdp::{Arrival, Interpreter, Profiles, Setting};

/// Runs the capture once, with maps of its own that are set alike.
///
/// # Errors
/// What the interpreter says against the program or a setting, and where the capture is broken.
pub fn take(
    object: &Object,
    program: &Program,
    settings: &[Setting],
    arguments: &Arguments,
) -> anyhow::Result<Profiles> {
    let mut interpreter = Interpreter::load(object, environment(arguments))?;
    for setting in settings {
        setting.apply(object, &mut interpreter)?;
    }
    let mut profiles = Profiles::new(object);
    let Arguments { ifindex, rx_queue, .. } = *arguments;
    let file = arguments.trace.display();
    let mut feed = Feed::open(&arguments.trace, false)?;
    while feed.advance().with_context(|| file.to_string())? {
        if arguments.clock == Time::Capture {
            interpreter.environment_mut().clock = Clock::Set(feed.time_ns());
        }
        let bytes = feed.bytes();
        let arrival = Arrival { bytes, ingress_ifindex: ifindex, rx_queue_index: rx_queue };
        let run = interpreter.run_observed(&program.name, &arrival, &mut profiles);
        run.with_context(|| format!("{file}: packet {}", feed.number()))?;
    }
    Ok(profiles)
}
