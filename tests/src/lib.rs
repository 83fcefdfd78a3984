// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the whole repository: style, element goldens, and generated programs for the oracles.
//! The tests are in `tests/`; this library is what they use, with tests of its own.

pub mod both;
pub mod oracle;
pub mod running;
mod side_by_side;
pub mod tables;
pub mod tidy;
pub mod untrusted;

pub use side_by_side::side_by_side;
use std::path::{Path, PathBuf};

/// The top folder of the repository.
pub fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("the crate is one folder below the top").to_path_buf()
}
