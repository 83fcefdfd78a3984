// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A plain model of memcached: one connection, a map, and no clock. Durations never pass. The tests
//! of the items use it as well.

use freeport_kv_protocol::memcached::meta_reply::{self, Item, Status};
use freeport_kv_protocol::memcached::reply::{self, Line};
use freeport_kv_protocol::memcached::{
    Arithmetic, Expiry, Get, KEY_BYTES_MAX, Limits, Meta, Operator, Reader, Refusal, Request, Step,
    StoreMode, Words, stored_number,
};
use std::collections::BTreeMap;

/// A server with one connection.
pub struct Model {
    reader: Reader,
    buffer: Vec<u8>,
    items: BTreeMap<Vec<u8>, Entry>,
    /// The last CAS number that was given out.
    pub last_cas: u64,
    /// Replies so far.
    pub replies: Vec<u8>,
    /// Refusals so far.
    pub refusals: Vec<String>,
    pub is_closed: bool,
}

#[derive(Clone)]
struct Entry {
    value: Vec<u8>,
    client_flags: u32,
    expiry: Expiry,
    cas: u64,
    is_fetched: bool,
    is_stale: bool,
    has_winner: bool,
    is_key_binary: bool,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            reader: Reader::new(Limits::default()),
            buffer: vec![],
            items: BTreeMap::new(),
            // The original has used more numbers than the examples have.
            last_cas: 1_000_000,
            replies: vec![],
            refusals: vec![],
            is_closed: false,
        }
    }
}

