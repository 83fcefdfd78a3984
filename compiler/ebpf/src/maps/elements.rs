// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The values of a map, stored consecutively, as programs access them.
//!
//! A program gets the address of one value and may not go beyond its end. In the map's address
//! window each value therefore occupies a power of two: the value of an address is found by a
//! shift, and one comparison checks that an access stays inside it.

use std::ops::Range;

/// Values of one size, initially zero.
pub(crate) struct Elements {
    bytes: Vec<u8>,
    value_size: usize,
    stride: usize,
    shift: u32,
    count: u32,
}

impl Elements {
    /// Returns the size in bytes of `count` values of `value_size` bytes, or `None` on overflow.
    pub fn bytes_for(count: u64, value_size: u32) -> Option<usize> {
        let stride = u64::from(value_size).next_multiple_of(8);
        usize::try_from(count.checked_mul(stride)?).ok()
    }

    /// Allocates `count` values of `value_size` bytes. The caller has checked
    /// [`Elements::bytes_for`].
    pub fn new(count: u32, value_size: u32) -> Self {
        let value_size = value_size as usize;
        let stride = value_size.next_multiple_of(8);
        Self {
            bytes: vec![0; count as usize * stride],
            value_size,
            stride,
            shift: stride.max(1).next_power_of_two().trailing_zeros(),
            count,
        }
    }

    /// Returns value `index`, which must exist.
    pub fn get(&self, index: u32) -> &[u8] {
        let start = index as usize * self.stride;
        &self.bytes[start..start + self.value_size]
    }

    /// Returns value `index`, which must exist, mutable.
    pub fn get_mut(&mut self, index: u32) -> &mut [u8] {
        let start = index as usize * self.stride;
        &mut self.bytes[start..start + self.value_size]
    }

    /// Returns the offset of value `index` in the map's window.
    pub fn offset_of(&self, index: u32) -> u64 {
        u64::from(index) << self.shift
    }

    /// Returns the distance between two values in the map's window.
    pub fn spacing(&self) -> u64 {
        1 << self.shift
    }

    /// Returns `size` bytes from `offset` of the window, if they lie in one value.
    #[inline]
    pub fn bytes(&self, offset: u64, size: usize) -> Option<&[u8]> {
        let place = self.place(offset, size)?;
        self.bytes.get(place)
    }

    /// As `bytes`, mutable.
    #[inline]
    pub fn bytes_mut(&mut self, offset: u64, size: usize) -> Option<&mut [u8]> {
        let place = self.place(offset, size)?;
        self.bytes.get_mut(place)
    }

    #[inline]
    fn place(&self, offset: u64, size: usize) -> Option<Range<usize>> {
        let index = offset >> self.shift;
        let within = (offset - (index << self.shift)) as usize;
        if index >= u64::from(self.count) || within + size > self.value_size {
            return None;
        }
        let start = index as usize * self.stride + within;
        Some(start..start + size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_stays_inside_one_value() {
        let mut elements = Elements::new(3, 12);
        for index in 0..3 {
            elements.get_mut(index).fill(index as u8 + 1);
        }
        let second = elements.offset_of(1);
        assert_eq!(elements.bytes(second, 12), Some(&[2; 12][..]));
        assert_eq!(elements.bytes(second + 8, 4), Some(&[2; 4][..]));
        assert_eq!(elements.bytes(second + 8, 5), None, "beyond the value");
        assert_eq!(elements.bytes(second + 12, 1), None, "between two values");
        assert_eq!(elements.bytes(second - 1, 2), None, "from one into the next");
        assert_eq!(elements.bytes(elements.offset_of(3), 1), None, "after the last");
        assert_eq!(elements.bytes(u64::MAX >> 16, 8), None);
    }

    #[test]
    fn sizes_that_do_not_fit_are_known() {
        assert_eq!(Elements::bytes_for(3, 12), Some(48));
        assert_eq!(Elements::bytes_for(u64::MAX, 12), None);
    }
}
