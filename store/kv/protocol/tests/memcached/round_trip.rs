// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random pipelines of valid requests are read as what they were written from.

use fastrand::Rng;
use freeport_kv_protocol::memcached::{
    Arithmetic, Change, Expiry, Get, KEY_BYTES_MAX, Limits, Meta, Read, Reader, Request, Step,
    Store, StoreMode,
};
use freeport_testbed::{seed, usual_or_long};

/// Parts of a request.
#[derive(Debug)]
struct Parts {
    kind: u8,
    keys: Vec<Vec<u8>>,
    mode: StoreMode,
    expiry: (String, Expiry),
    client_flags: u32,
    /// CAS number, or amount of a change.
    number: u64,
    value: Vec<u8>,
    is_quiet: bool,
    is_second: bool,
}

impl Parts {
    fn random(rng: &mut Rng) -> Self {
        // Everything but a space, a newline and a zero byte may be in a key.
        let byte = |rng: &mut Rng| match rng.u8(..) {
            0 | b' ' | b'\n' => b'x',
            other => other,
        };
        let key = |rng: &mut Rng| {
            let length = if rng.u8(..4) == 0 { rng.usize(1..=250) } else { rng.usize(1..20) };
            let key: Vec<u8> = (0..length).map(|_| byte(rng)).collect();
            // At the end of a line it would belong to the end.
            [&key[..length - 1], b"k"].concat()
        };
        let modes = [
            StoreMode::Set,
            StoreMode::Add,
            StoreMode::Replace,
            StoreMode::Append,
            StoreMode::Prepend,
            StoreMode::CompareAndSwap,
        ];
        let expiries = [
            ("0", Expiry::Never),
            ("-5", Expiry::Now),
            ("60", Expiry::InSeconds(60)),
            ("2000000000", Expiry::AtUnixTime(2_000_000_000)),
        ];
        let (text, expiry) = expiries[rng.usize(..expiries.len())];
        Self {
            kind: rng.u8(..8),
            keys: (0..rng.usize(1..40)).map(|_| key(rng)).collect(),
            mode: modes[rng.usize(..modes.len())],
            expiry: (text.to_owned(), expiry),
            client_flags: rng.u32(..),
            number: rng.u64(..) >> rng.u8(..64),
            value: (0..rng.usize(..300)).map(|_| rng.u8(..)).collect(),
            is_quiet: rng.bool(),
            is_second: rng.bool(),
        }
    }

    fn key(&self) -> &[u8] {
        &self.keys[0]
    }

    /// Writes the request.
    fn bytes(&self) -> Vec<u8> {
        let noreply = if self.is_quiet { " noreply" } else { "" };
        let q = if self.is_quiet { " q" } else { "" };
        let (expiry, number) = (&self.expiry.0, self.number);
        let with_key = |name: &str, key: &[u8], rest: String| {
            [name.as_bytes(), b" ", key, rest.as_bytes(), b"\r\n"].concat()
        };
        let second = |yes: &'static str, no| if self.is_second { yes } else { no };
        let length = self.value.len();
        match self.kind {
            0 => with_key(second("gets", "get"), &self.keys.join(&b' '), String::new()),
            1 => {
                let name = format!("{} {expiry}", second("gats", "gat"));
                with_key(&name, &self.keys.join(&b' '), String::new())
            }
            2 => {
                let (name, cas) = match self.mode {
                    StoreMode::Set => ("set", String::new()),
                    StoreMode::Add => ("add", String::new()),
                    StoreMode::Replace => ("replace", String::new()),
                    StoreMode::Append => ("append", String::new()),
                    StoreMode::Prepend => ("prepend", String::new()),
                    StoreMode::CompareAndSwap => ("cas", format!(" {number}")),
                };
                let rest = format!(" {} {expiry} {length}{cas}{noreply}", self.client_flags);
                [with_key(name, self.key(), rest), self.value.clone(), b"\r\n".to_vec()].concat()
            }
            3 => with_key(second("incr", "decr"), self.key(), format!(" {number}{noreply}")),
            4 => with_key(second("delete", "md"), self.key(), second(noreply, q).to_owned()),
            5 => {
                let rest = format!(" v T{expiry} N60 R-1 k O{number}{q}");
                with_key("mg", self.key(), rest)
            }
            6 => {
                let mode = match self.mode {
                    StoreMode::Set | StoreMode::CompareAndSwap => "S",
                    StoreMode::Add => "E",
                    StoreMode::Replace => "R",
                    StoreMode::Append => "A",
                    StoreMode::Prepend => "P",
                };
                let is_cas = self.mode == StoreMode::CompareAndSwap;
                let cas = if is_cas { format!(" C{number}") } else { String::new() };
                let rest = format!(" {length}{cas} M{mode} F{} T{expiry}{q}", self.client_flags);
                [with_key("ms", self.key(), rest), self.value.clone(), b"\r\n".to_vec()].concat()
            }
            _ => {
                let rest = format!(" D{number} J7 M{}{q}", second("I", "D"));
                with_key("ma", self.key(), rest)
            }
        }
    }

