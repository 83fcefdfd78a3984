// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which part of the old graph corresponds to which part of the new one: decided by names and types
//! alone, before anything is changed.

use super::report::{Moved, NotKept, Reason, Replacement};
use crate::device::Transfer;
use crate::layouts::Layouts;
use freeport_native::manifest::{ElementInfo, InstanceInfo, TableInfo, VariableInfo};
use freeport_native::{Manifest, Place};

/// Two corresponding parts.
pub(super) struct Pair<T> {
    pub old: T,
    pub new: T,
    /// Name for the report.
    pub name: String,
}

/// All corresponding parts, and those without a counterpart.
#[derive(Default)]
pub(super) struct Plan {
    /// Variables, with the number of their elements.
    pub variables: Vec<(Pair<Place>, u64)>,
    pub tables: Vec<Pair<Place>>,
    /// Instances with the same inputs.
    pub instances: Vec<Pair<usize>>,
    pub new: Vec<String>,
    pub not_kept: Vec<NotKept>,
    endpoints: Vec<Waiting>,
    channels: Vec<Waiting>,
}

/// A place in the old graph where frames or items may wait, and its counterpart.
struct Waiting {
    name: String,
    old: usize,
    new: Option<usize>,
}

/// The layouts of the old and of the new program.
type BothLayouts<'l> = Option<(&'l Layouts, &'l Layouts)>;

impl Plan {
    pub fn of(old: &Manifest, new: &Manifest, layouts: BothLayouts<'_>) -> Self {
        let mut plan = Self::default();
        for (at, instance) in old.instances.iter().enumerate() {
            let element = &old.elements[instance.element];
            match new.instances.iter().position(|it| it.name == instance.name) {
                Some(found) => {
                    let info = &new.elements[new.instances[found].element];
                    let pair = Pair { old: at, new: found, name: instance.name.clone() };
                    plan.pair(&pair, element, info, layouts);
                    if element.inputs == info.inputs {
                        plan.instances.push(pair);
                    }
                }
                None => plan.not_kept.extend(
                    paths(instance, element)
                        .map(|path| NotKept { path, reason: Reason::NoInstance }),
                ),
            }
        }
        for instance in &new.instances {
            let element = &new.elements[instance.element];
            let is_kept = |path: &String| {
                let mut variables = plan.variables.iter().map(|(pair, _)| &pair.name);
                variables.any(|it| it == path) || plan.tables.iter().any(|it| it.name == *path)
            };
            let begun: Vec<String> = paths(instance, element).filter(|it| !is_kept(it)).collect();
            plan.new.extend(begun);
        }
        plan.endpoints = old
            .endpoints
            .iter()
            .enumerate()
            .map(|(at, endpoint)| Waiting {
                name: endpoint.name.clone(),
                old: at,
                new: new.endpoints.iter().position(|it| it == endpoint),
            })
            .collect();
        plan.channels = old
            .channels
            .iter()
            .enumerate()
            .map(|(at, channel)| Waiting {
                name: channel.name.clone(),
                old: at,
                new: new
                    .channels
                    .iter()
                    .position(|it| it.name == channel.name && it.item == channel.item),
            })
            .filter(|it| old.channels[it.old].endpoint.is_none())
            .collect();
        plan
    }

    /// Pairs the variables and tables of an instance.
    fn pair(
        &mut self,
        pair: &Pair<usize>,
        old: &ElementInfo,
        new: &ElementInfo,
        layouts: BothLayouts<'_>,
    ) {
        let place = |at: usize, found: usize, name: &str| Pair {
            old: (pair.old, at),
            new: (pair.new, found),
            name: format!("{}.{name}", pair.name),
        };
        for (at, variable) in old.variables.iter().enumerate() {
            let found = new.variables.iter().position(|it| it.name == variable.name);
            let same = found.ok_or(Reason::NoName).and_then(|found| {
                compare_variables(variable, &new.variables[found])?;
                let key = |element: &ElementInfo| (element.name.clone(), variable.name.clone());
                compare_layouts(layouts, |layouts, is_new| {
                    layouts.variables.get(&key(if is_new { new } else { old })).cloned()
                })?;
                Ok(found)
            });
            match same {
                Ok(found) => {
                    self.variables.push((place(at, found, &variable.name), variable.depth));
                }
                Err(reason) => self.drop(&pair.name, &variable.name, reason),
            }
        }
        for (at, table) in old.tables.iter().enumerate() {
            let found = new.tables.iter().position(|it| it.name == table.name);
            let same = found.ok_or(Reason::NoName).and_then(|found| {
                compare_tables(table, &new.tables[found])?;
                let key = |element: &ElementInfo| (element.name.clone(), table.name.clone());
                compare_layouts(layouts, |layouts, is_new| {
                    layouts.tables.get(&key(if is_new { new } else { old })).cloned()
                })?;
                Ok(found)
            });
            match same {
                Ok(found) => self.tables.push(place(at, found, &table.name)),
                Err(reason) => self.drop(&pair.name, &table.name, reason),
            }
        }
    }

