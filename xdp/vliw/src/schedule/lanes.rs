// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Assigns lanes to the operations of a row: some need a certain lane, some must come after others.

/// An operation to be placed in a row.
#[derive(Clone, Debug)]
pub struct Item {
    /// Lanes in which it may begin, as a bit mask.
    pub allowed: u16,
    /// Number of lanes that it occupies.
    pub width: usize,
    /// Items of the row, by index, that must be in earlier lanes.
    pub behind: Vec<usize>,
    /// Whether a late lane is preferred.
    pub prefers_late: bool,
}

/// Returns a lane for each item of a row of `lanes`, if there is an assignment.
pub fn assign(items: &[Item], lanes: usize) -> Option<Vec<usize>> {
    if items.iter().map(|item| item.width).sum::<usize>() > lanes {
        return None;
    }
    let mut assigned = vec![usize::MAX; items.len()];
    place(items, lanes, 0, 0, &mut assigned).then_some(assigned)
}

/// Places items from index `at` on in lanes that are not `taken`.
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

/// Returns whether item `at` in this lane is in the required order with the items that already have
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
