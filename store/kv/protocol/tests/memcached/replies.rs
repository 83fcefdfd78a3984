// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The examples, served by a plain model of a server.

use super::examples::{Example, examples};
use super::model::Model;

#[test]
fn every_example_has_the_replies_of_the_original() {
    let examples = examples();
    assert!(examples.len() > 90);
    for Example { requests, replies, is_closed } in examples {
        let mut model = Model::default();
        model.receive(&requests);
        let shown = String::from_utf8_lossy(&requests).into_owned();
        let got = String::from_utf8_lossy(&model.replies).into_owned();
        assert_eq!(got, String::from_utf8_lossy(&replies), "to {shown:?}");
        assert_eq!(model.is_closed, is_closed, "{shown:?}");
    }
}
