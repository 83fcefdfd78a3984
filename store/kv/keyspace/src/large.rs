// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Large values: structures on the heap, found by a number.

use std::any::Any;

/// A structure, and what is counted of it.
struct Cell {
    structure: Box<dyn Any + Send>,
    memory_bytes: usize,
}

/// All large values of a keyspace.
#[derive(Default)]
pub(crate) struct LargeValues {
    cells: Vec<Option<Cell>>,
    free: Vec<u32>,
    memory_bytes: usize,
}

impl LargeValues {
    /// Keeps a structure; returns its number.
    pub fn insert(&mut self, structure: Box<dyn Any + Send>, memory_bytes: usize) -> u32 {
        self.memory_bytes += memory_bytes;
        let cell = Some(Cell { structure, memory_bytes });
        match self.free.pop() {
            Some(number) => {
                self.cells[number as usize] = cell;
                number
            }
            None => {
                self.cells.push(cell);
                u32::try_from(self.cells.len() - 1).expect("memory ends before numbers do")
            }
        }
    }

    /// The structure of a number.
    pub fn get<T: 'static>(&self, number: u32) -> &T {
        let cell = self.cells[number as usize].as_ref().expect("values name structures that exist");
        cell.structure.downcast_ref().expect("the kind of a value is that of its structure")
    }

    /// A copy of the structure of a number.
    pub fn copy<T: Clone + Send + 'static>(&self, number: u32) -> Box<dyn Any + Send> {
        Box::new(self.get::<T>(number).clone())
    }

    /// Takes a structure out, to change it; its number stays in use.
    pub fn take<T: 'static>(&mut self, number: u32) -> Box<T> {
        self.take_any(number).downcast().expect("the kind of a value is that of its structure")
    }

    /// As [`LargeValues::take`], for a structure of any type.
    pub fn take_any(&mut self, number: u32) -> Box<dyn Any + Send> {
        let cell = self.cells[number as usize].take().expect("values name structures that exist");
        self.memory_bytes -= cell.memory_bytes;
        cell.structure
    }

    /// Puts a structure back that was taken out.
    pub fn restore(&mut self, number: u32, structure: Box<dyn Any + Send>, memory_bytes: usize) {
        self.memory_bytes += memory_bytes;
        self.cells[number as usize] = Some(Cell { structure, memory_bytes });
    }

    /// Frees a number, and the structure if it was not taken out.
    pub fn remove(&mut self, number: u32) {
        if let Some(cell) = self.cells[number as usize].take() {
            self.memory_bytes -= cell.memory_bytes;
        }
        self.free.push(number);
    }

    /// Removes all structures.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Number of structures.
    pub fn len(&self) -> usize {
        self.cells.len() - self.free.len()
    }

    /// Bytes of the structure of a number.
    pub fn bytes_of(&self, number: u32) -> usize {
        self.cells[number as usize].as_ref().map_or(0, |cell| cell.memory_bytes)
    }

    /// Bytes of all structures, and of the table of them.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes + self.cells.capacity() * size_of::<Option<Cell>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_keep_their_numbers_until_they_are_removed() {
        let mut values = LargeValues::default();
        let first = values.insert(Box::new(vec![1_u8]), 10);
        let second = values.insert(Box::new(String::from("two")), 20);
        assert_eq!(values.get::<Vec<u8>>(first), &[1]);
        let taken: Box<String> = values.take(second);
        assert_eq!((taken.as_str(), values.memory_bytes), ("two", 10));
        values.restore(second, taken, 30);
        assert_eq!((values.get::<String>(second).as_str(), values.memory_bytes), ("two", 40));
        values.remove(first);
        assert_eq!((values.len(), values.memory_bytes), (1, 30));
        assert_eq!(values.insert(Box::new(7_u64), 1), first);
    }
}
