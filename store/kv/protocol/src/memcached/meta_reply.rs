// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies to meta requests. They repeat or answer flags in the order of the request.

use super::Meta;
use super::decimal::push;
use crate::base64;

/// Begin of a reply of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// `HD`: done.
    Done,
    /// `NS`: the condition of a mode does not hold.
    NotStored,
    /// `EX`: the item has another CAS number.
    Exists,
    /// `NF`: there is no such key.
    NotFound,
    /// `EN`: there is no such key (`mg`).
    Miss,
}

impl Status {
    const fn code(self) -> &'static [u8; 2] {
        match self {
            Self::Done => b"HD",
            Self::NotStored => b"NS",
            Self::Exists => b"EX",
            Self::NotFound => b"NF",
            Self::Miss => b"EN",
        }
    }
}

/// Facts about an item, before the request used it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The item was stored with a binary key, which is shown as base64. So is each key that is no
    /// word of a line.
    pub is_key_binary: bool,
    /// The value.
    pub value: &'a [u8],
    /// Number that the client keeps with the value.
    pub client_flags: u32,
    /// CAS number.
    pub cas: u64,
    /// Time to live in seconds, if it expires.
    pub ttl_s: Option<u32>,
    /// Time since the last access in seconds.
    pub idle_s: u32,
    /// It was fetched earlier.
    pub is_fetched: bool,
    /// It was marked as stale.
    pub is_stale: bool,
    /// Another client has been told to renew it.
    pub has_winner: bool,
    /// This client is told to renew it.
    pub is_won: bool,
}

impl Item<'_> {
    /// A literal key must not end the line or a word of it.
    fn shows_base64(&self) -> bool {
        self.is_key_binary || self.key.iter().any(|byte| matches!(byte, b' ' | b'\n' | 0))
    }
}

/// Appends the reply to `mg` of an existing item.
#[inline]
pub fn hit(out: &mut Vec<u8>, meta: &Meta, item: &Item) {
    begin(out, meta, item.value);
    for flag in meta.flags {
        match flag[0] {
            b's' => field(out, b's', item.value.len() as u64),
            b't' => time_to_live(out, item.ttl_s),
            b'c' => field(out, b'c', item.cas),
            b'f' => field(out, b'f', item.client_flags.into()),
            b'l' => field(out, b'l', item.idle_s.into()),
            b'h' => field(out, b'h', item.is_fetched.into()),
            b'O' => repeat(out, flag),
            b'k' => key(out, item),
            _ => {}
        }
    }
    for (mark, is_set) in [(b" Z", item.has_winner), (b" X", item.is_stale), (b" W", item.is_won)] {
        if is_set {
            out.extend_from_slice(mark);
        }
    }
    end(out, meta, item.value);
}

/// Appends the reply to `ma` that changed or made a number. `cas` and `ttl_s` are those of the
/// changed item.
pub fn changed(out: &mut Vec<u8>, meta: &Meta, number: u64, cas: u64, ttl_s: Option<u32>) {
    let value = super::decimal::Decimal::of(number);
    begin(out, meta, value.text());
    for flag in meta.flags {
        match flag[0] {
            b'c' => field(out, b'c', cas),
            b't' => time_to_live(out, ttl_s),
            b'O' => repeat(out, flag),
            b'k' => own_key(out, meta),
            _ => {}
        }
    }
    end(out, meta, value.text());
}

