// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Answers of etcd to nodes of a key-value cluster: with their head of HTTP, and with the values
//! inside in plain text, which mutations reach better than base64. Contents that are accepted break
//! no rule of a slot map.

use freeport_kv_cluster::read_etcd_answer;
use freeport_kv_protocol::base64;

/// Begin of a value of which the answer is made. The name of a key, a line feed, and the value
/// follow.
const PLAIN: u8 = b'=';

/// Reads the bytes as an answer, or makes an answer with one value of them.
pub fn kv_etcd(bytes: &[u8]) {
    let made = match bytes.strip_prefix(&[PLAIN]) {
        Some(plain) => answer(&txn(plain)),
        None => bytes.to_vec(),
    };
    let Ok(state) = read_etcd_answer(&made[..]) else { return };
    if let Some(stored) = state.topology {
        stored.topology.check().expect("it was checked");
        stored.topology.shards.iter().for_each(|shard| _ = shard.primary());
    }
}

/// An answer with a body.
fn answer(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The body of an answer with one key and its value, also as a change that a watch reports.
fn txn(plain: &[u8]) -> String {
    let (key, value) = plain.split_at(plain.iter().position(|it| *it == b'\n').unwrap_or(0));
    let text = |bytes: &[u8]| {
        let mut text = vec![];
        base64::push(&mut text, bytes);
        String::from_utf8(text).expect("base64 is text")
    };
    let (key, value) = (text(key), text(value));
    let pair = format!("{{\"key\":\"{key}\",\"value\":\"{value}\",\"mod_revision\":\"7\"}}");
    format!(
        "{{\"header\":{{\"revision\":\"9\"}},\"succeeded\":true,\
         \"responses\":[{{\"response_range\":{{\"kvs\":[{pair}]}}}}],\
         \"result\":{{\"events\":[{{\"kv\":{pair}}}]}}}}"
    )
}

/// Answers in the forms that etcd has, and values.
pub fn samples() -> Vec<Vec<u8>> {
    let (id, other) = ("0".repeat(40), "1".repeat(40));
    let address = "{\"host\":\"a\",\"port\":1,\"tls_port\":2,\"batch_port\":3}";
    let member = |id: &str| format!("{{\"id\":\"{id}\",\"address\":{address}}}");
    let shard = |id: &str, slots: &str| {
        format!(
            "{{\"id\":\"{id}\",\"slots\":\"{slots}\",\"primary\":\"{id}\",\"term\":2,\
             \"members\":[{}]}}",
            member(id)
        )
    };
    let topology = format!(
        "=/test/topology\n{{\"format\":1,\"value\":{{\"epoch\":3,\"shards\":[{},{}],\
         \"moves\":[{{\"from\":\"{id}\",\"to\":\"{other}\",\"slots\":\"7\"}}]}}}}",
        shard(&id, "0-99,200"),
        shard(&other, "100-199")
    );
    let presence = format!(
        "=/test/nodes/{id}\n{{\"format\":1,\"value\":{{\"session\":1,\"address\":{address},\
         \"position\":5,\"term\":2,\"sealed\":3}}}}"
    );
    let body = txn(&presence.as_bytes()[1..]);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n\
         40\r\n{:64}\r\n0\r\nField: value\r\n\r\n",
        body.len(),
        "\n{\"result\":{\"events\":[{\"type\":\"DELETE\",\"kv\":{\"key\":\"YQ==\"}}]}}"
    );
    let refused = "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n{\"code\":16}";
    let canceled = "{\"result\":{\"canceled\":true,\"cancel_reason\":\"compacted\"}}";
    let watched = "{\"result\":{\"created\":true}}\n{\"error\":{\"code\":14}}\n";
    let texts = [topology, presence, chunked, refused.to_owned()];
    let mut samples: Vec<_> = texts.into_iter().map(String::into_bytes).collect();
    samples.extend([answer(&body), answer(canceled), answer(watched)]);
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_reach_the_contents() {
        let read = |at: usize| {
            let sample = &samples()[at];
            let made = sample.strip_prefix(&[PLAIN]).map_or(sample.clone(), |it| answer(&txn(it)));
            read_etcd_answer(&made[..]).expect("it is well formed")
        };
        assert!(read(0).topology.is_some_and(|stored| stored.topology.shards.len() == 2));
        for at in [1, 2, 4] {
            assert_eq!(read(at).nodes.len(), 1, "sample {at}");
        }
    }
}
