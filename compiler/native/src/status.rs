// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a run ended.

use freeport_ir::InstanceId;
use freeport_ir::interp::Report;

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunStatus {
    /// All input is consumed, and nothing can fire.
    Idle,
    /// Items wait for room at an endpoint out of the graph.
    OutputFull,
    /// The recording is as long as the host wants it: it has to be taken before the graph goes on.
    RecordFull,
    /// Data waits, and neither more room nor the recording holds it up. Depths in the report are
    /// those of native code, which may be more than was declared.
    Stalled(Report),
    /// This instance is held by a breakpoint: it has just passed it, or nothing but what it is held
    /// from can go on.
    Breakpoint(InstanceId),
    /// Instances fire, and do nothing but ask for the time: run it again, after a while.
    Waiting,
    /// The graph can go on, but has had its share, or was asked to give way: run it again.
    /// Generators and loops come here.
    Budget,
}
