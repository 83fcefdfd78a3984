// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Status of a run.

use freeport_ir::InstanceId;
use freeport_ir::interp::Report;

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunStatus {
    /// All input is consumed, and nothing can fire.
    Idle,
    /// Items wait for room at an endpoint out of the graph.
    OutputFull,
    /// The recording has reached its limit and must be taken before the graph can continue.
    RecordFull,
    /// Data waits, although neither output room nor the recording limit blocks it. Depths in the
    /// report are those of native code, which may exceed the declared ones.
    Stalled(Report),
    /// A breakpoint holds this instance: it has just passed the breakpoint, or nothing else can
    /// continue.
    Breakpoint(InstanceId),
    /// Instances fire, but only read the clock: run again after a while.
    Waiting,
    /// The graph can continue, but has used its share, or was asked to yield: run it again.
    /// Generators and loops return this.
    Budget,
}
