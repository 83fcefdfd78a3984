// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loops for the widest vector instructions of the processor.
//!
//! The crate is compiled for any x86-64 processor, whose vectors have 16 bytes. Here a loop is
//! compiled a second time for processors with AVX2, and chosen at run time: integers of 64 bits
//! have no comparison in the base instruction set, and filters and conditional updates gain most.
//! A third copy, for AVX-512, gains little for data beyond the first cache, and needs a newer
//! compiler than the crate.

/// A loop as a value, so that it can be compiled for several instruction sets.
pub(crate) trait Loop {
    /// Result of the loop.
    type Output;

    /// Runs the loop. An implementation is `#[inline(always)]`, as is all it calls: code inherits
    /// instructions only from the function it is inlined into.
    fn run(self) -> Self::Output;
}

/// Runs a loop with the widest instructions there are.
#[inline]
pub(crate) fn run_widest<L: Loop>(steps: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[allow(unsafe_code)]
        // SAFETY: the function needs a processor with AVX2, and the condition above checks that.
        return unsafe { run_avx2(steps) };
    }
    steps.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2<L: Loop>(steps: L) -> L::Output {
    steps.run()
}
