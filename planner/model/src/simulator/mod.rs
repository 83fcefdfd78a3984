// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A discrete-event simulation of requests on the paths of a machine.
//!
//! Threads of the requesters post batches of requests as long as their window allows it. A request
//! passes the [stages](crate::route) of its way; where a resource is busy, it waits in line. Equal
//! seeds give equal results.

mod events;
mod machine;
mod outcome;
mod resources;
mod session;
mod threads;

pub use outcome::{Flow, LinkCount, Outcome, Use};
pub use session::Session;

use crate::path::Side;
use crate::profile::{End, Profile};
use crate::route::{Request, Route};
use machine::Machine;
pub(crate) use machine::{PORTS_IN, PORTS_OUT};

/// Requests of one kind, and who posts them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Load {
    /// The requests.
    pub request: Request,
    /// Machines that post; one for the ends of the device's own machine.
    pub machines: u32,
    /// Threads of each machine.
    pub threads: u32,
    /// Requests that a thread has in flight at most; at least a batch.
    pub window: u32,
    /// Requests per second that all threads offer together, in millions; none for as many as
    /// possible.
    pub offered: Option<f64>,
}

/// Returns the cores of an end that post.
fn posters(end: &End) -> f64 {
    if end.posting_cores > 0.0 { end.posting_cores } else { end.cores }
}

/// Payload from which on few requests fill every link.
const LARGE_BYTES: u64 = 8192;

/// Requests that a core of the host or of the device's processor has in flight.
const INSIDE_WINDOW: u32 = 64;

impl Load {
    /// Describes requests at the greatest rate: from all machines of clients, or from all cores of
    /// an end of the machine.
    pub fn full(profile: &Profile, request: Request) -> Self {
        let client = &profile.client;
        let (machines, threads) = match request.path.requester() {
            Side::Client => (client.machines, client.threads),
            Side::Host => (1.0, posters(&profile.host)),
            Side::Soc | Side::Peer => (1.0, posters(&profile.soc)),
        };
        let (machines, threads) = (machines as u32, threads as u32);
        // Large requests fill every link with few of them in flight: as many of clients as of an
        // end of the machine, so that their shares of a link are about equal.
        let clients = client.machines * client.threads;
        let window = match (request.bytes, request.path.requester()) {
            (LARGE_BYTES.., Side::Client) => 1,
            (LARGE_BYTES.., _) => (clients as u32).div_ceil(threads).max(1),
            (_, Side::Client) => client.window as u32,
            _ => INSIDE_WINDOW.max(8 * request.batch),
        };
        let window = window.max(request.batch);
        let is_large = request.bytes >= LARGE_BYTES && request.path.requester() == Side::Client;
        let threads = if is_large { threads.div_ceil(request.batch) } else { threads };
        Self { request, machines, threads, window, offered: None }
    }

    /// Describes single requests, one after the other.
    pub fn single(request: Request) -> Self {
        Self { request, machines: 1, threads: 1, window: request.batch, offered: None }
    }

    /// Limits the rate of the load.
    pub fn offering(self, millions: f64) -> Self {
        Self { offered: Some(millions), ..self }
    }

    /// Lets a share of the machines post.
    pub fn on_machines(self, machines: u32) -> Self {
        Self { machines, ..self }
    }

    /// Returns the requests that are in flight at most.
    pub fn in_flight(&self) -> u64 {
        u64::from(self.machines) * u64::from(self.threads) * u64::from(self.window)
    }
}

/// Requests that are measured at least, divided by their segments.
const MEASURED: u64 = 4_000;
/// Requests that are measured at least, whatever their size.
const MEASURED_MIN: u64 = 200;
/// Events of each part of a simulation. A load that offers little beside a large one, or that has
/// very many requests in flight, may complete too few requests until then.
const EVENTS_MAX: u64 = 4_000_000;

/// Simulates loads together until the results are steady. Returns none if a path does not have its
/// operation.
pub fn simulate(profile: &Profile, loads: &[Load], seed: u64) -> Option<Outcome> {
    let routes: Option<Vec<Route>> =
        loads.iter().map(|load| Route::of(profile, &load.request)).collect();
    let mut machine = Machine::with_loads(profile, loads, routes?, seed);
    if loads.iter().all(|load| load.in_flight() <= 2) {
        let is_steady = machine.run(&vec![MEASURED_MIN; loads.len()], EVENTS_MAX);
        return Some(machine.outcome(is_steady));
    }
    let goals: Vec<u64> = loads
        .iter()
        .enumerate()
        .map(|(number, load)| {
            let segments = u64::from(machine.route(number).segments);
            let measured = (MEASURED / segments / loads.len() as u64).max(MEASURED_MIN);
            measured.max(2 * load.in_flight())
        })
        .collect();
    let is_warm = machine.run(&goals, EVENTS_MAX);
    machine.measure();
    let is_measured = machine.run(&goals, EVENTS_MAX);
    Some(machine.outcome(is_warm && is_measured))
}
