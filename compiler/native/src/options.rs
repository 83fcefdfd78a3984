// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options for building native code.

use freeport_ir::analysis::{LargeMemory, TURN_LIMIT};
use freeport_ir::passes::PassSet;
use std::env;
use std::path::PathBuf;

/// Options for emitting, compiling and caching. Only `turn_limit` changes the meaning of a program.
#[derive(Clone, Debug)]
pub struct Options {
    /// The compiler's optimization level, 0 to 3.
    pub optimization: u8,
    /// Whether the code records its choices and the histories of its channels, for a replay.
    pub record: bool,
    /// Whether the compiler adds checks for undefined behaviour, including array bounds. Code that
    /// fails a check ends the process with an illegal instruction.
    pub sanitize: bool,
    /// Whether the compiler adds checks of every address (AddressSanitizer). The process that loads
    /// such code must have the sanitizer's runtime, which it may preload.
    pub sanitize_addresses: bool,
    /// Whether large memory is prefetched as soon as the item that determines the access is known.
    pub prefetch: bool,
    /// Number of instances from which on identical instances share their functions, and fewer are
    /// fused into one. Compile time then grows with the number of different instances, and an item
    /// takes a few nanoseconds more per instance.
    pub many_instances: usize,
    /// Thresholds for large memory.
    pub large_memory: LargeMemory,
    /// Loop iterations in one firing, or one call by the host, before the watchdog traps it.
    pub turn_limit: u64,
    /// The passes over the intermediate representation that run before the code is emitted.
    pub passes: PassSet,
    /// A clang of version 19 or later: a path, or a name to be found on `PATH`.
    pub compiler: PathBuf,
    /// Directory where built code is cached. Only this user may have write access, or nothing is
    /// loaded from it. `None` stands for `native` in the [user's cache](crate::own::cache).
    pub cache: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            optimization: 3,
            record: false,
            sanitize: false,
            sanitize_addresses: false,
            prefetch: true,
            many_instances: 32,
            large_memory: LargeMemory::default(),
            turn_limit: TURN_LIMIT,
            passes: PassSet::for_cpu(),
            compiler: env::var_os("CLANG").map_or_else(|| "clang-19".into(), PathBuf::from),
            cache: None,
        }
    }
}
