// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Snapshots: a queue of blocks, and a thread that writes them.
//!
//! A snapshot counts when the manifest names it. Before, its file ends with a mark, and file and
//! name are durable. The same manifest names no segment from before the snapshot, so it frees them.

use crate::error::SnapshotError;
use crate::journal::is_current;
use crate::manifest::{Manifest, Segment, log_name};
use crate::shared::Shared;
use crate::snapshot_file::{Completed, SnapshotFile};
use crate::units::{Entries, Frame};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

/// Bytes that may wait for the writer; with more, [`SnapshotWriter::write`] waits.
pub const PENDING_BYTES: usize = 8 << 20;

/// A snapshot that is being written. All workers may share it. Dropping it cancels the snapshot.
pub struct SnapshotWriter {
    shared: Arc<Shared>,
    queue: Arc<Queue>,
}

/// A function that gets the result of a snapshot.
pub type Done = Box<dyn FnOnce(Result<Completed, SnapshotError>) + Send>;

impl SnapshotWriter {
    /// Hands over the entries as a block, and leaves the buffer empty. Waits while more than
    /// [`PENDING_BYTES`] wait for the disk; [`SnapshotWriter::is_full`] says so before.
    ///
    /// # Errors
    ///
    /// Writing has failed, and the snapshot should be dropped.
    pub fn write(&self, entries: &mut Entries) -> Result<(), SnapshotError> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut state = self.wait_for_room()?;
        let block = entries.take();
        state.bytes += block.len();
        state.blocks.push_back(block);
        self.queue.more.notify_one();
        Ok(())
    }

    /// Bytes that wait for the disk.
    pub fn pending_bytes(&self) -> usize {
        self.queue.state().bytes
    }

    /// Whether [`SnapshotWriter::write`] would wait.
    pub fn is_full(&self) -> bool {
        self.pending_bytes() >= PENDING_BYTES
    }

    /// Completes the snapshot in the background: `done` gets the result, in the writer's thread.
    /// The old files are removed then. After an error the log continues as before. `done` must not
    /// wait for the thread that closes the journal.
    pub fn finish(self, done: Done) {
        self.queue.state().order = Order::Finish(done);
        self.queue.more.notify_one();
    }

    /// Ends the snapshot without a result, and waits until its file is removed.
    pub fn cancel(self) {
        drop(self);
    }

    fn wait_for_room(&self) -> Result<MutexGuard<'_, State>, SnapshotError> {
        let mut state = self.queue.state();
        loop {
            if let Some(error) = &state.error {
                return Err(error.clone());
            }
            if state.bytes < PENDING_BYTES {
                return Ok(state);
            }
            state = self.queue.room.wait(state).expect("no holder of the lock panics");
        }
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        let is_open = matches!(self.queue.state().order, Order::Write);
        if is_open {
            self.shared.end_snapshot();
        }
    }
}

/// The snapshot of a journal, for the journal's end.
pub(crate) struct Active {
    queue: Arc<Queue>,
    thread: JoinHandle<()>,
}

impl Shared {
    /// Cancels the snapshot unless it is being completed, and waits for its thread.
    pub(crate) fn end_snapshot(&self) {
        let active = self.snapshot.lock().expect("no holder of the lock panics").take();
        let Some(Active { queue, thread }) = active else { return };
        let mut state = queue.state();
        if matches!(state.order, Order::Write) {
            state.order = Order::Cancel;
            state.error.get_or_insert(SnapshotError::Cancelled);
        }
        drop(state);
        queue.more.notify_one();
        queue.room.notify_all();
        if !is_current(&thread) {
            // A panic of the thread has been reported by its message.
            let _ = thread.join();
        }
    }
}

/// Blocks on their way to the writer.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    /// Wakes the writer.
    more: Condvar,
    /// Wakes threads with another block.
    room: Condvar,
}

#[derive(Default)]
struct State {
    blocks: VecDeque<Frame>,
    bytes: usize,
    order: Order,
    error: Option<SnapshotError>,
}

#[derive(Default)]
enum Order {
    #[default]
    Write,
    Finish(Done),
    Cancel,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    /// The next block, or the order that ends the snapshot. Orders are taken only once.
    fn next(&self) -> Result<Frame, Order> {
        let mut state = self.state();
        loop {
            if matches!(state.order, Order::Cancel) {
                return Err(Order::Cancel);
            }
            if let Some(block) = state.blocks.pop_front() {
                return Ok(block);
            }
            if matches!(state.order, Order::Finish(_)) {
                return Err(std::mem::replace(&mut state.order, Order::Cancel));
            }
            state = self.more.wait(state).expect("no holder of the lock panics");
        }
    }

