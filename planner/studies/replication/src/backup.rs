// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A backup in the chain: it appends chunks in their order, and passes them on.

use crate::chunk::Chunk;
use crate::files::Files;
use crate::gate::Watermark;
use crate::log::Log;
use crate::message::{Answer, Message};
use crate::options::Options;
use crate::sender::Sender;
use freeport_study_verbs::{Call, Fault, Memory, Place, Stable, Verbs};
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A backup. A clone is the same.
pub struct Backup<V> {
    shared: Rc<Shared<V>>,
}

impl<V> Clone for Backup<V> {
    fn clone(&self) -> Self {
        Self { shared: Rc::clone(&self.shared) }
    }
}

struct Shared<V> {
    verbs: V,
    options: Options,
    /// Number of the last chunk that is appended or in line for it.
    in_line: Cell<u64>,
    line: UnboundedSender<Chunk>,
    /// Chunks that came before earlier ones, with their senders.
    early: RefCell<BTreeMap<u64, (Chunk, Place)>>,
    early_most: Cell<usize>,
    /// The next backup, unless this is the last.
    next: Option<Sender<V>>,
    /// Number of the last chunk that this backup and all behind it hold.
    held: Watermark,
    files: RefCell<Files>,
    broken: RefCell<Option<Fault>>,
}

impl<V: Verbs> Backup<V> {
    /// Begins the backup's tasks with the log in its file.
    ///
    /// # Errors
    /// The file does not work.
    ///
    /// # Panics
    /// The place is no backup.
    pub fn begin(verbs: &V, options: &Options) -> Result<Self, Fault> {
        let Place::Peer(number) = verbs.place() else { panic!("{} is no backup", verbs.place()) };
        let log = Log::recover(verbs.stable(), options.log_slots)?;
        let next = Place::Peer(number + 1);
        let has_next = number + 1 < options.backups;
        let (line, in_line) = unbounded();
        let shared = Rc::new(Shared {
            verbs: verbs.clone(),
            options: *options,
            in_line: Cell::new(log.last),
            line,
            early: RefCell::default(),
            early_most: Cell::default(),
            next: has_next.then(|| Sender::new(verbs, next, options)),
            held: Watermark::default(),
            files: RefCell::new(log.files),
            broken: RefCell::default(),
        });
        log.recent.into_iter().for_each(|chunk| shared.pass_on(chunk, false));
        verbs.spawn(Rc::clone(&shared).append(in_line));
        verbs.spawn(Rc::clone(&shared).serve());
        Ok(Self { shared })
    }

    /// Returns the files as far as they are appended.
    pub fn files(&self) -> Files {
        self.shared.files.borrow().clone()
    }

    /// Returns the greatest number of chunks that were held at once because earlier ones were
    /// missing.
    pub fn early_most(&self) -> usize {
        self.shared.early_most.get()
    }

    /// Returns the reason why its file does not work, if it does not: the backup is then of no use
    /// until it begins anew.
    pub fn broken(&self) -> Option<Fault> {
        self.shared.broken.borrow().clone()
    }
}

impl<V: Verbs> Shared<V> {
    async fn serve(self: Rc<Self>) {
        loop {
            let call = self.verbs.receive().await;
            match Message::decode(&call.message) {
                Some(Message::Arrived { number, at, bytes }) => {
                    // It is copied at once, since its sender may die and use the slot again.
                    let chunk = self.load(number, at, bytes);
                    self.verbs.spawn(Rc::clone(&self).arrived(call, chunk, bytes));
                }
                Some(Message::Await { number }) if self.has(number) => {
                    self.verbs.spawn(Rc::clone(&self).answer_when_held(call, number, 0));
                }
                Some(Message::Await { .. }) => call.answer(Answer::Missing.encode()),
                _ => call.answer(Answer::Again.encode()),
            }
        }
    }

    /// Returns a chunk from a receive slot, if it is whole.
    fn load(&self, number: u64, at: u64, bytes: u64) -> Option<Chunk> {
        let memory = self.verbs.memory();
        let is_inside = at.checked_add(bytes).is_some_and(|end| end <= memory.bytes());
        if !is_inside {
            return None;
        }
        let record = memory.load(at, bytes as usize);
        let (chunk, _) = Chunk::read(&record, self.options.chunk_bytes)?;
        (chunk.number == number).then_some(chunk)
    }

    async fn arrived(self: Rc<Self>, call: Call, chunk: Option<Chunk>, bytes: u64) {
        let Some(chunk) = chunk else { return call.answer(Answer::Again.encode()) };
        let number = chunk.number;
        self.verbs.work(self.options.costs.check.of(chunk.body().len())).await;
        if !self.accept(chunk, call.from) {
            return call.answer(Answer::Again.encode());
        }
        self.answer_when_held(call, number, bytes).await;
    }

    async fn answer_when_held(self: Rc<Self>, call: Call, number: u64, bytes: u64) {
        self.held.reached(number).await;
        call.answer(Answer::Held { bytes }.encode());
    }

    /// Returns whether a chunk is here, in line or early.
    fn has(&self, number: u64) -> bool {
        number <= self.in_line.get() || self.early.borrow().contains_key(&number)
    }

    /// Puts a chunk in line, or holds it until earlier ones have come. Returns whether there was
    /// room for it.
    fn accept(&self, chunk: Chunk, from: Place) -> bool {
        let next = self.in_line.get() + 1;
        let mut early = self.early.borrow_mut();
        if chunk.number < next {
            return true;
        }
        // It was sent twice. Its slot is needed for earlier chunks: the sender waits without one.
        if early.contains_key(&chunk.number) {
            return false;
        }
        if chunk.number > next {
            let of_sender = early.values().filter(|(_, sender)| *sender == from).count();
            let has_room = of_sender < self.options.early(from);
            if has_room {
                early.insert(chunk.number, (chunk, from));
                self.early_most.set(self.early_most.get().max(early.len()));
            }
            return has_room;
        }
        let mut following = Some(chunk);
        while let Some(chunk) = following {
            self.in_line.set(chunk.number);
            following = early.remove(&(chunk.number + 1)).map(|(chunk, _)| chunk);
            // The receiver lives as long as the place.
            let _ = self.line.unbounded_send(chunk);
        }
        true
    }

    async fn append(self: Rc<Self>, mut line: UnboundedReceiver<Chunk>) {
        while let Some(chunk) = line.next().await {
            if let Err(fault) = self.verbs.stable().append(chunk.bytes().to_vec()).await {
                *self.broken.borrow_mut() = Some(fault);
                return;
            }
            self.files.borrow_mut().apply(chunk.body());
            self.pass_on(chunk, true);
        }
    }

    /// Brings an appended chunk to the next backup.
    fn pass_on(self: &Rc<Self>, chunk: Chunk, is_new: bool) {
        let Some(next) = self.next.clone() else { return self.held.raise(chunk.number) };
        let held = self.held.clone();
        self.verbs.spawn(async move {
            let attempt = || next.send(chunk.number, chunk.bytes().to_vec());
            next.bring(&chunk, is_new, attempt).await;
            // The next backup appends in order, so that it holds all earlier ones as well.
            held.raise(chunk.number);
        });
    }
}
