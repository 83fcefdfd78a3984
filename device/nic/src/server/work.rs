// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the clients of a program can ask for, and what its worker is handed of that: for any kind
//! of program, and for a graph.

use super::load::{Load, Loaded};
use super::request::Request;
use crate::steering::Initial;
use serde_json::Value;
use std::sync::Arc;

/// How requests become work.
pub trait Protocol: Send + Sync + 'static {
    /// What the worker does between two batches.
    type Work: Send;

    /// What an object asks for. The client's own thread finds that out, so it may take a while.
    ///
    /// # Errors
    /// What is wrong with the request, for the user.
    fn work(&self, request: Value) -> Result<Self::Work, String>;
}

/// What the worker of a graph is to do.
pub enum Work {
    /// As asked for.
    Request(Request),
    /// Go on with initial values that a share of time was too short for.
    Initial(Box<Initial>),
    /// Go on with this program instead; by force even if packets are lost.
    Replace(Box<Loaded>, bool),
}

impl From<Request> for Work {
    fn from(request: Request) -> Self {
        Self::Request(request)
    }
}

/// The requests of graphs; a program that is to replace the running one is loaded first.
#[derive(Clone)]
pub struct OfGraphs {
    loader: Arc<dyn Load>,
}

impl OfGraphs {
    /// With who loads programs.
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
