// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which key of a full map gives way: one that was not looked up since the last time it was asked
//! ("second chance"). The kernel keeps lists of its own, so which key that is may differ from
//! there; below its capacity the map is a hash table.

use super::hash::HashIndex;

/// Elements in a circle, and whether each was used since the hand passed it.
pub(crate) struct Recency {
    was_used: Vec<bool>,
    hand: u32,
}

impl Recency {
    /// For `count` elements, at least one.
    pub fn new(count: u32) -> Self {
        Self { was_used: vec![false; count as usize], hand: 0 }
    }

    /// Notes that `element` was looked up.
    pub fn touch(&mut self, element: u32) {
        self.was_used[element as usize] = true;
    }

    /// A free element of `index`: one that is free, or else that of the key which gives way.
    pub fn take(&mut self, index: &mut HashIndex) -> Option<u32> {
        let element = match index.take() {
            Some(element) => element,
            None => {
                let victim = self.victim(index)?;
                let key = index.key(victim).to_vec();
                index.detach(&key)?
            }
        };
        self.was_used[element as usize] = false;
        Some(element)
    }

    /// Goes round once to take the marks away, and a second time if all were marked.
    fn victim(&mut self, index: &HashIndex) -> Option<u32> {
        for _ in 0..2 * self.was_used.len() {
            let element = self.hand;
            self.hand = (self.hand + 1) % self.was_used.len() as u32;
            let was_used = std::mem::take(&mut self.was_used[element as usize]);
            if !was_used && index.is_used(element) {
                return Some(element);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_up_stays() {
        let mut index = HashIndex::new(3, 1, 1);
        let mut recency = Recency::new(3);
        for key in 0..3 {
            let element = recency.take(&mut index).expect("there is room");
            index.insert(element, &[key]);
        }
        recency.touch(index.find(&[0]).expect("it is there"));
        recency.touch(index.find(&[2]).expect("it is there"));
        let element = recency.take(&mut index).expect("one gives way");
        index.insert(element, &[9]);
        assert_eq!(index.find(&[1]), None);
        assert!([0, 2, 9].iter().all(|&key| index.find(&[key]).is_some()));
    }

    #[test]
    fn if_all_were_looked_up_one_gives_way_nevertheless() {
        let mut index = HashIndex::new(2, 1, 1);
        let mut recency = Recency::new(2);
        for key in 0..2 {
            let element = recency.take(&mut index).expect("there is room");
            index.insert(element, &[key]);
            recency.touch(element);
        }
        assert!(recency.take(&mut index).is_some());
        assert_eq!((0..2).filter(|&element| index.is_used(element)).count(), 1);
    }
}
