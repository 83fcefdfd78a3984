// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A worker as a part of a cluster's node: it follows the routes.

use std::sync::mpsc::Sender;

use super::Worker;

impl Worker {
    /// Somebody waits until the worker has executed what it had taken up before. It follows the
    /// present routes already.
    pub(super) fn settle(&mut self, done: Sender<()>) {
        self.lending.settling.push(done);
        if self.core.store.has(self.core.number) {
            self.end_settling();
        }
    }

    /// Everything that had waited for the own shard has been executed.
    pub(super) fn end_settling(&mut self) {
        if !self.lending.settling.is_empty() {
            self.core.flush_log();
            self.lending.settling.clear();
        }
    }
}
