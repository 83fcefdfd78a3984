// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements of values.

/// A type of elements on which functions work. Elements are little-endian.
pub trait Number: Copy + sealed::Sealed {
    /// Code of the type in the protocol.
    const ELEMENT: u8;

    /// Bytes of an element.
    const BYTES: usize;

    /// Appends the bytes of the element.
    fn append(self, into: &mut Vec<u8>);

    /// Reads an element. `None` if there are not exactly its bytes.
    fn read(bytes: &[u8]) -> Option<Self>;
}

mod sealed {
    /// Types of elements are those of the protocol.
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($code:literal $number:ident),*) => {$(
        impl sealed::Sealed for $number {}

        impl Number for $number {
            const ELEMENT: u8 = $code;
            const BYTES: usize = size_of::<Self>();

            #[inline]
            fn append(self, into: &mut Vec<u8>) {
                into.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn read(bytes: &[u8]) -> Option<Self> {
                Some(Self::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    )*};
}

numbers!(0 u8, 1 u16, 2 u32, 3 u64, 4 i8, 5 i16, 6 i32, 7 i64, 8 f32, 9 f64);
