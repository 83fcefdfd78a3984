// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations to be sent together.

use crate::number::Number;
use freeport_kv_protocol::batch::{HEADER_BYTES_MAX, Opcode, Operation};

/// Most bytes of an operation beside its key and value.
const OVERHEAD_BYTES: usize = 11;

/// Operations to be sent together. Replies have their order. Operations on one key take effect in
/// it, except over UDP, where only those of one packet do. Operations on keys of different workers
/// of the server are under way at the same time.
///
/// A batch of any size may be run: the client divides it into packets. [`clear`](Self::clear) keeps
/// its memory for the next operations.
///
/// Methods with a function take its id, or a [`Function`](crate::Function) that the client found by
/// name. Their operands are numbers of the type of the value's elements.
///
/// ```
/// use freeport_kv_client::Batch;
///
/// let mut batch = Batch::new();
/// batch.put(b"stock", &7_u32.to_le_bytes()).get(b"stock");
/// batch.update(b"stock", 3, &[5_u32]).without_return();
/// assert_eq!(batch.len(), 3);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Keys and values of the operations.
    bytes: Vec<u8>,
    records: Vec<Record>,
    /// Most bytes of key and value of an operation.
    largest: usize,
}

/// An operation; its key and its value follow each other.
#[derive(Clone, Copy, Debug)]
struct Record {
    opcode: Opcode,
    no_return: bool,
    function: u8,
    element: u8,
    at: usize,
    key_bytes: usize,
    value_bytes: usize,
}

impl Batch {
    /// A batch without operations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// There are no operations.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Removes all operations.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
        self.largest = 0;
    }

    /// Reads the value of a key.
    #[inline]
    pub fn get(&mut self, key: &[u8]) -> &mut Self {
        self.push(&Operation::get(key))
    }

    /// Sets the value of a key. The reply has no value.
    #[inline]
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> &mut Self {
        self.push(&Operation::put(key, value))
    }

    /// Removes a key. The reply says whether there was one, and has no value.
    #[inline]
    pub fn delete(&mut self, key: &[u8]) -> &mut Self {
        self.push(&Operation::delete(key))
    }

    /// Updates a value of one element, and returns the original.
    #[inline]
    pub fn update<N: Number>(
        &mut self,
        key: &[u8],
        function: impl Into<u8>,
        operands: &[N],
    ) -> &mut Self {
        self.call(Opcode::Update, key, function.into(), operands)
    }

    /// Updates all elements of a value with the same operands, and returns the original vector.
    #[inline]
    pub fn update_same<N: Number>(
        &mut self,
        key: &[u8],
        function: impl Into<u8>,
        operands: &[N],
    ) -> &mut Self {
        self.call(Opcode::UpdateSame, key, function.into(), operands)
    }

    /// Updates each element of a value with its own operands, and returns the original vector.
    /// `operands` has those of the first element, then those of the second, and so on.
    #[inline]
    pub fn update_vector<N: Number>(
        &mut self,
        key: &[u8],
        function: impl Into<u8>,
        operands: &[N],
    ) -> &mut Self {
        self.call(Opcode::UpdateVector, key, function.into(), operands)
    }

    /// Folds all elements of a value, which have the type `N`, and returns 8 bytes: a `u64`, `i64`
    /// or `f64`. `sigma` has the bits of such a number.
    #[inline]
    pub fn reduce<N: Number>(
        &mut self,
        key: &[u8],
        function: impl Into<u8>,
        sigma: u64,
    ) -> &mut Self {
        let sigma = sigma.to_le_bytes();
        self.push(&Operation::call(Opcode::Reduce, key, function.into(), N::ELEMENT, &sigma))
    }

    /// Returns those elements of a value that a function accepts.
    #[inline]
    pub fn filter<N: Number>(
        &mut self,
        key: &[u8],
        function: impl Into<u8>,
        operands: &[N],
    ) -> &mut Self {
        self.call(Opcode::Filter, key, function.into(), operands)
    }

    /// The last operation returns no value, only whether it succeeded.
    #[inline]
    pub fn without_return(&mut self) -> &mut Self {
        if let Some(last) = self.records.last_mut() {
            last.no_return = true;
        }
        self
    }

    /// Adds any operation.
    #[inline]
    pub fn push(&mut self, operation: &Operation<'_>) -> &mut Self {
        let Operation { opcode, no_return, function, element, key, value } = *operation;
        let at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        let (key_bytes, value_bytes) = (key.len(), value.len());
        self.add(Record { opcode, no_return, function, element, at, key_bytes, value_bytes })
    }

    /// The operations in their order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Operation<'_>> {
        self.records.iter().map(|record| self.of(record))
    }

    /// The operation with a number.
    pub(crate) fn operation(&self, number: usize) -> Operation<'_> {
        self.of(&self.records[number])
    }

    #[inline]
    fn of(&self, record: &Record) -> Operation<'_> {
        let Record { opcode, no_return, function, element, .. } = *record;
        let (key, rest) = self.bytes[record.at..].split_at(record.key_bytes);
        let value = &rest[..record.value_bytes];
        Operation { opcode, no_return, function, element, key, value }
    }

    /// Upper limit for the size of a packet with one of the operations, in bytes.
    pub(crate) fn packet_bytes_max(&self) -> usize {
        HEADER_BYTES_MAX + OVERHEAD_BYTES + self.largest
    }

    fn call<N: Number>(
        &mut self,
        opcode: Opcode,
        key: &[u8],
        function: u8,
        operands: &[N],
    ) -> &mut Self {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        operands.iter().for_each(|operand| operand.append(&mut self.bytes));
        let (key_bytes, value_bytes) = (key.len(), operands.len() * N::BYTES);
        let (no_return, element) = (false, N::ELEMENT);
        self.add(Record { opcode, no_return, function, element, at, key_bytes, value_bytes })
    }

    #[inline]
    fn add(&mut self, record: Record) -> &mut Self {
        self.largest = self.largest.max(record.key_bytes + record.value_bytes);
        self.records.push(record);
        self
    }
}
