// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Integration tests of the language: one binary, since each binary would link the compiler again.

mod agrees_with_c;
mod configuration;
mod diagnostics;
mod format;
mod format_texts;
mod language_page;
mod library;
mod managers;
mod never_panics;
mod ports_only;
