// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random writes that can be checked afterwards: every write to a file has a number, from which its
//! offset and data follow.

use crate::chunk::Chunk;
use crate::entry::{Entry, entries, overhead};
use crate::files::Files;
use crate::primary::{Client, WriteError};
use freeport_study_verbs::Verbs;
use std::collections::BTreeMap;

/// A write to a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// First byte in the file.
    pub offset: u64,
    /// The data; their first 8 bytes are the number.
    pub data: Vec<u8>,
}

/// Returns the path of a file.
pub fn path(file: u32) -> String {
    format!("file-{file}")
}

/// Returns the write with a number, the first of which is 1, of at most this number of bytes. Half
/// of all writes compress well.
pub fn write(file: u32, number: u64, most_bytes: usize) -> Write {
    let mut random = fastrand::Rng::with_seed(u64::from(file) << 40 ^ number);
    let bytes = random.usize(8..=most_bytes.max(8));
    let offset = random.u64(0..4 * most_bytes as u64);
    let mut data = number.to_le_bytes().to_vec();
    match random.bool() {
        true => data.resize(bytes, random.u8(..)),
        false => data.resize_with(bytes, || random.u8(..)),
    }
    Write { offset, data }
}

/// Returns the greatest length of a file's writes: two fit into a chunk.
fn most_bytes(file: u32, chunk_bytes: usize) -> usize {
    chunk_bytes / 2 - overhead(&path(file))
}

/// A task that writes to one file.
pub struct Writer<V> {
    clients: Vec<Client<V>>,
    file: u32,
    next: u64,
    most_bytes: usize,
    random: fastrand::Rng,
}

impl<V: Verbs> Writer<V> {
    /// Creates a writer that takes one of the clients at random for each write, and continues after
    /// the last write to the file in the host's log.
    ///
    /// # Panics
    /// There is no client.
    pub fn new(log: &[u8], clients: Vec<Client<V>>, file: u32, seed: u64) -> Self {
        let chunk_bytes = clients.first().expect("a client").chunk_bytes();
        let most_bytes = most_bytes(file, chunk_bytes);
        let next = numbers(log, &path(file)).last().map_or(1, |last| last + 1);
        Self { clients, file, next, most_bytes, random: fastrand::Rng::with_seed(seed) }
    }

    /// Writes a few times, and waits until all backups hold it. Returns the number of the last
    /// write.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn round(&mut self) -> Result<u64, WriteError> {
        let path = path(self.file);
        let mut client = &self.clients[0];
        for _ in 0..self.random.u32(1..=6) {
            client = &self.clients[self.random.usize(0..self.clients.len())];
            let Write { offset, data } = write(self.file, self.next, self.most_bytes);
            client.write(&path, offset, &data).await?;
            self.next += 1;
        }
        let last = self.next - 1;
        client.fsync(&path).await?;
        Ok(last)
    }
}

/// Returns all chunks of a log.
fn chunks(log: &[u8]) -> impl Iterator<Item = Chunk> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (chunk, length) = Chunk::read(&log[at..], usize::MAX)?;
        at += length;
        Some(chunk)
    })
}

/// Returns the numbers of all writes to a file in a log, in their order.
pub fn numbers(log: &[u8], path: &str) -> Vec<u64> {
    let mut numbers = Vec::new();
    for chunk in chunks(log) {
        let of_file = entries(chunk.body()).filter(|entry| entry.path == path);
        numbers.extend(
            of_file.filter_map(|entry| {
                Some(u64::from_le_bytes(entry.data.get(..8)?.try_into().ok()?))
            }),
        );
    }
    numbers
}

/// Returns whether a log has a write to a file.
pub fn has(log: &[u8], file: u32, number: u64) -> bool {
    numbers(log, &path(file)).contains(&number)
}

/// Checks the logs of all places after the last write: they are equal, have all writes of each file
/// in their order, and all that were acknowledged. `acknowledged` has the last such write of each
/// file.
///
/// # Errors
/// Says what is wrong.
pub fn check(
    logs: &[Vec<u8>],
    acknowledged: &BTreeMap<u32, u64>,
    chunk_bytes: usize,
) -> Result<(), String> {
    let Some((first, others)) = logs.split_first() else { return Err("there are no logs".into()) };
    for (number, other) in others.iter().enumerate() {
        if let Some(at) = first_difference(first, other) {
            let lengths = [first.len(), other.len()];
            return Err(format!("backup {number} differs from byte {at} on, of {lengths:?} B"));
        }
    }
    let of_file = |(&file, &last): (&u32, &u64)| {
        check_file(first, file, last, chunk_bytes)
            .map_err(|reason| format!("file {file}: {reason}"))
    };
    acknowledged.iter().try_for_each(of_file)
}

/// Checks that a log has all writes to a file up to one at least, and leaves their data.
fn check_file(log: &[u8], file: u32, last: u64, chunk_bytes: usize) -> Result<(), String> {
    let path = path(file);
    let numbers = numbers(log, &path);
    if let Some(at) = (1..).zip(&numbers).position(|(expected, found)| expected != *found) {
        return Err(format!("write {} follows write {at}", numbers[at]));
    }
    if (numbers.len() as u64) < last {
        return Err(format!("write {last} was acknowledged, of {} in the log", numbers.len()));
    }
    let mut expected = Files::default();
    for number in numbers {
        let Write { offset, data } = write(file, number, most_bytes(file, chunk_bytes));
        expected.write(Entry { path: &path, offset, data: &data });
    }
    let mut found = Files::default();
    chunks(log).for_each(|chunk| found.apply(chunk.body()));
    match found.get(&path) == expected.get(&path) {
        true => Ok(()),
        false => Err("it does not have the data that were written".into()),
    }
}

fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    let at = one.iter().zip(other).position(|(one, other)| one != other);
    at.or_else(|| (one.len() != other.len()).then(|| one.len().min(other.len())))
}