    /// Returns whether a request has these parts.
    fn is(&self, request: &Request) -> bool {
        let is_meta = |meta: &Meta| {
            meta.key.bytes(&mut [0; KEY_BYTES_MAX]) == self.key()
                && meta.is_quiet() == self.is_quiet
        };
        let operation = if self.is_second { Arithmetic::Increment } else { Arithmetic::Decrement };
        let (mode, expiry, cas) = (self.mode, self.expiry.1, self.number);
        let has_cas = mode == StoreMode::CompareAndSwap;
        match (self.kind, *request) {
            (0 | 1, Request::Get(Get { keys, returns_cas, touch })) => {
                keys.eq(self.keys.iter().map(|key| &key[..]))
                    && returns_cas == self.is_second
                    && touch == (self.kind == 1).then_some(expiry)
            }
            (2, Request::Store(store)) => {
                store
                    == Store {
                        mode,
                        key: self.key(),
                        client_flags: self.client_flags,
                        expiry,
                        cas: if has_cas { cas } else { 0 },
                        value: &self.value,
                        is_quiet: self.is_quiet,
                    }
            }
            (3, Request::Change(change)) => {
                let (key, delta, is_quiet) = (self.key(), self.number, self.is_quiet);
                change == Change { key, operation, delta, is_quiet }
            }
            (4, Request::Delete { key, is_quiet }) => {
                self.is_second && key == self.key() && is_quiet == self.is_quiet
            }
            (4, Request::MetaDelete(meta)) => !self.is_second && is_meta(&meta),
            (5, Request::MetaGet(meta)) => {
                is_meta(&meta)
                    && (meta.expiry, meta.vivify) == (Some(expiry), Some(Expiry::InSeconds(60)))
                    && meta.recache == Some(Expiry::Now)
                    && b"vTNRkO".iter().all(|flag| meta.has(*flag))
                    && !b"bcfhlstu".iter().any(|flag| meta.has(*flag))
                    && meta.flags.count() == 6 + usize::from(self.is_quiet)
            }
            (6, Request::MetaSet { meta, mode, client_flags, value }) => {
                is_meta(&meta)
                    && (mode, value) == (self.mode, &self.value)
                    && (meta.expiry, client_flags) == (Some(expiry), self.client_flags)
                    && meta.cas() == has_cas.then_some(cas)
            }
            (7, Request::MetaArithmetic { meta, operation: read, delta, initial }) => {
                is_meta(&meta) && read == operation && (delta, initial) == (cas, 7)
            }
            _ => false,
        }
    }
}

#[test]
fn requests_are_read_as_they_were_written() {
    let first = seed();
    for seed in first..first + usual_or_long(2_000, 100_000) {
        let mut rng = Rng::with_seed(seed);
        let pipeline: Vec<Parts> = (0..rng.usize(1..6)).map(|_| Parts::random(&mut rng)).collect();
        let bytes: Vec<u8> = pipeline.iter().flat_map(Parts::bytes).collect();
        let mut reader = Reader::new(Limits::default());
        let (mut rest, mut received) = (&bytes[..], rng.usize(..=bytes.len()));
        for parts in &pipeline {
            let Read { taken, step } = loop {
                let read = reader.read(&rest[..rest.len() - (bytes.len() - received)]);
                match read.step {
                    Step::Wait { .. } => received = rng.usize(received + 1..=bytes.len()),
                    _ => break read,
                }
            };
            let Step::Request(request) = step else { panic!("FREEPORT_SEED={seed}: {step:?}") };
            assert!(parts.is(&request), "FREEPORT_SEED={seed}: {parts:?} is read as {request:?}");
            rest = &rest[taken..];
        }
        assert!(rest.is_empty(), "FREEPORT_SEED={seed}");
    }
}
