// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random requests have the replies of a plain model.

use super::client::Client;
use super::protocol::model::Model;
use super::protocol::pipelines::pipeline;
use super::requests::Requests;
use fastrand::Rng;
use freeport_kv_items::Options;
use freeport_testbed::{seed, usual_or_long};

/// CAS numbers that the model begins with.
fn client_like(model: &Model) -> Client {
    Client::new(Options { cas_before: model.last_cas, ..Options::default() })
}

#[test]
fn random_requests_have_the_replies_of_the_model() {
    let mut model = Model::default();
    let mut client = client_like(&model);
    let mut requests = Requests { rng: Rng::with_seed(seed()), is_for_original: false };
    let mut count = 0;
    while count < usual_or_long(1_000_000, 20_000_000) {
        let mut sent = vec![];
        for _ in 0..requests.rng.u32(1..150) {
            requests.push(&mut sent, model.last_cas);
            count += 1;
        }
        let cut = requests.rng.usize(0..=sent.len());
        let mut replies = client.receive(&sent[..cut]);
        replies.extend(client.receive(&sent[cut..]));
        model.replies.clear();
        model.receive(&sent);
        if replies != model.replies {
            let at = replies.iter().zip(&model.replies).take_while(|(a, b)| a == b).count();
            let from = at.saturating_sub(200);
            let shown = |bytes: &[u8]| {
                let to = bytes.len().min(at + 100);
                String::from_utf8_lossy(&bytes[from.min(to)..to]).into_owned()
            };
            let sent = String::from_utf8_lossy(&sent).into_owned();
            panic!("{sent}\n{:?}\nnot\n{:?}", shown(&replies), shown(&model.replies));
        }
    }
    let counters = client.items.counters();
    for count in [counters.cas_hits, counters.get_expired, counters.incr_hits, counters.get_hits] {
        assert!(count > 200, "{counters:?}");
    }
}

#[test]
fn malformed_pipelines_have_the_replies_of_the_model() {
    for seed in seed()..seed() + usual_or_long(10_000, 300_000) {
        let sent = pipeline(&mut Rng::with_seed(seed));
        let mut model = Model::default();
        let mut client = client_like(&model);
        model.receive(&sent);
        let replies = client.receive(&sent);
        let [sent, got, expected] =
            [&sent, &replies, &model.replies].map(|bytes| String::from_utf8_lossy(bytes));
        assert_eq!(got, expected, "FREEPORT_SEED={seed}: {sent:?}");
        assert_eq!(client.is_closed, model.is_closed, "FREEPORT_SEED={seed}: {sent:?}");
    }
}
