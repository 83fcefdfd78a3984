// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A place of replicated files as a process, and the writers on the host.

use crate::backup::Backup;
use crate::history::Writer;
use crate::log::LogError;
use crate::options::{Options, Policy};
use crate::primary::{Counters, Primary, WriteError};
use crate::processor::Processor;
use freeport_study_verbs::fabric::Node;
use freeport_study_verbs::{Fault, Place, Stable, Verbs};
use std::cell::{Cell, RefCell};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use thiserror::Error;

/// Number of files that are written, each by one task with clients of all policies.
pub const FILES: u32 = 3;
/// Wait between rounds of writes, so that logs stay small.
const PAUSE: Duration = Duration::from_millis(1);

/// The end of a place that cannot continue.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NodeError {
    /// The place cannot begin, or its file does not work.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A writer of the host has failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The place cannot talk to others.
    #[error(transparent)]
    Fault(#[from] Fault),
}

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
/// The place cannot begin, its file does not work, or a writer has failed.
pub fn run(
    folder: &Path,
    place: Place,
    options: &Options,
    seed: u64,
    acknowledged: impl Fn(u32, u64) + Clone + 'static,
) -> Result<Counters, NodeError> {
    let mut node = Node::begin(folder, place, options.memory_bytes(place))?;
    let verbs = node.verbs();
    match place {
        Place::Host => {
            let primary = Primary::begin(&verbs, options)?;
            let log = verbs.stable().read()?;
            let writing = Rc::new(Cell::new(FILES));
            let failed: Rc<RefCell<Option<WriteError>>> = Rc::default();
            for file in 0..FILES {
                let clients = Policy::ALL.map(|policy| primary.client(policy)).to_vec();
                let writer = Writer::new(&log, clients, file, seed ^ u64::from(file));
                let (writing, failed) = (Rc::clone(&writing), Rc::clone(&failed));
                let end = end_file(folder);
                let (verbs, acknowledged) = (verbs.clone(), acknowledged.clone());
                verbs.clone().spawn(async move {
                    match writes(&verbs, writer, &end, |last| acknowledged(file, last)).await {
                        Ok(()) => writing.set(writing.get() - 1),
                        Err(error) => *failed.borrow_mut() = Some(error),
                    }
                });
            }
            node.run_until(|| writing.get() == 0 || failed.borrow().is_some())?;
            let failed = failed.take();
            failed.map_or(Ok(primary.counters()), |error| Err(error.into()))
        }
        Place::Soc => {
            Processor::begin(&verbs, options);
            node.run_until(|| false)?;
            unreachable!("its condition is never true");
        }
        _ => {
            let backup = Backup::begin(&verbs, options)?;
            // If its log is refused, it has to say so to the place in front of it.
            let broken = || backup.broken().filter(|error| !matches!(error, LogError::Refused(_)));
            node.run_until(|| broken().is_some())?;
            Err(broken().expect("the reason of the end").into())
        }
    }
}

/// Writes until there is a file, and then until all is acknowledged.
async fn writes<V: Verbs>(
    verbs: &V,
    mut writer: Writer<V>,
    end: &Path,
    acknowledged: impl Fn(u64),
) -> Result<(), WriteError> {
    loop {
        let is_last = fs::exists(end).unwrap_or(false);
        acknowledged(writer.round().await?);
        if is_last {
            return Ok(());
        }
        verbs.sleep(PAUSE).await;
    }
}
