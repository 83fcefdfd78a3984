// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loops for the widest vector instructions of the processor.
//!
//! The crate is compiled for any x86-64 processor, whose vectors have 16 bytes. Here a loop is
//! compiled a second time for processors with AVX2, and chosen at run time. Integers of 64 bits,
//! which have no comparison in the base instruction set, deltas of several parts, and filters gain
//! most. AVX-512 would need a newer compiler than the crate.

use crate::{Element, compact};

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
    if has_avx2() {
        #[allow(unsafe_code)]
        // SAFETY: the function needs a processor with AVX2, and the condition above checks that.
        return unsafe { run_avx2(steps) };
    }
    steps.run()
}

/// Moves the elements whose flag is 1 to the front of `kept`, in their order, and returns their
/// length in bytes: for implementations of [`UserFunction::keep`](crate::UserFunction::keep). There
/// is a flag of 1 or 0 for each element, and `kept` is as long as `values`.
pub fn keep_flagged(element: Element, values: &[u8], flags: &[u8], kept: &mut [u8]) -> usize {
    compact_widest(element.width(), values, flags, kept)
}

/// Moves the elements of `width` bytes that have a flag to the front of `kept`, and returns their
/// length in bytes; see [`compact::compact`].
pub(crate) fn compact_widest(width: usize, values: &[u8], flags: &[u8], kept: &mut [u8]) -> usize {
    match width {
        1 => compact_elements::<1>(values, flags, kept),
        2 => compact_elements::<2>(values, flags, kept),
        4 => compact_elements::<4>(values, flags, kept),
        _ => compact_elements::<8>(values, flags, kept),
    }
}

fn compact_elements<const WIDTH: usize>(values: &[u8], flags: &[u8], kept: &mut [u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        #[allow(unsafe_code)]
        // SAFETY: the function needs a processor with AVX2, and the condition above checks that.
        return unsafe { compact::compact_avx2::<WIDTH>(values, flags, kept) };
    }
    compact::compact::<WIDTH>(values, flags, kept)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2<L: Loop>(steps: L) -> L::Output {
    steps.run()
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx2() -> bool {
    #[cfg(test)]
    if tests::IS_NARROW.get() {
        return false;
    }
    is_x86_feature_detected!("avx2")
}

#[cfg(test)]
mod tests {
    use crate::{Deltas, Element, Filter, Reduce, Update};
    use fastrand::Rng;
    use std::cell::Cell;

    thread_local! {
        /// Whether this thread uses the base instruction set only.
        pub(super) static IS_NARROW: Cell<bool> = const { Cell::new(false) };
    }

    /// Calls a function with the base instruction set and with the widest, and compares.
    fn compare<R: PartialEq>(case: &str, mut call: impl FnMut() -> R) {
        IS_NARROW.set(true);
        let narrow = call();
        IS_NARROW.set(false);
        assert!(narrow == call(), "{case}");
    }

    /// Elements of which some are equal, and some have extreme bits.
    fn any_elements(rng: &mut Rng, count: usize, width: usize) -> Vec<u8> {
        let extreme = [0x00, 0xff, 0x80, 0x7f];
        let mut element = |_| {
            let bits = rng.u64(..) & rng.u64(..).wrapping_shr(rng.u32(..));
            match rng.u8(..4) {
                0 => [extreme[rng.usize(..4)]; 8],
                1 => [0, 0, 0, 0, 0, 0, extreme[rng.usize(..4)], extreme[rng.usize(..4)]],
                _ => bits.to_le_bytes(),
            }
        };
        (0..count).flat_map(|at| element(at)[8 - width..].to_vec()).collect()
    }

    #[test]
    fn all_instruction_sets_give_the_same_bits() {
        let mut rng = Rng::with_seed(1);
        for element in Element::ALL {
            let width = element.width();
            for count in [0, 1, 7, 8, 9, 63, 64, 65, 200, 511, 512, 513, 1100] {
                let case = |name: &str| format!("{name} of {count} {element}");
                let values = any_elements(&mut rng, count, width);
                for update in Update::ALL {
                    let parts = update.operands().len();
                    let deltas = any_elements(&mut rng, count.max(1) * parts, width);
                    let (one, own) = (&deltas[..parts * width], &deltas[..count * parts * width]);
                    for deltas in [Deltas::Same(one), Deltas::Each(own)] {
                        compare(&case(update.name()), || {
                            let mut value = values.clone();
                            update.vector(element, &mut value, deltas, None).map(|()| value)
                        });
                    }
                }
                for reduce in Reduce::ALL {
                    let sigma = any_elements(&mut rng, 1, 8);
                    compare(&case(reduce.name()), || reduce.fold(element, &values, &sigma));
                }
                for filter in Filter::ALL {
                    let operand = any_elements(&mut rng, filter.operands().len(), width);
                    compare(&case(filter.name()), || {
                        let mut kept = vec![];
                        filter.keep(element, &values, &operand, &mut kept).map(|()| kept)
                    });
                }
            }
        }
    }
}
