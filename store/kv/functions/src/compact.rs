// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compaction: the elements with a flag move to the front, in their order.
//!
//! Neither version has a branch on a flag, which a processor could not predict. The plain one
//! stores every element, and the next over it unless the flag is set. The one for AVX2 takes eight
//! elements at once: their flags are the index of a table of permutations, as in D. Lemire,
//! "Quickly pruning elements in SIMD vectors using the simdprune library" (2017).

/// Moves the elements of `WIDTH` bytes whose flag is 1, and not 0, to the front of `kept`. Returns
/// their length in bytes. `kept` has room for all elements.
#[inline(always)]
pub(crate) fn compact<const WIDTH: usize>(values: &[u8], flags: &[u8], kept: &mut [u8]) -> usize {
    let mut end = 0;
    for (bytes, flag) in values.chunks_exact(WIDTH).zip(flags) {
        kept[end..end + WIDTH].copy_from_slice(bytes);
        end += WIDTH * usize::from(*flag);
    }
    end
}

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::compact_avx2;

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::compact;
    use std::arch::x86_64::*;

    /// Number of elements that are taken at once.
    const GROUP: usize = 8;

    /// For each set of eight flags, the positions of those that are set, one in each byte from the
    /// lowest.
    static POSITIONS: [u64; 256] = positions();

    const fn positions() -> [u64; 256] {
        let mut table = [0; 256];
        let mut set = 0;
        while set < table.len() {
            let (mut flag, mut count) = (0, 0);
            while flag < GROUP {
                if set >> flag & 1 == 1 {
                    table[set] |= (flag as u64) << (8 * count);
                    count += 1;
                }
                flag += 1;
            }
            set += 1;
        }
        table
    }

    /// As [`compact`].
    #[target_feature(enable = "avx2")]
    pub(crate) fn compact_avx2<const WIDTH: usize>(
        values: &[u8],
        flags: &[u8],
        kept: &mut [u8],
    ) -> usize {
        let mut end = 0;
        let mut groups = values.chunks_exact(GROUP * WIDTH);
        let mut group_flags = flags.chunks_exact(GROUP);
        for (group, flags) in (&mut groups).zip(&mut group_flags) {
            let flags = u64::from_le_bytes(flags.try_into().expect("eight flags"));
            // The products add up copies of the flags: their top byte has flag i in bit i, and
            // the number of flags.
            let set = flags.wrapping_mul(0x0102_0408_1020_4080) >> 56;
            let count = flags.wrapping_mul(0x0101_0101_0101_0101) >> 56;
            // The elements before these took at most as much room as they had themselves.
            let room = &mut kept[end..end + GROUP * WIDTH];
            match WIDTH {
                1 => pack_1(group, set, room),
                2 => pack_2(group, set, room),
                4 => pack_4(group, set, room),
                _ => pack_8(group, set, room),
            }
            end += WIDTH * count as usize;
        }
        let rest = &mut kept[end..];
        end + compact::<WIDTH>(groups.remainder(), group_flags.remainder(), rest)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn pack_1(group: &[u8], set: u64, room: &mut [u8]) {
        let elements = _mm_cvtsi64_si128(word(group, 0));
        let packed = _mm_shuffle_epi8(elements, positions_of(set));
        room.copy_from_slice(&_mm_cvtsi128_si64(packed).to_le_bytes());
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn pack_2(group: &[u8], set: u64, room: &mut [u8]) {
        let elements = _mm_set_epi64x(word(group, 1), word(group, 0));
        let packed = _mm_shuffle_epi8(elements, halves(positions_of(set)));
        room[..8].copy_from_slice(&_mm_cvtsi128_si64(packed).to_le_bytes());
        room[8..].copy_from_slice(&_mm_extract_epi64::<1>(packed).to_le_bytes());
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn pack_4(group: &[u8], set: u64, room: &mut [u8]) {
        let packed = permute(group, _mm256_cvtepu8_epi32(positions_of(set)));
        store(packed, room);
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn pack_8(group: &[u8], set: u64, room: &mut [u8]) {
        let (low, high) = (set & 15, set >> 4);
        let of = |set| _mm256_cvtepu8_epi32(halves(positions_of(set)));
        store(permute(&group[..32], of(low)), &mut room[..32]);
        let end = 8 * low.count_ones() as usize;
        store(permute(&group[32..], of(high)), &mut room[end..end + 32]);
    }

    /// Positions of the elements that are kept, in bytes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn positions_of(set: u64) -> __m128i {
        _mm_cvtsi64_si128(POSITIONS[(set & 255) as usize] as i64)
    }

    /// Positions of the two halves of each element: 2i and 2i + 1.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn halves(positions: __m128i) -> __m128i {
        let twice = _mm_add_epi8(positions, positions);
        _mm_add_epi8(_mm_unpacklo_epi8(twice, twice), _mm_set1_epi16(0x100))
    }

    /// Permutes eight words of 32 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn permute(words: &[u8], positions: __m256i) -> __m256i {
        let words =
            _mm256_set_epi64x(word(words, 3), word(words, 2), word(words, 1), word(words, 0));
        _mm256_permutevar8x32_epi32(words, positions)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store(vector: __m256i, room: &mut [u8]) {
        room[..8].copy_from_slice(&_mm256_extract_epi64::<0>(vector).to_le_bytes());
        room[8..16].copy_from_slice(&_mm256_extract_epi64::<1>(vector).to_le_bytes());
        room[16..24].copy_from_slice(&_mm256_extract_epi64::<2>(vector).to_le_bytes());
        room[24..].copy_from_slice(&_mm256_extract_epi64::<3>(vector).to_le_bytes());
    }

    /// The 64 bits at index `at`.
    #[inline(always)]
    fn word(bytes: &[u8], at: usize) -> i64 {
        let bytes = &bytes[8 * at..8 * at + 8];
        i64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }
}