impl Model {
    /// Serves what can be served with some more bytes.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        let buffer = std::mem::take(&mut self.buffer);
        let mut rest = &buffer[..];
        while !self.is_closed {
            let read = self.reader.read(rest);
            let line = rest;
            rest = &rest[read.taken..];
            match read.step {
                Step::Request(request) => self.execute(request),
                Step::Refused(refusal) => self.refuse(line, &refusal),
                Step::Wait { .. } => break,
                Step::Close => self.is_closed = true,
            }
        }
        self.buffer = rest.to_vec();
    }

    fn refuse(&mut self, line: &[u8], refusal: &Refusal) {
        let line = line.split(|byte| *byte == b'\n').next().expect("there is a first");
        self.refusals.push(String::from_utf8_lossy(line).into_owned());
        self.replies.extend_from_slice(refusal.reply());
        if let Some(key) = refusal.removes {
            self.items.remove(key.bytes(&mut [0; KEY_BYTES_MAX]));
        }
    }

    fn execute(&mut self, request: Request) {
        let (line, is_quiet) = match request {
            Request::Get(get) => return self.get(&get),
            Request::Store(store) => {
                let entry = entry(store.value, store.client_flags, store.expiry);
                let status = self.store(store.mode, store.key, entry, store.cas, false).0;
                let line = match status {
                    Status::Done => Line::Stored,
                    Status::NotStored => Line::NotStored,
                    Status::Exists => Line::Exists,
                    _ => Line::NotFound,
                };
                (line, store.is_quiet)
            }
            Request::Change(change) => {
                let changed = self.change(change.key, change.operation, change.delta);
                match changed {
                    Ok(number) if !change.is_quiet => {
                        return reply::number(&mut self.replies, number);
                    }
                    Ok(_) => return,
                    Err(line) => (line, change.is_quiet),
                }
            }
            Request::Delete { key, is_quiet } => {
                let is_found = self.find(key).is_some();
                self.items.remove(key);
                (if is_found { Line::Deleted } else { Line::NotFound }, is_quiet)
            }
            Request::Touch { key, expiry, is_quiet } => match self.find(key) {
                Some(entry) => {
                    entry.expiry = expiry;
                    entry.is_fetched = true;
                    (Line::Touched, is_quiet)
                }
                None => (Line::NotFound, is_quiet),
            },
            Request::FlushAll { time, is_quiet } => {
                if time == Expiry::Now {
                    self.items.clear();
                    self.last_cas += 1;
                }
                (Line::Ok, is_quiet)
            }
            Request::Version => return reply::version(&mut self.replies, "1.6.18"),
            Request::Verbosity { is_quiet, .. } => (Line::Ok, is_quiet),
            Request::MemoryLimit { mebibytes, is_quiet } => {
                let failure = b"MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n";
                if mebibytes > 1_000_000_000 {
                    return self.replies.extend_from_slice(failure);
                }
                (if mebibytes < 8 { Line::MemoryLimitTooSmall } else { Line::Ok }, is_quiet)
            }
            Request::Operator { command, words, is_quiet } => {
                if !is_quiet {
                    self.replies.extend_from_slice(operator(command, words));
                }
                return;
            }
            Request::Quit => {
                self.is_closed = true;
                return;
            }
            Request::MetaGet(meta) => return self.meta_get(&meta),
            Request::MetaSet { meta, mode, client_flags, value } => {
                return self.meta_set(&meta, mode, entry(value, client_flags, Expiry::Never));
            }
            Request::MetaDelete(meta) => return self.meta_delete(&meta),
            Request::MetaArithmetic { meta, operation, delta, initial } => {
                return self.meta_arithmetic(&meta, operation, delta, initial);
            }
            Request::MetaDebug(key) => {
                let is_found = self.find(key.bytes(&mut [0; KEY_BYTES_MAX])).is_some();
                assert!(!is_found, "sizes of items are not modelled");
                return meta_reply::debug_miss(&mut self.replies);
            }
            Request::MetaNoop => return meta_reply::noop(&mut self.replies),
        };
        if !is_quiet {
            reply::line(&mut self.replies, line);
        }
    }

    fn find(&mut self, key: &[u8]) -> Option<&mut Entry> {
        self.items.get_mut(key).filter(|entry| match entry.expiry {
            Expiry::Now => false,
            // The examples have only times long ago, and far in the future.
            Expiry::AtUnixTime(time) => time > 2_000_000_000,
            Expiry::Never | Expiry::InSeconds(_) => true,
        })
    }

    fn next_cas(&mut self) -> u64 {
        self.last_cas += 1;
        self.last_cas
    }

    fn get(&mut self, get: &Get) {
        let mut replies = std::mem::take(&mut self.replies);
        for key in get.keys {
            let Some(entry) = self.find(key) else { continue };
            entry.is_fetched = true;
            entry.expiry = get.touch.unwrap_or(entry.expiry);
            let cas = get.returns_cas.then_some(entry.cas);
            reply::value(&mut replies, key, entry.client_flags, &entry.value, cas);
        }
        reply::line(&mut replies, Line::End);
        self.replies = replies;
    }

    /// Returns the CAS number of the stored item, or 0.
    fn store(
        &mut self,
        mode: StoreMode,
        key: &[u8],
        mut entry: Entry,
        cas: u64,
        may_be_stale: bool,
    ) -> (Status, u64) {
        let old = self.find(key).map(|old| old.clone());
        let is_other = |old: &Entry| cas != 0 && cas != old.cas;
        let refusal = match (mode, &old) {
            (StoreMode::CompareAndSwap, None) => Some(Status::NotFound),
            (StoreMode::CompareAndSwap, Some(old)) if cas == old.cas => None,
            (StoreMode::CompareAndSwap, Some(old)) if may_be_stale && cas < old.cas => {
                entry.expiry = old.expiry;
                entry.is_stale = true;
                entry.has_winner = old.has_winner;
                None
            }
            (StoreMode::CompareAndSwap, Some(_)) => Some(Status::Exists),
            (StoreMode::Add, Some(_)) => Some(Status::NotStored),
            (StoreMode::Append | StoreMode::Prepend, Some(old)) if is_other(old) => {
                Some(Status::Exists)
            }
            (StoreMode::Replace | StoreMode::Append | StoreMode::Prepend, None) => {
                Some(Status::NotStored)
            }
            _ => None,
        };
        if let Some(status) = refusal {
            return (status, 0);
        }
        if let (StoreMode::Append | StoreMode::Prepend, Some(old)) = (mode, old) {
            let (first, last) = match mode {
                StoreMode::Append => (&old.value, &entry.value),
                _ => (&entry.value, &old.value),
            };
            let value = [&first[..], last].concat();
            entry = Entry { value, is_key_binary: entry.is_key_binary, ..old };
            (entry.is_stale, entry.has_winner, entry.is_fetched) = (false, false, false);
        }
        entry.cas = self.next_cas();
        let cas = entry.cas;
        self.items.insert(key.to_vec(), entry);
        (Status::Done, cas)
    }

    fn change(&mut self, key: &[u8], operation: Arithmetic, delta: u64) -> Result<u64, Line> {
        let cas = self.last_cas + 1;
        let entry = self.find(key).ok_or(Line::NotFound)?;
        let number = stored_number(&entry.value).ok_or(Line::NonNumeric)?;
        let number = match operation {
            Arithmetic::Increment => number.wrapping_add(delta),
            Arithmetic::Decrement => number.saturating_sub(delta),
        };
        // A shorter number is padded in place; a longer one makes a new item without marks.
        let width = entry.value.len();
        if number.to_string().len() > width {
            (entry.is_stale, entry.has_winner, entry.is_fetched) = (false, false, false);
        }
        entry.value = format!("{number:<width$}").into_bytes();
        entry.cas = cas;
        self.last_cas = cas;
        Ok(number)
    }

    fn meta_get(&mut self, meta: &Meta) {
        let scratch = &mut [0; KEY_BYTES_MAX];
        let key = meta.key.bytes(scratch);
        let is_created = self.find(key).is_none() && meta.vivify.is_some();
        if let (true, Some(expiry)) = (is_created, meta.vivify) {
            let mut made = entry(b"", 0, expiry);
            made.cas = self.next_cas();
            self.items.insert(key.to_vec(), made);
        }
        let mut replies = std::mem::take(&mut self.replies);
        let before = match self.find(key) {
            Some(entry) if !is_created => entry.expiry,
            _ => Expiry::Never,
        };
        let expiry_at = |flag| expiry_at(meta, flag, before, is_created);
        // An item may be made already expired.
        let found = if is_created { self.items.get_mut(key) } else { self.find(key) };
        if let Some(entry) = found {
            if let (false, Some(expiry)) = (is_created, meta.expiry) {
                entry.expiry = expiry;
            }
            let is_due = match (expiry_at(b'R'), meta.recache) {
                (Expiry::InSeconds(left), Some(Expiry::InSeconds(limit))) => left < limit,
                (Expiry::Now, Some(Expiry::InSeconds(_))) => true,
                _ => false,
            };
            let is_won = is_created || !entry.has_winner && (is_due || entry.is_stale);
            let item = Item {
                key,
                is_key_binary: entry.is_key_binary,
                value: &entry.value,
                client_flags: entry.client_flags,
                cas: entry.cas,
                ttl_s: ttl_s(expiry_at(b't')),
                idle_s: 0,
                is_fetched: entry.is_fetched,
                is_stale: entry.is_stale,
                has_winner: entry.has_winner,
                is_won,
            };
            meta_reply::hit(&mut replies, meta, &item);
            entry.has_winner |= is_won;
            entry.is_fetched |= !meta.has(b'u');
        } else if !meta.is_quiet() {
            meta_reply::status(&mut replies, meta, Status::Miss);
        }
        self.replies = replies;
    }

    fn meta_set(&mut self, meta: &Meta, mode: StoreMode, mut entry: Entry) {
        entry.expiry = meta.expiry.unwrap_or(Expiry::Never);
        entry.is_key_binary = meta.key.is_base64;
        let scratch = &mut [0; KEY_BYTES_MAX];
        let key = meta.key.bytes(scratch);
        let cas = meta.cas().unwrap_or(0);
        let (status, cas) = self.store(mode, key, entry, cas, meta.has(b'I'));
        if status != Status::Done || !meta.is_quiet() {
            meta_reply::stored(&mut self.replies, meta, status, cas);
        }
    }

    fn meta_delete(&mut self, meta: &Meta) {
        let scratch = &mut [0; KEY_BYTES_MAX];
        let (key, cas) = (meta.key.bytes(scratch), self.last_cas + 1);
        let status = match self.find(key) {
            None => Status::NotFound,
            Some(entry) if meta.cas().is_some_and(|cas| cas != entry.cas) => Status::Exists,
            Some(entry) if meta.has(b'I') => {
                entry.expiry = meta.expiry.unwrap_or(entry.expiry);
                (entry.is_stale, entry.has_winner, entry.cas) = (true, false, cas);
                self.last_cas = cas;
                Status::Done
            }
            Some(_) => {
                self.items.remove(key);
                Status::Done
            }
        };
        if status != Status::Done || !meta.is_quiet() {
            meta_reply::status(&mut self.replies, meta, status);
        }
    }

    fn meta_arithmetic(&mut self, meta: &Meta, operation: Arithmetic, delta: u64, initial: u64) {
        let scratch = &mut [0; KEY_BYTES_MAX];
        let key = meta.key.bytes(scratch);
        let is_other = |old: &mut Entry| {
            !old.value.is_empty() && meta.cas().is_some_and(|cas| cas != 0 && cas != old.cas)
        };
        if self.find(key).is_some_and(is_other) {
            return meta_reply::status(&mut self.replies, meta, Status::Exists);
        }
        let (changed, is_made) = match (self.change(key, operation, delta), meta.vivify) {
            (Err(Line::NotFound), Some(expiry)) => {
                let value = initial.to_string().into_bytes();
                self.store(StoreMode::Add, key, entry(&value, 0, expiry), 0, false);
                (Ok(initial), true)
            }
            (changed, _) => (changed, false),
        };
        match changed {
            Ok(number) => {
                let entry = self.items.get_mut(key).expect("it was changed");
                let mut ttl_s = ttl_s(entry.expiry);
                if let (false, Some(expiry)) = (is_made, meta.expiry) {
                    ttl_s = self::ttl_s(expiry_at(meta, b't', entry.expiry, false));
                    entry.expiry = expiry;
                }
                if is_made || !meta.is_quiet() {
                    meta_reply::changed(&mut self.replies, meta, number, entry.cas, ttl_s);
                }
            }
            Err(Line::NotFound) => {
                meta_reply::status(&mut self.replies, meta, Status::NotFound);
            }
            Err(line) => reply::line(&mut self.replies, line),
        }
    }
}

