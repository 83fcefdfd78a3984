// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients of memcached. The first worker has all items and serves all these clients, so that a
//! retrieval of many keys needs no other worker.

use freeport_kv_items::{Connection, Control, Items, Next, Now, Options};
use freeport_kv_protocol::memcached::reply::{self, Line};

use super::Worker;
use super::requests::Progress;
use crate::connection::BACKLOG_BYTES;
use crate::listener::{Listener, Protocol};
use crate::shared::Shared;

/// Chains of items that are looked at for expired ones at once.
const EXPIRY_STEPS: usize = 200;

/// The items of a worker that has clients of memcached.
pub(super) fn items(shared: &Shared, listeners: &[Listener]) -> Option<Items> {
    if !listeners.iter().any(|listener| listener.protocol == Protocol::Memcached) {
        return None;
    }
    let options = Options {
        memory_bytes: shared.options.memcached_memory_bytes,
        seed: fastrand::u64(..),
        cas_before: fastrand::u64(..1 << 39),
        ..Options::default()
    };
    Some(Items::new(options).expect("the server has checked the options"))
}

impl Worker {
    /// Executes the requests of a client of memcached.
    pub(super) fn execute_memcached(
        &mut self,
        (connection, is_closing): (&mut Connection, &mut bool),
        received: &[u8],
        output: &mut Vec<u8>,
    ) -> Progress {
        let now = self.seconds();
        let mut used = 0;
        while output.len() <= BACKLOG_BYTES {
            let Some(items) = &mut self.items else { break };
            let served = items.serve(connection, &received[used..], now, output);
            used += served.taken;
            match served.next {
                Next::Receive { .. } => return Progress { used, is_input_left: false },
                Next::Send => return Progress { used, is_input_left: true },
                Next::Control(control) => self.control(control, is_closing, output),
            }
            if *is_closing {
                break;
            }
        }
        Progress { used, is_input_left: !*is_closing }
    }

    fn control(&mut self, control: Control, is_closing: &mut bool, output: &mut Vec<u8>) {
        match control {
            Control::Continue => {}
            Control::Close => *is_closing = true,
            Control::Shutdown { .. } => {
                *is_closing = true;
                self.core.shared.stop();
            }
            Control::Dump(dump) => {
                let (now, mut rest) = (self.seconds(), Some(dump));
                while let (Some(dump), Some(items)) = (rest, &self.items) {
                    rest = items.dump(dump, now, output);
                }
                reply::line(output, Line::End);
            }
            Control::ListConnections => reply::line(output, Line::End),
        }
    }

    /// Removes some expired items.
    pub(super) fn expire_items(&mut self) {
        let now = self.seconds();
        if let Some(items) = &mut self.items {
            while items.expire_some(now, EXPIRY_STEPS) > EXPIRY_STEPS {}
        }
    }

    /// The time in seconds since 1970; it never goes back.
    fn seconds(&self) -> Now {
        let shared = &self.core.shared;
        let seconds = shared.started_s + shared.started.elapsed().as_secs();
        Now(u32::try_from(seconds).unwrap_or(u32::MAX))
    }
}
