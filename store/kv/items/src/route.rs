// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which keys a request has, for a server that divides keys between workers.

use freeport_kv_protocol::memcached::{Key, Request, Words};

/// The keys of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys<'a> {
    /// None: any worker can carry it out.
    None,
    /// One. The worker that has it carries out the request.
    One(Key<'a>),
    /// Those of a retrieval, in order. Workers carry out retrievals of some of them each, and the
    /// server puts the replies in order, with one end.
    Many(Words<'a>),
    /// All: each worker carries out the request. One reply is sent; those of `stats` are made of
    /// [`Statistics`](crate::Statistics) that are added up.
    All,
}

/// Keys of a request.
pub fn keys_of<'a>(request: &Request<'a>) -> Keys<'a> {
    let literal = |written| Keys::One(Key { written, is_base64: false });
    match request {
        Request::Get(get) => {
            let mut keys = get.keys;
            match (keys.next(), keys.is_empty()) {
                (Some(key), true) => literal(key),
                _ => Keys::Many(get.keys),
            }
        }
        Request::Store(store) => literal(store.key),
        Request::Change(change) => literal(change.key),
        Request::Delete { key, .. } | Request::Touch { key, .. } => literal(key),
        Request::MetaGet(meta)
        | Request::MetaDelete(meta)
        | Request::MetaSet { meta, .. }
        | Request::MetaArithmetic { meta, .. } => Keys::One(meta.key),
        Request::MetaDebug(key) => Keys::One(*key),
        Request::FlushAll { .. } | Request::MemoryLimit { .. } | Request::Operator { .. } => {
            Keys::All
        }
        Request::Version | Request::Verbosity { .. } | Request::Quit | Request::MetaNoop => {
            Keys::None
        }
    }
}

#[cfg(test)]
mod tests {
    use freeport_kv_protocol::memcached::{Limits, Reader, Step};

    use super::*;

    #[test]
    fn keys_are_those_of_the_request() {
        let one = |written, is_base64| Some(Key { written, is_base64 });
        for (line, expected) in [
            ("get k\r\n", one(&b"k"[..], false)),
            ("set k 0 0 0\r\n\r\n", one(b"k", false)),
            ("incr k 1\r\n", one(b"k", false)),
            ("delete k\r\n", one(b"k", false)),
            ("mg Zg== b\r\n", one(b"Zg==", true)),
            ("me Zg== b\r\n", one(b"Zg==", true)),
            ("get k l\r\n", None),
            ("gat 0\r\n", None),
            ("mn\r\n", None),
            ("flush_all\r\n", None),
        ] {
            let mut reader = Reader::new(Limits::default());
            let Step::Request(request) = reader.read(line.as_bytes()).step else {
                panic!("{line} is valid")
            };
            match (keys_of(&request), expected) {
                (Keys::One(key), Some(expected)) => assert_eq!(key, expected, "{line}"),
                (Keys::Many(keys), None) => assert_ne!(keys.count(), 1, "{line}"),
                (Keys::All, None) => assert_eq!(line, "flush_all\r\n"),
                (Keys::None, None) => assert_eq!(line, "mn\r\n"),
                (keys, _) => panic!("{line}: {keys:?}"),
            }
        }
    }
}
