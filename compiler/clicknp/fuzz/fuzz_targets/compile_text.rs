// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles any text: it compiles, or says why not, and never panics.
#![no_main]

use freeport_clicknp::{Options, compile_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(failure) = compile_text("fuzz.cnp", text, &Options::default()) {
        assert!(!failure.render().is_empty());
    }
});
