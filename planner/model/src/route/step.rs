// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Steps of a function that is more than one request: messages, work of cores, answers.

use super::{Request, Resource, Route, Stage, Time, Way};
use crate::path::{Operation, Path, Side};
use crate::profile::Profile;

/// A step of a function. Steps follow each other; functions of the study are sequences of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// A request, as its requester sees it.
    Request(Request),
    /// A message on its way to a core of the target, which has noticed it at the end.
    Message {
        /// The path.
        path: Path,
        /// Payload in bytes.
        bytes: u64,
    },
    /// The answer to a message on its way back to the requester of the path.
    Answer {
        /// The path of the message.
        path: Path,
        /// Payload in bytes.
        bytes: u64,
    },
    /// Work of a core.
    Work {
        /// The side that has the core. Cores of clients and of other machines are not a limit.
        side: Side,
        /// Time in picoseconds.
        time: Time,
    },
}

impl Step {
    /// Returns the way of the step, or none if its path does not have the operation.
    ///
    /// Posting is part of it: cores that answer messages and post are occupied for that time, and
    /// others delay the request.
    pub fn route(&self, profile: &Profile) -> Option<Route> {
        let route = match *self {
            Self::Request(request) => {
                let mut route = Route::of(profile, &request)?;
                route.begin_with_posting(request.batch);
                route
            }
            Self::Message { path, bytes } => {
                let request = Request::new(path, Operation::Send, bytes);
                let mut route = Route::of(profile, &request)?;
                // The rest of the way belongs to work and answer.
                route.after = vec![Way { profile, request: &request, bytes }.notice()];
                route.begin_with_posting(1);
                route
            }
            Self::Answer { path, bytes } => {
                let request = Request::new(path, Operation::Send, bytes);
                Route::of(profile, &request)?;
                let way = Way { profile, request: &request, bytes };
                let mut stages = vec![way.return_way()];
                match path.requester() {
                    Side::Client => way.answer_to_client(&mut stages, bytes),
                    here => way.answer_inside(&mut stages, here),
                }
                Route { before: stages, segments: 1, ..Route::default() }
            }
            Self::Work { side, time } => {
                let stage = match side {
                    Side::Host => Stage::Serve(Resource::HostCores, time),
                    Side::Soc => Stage::Serve(Resource::SocCores, time),
                    Side::Client | Side::Peer => Stage::Delay(time),
                };
                Route { before: vec![stage], segments: 1, ..Route::default() }
            }
        };
        Some(route)
    }
}

impl Route {
    /// Puts the time of posting at the beginning.
    fn begin_with_posting(&mut self, batch: u32) {
        let time = (self.post + self.doorbell) / u64::from(batch);
        let stage = match self.poster {
            Some(cores) => Stage::Serve(cores, time),
            None => Stage::Delay(self.post / u64::from(batch)),
        };
        self.before.insert(0, stage);
    }
}
