// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Serving a connection: all complete requests in the received bytes. Pipelines of retrievals, and
//! of `set` and `ms`, are carried out in batches.
//!
//! Replies may be far longer than requests: a line of a megabyte has half a million keys. So
//! serving ends once there is enough output, also amid a retrieval, and continues when that is
//! sent.

use freeport_kv_protocol::memcached::reply::{self, Line};
use freeport_kv_protocol::memcached::{Get, Limits, Read, Reader, Request, Step, Words};

use crate::batch::{Asked, Gets, Sets, rest_of};
use crate::execute::Control;
use crate::items::Items;
use crate::now::Now;
use crate::options::Options;

/// A connection: what is kept of it between two calls.
#[derive(Clone, Debug)]
pub struct Connection {
    reader: Reader,
    /// A retrieval of the keys that were not replied to yet; usually empty.
    rest: Vec<u8>,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Number of bytes that the caller has to drop from the begin of its buffer.
    pub taken: usize,
    /// The next step.
    pub next: Next,
}

/// The next step on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At least that many bytes have to be there, those not taken included.
    Receive {
        /// Number of bytes.
        needs: usize,
    },
    /// The output has to be sent. Then the caller serves the bytes that were not taken, also if
    /// there are none.
    Send,
    /// A request asks the server for more than a reply. Never [`Control::Continue`]. If the
    /// connection stays open, the caller then serves the bytes that were not taken.
    Control(Control),
}

impl Connection {
    /// A new connection.
    pub fn new(limits: Limits) -> Self {
        Self { reader: Reader::new(limits), rest: vec![] }
    }
}

/// A connection with its received bytes.
struct Input<'a, 'c> {
    connection: &'c mut Connection,
    received: &'a [u8],
    taken: usize,
    /// Where the last step began.
    begun: usize,
}

impl<'a> Input<'a, '_> {
    #[inline]
    fn next(&mut self) -> Step<'a> {
        self.begun = self.taken;
        let Read { taken, step } = self.connection.reader.read(&self.received[self.taken..]);
        self.taken += taken;
        step
    }
}

/// Where replies go, and up to how many bytes.
struct Output<'o> {
    bytes: &'o mut Vec<u8>,
    limit: usize,
}

impl Output<'_> {
    fn is_full(&self) -> bool {
        self.bytes.len() >= self.limit
    }
}

impl Items {
    /// Carries out the requests of a connection, and appends their replies.
    pub fn serve(
        &mut self,
        connection: &mut Connection,
        received: &[u8],
        now: Now,
        output: &mut Vec<u8>,
    ) -> Served {
        self.advance(now);
        let limit = output.len() + self.options.output_bytes.max(1);
        let mut output = Output { bytes: output, limit };
        let mut input = Input { connection, received, taken: 0, begun: 0 };
        let next = if input.connection.rest.is_empty() || self.resume(&mut input, now, &mut output)
        {
            self.serve_steps(&mut input, now, &mut output)
        } else {
            Next::Send
        };
        Served { taken: input.taken, next }
    }

