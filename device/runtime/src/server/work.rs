// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of clients, and the work that the worker gets for them: for any kind of program, and
//! for a graph.

use super::load::{Load, Loaded};
use super::request::Request;
use crate::steering::Initial;
use serde_json::Value;
use std::sync::Arc;

/// Translates requests into work.
pub trait Protocol: Send + Sync + 'static {
    /// The action of the worker between two batches.
    type Work: Send;

    /// Translates a request. This runs on the client's own thread, so it may take a while.
    ///
    /// # Errors
    /// A description of the problem with the request, for the user.
    fn work(&self, request: Value) -> Result<Self::Work, String>;
}

/// Work for the worker of a graph.
pub enum Work {
    /// A request to execute.
    Request(Request),
    /// Initial values to continue with, for which a share of time was too short.
    Initial(Box<Initial>),
    /// A program to continue with instead; if the flag is set, even if packets are lost.
    Replace(Box<Loaded>, bool),
}

impl From<Request> for Work {
    fn from(request: Request) -> Self {
        Self::Request(request)
    }
}

/// The protocol of graphs; it loads replacement programs before the worker gets them.
#[derive(Clone)]
pub struct OfGraphs {
    loader: Arc<dyn Load>,
}

impl OfGraphs {
    /// Uses `loader` to load programs.
    pub fn new(loader: Arc<dyn Load>) -> Self {
        Self { loader }
    }
}

impl Protocol for OfGraphs {
    type Work = Work;

    fn work(&self, request: Value) -> Result<Work, String> {
        match Request::of_value(request).map_err(|error| error.to_string())? {
            Request::Replace { file, is_forced } => {
                let loaded = self.loader.load(&file)?;
                tracing::info!(file = %file.display(), "program loaded");
                Ok(Work::Replace(Box::new(loaded), is_forced))
            }
            request => Ok(request.into()),
        }
    }
}