/// The expiry that a flag sees: flags take effect one after the other.
fn expiry_at(meta: &Meta, flag: u8, before: Expiry, is_created: bool) -> Expiry {
    let mut expiry = before;
    for word in meta.flags.take_while(|word| word[0] != flag) {
        match word[0] {
            b'T' => expiry = meta.expiry.unwrap_or(expiry),
            b'N' if is_created => expiry = meta.vivify.unwrap_or(expiry),
            _ => {}
        }
    }
    expiry
}

/// Time to live. Times since 1970 are not modelled.
fn ttl_s(expiry: Expiry) -> Option<u32> {
    match expiry {
        Expiry::InSeconds(left) => Some(left),
        Expiry::Now => Some(0),
        _ => None,
    }
}

fn entry(value: &[u8], client_flags: u32, expiry: Expiry) -> Entry {
    Entry {
        value: value.to_vec(),
        client_flags,
        expiry,
        cas: 0,
        is_fetched: false,
        is_stale: false,
        has_winner: false,
        is_key_binary: false,
    }
}

/// The original's answers to the words of the examples.
fn operator(command: Operator, mut words: Words) -> &'static [u8] {
    match (command, words.next(), words.next()) {
        (Operator::Shutdown, ..) => Line::ShutdownNotEnabled.bytes(),
        (Operator::Stats, Some(b"detail"), _) => {
            b"CLIENT_ERROR usage: stats detail on|off|dump\r\n"
        }
        (Operator::Stats, Some(b"cachedump"), None) => b"CLIENT_ERROR bad command line\r\n",
        (Operator::Stats, Some(b"cachedump"), _) => b"CLIENT_ERROR bad command line format\r\n",
        (Operator::Watch, Some(b"x"), None) => {
            b"ERROR cannot pipeline other commands before watch\r\n"
        }
        _ => Line::Error.bytes(),
    }
}
