// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A place of replicated files as a process, and the writers on the host.

use crate::backup::Backup;
use crate::history::Writer;
use crate::options::{Options, Policy};
use crate::primary::{Counters, Primary};
use crate::processor::Processor;
use freeport_study_verbs::fabric::Node;
use freeport_study_verbs::{Fault, Place, Stable, Verbs};
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// Number of files that are written, each by one task with clients of all policies.
pub const FILES: u32 = 3;
/// Wait between rounds of writes, so that logs stay small.
const PAUSE: Duration = Duration::from_millis(1);

/// Returns settings with small chunks, for the given number of backups.
pub fn options(backups: u16) -> Options {
    Options {
        backups,
        chunk_bytes: 4096,
        log_slots: 16,
        receive_slots: 6,
        processor_queue: 4,
        retry: Duration::from_millis(1),
        ..Options::default()
    }
}

/// Returns the file whose existence ends the host's writers.
pub fn end_file(folder: &Path) -> PathBuf {
    folder.join("end")
}

/// Runs a place in a folder. The host writes to files until there is the [`end_file`] and all is
/// acknowledged, and returns what it carried; `acknowledged` is told the file and number of each
/// write. Other places run until they are killed.
///
/// # Errors
/// The place cannot begin, or its file does not work.
pub fn run(
    folder: &Path,
    place: Place,
    options: &Options,
    seed: u64,
    acknowledged: impl Fn(u32, u64) + Clone + 'static,
) -> Result<Counters, Fault> {
    let mut node = Node::begin(folder, place, options.memory_bytes(place))?;
    let verbs = node.verbs();
    match place {
        Place::Host => {
            let primary = Primary::begin(&verbs, options)?;
            let log = verbs.stable().read()?;
            let writing = Rc::new(Cell::new(FILES));
            for file in 0..FILES {
                let clients = Policy::ALL.map(|policy| primary.client(policy)).to_vec();
                let writer = Writer::new(&log, clients, file, seed ^ u64::from(file));
                let (writing, end) = (Rc::clone(&writing), end_file(folder));
                let (verbs, acknowledged) = (verbs.clone(), acknowledged.clone());
                verbs.clone().spawn(async move {
                    writes(&verbs, writer, &end, |last| acknowledged(file, last)).await;
                    writing.set(writing.get() - 1);
                });
            }
            node.run_until(|| writing.get() == 0)?;
            Ok(primary.counters())
        }
        Place::Soc => {
            Processor::begin(&verbs, options);
            node.run_until(|| false)?;
            unreachable!("its condition is never true");
        }
        _ => {
            let backup = Backup::begin(&verbs, options)?;
            node.run_until(|| backup.broken().is_some())?;
            Err(backup.broken().expect("the reason of the end"))
        }
    }
}

/// Writes until there is a file, and then until all is acknowledged.
async fn writes<V: Verbs>(
    verbs: &V,
    mut writer: Writer<V>,
    end: &Path,
    acknowledged: impl Fn(u64),
) {
    loop {
        let is_last = fs::exists(end).unwrap_or(false);
        match writer.round().await {
            Ok(last) => acknowledged(last),
            Err(_) => return,
        }
        if is_last {
            return;
        }
        verbs.sleep(PAUSE).await;
    }
}
