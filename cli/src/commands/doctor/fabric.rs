// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of what connections through shared memory need.

use super::{Finding, State};
use freeport_fabric::shm::{Connection, Options};
use std::io;

/// Opens a connection, as two processes would, and sends a byte through it.
pub fn shared_memory() -> Finding {
    let meaning = "connections between processes past the kernel; without it, sockets and pipes. \
                   Without membarrier each operation executes a fence, some nanoseconds";
    let tried = Connection::pair(&Options::default()).and_then(|(mut here, mut there)| {
        here.write_all(b"?")?;
        there.read(&mut [0])?;
        Ok(here.is_fenced())
    });
    let (state, seen) = match tried {
        Ok(false) => {
            (State::Present, "sealed segments, and membarrier for sleeping readers".into())
        }
        Ok(true) => (State::Limited, "sealed segments, but no membarrier".into()),
        Err(error) => (State::Missing, error.to_string()),
    };
    Finding { name: "shared memory", state, seen, meaning }
}

/// Checks the limit of descriptors.
pub fn descriptors() -> Finding {
    const ENOUGH: u64 = 16_384;
    let meaning = "each connection through shared memory uses some: raise the limit with ulimit -n";
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills the structure.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        let seen = io::Error::last_os_error().to_string();
        return Finding { name: "descriptors", state: State::Missing, seen, meaning };
    }
    let (now, most) = (limit.rlim_cur, limit.rlim_max);
    let state = if now >= ENOUGH { State::Present } else { State::Limited };
    let seen = format!("{now} per process, which may raise the limit to {most}");
    Finding { name: "descriptors", state, seen, meaning }
}
