// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program that keeps running and can be controlled while traffic flows (ClickNP 3.2, 3.7).
//!
//! 1. [`Server::start`] takes a name, and a socket in a folder of the user where requests arrive.
//! 2. The [`Worker`] runs the device between its ports, on the thread that has them. When nothing
//!    moves it polls for a moment, then waits for its ports and for requests, so that an idle
//!    process uses no processor time.
//! 3. Each client has a thread that reads its requests, one JSON object per line, checks their size
//!    and form, and passes them to the worker over a bounded queue. So a slow or hostile client
//!    holds up only itself.
//! 4. The worker executes requests between two runs of the graph, for a bounded time, then
//!    continues with traffic; a whole file of initial values and calls is thus applied in pieces.
//!    Answers return the same way.
//! 5. When the worker ends, the server refuses waiting requests and frees the name.
//!
//! [`Client`] is the client's side. The requests are described in [`Request`] and in
//! `docs/guide/running.md`.

mod client;
mod clients;
mod execute;
mod folder;
mod handle;
mod interrupts;
mod load;
mod members;
mod metrics;
mod reported;
mod request;
mod waiting;
mod wake;
mod work;
mod worker;

pub use client::{Client, ClientError};
pub use clients::Server;
pub use folder::{FolderError, RunFolder};
pub use handle::{Answer, Handle, Jobs, Progress, jobs};
pub use interrupts::stop_on_interrupts;
pub use load::{Load, Loaded};
pub use members::{Members, RequestError};
pub use metrics::serve_metrics;
pub use reported::ReportLog;
pub use request::{Request, StatsFormat};
pub use waiting::Waiting;
pub use wake::Wake;
pub use work::{OfGraphs, Protocol, Work};
pub use worker::{JoinedPorts, Worker, WorkerEnd, WorkerError};
