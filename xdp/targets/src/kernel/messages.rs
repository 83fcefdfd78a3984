// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What libbpf prints, as text in an error: the verifier's reasons are among it.

use libbpf_rs::{PrintLevel, set_print};
use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

static LISTENING: Once = Once::new();

/// Does something with libbpf; if it fails, what libbpf said meanwhile comes with the error. The
/// verifier says at most the last lines of what can be thousands.
pub fn collect<T>(work: impl FnOnce() -> libbpf_rs::Result<T>) -> Result<T, String> {
    LISTENING.call_once(|| {
        // Messages come on the thread that made the call.
        set_print(Some((PrintLevel::Warn, |_, text| SAID.with_borrow_mut(|said| *said += &text))));
    });
    SAID.take();
    work().map_err(|error| format!("{error:#}\n{}", last_lines(&SAID.take())).trim_end().to_owned())
}

/// The end of a long text, where the verifier gives its reason.
pub fn last_lines(text: &str) -> String {
    const LINES: usize = 30;
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
