// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lanes for what is in a row: some have to be in a certain one, some behind others.

/// What is to be placed in a row.
#[derive(Clone, Debug)]
pub struct Item {
    /// Lanes that it may begin in, by bits.
    pub allowed: u16,
    /// How many it takes.
    pub width: usize,
    /// Items of the row, by their numbers, that are in lanes before it.
    pub behind: Vec<usize>,
    /// Whether a later lane is better than an earlier one.
    pub prefers_late: bool,
}

/// A lane for each item of a row of `lanes`, if there is a way.
pub fn assign(items: &[Item], lanes: usize) -> Option<Vec<usize>> {
    if items.iter().map(|item| item.width).sum::<usize>() > lanes {
        return None;
    }
    let mut assigned = vec![usize::MAX; items.len()];
    place(items, lanes, 0, 0, &mut assigned).then_some(assigned)
}

/// Places items from number `at` on where lanes are not `taken`.
fn place(items: &[Item], lanes: usize, at: usize, taken: u16, assigned: &mut [usize]) -> bool {
    let Some(item) = items.get(at) else { return true };
    let last = lanes - item.width;
    for lane in 0..=last {
        let lane = if item.prefers_late { last - lane } else { lane };
        let bits = ((1 << item.width) - 1) << lane;
        let is_free = taken & bits == 0 && item.allowed >> lane & 1 == 1;
        if is_free && is_in_order(items, assigned, at, lane) {
            assigned[at] = lane;
            if place(items, lanes, at + 1, taken | bits, assigned) {
                return true;
            }
            assigned[at] = usize::MAX;
        }
    }
    false
}

/// Whether item `at` in this lane is behind and before those that it should be, as far as they have
/// lanes.
fn is_in_order(items: &[Item], assigned: &[usize], at: usize, lane: usize) -> bool {
    let follows = items[at].behind.iter().all(|&other| {
        let other = assigned[other];
        other == usize::MAX || other < lane
    });
    let mut later = items.iter().zip(assigned).filter(|(item, _)| item.behind.contains(&at));
    follows && later.all(|(_, &other)| other == usize::MAX || other > lane)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(allowed: u16, width: usize, behind: &[usize]) -> Item {
        Item { allowed, width, behind: behind.to_vec(), prefers_late: false }
    }

    #[test]
    fn lanes_are_found_if_there_is_a_way() {
        let any = 0b1111;
        assert_eq!(assign(&[item(any, 1, &[1]), item(0b0100, 1, &[])], 4), Some(vec![3, 2]));
        assert_eq!(assign(&[item(any, 1, &[1]), item(0b1000, 1, &[])], 4), None);
        assert_eq!(assign(&[item(any, 1, &[]), item(any, 2, &[0])], 3), Some(vec![0, 1]));
        assert_eq!(assign(&[item(0b0010, 1, &[]), item(any, 2, &[])], 3), None);
        assert_eq!(assign(&vec![item(any, 1, &[]); 5], 4), None);
    }
}
