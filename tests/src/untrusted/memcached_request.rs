// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of a memcached client, in pieces of any size, with replies to all of them.

use freeport_kv_protocol::memcached::meta_reply::{self, Item, Status};
use freeport_kv_protocol::memcached::{KEY_BYTES_MAX, Limits, Meta, Reader, Request, Step, reply};

/// Reads a pipeline, once whole and once in pieces, whose size is the first byte.
pub fn memcached_request(bytes: &[u8]) {
    let [piece_bytes, ref pipeline @ ..] = *bytes else { return };
    let whole = serve(pipeline, pipeline.len());
    let pieces = serve(pipeline, usize::from(piece_bytes) + 1);
    assert_eq!(whole, pieces, "requests do not depend on how they arrive");
}

/// Returns the replies to a pipeline, and the number of bytes that are left.
fn serve(pipeline: &[u8], piece_bytes: usize) -> (Vec<u8>, usize) {
    let mut reader = Reader::new(Limits { item_bytes_max: 1_000, line_bytes_max: 4_000 });
    let (mut begin, mut received, mut replies) = (0, 0, vec![]);
    loop {
        let read = reader.read(&pipeline[begin..received]);
        begin += read.taken;
        match read.step {
            Step::Request(request) => {
                assert!(read.taken > 0, "a request has bytes");
                answer(&mut replies, &request);
            }
            Step::Refused(refusal) => {
                assert!(read.taken > 0, "a refused request has bytes");
                replies.extend_from_slice(refusal.error.reply());
            }
            Step::Wait { needs } => {
                assert!(needs > received - begin, "it waits for more than there is");
                if received == pipeline.len() {
                    return (replies, pipeline.len() - begin);
                }
                received = pipeline.len().min(received + piece_bytes);
            }
            Step::Close => return (replies, pipeline.len() - begin),
        }
    }
}

/// Answers every request as if its key existed.
fn answer(out: &mut Vec<u8>, request: &Request) {
    let meta_answer = |out: &mut Vec<u8>, meta: &Meta, value: &[u8]| {
        let mut scratch = [0; KEY_BYTES_MAX];
        let key = meta.key.bytes(&mut scratch);
        assert!(!key.is_empty() && key.len() == meta.key.length());
        let is_key_binary = meta.key.is_base64;
        meta_reply::hit(out, meta, &Item { key, value, is_key_binary, ..Item::default() });
        meta_reply::stored(out, meta, Status::Done, meta.cas().unwrap_or(0));
        meta_reply::changed(out, meta, 1, 1, None);
    };
    match request {
        Request::Get(get) => {
            for key in get.keys {
                assert!((1..=KEY_BYTES_MAX).contains(&key.len()));
                reply::value(out, key, 0, b"", get.returns_cas.then_some(1));
            }
        }
        Request::Store(store) => {
            assert!((1..=KEY_BYTES_MAX).contains(&store.key.len()) && store.value.len() < 1_000);
            reply::value(out, store.key, store.client_flags, store.value, Some(store.cas));
        }
        Request::MetaGet(meta) | Request::MetaDelete(meta) => meta_answer(out, meta, b""),
        Request::MetaArithmetic { meta, .. } => meta_answer(out, meta, b"1"),
        Request::MetaSet { meta, value, .. } => meta_answer(out, meta, value),
        Request::Operator { words, .. } => words.for_each(|word| out.extend_from_slice(word)),
        other => out.extend_from_slice(format!("{other:?}").as_bytes()),
    }
}