    fn serve_steps<'a>(
        &mut self,
        input: &mut Input<'a, '_>,
        now: Now,
        output: &mut Output<'_>,
    ) -> Next {
        let mut ahead: Option<Step<'a>> = None;
        loop {
            let step = match ahead.take() {
                Some(step) => step,
                None if output.is_full() => return Next::Send,
                None => input.next(),
            };
            match step {
                Step::Request(request) if is_batched(&request) => {
                    match self.serve_gets(request, input, now, output) {
                        Some(step) => ahead = Some(step),
                        None => return Next::Send,
                    }
                }
                Step::Request(Request::Get(get)) => {
                    if !self.touch_all(&get, input, now, output) {
                        return Next::Send;
                    }
                }
                Step::Request(request) => {
                    if let Some(step) = self.serve_sets(&request, input, now, output) {
                        ahead = Some(step);
                        continue;
                    }
                    match self.execute(&request, now, output.bytes) {
                        Control::Continue => {}
                        control => return Next::Control(control),
                    }
                }
                Step::Refused(refusal) => self.refuse(&refusal, output.bytes),
                Step::Wait { needs } => return Next::Receive { needs },
                Step::Close => return Next::Control(Control::Close),
            }
        }
    }

    /// Replies to retrievals, as long as others follow. Returns the first step that is none, or
    /// none if the output is full.
    fn serve_gets<'a>(
        &mut self,
        first: Request<'a>,
        input: &mut Input<'a, '_>,
        now: Now,
        output: &mut Output<'_>,
    ) -> Option<Step<'a>> {
        // Its state after each of these requests, since they are whole lines.
        let reader = input.connection.reader.clone();
        let mut batch = Gets::new(&mut self.spare);
        let mut request = first;
        let next = loop {
            let is_done = match request {
                Request::Get(get) => self.add_keys(&get, &mut batch, input, &reader, now, output),
                Request::MetaGet(meta) => {
                    let asked = Asked::Facts { begin: input.begun, meta };
                    batch.push(meta.key.written, asked);
                    !batch.is_full()
                        || self.run_or_pause(&mut batch, None, input, &reader, now, output)
                }
                _ => true,
            };
            // A request that is read ahead has to be carried out.
            if !is_done || batch.asked.is_empty() && output.is_full() {
                break None;
            }
            match input.next() {
                Step::Request(another) if is_batched(&another) => request = another,
                step => {
                    let is_done = self.run_or_pause(&mut batch, None, input, &reader, now, output);
                    break is_done.then_some(step);
                }
            }
        };
        batch.leave(&mut self.spare);
        next
    }

    /// Adds the keys of a retrieval to a batch, and replies each time that it is full. False: the
    /// output is full.
    fn add_keys<'a>(
        &mut self,
        get: &Get<'a>,
        batch: &mut Gets<'a>,
        input: &mut Input<'a, '_>,
        reader: &Reader,
        now: Now,
        output: &mut Output<'_>,
    ) -> bool {
        let mut keys = get.keys;
        while let Some(key) = keys.next() {
            let is_last = keys.is_empty();
            let asked = Asked::Value { end: input.taken, returns_cas: get.returns_cas, is_last };
            batch.push(key, asked);
            let more = Some(keys);
            if batch.is_full() && !self.run_or_pause(batch, more, input, reader, now, output) {
                return false;
            }
        }
        true
    }

    /// Replies to the keys of a batch. False: the output is full before all are replied to. The
    /// rest of the request amid which this happens is kept, with its `keys` that are not in the
    /// batch, and those after it are read again.
    fn run_or_pause<'a>(
        &mut self,
        batch: &mut Gets<'a>,
        keys: Option<Words<'a>>,
        input: &mut Input<'a, '_>,
        reader: &Reader,
        now: Now,
        output: &mut Output<'_>,
    ) -> bool {
        let answered = self.run_gets(batch, now, output.bytes, output.limit);
        match batch.asked.get(answered) {
            None => {
                batch.clear();
                return true;
            }
            Some(Asked::Facts { begin, .. }) => input.taken = *begin,
            Some(Asked::Value { end, returns_cas, .. }) => {
                // The keys that are not in the batch belong to its last request.
                let is_last = matches!(
                    batch.asked.last(), Some(Asked::Value { end: last, .. }) if last == end
                );
                let more = keys.filter(|_| is_last).into_iter().flatten();
                let rest = batch.keys_of(answered, *end).chain(more);
                input.connection.rest = rest_of(None, *returns_cas, rest);
                input.taken = *end;
            }
        }
        input.connection.reader = reader.clone();
        false
    }

    /// Replies to a retrieval with a new expiry. False: the output is full.
    fn touch_all(
        &mut self,
        get: &Get<'_>,
        input: &mut Input<'_, '_>,
        now: Now,
        output: &mut Output<'_>,
    ) -> bool {
        let mut keys = get.keys;
        while !keys.is_empty() {
            if output.is_full() {
                input.connection.rest = rest_of(get.touch, get.returns_cas, keys);
                return false;
            }
            if let Some(key) = keys.next() {
                self.get_one(key, get, now, output.bytes);
            }
        }
        reply::line(output.bytes, Line::End);
        true
    }

    /// Continues a retrieval. False: the output is full again.
    fn resume(&mut self, input: &mut Input<'_, '_>, now: Now, output: &mut Output<'_>) -> bool {
        let line = std::mem::take(&mut input.connection.rest);
        let limits = Limits { line_bytes_max: usize::MAX, ..Limits::default() };
        let mut connection = Connection::new(limits);
        let mut rest = Input { connection: &mut connection, received: &line, taken: 0, begun: 0 };
        let next = self.serve_steps(&mut rest, now, output);
        input.connection.rest = connection.rest;
        !matches!(next, Next::Send)
    }

    /// Stores small values, as long as others follow. Returns the first step that is none, or none
    /// if the request stores no small value itself.
    fn serve_sets<'a>(
        &mut self,
        first: &Request<'a>,
        input: &mut Input<'a, '_>,
        now: Now,
        output: &mut Output<'_>,
    ) -> Option<Step<'a>> {
        if !matches!(first, Request::Store(_) | Request::MetaSet { .. }) {
            return None;
        }
        let mut batch = Sets::new(&mut self.spare);
        let mut is_added = self.push_set(&mut batch, first, now);
        let mut step = None;
        while is_added {
            let next = input.next();
            is_added = match &next {
                Step::Request(request) => self.push_set(&mut batch, request, now),
                _ => false,
            };
            step = Some(next);
        }
        self.run_sets(&batch, now, output.bytes);
        batch.leave(&mut self.spare);
        step
    }
}

/// A retrieval that changes no length of an item can be part of a batch.
fn is_batched(request: &Request<'_>) -> bool {
    match request {
        Request::Get(get) => get.touch.is_none(),
        Request::MetaGet(meta) => {
            meta.expiry.is_none() && meta.vivify.is_none() && !meta.key.is_base64
        }
        _ => false,
    }
}

/// Serves arbitrary bytes as a new connection of a small store, in two pieces, until nothing is
/// left to do. Returns the replies. For tests with untrusted input.
pub fn serve_untrusted(bytes: &[u8]) -> Vec<u8> {
    const OUTPUT_BYTES: usize = 1 << 10;
    let options = Options {
        memory_bytes: 1 << 20,
        output_bytes: OUTPUT_BYTES,
        is_shutdown_allowed: true,
        ..Options::default()
    };
    let Ok(mut items) = Items::new(options) else { return vec![] };
    let mut connection = Connection::new(items.options().limits);
    let (mut replies, mut begin, mut now) = (vec![], 0, Now(1_700_000_000));
    for end in [bytes.len() / 2, bytes.len()] {
        loop {
            let served = items.serve(&mut connection, &bytes[begin..end], now, &mut replies);
            begin += served.taken;
            now.0 += 1;
            let mut dump = match served.next {
                Next::Receive { .. } => break,
                Next::Control(Control::Dump(dump)) => Some(dump),
                Next::Control(Control::Close | Control::Shutdown { .. }) => return replies,
                Next::Control(_) | Next::Send => None,
            };
            while let Some(next) = dump {
                dump = items.dump(next, now, &mut replies);
            }
        }
    }
    replies
}
