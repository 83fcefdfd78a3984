// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Collects what libbpf prints as text for errors; it includes the verifier's reasons.

use libbpf_rs::{PrintLevel, set_print};
use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

static LISTENING: Once = Once::new();

/// Calls libbpf through `work`; if it fails, the error includes what libbpf printed during the
/// call. The verifier's log can have thousands of lines, of which only the last are kept.
pub fn collect<T>(work: impl FnOnce() -> libbpf_rs::Result<T>) -> Result<T, String> {
    LISTENING.call_once(|| {
        // libbpf prints on the thread that called it.
        set_print(Some((PrintLevel::Warn, |_, text| SAID.with_borrow_mut(|said| *said += &text))));
    });
    SAID.take();
    work().map_err(|error| format!("{error:#}\n{}", last_lines(&SAID.take())).trim_end().to_owned())
}

/// Returns the last lines of a long text, where the verifier gives its reason.
pub fn last_lines(text: &str) -> String {
    const LINES: usize = 30;
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
