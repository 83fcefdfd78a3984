// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Formats any text: what can be parsed is formatted, stays as it is another time, and differs from
//! the text in white space only; nothing panics.
#![no_main]

use freeport_clicknp::format::{Unformatted, format_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match format_text("fuzz.cnp", text) {
        Ok(formatted) => {
            let again = format_text("fuzz.cnp", &formatted);
            assert_eq!(again.expect("a formatted text can be parsed"), formatted);
        }
        Err(Unformatted::Wrong(messages)) => assert!(!messages.is_empty()),
        Err(Unformatted::TooLarge) => {}
        Err(changed) => panic!("{changed}"),
    }
});
