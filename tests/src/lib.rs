// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the whole repository: the style rules and what they look at. The tests themselves are
//! in `tests/`; what they check with is here, where each rule has its own test on a bad sample.

pub mod oracle;
pub mod tidy;

use std::path::{Path, PathBuf};

/// The top folder of the repository.
pub fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("the crate is one folder below the top").to_path_buf()
}
