// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A backup in the chain: it appends chunks in their order, and passes them on.

use crate::chunk::Chunk;
use crate::files::Files;
use crate::gate::Watermark;
use crate::log::{Log, LogError, Refusal};
use crate::message::{Answer, Message};
use crate::options::Options;
use crate::sender::Sender;
use freeport_study_verbs::{Call, Memory, Place, Stable, Verbs};
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
    /// Identities of the chunks that are appended or in line for it, from the first on.
    in_line: RefCell<Vec<u64>>,
    line: UnboundedSender<Chunk>,
    /// Chunks that came before earlier ones, with their senders.
    early: RefCell<BTreeMap<u64, (Chunk, Place)>>,
    early_most: Cell<usize>,
    /// The next backup, unless this is the last.
    next: Option<Sender<V>>,
    /// Number of the last chunk that this backup and all behind it hold.
    held: Watermark<LogError>,
    files: RefCell<Files>,
}

impl<V: Verbs> Backup<V> {
    /// Begins the backup's tasks with the log in its file.
    ///
    /// # Errors
    /// The file does not work, or is damaged.
    ///
    /// # Panics
    /// The place is no backup.
    pub fn begin(verbs: &V, options: &Options) -> Result<Self, LogError> {
        let Place::Peer(number) = verbs.place() else { panic!("{} is no backup", verbs.place()) };
        let log = Log::recover(verbs, options.log_slots)?;
        let next = Place::Peer(number + 1);
        let has_next = number + 1 < options.backups;
        let (line, in_line) = unbounded();
        let shared = Rc::new(Shared {
            verbs: verbs.clone(),
            options: *options,
            held: Watermark::new(if has_next { log.held() } else { log.last }),
            in_line: RefCell::new(log.identities),
            line,
            early: RefCell::default(),
            early_most: Cell::default(),
            next: has_next.then(|| Sender::new(verbs, next, options)),
            files: RefCell::new(log.files),
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

    /// Returns the reason why its file does not work, or why the next backup refuses its log: it is
    /// then of no use until it begins anew. If the log is refused, it says so to the place in front
    /// of it.
    pub fn broken(&self) -> Option<LogError> {
        self.shared.held.broken()
    }
}

impl<V: Verbs> Shared<V> {
    async fn serve(self: Rc<Self>) {
        loop {
            let call = self.verbs.receive().await;
            match Message::decode(&call.message) {
                Some(Message::Arrived { held, .. } | Message::Await { held, .. })
                    if held > self.last() =>
                {
                    let (place, last) = (self.verbs.place(), self.last());
                    call.answer(Answer::Refused(Refusal::Lost { place, last, held }).encode());
                }
                Some(Message::Arrived { number, at, bytes, .. }) => {
                    // It is copied at once, since its sender may die and use the slot again.
                    let chunk = self.load(number, at, bytes);
                    self.verbs.spawn(Rc::clone(&self).arrived(call, chunk, bytes));
                }
                Some(Message::Await { number, identity, .. }) => {
                    self.verbs.spawn(Rc::clone(&self).awaited(call, number, identity));
                }
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
        let (number, identity) = (chunk.number, chunk.identity());
        self.verbs.work(self.options.costs.check.of(chunk.body().len())).await;
        let answer = match self.accept(chunk, call.from) {
            Ok(true) => self.when_held(number, identity, bytes).await,
            Ok(false) => Answer::Again,
            Err(refusal) => Answer::Refused(refusal),
        };
        call.answer(answer.encode());
    }

    async fn awaited(self: Rc<Self>, call: Call, number: u64, identity: u64) {
        let is_early = |(chunk, _): &(Chunk, Place)| chunk.identity() == identity;
        let has = number <= self.last() || self.early.borrow().get(&number).is_some_and(is_early);
        let answer = match has {
            true => self.when_held(number, identity, 0).await,
            false => Answer::Missing,
        };
        call.answer(answer.encode());
    }

    /// Waits until this backup and all behind it hold a chunk, and returns the answer for it.
    async fn when_held(&self, number: u64, identity: u64, bytes: u64) -> Answer {
        // A chunk that is here already is compared at once: the next backup may be dead.
        if let Err(refusal) = self.compare(number, identity) {
            return Answer::Refused(refusal);
        }
        match self.held.reached(number).await {
            Ok(()) => match self.compare(number, identity) {
                Ok(()) => Answer::Held { bytes },
                Err(refusal) => Answer::Refused(refusal),
            },
            Err(LogError::Refused(refusal)) => Answer::Refused(refusal),
            // This place is of no use until it begins anew.
            Err(_) => Answer::Again,
        }
    }

    /// Returns the number of the last chunk that is appended or in line for it.
    fn last(&self) -> u64 {
        self.in_line.borrow().len() as u64
    }

    /// Compares a chunk with the one of its number here, if there is one.
    fn compare(&self, number: u64, identity: u64) -> Result<(), Refusal> {
        let here =
            number.checked_sub(1).map(|index| self.in_line.borrow().get(index as usize).copied());
        match here {
            // No chunk has the number 0, and no previous one the first.
            None if identity == 0 => Ok(()),
            Some(here) if here.is_none_or(|here| here == identity) => Ok(()),
            _ => Err(Refusal::Differs { place: self.verbs.place(), number }),
        }
    }

    /// Puts a chunk in line, or holds it until earlier ones have come. Returns whether there was
    /// room for it.
    ///
    /// # Errors
    /// It belongs to another log.
    fn accept(&self, chunk: Chunk, from: Place) -> Result<bool, Refusal> {
        let next = self.last() + 1;
        if chunk.number < next {
            return self.compare(chunk.number, chunk.identity()).map(|()| true);
        }
        if chunk.number > next {
            return Ok(self.hold(chunk, from));
        }
        self.compare(next - 1, chunk.previous())?;
        let mut following = Some(chunk);
        while let Some(chunk) = following {
            self.in_line.borrow_mut().push(chunk.identity());
            let (number, identity) = (chunk.number + 1, chunk.identity());
            // One that does not follow is of another log, whose host has begun anew since.
            let early = self.early.borrow_mut().remove(&number);
            following = early.map(|(chunk, _)| chunk).filter(|chunk| chunk.previous() == identity);
            // The receiver lives as long as the place.
            let _ = self.line.unbounded_send(chunk);
        }
        Ok(true)
    }

    /// Holds a chunk until earlier ones have come, if there is room for it.
    fn hold(&self, chunk: Chunk, from: Place) -> bool {
        let mut early = self.early.borrow_mut();
        match early.get(&chunk.number) {
            // It was sent twice. Its slot is needed for earlier chunks: the sender waits without
            // one.
            Some((here, _)) if *here == chunk => return false,
            // The host has lost its log and begun anew, and a chunk of its earlier life is here.
            Some(_) => {}
            None => {
                let of_sender = early.values().filter(|(_, sender)| *sender == from).count();
                if of_sender >= self.options.early(from) {
                    return false;
                }
            }
        }
        early.insert(chunk.number, (chunk, from));
        self.early_most.set(self.early_most.get().max(early.len()));
        true
    }

    async fn append(self: Rc<Self>, mut line: UnboundedReceiver<Chunk>) {
        while let Some(chunk) = line.next().await {
            if let Err(fault) = self.verbs.stable().append(chunk.bytes().to_vec()).await {
                return self.held.break_with(fault.into());
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
            let attempt = || next.send(chunk.number, held.now(), chunk.bytes().to_vec());
            match next.bring(&chunk, is_new, || held.now(), attempt).await {
                // The next backup appends in order, so that it holds all earlier ones as well.
                Ok(_) => held.raise(chunk.number),
                Err(refusal) => held.break_with(refusal.into()),
            }
        });
    }
}
