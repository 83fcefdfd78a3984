// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Exhaustive search of all reachable states.

use super::world::{Bounds, NAMES, World};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Size of the explored space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Explored {
    /// Number of states.
    pub states: usize,
    /// Number of steps between states.
    pub steps: usize,
}

/// How a state was reached first: the previous state, and the number of the step from there.
type Origin = (u32, u32);

const NOWHERE: u32 = u32::MAX;

/// Explores all states. The end has to be reachable from each one: so neither side waits
/// indefinitely, asleep or awake.
///
/// # Errors
/// The steps to an invalid state, and a description of the error.
pub fn explore(bounds: &Bounds) -> Result<Explored, String> {
    let mut search = Search::default();
    let mut level = vec![];
    let initial = World::initial(bounds)?;
    for (number, world) in initial.into_iter().enumerate() {
        level.extend(search.add(world, (NOWHERE, number as u32)));
    }
    while !level.is_empty() {
        let mut following = vec![];
        for (number, world) in level {
            let sound = world.is_sound(bounds);
            sound.map_err(|wrong| search.tell(bounds, number, &wrong))?;
            if world.is_final() {
                search.ends.push(number);
                continue;
            }
            let next = world.next(bounds);
            let next = next.map_err(|wrong| search.tell(bounds, number, &wrong))?;
            for (choice, (_, world)) in next.into_iter().enumerate() {
                following.extend(search.add(world, (number, choice as u32)));
            }
        }
        level = following;
    }
    match search.stuck() {
        Some(number) => Err(search.tell(bounds, number, "from here it cannot end")),
        None => Ok(Explored { states: search.origins.len(), steps: search.steps.len() }),
    }
}

#[derive(Default)]
struct Search {
    /// The numbers of states by hashes so long that no two states share one.
    numbers: HashMap<u128, u32>,
    origins: Vec<Origin>,
    steps: Vec<(u32, u32)>,
    ends: Vec<u32>,
}

impl Search {
    /// Adds a state, and returns it if it is new.
    fn add(&mut self, world: World, origin: Origin) -> Option<(u32, World)> {
        let number = self.origins.len() as u32;
        let (number, is_new) = match self.numbers.entry(hash(&world)) {
            Entry::Occupied(known) => (*known.get(), false),
            Entry::Vacant(place) => (*place.insert(number), true),
        };
        if origin.0 != NOWHERE {
            self.steps.push((origin.0, number));
        }
        if is_new {
            self.origins.push(origin);
        }
        is_new.then_some((number, world))
    }

    /// Returns a state from which no path leads to an end.
    fn stuck(&self) -> Option<u32> {
        let states = self.origins.len();
        // The steps to each state, grouped by that state.
        let mut starts = vec![0_u32; states + 1];
        self.steps.iter().for_each(|step| starts[step.1 as usize + 1] += 1);
        for state in 0..states {
            starts[state + 1] += starts[state];
        }
        let mut places = starts.clone();
        let mut from = vec![0; self.steps.len()];
        for &(before, behind) in &self.steps {
            let place = &mut places[behind as usize];
            from[*place as usize] = before;
            *place += 1;
        }
        let mut can_end = vec![false; states];
        let mut open = self.ends.clone();
        while let Some(state) = open.pop() {
            if !std::mem::replace(&mut can_end[state as usize], true) {
                let (start, end) = (starts[state as usize], starts[state as usize + 1]);
                open.extend(&from[start as usize..end as usize]);
            }
        }
        can_end.iter().position(|can_end| !can_end).map(|state| state as u32)
    }

    /// Describes how a state is reached.
    fn tell(&self, bounds: &Bounds, state: u32, wrong: &str) -> String {
        let mut choices = vec![];
        let mut at = state;
        let first = loop {
            let (before, choice) = self.origins[at as usize];
            if before == NOWHERE {
                break choice;
            }
            choices.push(choice);
            at = before;
        };
        let mut reported = format!("{wrong}\nafter {:?}:\n", bounds.before[first as usize]);
        let mut initial = World::initial(bounds).expect("it was there");
        let mut world = initial.swap_remove(first as usize);
        for choice in choices.into_iter().rev() {
            let mut next = world.next(bounds).expect("it was there");
            let ((side, what), behind) = next.swap_remove(choice as usize);
            _ = writeln!(reported, "  {}: {what}", NAMES[side]);
            world = behind;
        }
        reported
    }
}

fn hash(world: &World) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        world.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}