    fn drop(&mut self, instance: &str, name: &str, reason: Reason) {
        self.not_kept.push(NotKept { path: format!("{instance}.{name}"), reason });
    }

    /// Records in `report` what will become of the frames and items that wait in `old`.
    pub fn foresee(
        &self,
        old: &mut dyn Transfer,
        new: &mut dyn Transfer,
        report: &mut Replacement,
    ) {
        for place in &self.endpoints {
            let count = old.waiting_frames(place.old);
            let room = if place.new.is_some() { usize::MAX } else { 0 };
            report.frames.extend(moved(&place.name, count, count.min(room)));
        }
        for place in &self.channels {
            let count = old.waiting_items(place.old);
            let room = place.new.map_or(0, |at| new.item_room(at));
            report.items.extend(moved(&place.name, count, count.min(room)));
        }
    }

    /// Moves the waiting frames and items, and corrects `report` where fewer could be moved than
    /// expected.
    pub fn carry(&self, old: &mut dyn Transfer, new: &mut dyn Transfer, report: &mut Replacement) {
        for pair in &self.instances {
            new.set_mask(pair.new, old.mask(pair.old));
        }
        report.frames.clear();
        report.items.clear();
        for place in &self.endpoints {
            let waiting = old.take_frames(place.old);
            let count = waiting.count();
            let given = place.new.map_or(0, |at| new.give_frames(at, waiting));
            report.frames.extend(moved(&place.name, count, given));
        }
        for place in &self.channels {
            let waiting = old.take_items(place.old);
            let count = waiting.items.len();
            let given = place.new.map_or(0, |at| new.give_items(at, waiting));
            report.items.extend(moved(&place.name, count, given));
        }
    }
}

fn moved(name: &str, count: usize, carried: usize) -> Option<Moved> {
    let name = name.to_owned();
    (count > 0).then(|| Moved { name, carried: carried as u64, lost: (count - carried) as u64 })
}

/// Names the variables and tables of an instance.
fn paths<'m>(
    instance: &'m InstanceInfo,
    element: &'m ElementInfo,
) -> impl Iterator<Item = String> + 'm {
    let variables = element.variables.iter().map(|it| &it.name);
    let names = variables.chain(element.tables.iter().map(|it| &it.name));
    names.map(|name| format!("{}.{name}", instance.name))
}

fn compare_variables(old: &VariableInfo, new: &VariableInfo) -> Result<(), Reason> {
    let of = |it: &VariableInfo| match it.depth {
        1 => format!("{} bits", it.width),
        depth => format!("{depth} elements of {} bits", it.width),
    };
    compare((old.width, old.depth) == (new.width, new.depth), of(old), of(new))
}

/// Tables of another capacity are kept as far as there is room.
fn compare_tables(old: &TableInfo, new: &TableInfo) -> Result<(), Reason> {
    let of = |it: &TableInfo| {
        format!("a {} table of {} bits under {}", it.kind, it.value_bits, it.key_bits)
    };
    compare(of(old) == of(new), of(old), of(new))
}

fn compare(is_same: bool, was: String, is: String) -> Result<(), Reason> {
    if is_same { Ok(()) } else { Err(Reason::OtherType { was, is }) }
}

/// Compares the meaning of the bits, where both front ends provide it.
fn compare_layouts<L: PartialEq>(
    layouts: BothLayouts<'_>,
    find: impl Fn(&Layouts, bool) -> Option<L>,
) -> Result<(), Reason> {
    let Some((old, new)) = layouts else { return Ok(()) };
    match (find(old, false), find(new, true)) {
        (Some(old), Some(new)) if old != new => Err(Reason::OtherLayout),
        _ => Ok(()),
    }
}
