// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Facts that `stats` reports and only the server knows.

use crate::now::Now;

/// Facts that only the server knows. It sets these before it passes on `stats`.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// When it started.
    pub started: Option<Now>,
    /// Number of its workers.
    pub threads: usize,
    /// More lines of `stats`, such as those of connections: names and values.
    pub statistics: Vec<(&'static str, String)>,
    /// More lines of `stats settings`.
    pub settings: Vec<(&'static str, String)>,
}
