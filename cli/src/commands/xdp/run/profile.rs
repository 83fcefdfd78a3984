// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles: the paths that the packets of a capture take through a program in the interpreter.

use super::feed::Feed;
use anyhow::Context;
use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_ebpf::object::{Object, Program};
use freeport_xdp::{Arrival, Interpreter, Profiles, Setting};
use std::path::Path;

/// The packets of a profile, and the environment.
pub struct Source<'a> {
    /// The capture.
    pub trace: &'a Path,
    /// Index of the interface that packets arrive on.
    pub ingress_ifindex: u32,
    /// Index of the receive queue.
    pub rx_queue_index: u32,
    pub environment: Environment,
    /// Whether the clock follows the times of the packets, instead of that of the environment.
    pub follows_capture: bool,
}

/// Runs the capture once, with separate maps and the same settings.
///
/// # Errors
/// A program or setting that the interpreter refuses, or a malformed capture.
pub fn take(
    object: &Object,
    program: &Program,
    settings: &[Setting],
    source: Source<'_>,
) -> anyhow::Result<Profiles> {
    collect(object, program, settings, source).context("in the interpreter, for the profile")
}

fn collect(
    object: &Object,
    program: &Program,
    settings: &[Setting],
    source: Source<'_>,
) -> anyhow::Result<Profiles> {
    let Source { trace, ingress_ifindex, rx_queue_index, environment, follows_capture } = source;
    let mut interpreter = Interpreter::load(object, environment)?;
    for setting in settings {
        setting.apply(object, &mut interpreter)?;
    }
    let mut profiles = Profiles::new(object);
    let file = trace.display();
    let mut feed = Feed::open(trace, false)?;
    while feed.advance().with_context(|| file.to_string())? {
        if follows_capture {
            interpreter.environment_mut().clock = Clock::Set(feed.time_ns());
        }
        let bytes = feed.bytes();
        let arrival = Arrival { bytes, ingress_ifindex, rx_queue_index };
        let run = interpreter.run_observed(&program.name, &arrival, &mut profiles);
        run.with_context(|| format!("{file}: packet {}", feed.number()))?;
    }
    Ok(profiles)
}