    fn written(&self, bytes: usize) {
        self.state().bytes -= bytes;
        self.room.notify_all();
    }

    fn fail(&self, error: &SnapshotError) {
        self.state().error = Some(error.clone());
        self.room.notify_all();
    }
}

/// Starts the thread of a snapshot that the log from `first` on continues.
pub(crate) fn start(shared: &Arc<Shared>, first: Segment) -> Result<SnapshotWriter, SnapshotError> {
    let number = shared.take_number();
    let path = shared.folder.snapshot(number);
    let queue = Arc::new(Queue::default());
    let file = SnapshotFile::create(&shared.folder, shared.salt, number)?;
    let mut writer = Writer { shared: shared.clone(), queue: queue.clone(), file, first };
    let thread = thread::Builder::new().name("kv-snapshot".to_owned());
    let thread = thread.spawn(move || writer.run()).map_err(|error| {
        shared.folder.remove(&path);
        SnapshotError::system("starting a thread for", &path)(error)
    })?;
    // A former one has ended, except for the function that gets its result.
    let active = Active { queue: queue.clone(), thread };
    *shared.snapshot.lock().expect("no holder of the lock panics") = Some(active);
    Ok(SnapshotWriter { shared: shared.clone(), queue })
}

struct Writer {
    shared: Arc<Shared>,
    queue: Arc<Queue>,
    file: SnapshotFile,
    first: Segment,
}

impl Writer {
    fn run(&mut self) {
        let mut result = self.file.begin();
        let order = loop {
            match self.queue.next() {
                Err(order) => break order,
                Ok(block) => {
                    let bytes = block.len();
                    if result.is_ok() {
                        result = self.file.block(block);
                    }
                    self.queue.written(bytes);
                }
            }
            if let Err(error) = &result {
                self.queue.fail(error);
            }
        };
        match order {
            Order::Finish(done) => {
                let result = result.and_then(|()| self.finish());
                if let Err(error) = &result {
                    self.remove_unnamed();
                    self.queue.fail(error);
                }
                self.shared.snapshot_is_active.store(false, Ordering::Release);
                done(result);
            }
            Order::Cancel | Order::Write => {
                self.remove_unnamed();
                self.shared.snapshot_is_active.store(false, Ordering::Release);
            }
        }
    }

    fn finish(&mut self) -> Result<Completed, SnapshotError> {
        let completed = self.file.complete()?;
        self.name(completed)?;
        Ok(completed)
    }

    /// Has the manifest name the snapshot and the segments that continue it.
    fn name(&self, completed: Completed) -> Result<(), SnapshotError> {
        let shared = &*self.shared;
        let mut tail = shared.tail();
        let old = tail.manifest.clone();
        let mut segments = old.segments.clone();
        segments.retain(|segment| segment.number >= self.first.number);
        if !tail.is_named {
            segments.push(tail.segment);
        }
        let manifest = Manifest { snapshot: Some(self.file.number), segments, ..old.clone() };
        let dropped = old.segments.iter().map(|segment| log_name(segment.number));
        let dropped = dropped.filter(|name| !manifest.names(name));
        let mut garbage: Vec<_> = dropped.map(|name| shared.folder.file(&name)).collect();
        garbage.extend(old.snapshot.map(|number| shared.folder.snapshot(number)));

        let is_stored = match shared.store_manifest(&mut tail, manifest, garbage) {
            Ok(()) => true,
            // The new manifest may be on the disk, so everything continues from it.
            Err(unstored) if unstored.may_be_stored => false,
            Err(unstored) => {
                let path = &shared.folder.path;
                let error = SnapshotError::system("replacing the manifest of", path);
                return Err(error(unstored.error));
            }
        };
        tail.snapshot_bytes = completed.bytes;
        if tail.faults.segment_number < self.first.number {
            tail.faults.segment = None;
        }
        if is_stored {
            tail.durable = tail.durable.max(self.first.position);
        }
        let has_advanced = shared.publish(&tail);
        let failure = tail.faults.manifest.clone();
        drop(tail);
        shared.work.notify_one();
        if has_advanced {
            shared.call_wake();
        }
        match failure {
            Some(failure) if !is_stored => Err(SnapshotError::Failing(failure)),
            _ => Ok(()),
        }
    }

    /// Removes the file, unless a manifest names it or may name it.
    fn remove_unnamed(&self) {
        self.file.remove_unless_named(&self.shared.tail().manifest);
    }
}
