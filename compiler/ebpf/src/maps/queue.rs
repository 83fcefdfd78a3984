// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Queue and stack: values without keys, removed in the order of insertion or in reverse.

use super::ErrorNumber;
use super::flags::{ANY, EXIST};
use std::collections::VecDeque;

/// Order in which values are removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// First in, first out.
    Queue,
    /// Last in, first out.
    Stack,
}

/// Values of one size, in a preallocated ring.
pub(crate) struct Queue {
    order: Order,
    values: VecDeque<u8>,
    value_size: usize,
    capacity: usize,
}

impl Queue {
    /// Creates a ring for `count` values of `value_size` bytes.
    pub fn new(order: Order, count: u32, value_size: u32) -> Self {
        let (capacity, value_size) = (count as usize, value_size as usize);
        let values = VecDeque::with_capacity(capacity * value_size);
        Self { order, values, value_size, capacity }
    }

    /// Appends `value`. With `BPF_EXIST` a full ring drops its oldest value.
    ///
    /// # Errors
    /// `EINVAL` for other flags, `E2BIG` if it is full.
    pub fn push(&mut self, value: &[u8], flags: u64) -> Result<(), ErrorNumber> {
        if flags != ANY && flags != EXIST {
            return Err(ErrorNumber::EINVAL);
        }
        if self.len() >= self.capacity {
            if flags != EXIST {
                return Err(ErrorNumber::E2BIG);
            }
            self.values.drain(..self.value_size);
        }
        self.values.extend(value);
        Ok(())
    }

    /// Writes the next value to `into`, and removes it if it `leaves`.
    ///
    /// # Errors
    /// `ENOENT` if there is none; `into` is then zeroed.
    pub fn next(&mut self, into: &mut [u8], leaves: bool) -> Result<(), ErrorNumber> {
        if self.values.is_empty() {
            into.fill(0);
            return Err(ErrorNumber::ENOENT);
        }
        let start = match self.order {
            Order::Queue => 0,
            Order::Stack => self.values.len() - self.value_size,
        };
        let place = start..start + self.value_size;
        for (to, from) in into.iter_mut().zip(self.values.range(place.clone())) {
            *to = *from;
        }
        if leaves {
            self.values.drain(place);
        }
        Ok(())
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.values.len() / self.value_size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn popped(queue: &mut Queue) -> Result<[u8; 2], ErrorNumber> {
        let mut value = [7; 2];
        queue.next(&mut value, true).map(|()| value)
    }

    #[test]
    fn a_queue_and_a_stack_give_back_in_their_order() {
        for (order, first) in [(Order::Queue, 1), (Order::Stack, 2)] {
            let mut queue = Queue::new(order, 2, 2);
            assert_eq!(queue.push(&[1; 2], ANY), Ok(()));
            assert_eq!(queue.push(&[2; 2], ANY), Ok(()));
            assert_eq!(queue.push(&[3; 2], ANY), Err(ErrorNumber::E2BIG));
            assert_eq!(queue.push(&[3; 2], 1), Err(ErrorNumber::EINVAL));
            let mut value = [0; 2];
            assert_eq!(queue.next(&mut value, false), Ok(()));
            assert_eq!(value, [first; 2], "peeking");
            assert_eq!(popped(&mut queue), Ok([first; 2]));
            assert_eq!(popped(&mut queue), Ok([3 - first; 2]));
            assert_eq!(popped(&mut queue), Err(ErrorNumber::ENOENT));
        }
    }

    #[test]
    fn the_oldest_gives_way_if_asked_to() {
        for (order, expected) in [(Order::Queue, [2, 3]), (Order::Stack, [3, 2])] {
            let mut queue = Queue::new(order, 2, 2);
            (1..=3).for_each(|at| queue.push(&[at; 2], EXIST).expect("there is room"));
            assert_eq!(popped(&mut queue), Ok([expected[0]; 2]));
            assert_eq!(popped(&mut queue), Ok([expected[1]; 2]));
        }
    }

    #[test]
    fn an_empty_one_zeroes_what_it_was_to_fill() {
        let mut value = [7; 2];
        let mut queue = Queue::new(Order::Queue, 1, 2);
        assert_eq!(queue.next(&mut value, true), Err(ErrorNumber::ENOENT));
        assert_eq!(value, [0; 2]);
        assert_eq!(queue.len(), 0);
    }
}
