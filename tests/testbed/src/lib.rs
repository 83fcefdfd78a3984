// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions shared by the tests of all crates. A test that uses them behaves the same under `cargo
//! test` and under `make test`, which sets the variables named in [`variable`].

pub mod cache;
pub mod effort;
pub mod etcd;
pub mod history;
pub mod object;
pub mod port;
pub mod preload;
pub mod process;
pub mod redis;
pub mod skip;
pub mod wait;

pub use effort::{is_long, number, seed, usual_or_long};
pub use object::object;
pub use skip::{note, skip};
pub use wait::wait_until;

/// Environment variables by which the test runner configures tests.
pub mod variable {
    /// A file to which each skipped test adds a line: `place<TAB>test<TAB>reason`.
    pub const SKIPS: &str = "FREEPORT_SKIPS";
    /// A file to which [`note`](crate::note) adds lines.
    pub const NOTES: &str = "FREEPORT_NOTES";
    /// With the value `all`, a test that would be skipped fails.
    pub const REQUIRE: &str = "FREEPORT_REQUIRE";
    /// If set, tests use larger inputs and more seeds.
    pub const LONG: &str = "FREEPORT_LONG";
    /// First seed of random tests.
    pub const SEED: &str = "FREEPORT_SEED";
    /// Path of the sockets library that was built before the tests.
    pub const LIBRARY: &str = "FREEPORT_TEST_LIBRARY";
    /// Folder of the [cache](crate::cache).
    pub const CACHE: &str = "FREEPORT_TEST_CACHE";
}
