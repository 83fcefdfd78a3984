// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The path over shared memory in profiles of machines: its name, requests and estimates.

use super::results::{rate, time};
use freeport_plan_model::Path;
use freeport_plan_model::local::{Estimate, KIB, Machine, Operation, PATH, Request};
use serde_json::{Value, json};
use std::fmt::{self, Display};
use std::str::FromStr;

/// How estimates of this path come about.
pub const KIND: &str = "modelled from measured parameters";

/// A path of a device or of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnyPath {
    /// A path of a device.
    OfDevice(Path),
    /// The path of a machine.
    SharedMemory,
}

impl FromStr for AnyPath {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == PATH {
            return Ok(Self::SharedMemory);
        }
        let path = name.parse().map(Self::OfDevice);
        path.map_err(|error: String| format!("{error}; {PATH} in a profile of a machine"))
    }
}

impl Display for AnyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfDevice(path) => path.fmt(f),
            Self::SharedMemory => f.pad(PATH),
        }
    }
}

/// Returns a request; without a range of addresses, in the largest one that was measured.
pub fn request(
    machine: &Machine,
    operation: Operation,
    bytes: u64,
    batch: u32,
    range: Option<u64>,
    threads: u32,
) -> Request {
    let range = range.unwrap_or((machine.measured.range * KIB) as u64);
    Request { operation, bytes, batch, range, threads }
}

/// Returns an estimate as a text.
pub fn text(machine: &str, estimate: &Estimate) -> String {
    let Request { operation, bytes, batch, threads, .. } = estimate.request;
    let batch = if batch > 1 { format!(", batches of {batch}") } else { String::new() };
    let plural = if threads == 1 { "" } else { "s" };
    format!(
        "{machine}: path {PATH}, {operation} of {bytes} B{batch} ({KIND})\n  \
         latency     {}, one request at a time\n  \
         rate        {}, {:.1} Gbit/s, {threads} thread{plural}\n  \
         limited by  {}\n",
        time(estimate.latency),
        rate(estimate.rate),
        estimate.goodput,
        estimate.limit,
    )
}

/// Returns an estimate as a JSON object.
pub fn json(machine: &str, estimate: &Estimate) -> Value {
    let Request { operation, bytes, batch, range, threads } = estimate.request;
    json!({
        "device": machine,
        "path": PATH,
        "operation": operation.name(),
        "bytes": bytes,
        "batch": batch,
        "range_bytes": range,
        "threads": threads,
        "kind": KIND,
        "single_ns": estimate.latency,
        "millions_per_second": estimate.rate,
        "gbps": estimate.goodput,
        "bottleneck": estimate.limit,
    })
}