/// Appends the reply to `ms`, with the CAS number of the stored item, or 0 if none is stored.
#[inline]
pub fn stored(out: &mut Vec<u8>, meta: &Meta, status: Status, cas: u64) {
    out.extend_from_slice(status.code());
    for flag in meta.flags {
        match flag[0] {
            b'O' => repeat(out, flag),
            b'k' => own_key(out, meta),
            b'c' => field(out, b'c', cas),
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the reply to `md`, a miss of `mg`, or the reply to `ma` if it changed nothing.
#[inline]
pub fn status(out: &mut Vec<u8>, meta: &Meta, status: Status) {
    out.extend_from_slice(status.code());
    for flag in meta.flags {
        match flag[0] {
            b'O' => repeat(out, flag),
            b'k' => own_key(out, meta),
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the reply to `mn`.
pub fn noop(out: &mut Vec<u8>) {
    out.extend_from_slice(b"MN\r\n");
}

/// Appends the reply to `me` if there is no such key.
pub fn debug_miss(out: &mut Vec<u8>) {
    out.extend_from_slice(b"EN\r\n");
}

/// Appends the reply to `me`. `class` is the class of the item's memory block, and `item_bytes` the
/// size of the whole item. As in the original, the time to live is negated, and -1 stands for none.
pub fn debug(out: &mut Vec<u8>, item: &Item, class: u32, item_bytes: u64) {
    out.extend_from_slice(b"ME ");
    if item.shows_base64() {
        base64::push(out, item.key);
    } else {
        out.extend_from_slice(item.key);
    }
    out.extend_from_slice(b" exp=");
    let expiry = item.ttl_s.unwrap_or(1);
    if expiry != 0 {
        out.push(b'-');
    }
    push(out, expiry.into());
    for (name, number) in [(&b" la="[..], u64::from(item.idle_s)), (b" cas=", item.cas)] {
        out.extend_from_slice(name);
        push(out, number);
    }
    out.extend_from_slice(if item.is_fetched { b" fetch=yes" } else { b" fetch=no" });
    for (name, number) in [(&b" cls="[..], u64::from(class)), (b" size=", item_bytes)] {
        out.extend_from_slice(name);
        push(out, number);
    }
    out.extend_from_slice(b"\r\n");
}

fn begin(out: &mut Vec<u8>, meta: &Meta, value: &[u8]) {
    if meta.has(b'v') {
        out.extend_from_slice(b"VA ");
        push(out, value.len() as u64);
    } else {
        out.extend_from_slice(b"HD");
    }
}

fn end(out: &mut Vec<u8>, meta: &Meta, value: &[u8]) {
    out.extend_from_slice(b"\r\n");
    if meta.has(b'v') {
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
}

fn field(out: &mut Vec<u8>, flag: u8, number: u64) {
    out.extend_from_slice(&[b' ', flag]);
    push(out, number);
}

fn time_to_live(out: &mut Vec<u8>, ttl_s: Option<u32>) {
    match ttl_s {
        Some(ttl_s) => field(out, b't', ttl_s.into()),
        None => out.extend_from_slice(b" t-1"),
    }
}

fn repeat(out: &mut Vec<u8>, flag: &[u8]) {
    out.push(b' ');
    out.extend_from_slice(flag);
}

fn key(out: &mut Vec<u8>, item: &Item) {
    out.extend_from_slice(b" k");
    if item.shows_base64() {
        base64::push(out, item.key);
        out.extend_from_slice(b" b");
    } else {
        out.extend_from_slice(item.key);
    }
}

/// The key as the request has it: base64 has one spelling for each key.
fn own_key(out: &mut Vec<u8>, meta: &Meta) {
    out.extend_from_slice(b" k");
    out.extend_from_slice(meta.key.written);
    if meta.key.is_base64 {
        out.extend_from_slice(b" b");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memcached::{Limits, Reader, Request, Step};

    /// Reads a request of one line, and returns what is written for its flags.
    fn written(line: &str, write: impl FnOnce(&mut Vec<u8>, &Meta)) -> String {
        let mut out = vec![];
        match Reader::new(Limits::default()).read(line.as_bytes()).step {
            Step::Request(
                Request::MetaGet(meta)
                | Request::MetaSet { meta, .. }
                | Request::MetaDelete(meta)
                | Request::MetaArithmetic { meta, .. },
            ) => write(&mut out, &meta),
            step => panic!("{step:?}"),
        }
        String::from_utf8(out).expect("the tests have no other bytes")
    }

    #[test]
    fn a_hit_answers_flags_in_their_order() {
        let item = Item {
            key: b"key",
            value: b"abc",
            client_flags: 5,
            cas: 9,
            ttl_s: Some(60),
            idle_s: 7,
            is_fetched: true,
            ..Item::default()
        };
        let text = written("mg key O1 k t s l h f c q\n", |out, meta| hit(out, meta, &item));
        assert_eq!(text, "HD O1 kkey t60 s3 l7 h1 f5 c9\r\n");
        let item = Item { ttl_s: None, is_fetched: false, is_key_binary: true, ..item };
        let marked = Item { is_stale: true, has_winner: true, is_won: true, ..item };
        let text = written("mg key v t h k\n", |out, meta| hit(out, meta, &marked));
        assert_eq!(text, "VA 3 t-1 h0 ka2V5 b Z X W\r\nabc\r\n");
        let unsafe_key = Item { key: b"a\nb", ..Item::default() };
        let text = written("mg YQpi b k\n", |out, meta| hit(out, meta, &unsafe_key));
        assert_eq!(text, "HD kYQpi b\r\n");
    }

    #[test]
    fn other_replies_repeat_the_flags_that_they_have_in_the_original() {
        let text = written("ms key 0 c k O1 t\r\n\r\n", |out, meta| {
            stored(out, meta, Status::Done, 7);
        });
        assert_eq!(text, "HD c7 kkey O1\r\n");
        let text = written("md a2V5 k b O1 c\n", |out, meta| status(out, meta, Status::Exists));
        assert_eq!(text, "EX ka2V5 b O1\r\n");
        let text = written("ma key v c t k O1 f\n", |out, meta| changed(out, meta, 10, 3, None));
        assert_eq!(text, "VA 2 c3 t-1 kkey O1\r\n10\r\n");
        let text = written("ma key\n", |out, meta| changed(out, meta, 10, 3, Some(1)));
        assert_eq!(text, "HD\r\n");
    }

    #[test]
    fn an_item_is_shown_for_people() {
        let mut out = vec![];
        let item = Item { key: b"key", cas: 2, idle_s: 3, ttl_s: Some(60), ..Item::default() };
        debug(&mut out, &item, 1, 70);
        let item = Item { is_key_binary: true, is_fetched: true, ttl_s: None, ..item };
        debug(&mut out, &item, 1, 70);
        let lines = "ME key exp=-60 la=3 cas=2 fetch=no cls=1 size=70\r\n\
            ME a2V5 exp=-1 la=3 cas=2 fetch=yes cls=1 size=70\r\n";
        assert_eq!(String::from_utf8_lossy(&out), lines);
    }
}
