// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a program becomes native code.

use freeport_ir::analysis::{LargeMemory, TURN_LIMIT};
use freeport_ir::passes::PassSet;
use std::env;
use std::path::PathBuf;

/// How to emit, compile and cache. Only `turn_limit` changes what a program means.
#[derive(Clone, Debug)]
pub struct Options {
    /// The compiler's optimization level, 0 to 3.
    pub optimization: u8,
    /// Whether the code records its choices and the histories of its channels, for a replay.
    pub record: bool,
    /// Whether the compiler adds its checks of undefined behaviour, array bounds among them. Code
    /// that fails one ends the process with an illegal instruction.
    pub sanitize: bool,
    /// Whether the compiler adds checks of every address (AddressSanitizer). The process that loads
    /// such code must have the sanitizer's runtime, which it may preload.
    pub sanitize_addresses: bool,
    /// Whether large memory is asked for as soon as the item is known that decides about it.
    pub prefetch: bool,
    /// Instances of a graph from which on those that do the same share their functions, and fewer
    /// are fused into one: then the compiler's time grows with what differs, and items take a few
    /// nanoseconds more for an instance.
    pub many_instances: usize,
    /// What is large memory.
    pub large_memory: LargeMemory,
    /// Times that the loops of one firing, or of one call by the host, may go round before the
    /// watchdog traps it.
    pub turn_limit: u64,
    /// The passes over the intermediate representation that run before the code is emitted.
    pub passes: PassSet,
    /// A clang of version 19 or later, a path or a name to be found on `PATH`.
    pub compiler: PathBuf,
    /// The directory in which built code is kept for the next time: one of this user alone, or
    /// nothing in it is loaded. None stands for `native` in the [user's cache](crate::own::cache).
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
