// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A registry whose calls are repeated while it does not answer. On a loaded machine an etcd can
//! take longer than the limit of a call; tests of other promises have the patience to repeat it.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use freeport_kv_cluster::{
    NodeId, Presence, Registry, RegistryError, Revision, State, SwapError, Topology,
};
use freeport_testbed::wait::PATIENCE;

/// See the module.
pub struct Patient(pub Arc<dyn Registry>);

impl Patient {
    /// Repeats a call until it returns anything but `Unavailable`.
    fn repeat<T>(
        &self,
        call: impl Fn(&dyn Registry) -> Result<T, RegistryError>,
    ) -> Result<T, RegistryError> {
        let begin = Instant::now();
        loop {
            match call(&*self.0) {
                Err(RegistryError::Unavailable(reason)) => {
                    assert!(begin.elapsed() < PATIENCE, "{reason}");
                    thread::sleep(Duration::from_millis(10));
                }
                result => return result,
            }
        }
    }
}

impl Registry for Patient {
    fn read(&self) -> Result<State, RegistryError> {
        self.repeat(|registry| registry.read())
    }

    fn wait(&self, seen: &State, timeout: Duration) -> Result<State, RegistryError> {
        self.repeat(|registry| registry.wait(seen, timeout))
    }

    fn swap(
        &self,
        expected: Option<Revision>,
        absent: Option<NodeId>,
        topology: &Topology,
    ) -> Result<Revision, SwapError> {
        let begin = Instant::now();
        let mut is_unknown = false;
        loop {
            let error = match self.0.swap(expected, absent, topology) {
                Err(SwapError::Failed(error)) => error,
                Err(SwapError::Unknown(error)) => {
                    is_unknown = true;
                    error
                }
                Err(SwapError::Changed) if is_unknown => {
                    // An earlier attempt may have succeeded. No two topologies of tests are equal.
                    let stored = self.read().map_err(SwapError::Failed)?.topology;
                    return match stored.filter(|stored| stored.topology == *topology) {
                        Some(stored) => Ok(stored.revision),
                        None => Err(SwapError::Changed),
                    };
                }
                result => return result,
            };
            assert!(begin.elapsed() < PATIENCE, "{error}");
        }
    }

    fn keep(&self, node: NodeId, presence: &Presence, time: Duration) -> Result<(), RegistryError> {
        self.repeat(|registry| registry.keep(node, presence, time))
    }

    fn leave(&self, node: NodeId, session: u64) -> Result<(), RegistryError> {
        self.repeat(|registry| registry.leave(node, session))
    }
}
