// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages between places of the case studies: those and items of the key-value store, chunks of
//! replicated files and the writes in them. Messages that are accepted are the same after they were
//! written and read again.

use freeport_study_kv::item;
use freeport_study_kv::message::{Copies, Reply, Request};
use freeport_study_replication::chunk::Chunk;
use freeport_study_replication::entry::{Entry, entries};

/// Longest raw body of a chunk.
const BODY_BYTES: usize = 4096;

/// Reads the bytes as each kind of message.
pub fn study_messages(bytes: &[u8]) {
    if let Some(request) = Request::decode(bytes) {
        assert_eq!(request.encode(), bytes);
    }
    if let Some(reply) = Reply::decode(bytes) {
        assert_eq!(Reply::decode(&reply.encode()), Some(reply));
    }
    item::check(bytes, b"key", |_| true);
    if let Some((chunk, length)) = Chunk::read(bytes, BODY_BYTES) {
        assert!(length <= bytes.len() && chunk.body().len() <= BODY_BYTES);
        let mut again = vec![];
        for entry in entries(chunk.body()) {
            entry.put(&mut again);
        }
        assert!(chunk.body().starts_with(&again));
    }
}

/// Messages to begin with.
pub fn samples() -> Vec<Vec<u8>> {
    let key = || b"key".to_vec();
    let mut body = vec![];
    Entry { path: "a", offset: 3, data: b"data" }.put(&mut body);
    Entry { path: "b", offset: 0, data: &[7; 600] }.put(&mut body);
    vec![
        Request::Put(key(), b"value".to_vec()).encode(),
        Request::GetCached { key: key(), wants_copies: true }.encode(),
        Reply::Value(b"value".to_vec(), Copies { bytes: 24, at: vec![8, 64] }).encode(),
        Reply::Full("item_memory".into()).encode(),
        item::encode(item::State::Alive, 9, b"key", b"value"),
        Chunk::new(5, 7, &body).bytes().to_vec(),
        Chunk::new(5, 7, &body).compressed(freeport_study_replication::Compression::Lz4),
    ]
}
