// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Prediction of the large-memory accesses that an element makes when it takes the next item of a
//! port, computed from the item alone, or also from memory that was prefetched in a first round.
//!
//! A back end runs an address slice ahead of the firing to prefetch the memory: straight-line code
//! without effects that computes the index of each access. The result may be wrong, since the slice
//! does not evaluate every condition on the path to an access, and uses the current state. It must
//! only be used as a hint.
//!
//! An access is left out if it follows another one to the same memory and depends on the contents
//! of that memory: such as the second slot of a key, needed only if the key is not in the first.

use super::slicer::{Facts, Slicer, tidy};
use crate::{
    ElementId, Function, Item, ObjectId, ObjectRef, Op, PortId, Program, TableId, Term, Type,
    ValueId,
};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum accesses of a slice. The processor overlaps the accesses of one firing by itself, and
/// prefetched lines have to stay in the nearest cache until the firing.
const MAX_ACCESSES: usize = 8;

/// Maximum operations of a second-round slice: each is executed twice more.
const MAX_SECOND_OPERATIONS: usize = 32;

/// Sizes above which memory is worth a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LargeMemory {
    /// Total bytes of all memory that an element's accesses reach.
    pub all_bytes: u64,
    /// Bytes of each object or table; smaller ones are not prefetched.
    pub each_bytes: u64,
}

/// Sizes that do not stay in the nearest caches without prefetching.
impl Default for LargeMemory {
    fn default() -> Self {
        Self { all_bytes: 64 << 10, each_bytes: 4 << 10 }
    }
}

/// Straight-line code that predicts accesses to large memory. See the module's documentation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressSlice {
    /// Port whose next item the slice reads.
    pub port: PortId,
    /// Whether it uses the item alone, or also memory that a first slice has prefetched.
    pub round: Round,
    /// One block of pure operations, a peek at the port, and loads of small state, in the second
    /// round also of large state. An index out of range gives 0 here and is not counted.
    pub function: Function,
    /// Predicted accesses, in the order of the element's code.
    pub accesses: Vec<Access>,
}

/// Time at which a slice can run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Round {
    /// As soon as the item is known.
    First,
    /// Once the memory that the first slice prefetched has arrived.
    Second,
}

/// An access to large memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Memory accessed.
    pub place: Place,
    /// Index, byte offset or key; a value of the slice.
    pub at: ValueId,
    /// A bit of the slice that must be 1 for the access to happen, if there is one.
    pub when: Option<ValueId>,
}

/// Memory that an access reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Bytes of the element `at`; for an object addressed by byte, relative to the offset `at`.
    Object {
        /// State object of the element.
        object: ObjectId,
        /// First byte.
        first: u32,
        /// Last byte.
        last: u32,
    },
    /// The entry with the key `at`.
    Table(TableId),
}

/// An access in the handler.
struct Found {
    block: usize,
    place: Place,
    at: ValueId,
}

/// An access whose location a slice can compute.
struct Reported {
    access: Access,
    block: usize,
    /// Branches on the path to it that the slice cannot evaluate.
    unknown: usize,
}

/// Computes the slices of an element: for each record port that determines accesses to large
/// memory, the first slice, followed by the second if there is one. Expects a program after the
/// passes, whose handlers are single functions without calls.
pub fn address_slices(
    program: &Program,
    element: ElementId,
    large: LargeMemory,
) -> Vec<AddressSlice> {
    let ports = &program.element(element).inputs;
    let is_record = |port: &PortId| matches!(ports[port.index()].item, Item::Bits(_));
    let mut records = (0..ports.len()).map(PortId::new).filter(is_record).peekable();
    let handler = program.function(program.element(element).handler);
    let suspends = handler.blocks.iter().any(|it| matches!(it.term, Term::Suspend { .. }));
    // After a suspension, the next item is not the one that earlier values were computed from.
    if records.peek().is_none() || suspends {
        return vec![];
    }
    let facts = Facts::of(program, handler);
    let found = accesses(program, element, &facts, large.each_bytes);
    let mut slices = vec![];
    for port in records {
        let reported = tell(&facts, &found, port, BTreeSet::new());
        let Some(first) = slice(port, Round::First, reported) else { continue };
        let mut bytes = BTreeMap::new();
        bytes.extend(first.accesses.iter().map(|it| it.place.whole(program, element)));
        if bytes.values().fold(0, |sum: u64, it| sum.saturating_add(*it)) < large.all_bytes {
            continue;
        }
        let objects = first.accesses.iter().filter_map(|it| match it.place {
            Place::Object { object, .. } => Some(object),
            Place::Table(_) => None,
        });
        let reported = tell(&facts, &found, port, objects.collect());
        let second = slice(port, Round::Second, reported);
        slices.push(first);
        slices.extend(second.filter(|it| operations(it) <= MAX_SECOND_OPERATIONS));
    }
    slices
}

fn operations(slice: &AddressSlice) -> usize {
    slice.function.blocks[0].insts.len()
}

/// Computes the accesses that can be predicted, with loads from the objects `asked`; if there are
/// any, only accesses that depend on such a load.
fn tell(
    facts: &Facts<'_>,
    found: &[Found],
    port: PortId,
    asked: BTreeSet<ObjectId>,
) -> (Function, Vec<Reported>) {
    let is_second = !asked.is_empty();
    let mut slicer = Slicer::new(facts, port, asked);
    let mut placed = vec![];
    for Found { block, place, at } in found {
        let copy = slicer.copy_for(*at, *block);
        placed.extend(
            copy.filter(|at| !is_second || slicer.is_late(*at)).map(|at| (block, place, at)),
        );
    }
    let mut reported: Vec<Reported> = vec![];
    for (block, place, at) in placed {
        let condition = slicer.condition(*block);
        let same = |it: &&mut Reported| it.access.at == at && it.access.place.is_beside(*place);
        if let Some(known) = reported.iter_mut().find(same) {
            known.access.place = known.access.place.with(*place);
            if condition.unknown <= known.unknown && known.access.when != condition.value {
                known.access.when = None;
            }
            continue;
        }
        let is_fallback = reported.iter().any(|it| {
            it.access.place.is_beside(*place)
                && it.unknown < condition.unknown
                && facts.dominators.dominates(it.block, *block)
        });
        if !is_fallback && reported.len() < MAX_ACCESSES {
            let access = Access { place: *place, at, when: condition.value };
            reported.push(Reported { access, block: *block, unknown: condition.unknown });
        }
    }
    (slicer.finish(), reported)
}

/// Returns the slice for predicted accesses, if it depends on the item.
fn slice(port: PortId, round: Round, reported: (Function, Vec<Reported>)) -> Option<AddressSlice> {
    let (mut function, reported) = reported;
    let mut accesses: Vec<Access> = reported.into_iter().map(|it| it.access).collect();
    let wanted = accesses.iter_mut().flat_map(|it| [Some(&mut it.at), it.when.as_mut()]);
    tidy(&mut function, &mut wanted.flatten().collect::<Vec<_>>());
    let insts = &function.blocks[0].insts;
    let depends_on_item = insts.iter().any(|inst| matches!(inst.op, Op::Peek(_)));
    let is_slice = depends_on_item && !accesses.is_empty();
    is_slice.then_some(AddressSlice { port, round, function, accesses })
}

/// Returns all accesses of the handler to objects that are not small, and lookups in tables.
fn accesses(
    program: &Program,
    element: ElementId,
    facts: &Facts<'_>,
    least_bytes: u64,
) -> Vec<Found> {
    let function = facts.function;
    let mut found = vec![];
    for block in facts.dominators.order().iter().copied() {
        for inst in &function.blocks[block].insts {
            let width = |value: ValueId| function.type_of(value).bits().unwrap_or(1);
            let object = |object, first, last| match object {
                ObjectRef::State(object) => Some(Place::Object { object, first, last }),
                ObjectRef::Local(_) => None,
            };
            let access = match &inst.op {
                Op::Load { object: of, index, lo, width } => {
                    object(*of, lo / 8, (lo + width - 1) / 8).map(|place| (place, *index))
                }
                Op::Store { object: of, index, lo, value, .. } => {
                    object(*of, lo / 8, (lo + width(*value) - 1) / 8).map(|place| (place, *index))
                }
                Op::LoadBytes { object: of, offset, bytes } => {
                    object(*of, 0, bytes - 1).map(|place| (place, *offset))
                }
                Op::StoreBytes { object: of, offset, value } => {
                    object(*of, 0, (width(*value) - 1) / 8).map(|place| (place, *offset))
                }
                Op::TableLookup { table, key } => match function.type_of(*table) {
                    Type::Handle(table) => Some((Place::Table(table), *key)),
                    _ => None,
                },
                _ => None,
            };
            let is_large = |place: Place| place.whole(program, element).1 >= least_bytes;
            if let Some((place, at)) = access.filter(|(place, _)| is_large(*place)) {
                found.push(Found { block, place, at });
            }
        }
    }
    found
}

impl Place {
    /// Returns the object or table it belongs to, and the size of that in bytes.
    fn whole(self, program: &Program, element: ElementId) -> ((bool, u32), u64) {
        let element = program.element(element);
        let bytes = |bits: u32| u64::from(bits.div_ceil(8));
        match self {
            Place::Object { object, .. } => {
                let found = element.state.get(object.index());
                let size = found.map_or(0, |it| bytes(it.elem_bits).saturating_mul(it.depth));
                ((false, object.0), size)
            }
            Place::Table(table) => {
                let found = element.tables.get(table.index());
                let size = |it: &crate::Table| bytes(it.key_bits) + bytes(it.value_bits);
                ((true, table.0), found.map_or(0, |it| size(it).saturating_mul(it.capacity)))
            }
        }
    }

    /// Returns whether both are in the same object or table.
    fn is_beside(self, other: Place) -> bool {
        match (self, other) {
            (Place::Object { object: a, .. }, Place::Object { object: b, .. }) => a == b,
            (Place::Table(a), Place::Table(b)) => a == b,
            _ => false,
        }
    }

    /// Returns the range from the first byte of either to the last byte of either.
    fn with(self, other: Place) -> Place {
        match (self, other) {
            (
                Place::Object { object, first, last },
                Place::Object { first: other_first, last: other_last, .. },
            ) => {
                Place::Object { object, first: first.min(other_first), last: last.max(other_last) }
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    /// Returns the slices of an element with these ports, state and handler.
    fn slices(parts: &str) -> Vec<AddressSlice> {
        let text = format!("program p\nelement E {{\n{parts}\n}}\ngraph {{}}\n");
        let program = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        address_slices(&program, ElementId(0), LargeMemory::default())
    }

    const TABLE: &str = "in in: bits<64>\nin other: bits<32>\nout out: bits<64>\n\
                         global big: bits<128>[65536]\nglobal rest: bits<8>[16384]\n\
                         reg seed: bits<32>[1]\n";

    /// Returns the slices of a handler over `TABLE`.
    fn of(body: &str) -> Vec<AddressSlice> {
        slices(&format!("{TABLE}handler {{\nentry:\n%zero = const 0:1\n{body}\n}}"))
    }

    fn operations(slice: &AddressSlice) -> Vec<String> {
        slice.function.blocks[0].insts.iter().map(|inst| format!("{:?}", inst.op)).collect()
    }

    #[test]
    fn a_hash_of_the_item_and_a_seed_is_sliced() {
        let found = of("%x = take in\n%low = trunc %x to 32\n%seed = load seed[%zero]\n\
                        %i = mul %low, %seed\n%a = load big[%i][0 +: 8]\n\
                        %b = load big[%i][96 +: 32]\n%y = add %x, %x\nput out, %y\ndone");
        let [slice] = &found[..] else { panic!("one port: {found:?}") };
        assert_eq!(slice.port, PortId(0));
        let operations = operations(slice);
        assert_eq!(operations.len(), 5, "what the address does not need is left out");
        assert!(operations[0].starts_with("Peek") || operations[1].starts_with("Peek"));
        let place = Place::Object { object: ObjectId(0), first: 0, last: 15 };
        let access = Access { place, at: ValueId(4), when: None };
        assert_eq!(slice.accesses, [access], "two are one place");
    }

    #[test]
    fn memory_that_changes_and_oracles_end_a_slice() {
        let unsteady = "%x = take in\n%low = trunc %x to 32\nstore seed[%zero], %low\n\
                        %seed = load seed[%zero]\n%a = load big[%seed]\ndone";
        assert_eq!(of(unsteady), []);
        assert_eq!(of("%x = take in\n%r = random\n%i = xor %x, %r\n%a = load big[%i]\ndone"), []);
    }

    #[test]
    fn what_memory_says_is_sliced_in_a_second_round_and_no_further() {
        let chain = "%x = take in\n%i = load big[%x][0 +: 32]\n%j = load rest[%i]\n\
                     %k = zext %j to 32\n%a = load big[%k]\ndone";
        let found = of(chain);
        let rounds: Vec<_> = found.iter().map(|it| (it.round, it.accesses.len())).collect();
        assert_eq!(rounds, [(Round::First, 1), (Round::Second, 1)]);
        let place = Place::Object { object: ObjectId(1), first: 0, last: 0 };
        assert_eq!(found[1].accesses[0].place, place);
        let stored = of(&chain.replace("done", "store big[%x], %a\ndone"));
        assert_eq!(stored.len(), 1, "memory that the handler changes says nothing");
        let mut long = String::from("%x = take in\n%v0 = load big[%x][0 +: 64]\n");
        for at in 1..40 {
            long += &format!("%v{at} = xor %v{}, %x\n", at - 1);
        }
        assert_eq!(
            of(&(long + "%a = load rest[%v39]\ndone")).len(),
            1,
            "it costs more than it saves"
        );
    }

    #[test]
    fn a_second_choice_is_left_out_and_known_conditions_are_kept() {
        let way = |condition: &str, second: &str| {
            of(&format!(
                "%x = take in\n%a = load big[%x]\n{condition}\nbr %c, other, end\n\
                 other:\n%y = not %x\n%b = load {second}[%y]\njump end\nend:\ndone"
            ))
        };
        let by_memory = "%c = extract %a[0 +: 1]";
        assert_eq!(way(by_memory, "big")[0].accesses.len(), 1, "if it is not at the first place");
        assert_eq!(way(by_memory, "rest")[0].accesses.len(), 2, "other memory is no second choice");
        let by_item = "%c = extract %x[0 +: 1]";
        let conditions = |of: &AddressSlice| -> Vec<bool> {
            of.accesses.iter().map(|it| it.when.is_some()).collect()
        };
        assert_eq!(conditions(&way(by_item, "big")[0]), [false, true]);
    }

    #[test]
    fn each_port_has_its_own_and_two_together_have_none() {
        let found = of("%x = take in\n%y = take other\n%a = load big[%x]\n%b = load big[%y]\n\
                        %z = zext %y to 64\n%i = add %x, %z\n%c = load big[%i]\ndone");
        let ports: Vec<_> = found.iter().map(|it| (it.port.0, it.accesses.len())).collect();
        assert_eq!(ports, [(0, 1), (1, 1)]);
    }

    #[test]
    fn small_memory_and_constant_places_need_none() {
        assert_eq!(of("%x = take in\n%a = load rest[%x]\ndone"), [], "16 KiB");
        assert_eq!(of("%x = take in\n%a = load big[%zero]\ndone"), []);
        let with_large = of("%x = take in\n%a = load rest[%x]\n%b = load big[%x]\ndone");
        assert_eq!(with_large[0].accesses.len(), 2, "what counts is the sum");
    }

    #[test]
    fn ways_that_part_become_a_select() {
        let found = of("%x = take in\n%k = extract %x[0 +: 8]\n\
                        switch %k { 6 -> tcp, 17 -> udp, else -> none }\n\
                        tcp:\n%p = extract %x[8 +: 16]\njump join(%p)\n\
                        udp:\n%q = extract %x[24 +: 16]\njump join(%q)\n\
                        none:\n%n = const 0:16\njump join(%n)\n\
                        join(%i: bits<16>):\n%a = load big[%i]\ndone");
        let operations = operations(&found[0]);
        let selects = operations.iter().filter(|it| it.starts_with("Select")).count();
        assert_eq!(selects, 2, "{operations:?}");
    }

    #[test]
    fn a_condition_that_is_not_known_ends_a_slice() {
        let found = of("%x = take in\n%c = load big[%zero][0 +: 1]\nbr %c, one, two\n\
                        one:\n%p = extract %x[8 +: 16]\njump join(%p)\n\
                        two:\n%q = extract %x[24 +: 16]\njump join(%q)\n\
                        join(%i: bits<16>):\n%a = load big[%i]\ndone");
        assert_eq!(found, []);
    }

    #[test]
    fn of_a_loop_the_first_round_is_meant_and_nothing_after_it() {
        let looped = |after: &str| {
            of(&format!(
                "%x = take in\n%k = trunc %x to 32\njump head(%k)\n\
                 head(%i: bits<32>) loop(bound 9):\n%a = load big[%i][0 +: 1]\n\
                 br %a, body, end\n\
                 body:\n%one = const 1:32\n%next = add %i, %one\njump head(%next)\n\
                 end:\n{after}\ndone"
            ))
        };
        assert_eq!(looped("")[0].accesses.len(), 1);
        let with_more = looped("%b = load rest[%i]");
        assert_eq!(with_more[0].accesses.len(), 1, "where the loop ends is not known");
    }

    #[test]
    fn long_computations_and_deep_chains_have_none() {
        let chain = |count: usize| {
            let mut body = String::from("%x = take in\n%v0 = add %x, %x\n");
            for at in 1..count {
                body += &format!("%v{at} = xor %v{}, %x\n", at - 1);
            }
            of(&(body + &format!("%a = load big[%v{}]\ndone", count - 1)))
        };
        assert_eq!(chain(100).len(), 1);
        assert_eq!(chain(300), []);
        assert_eq!(chain(20_000), []);
    }

    #[test]
    fn lookups_in_large_tables_count() {
        let table = |capacity: u32| {
            slices(&format!(
                "in in: bits<64>\ntable t: hash bits<64> -> bits<64> [{capacity}]\nhandler {{\n\
                 entry:\n%x = take in\n%t = handle t\n%v = lookup %t, %x\ndone\n}}"
            ))
        };
        assert_eq!(table(16), []);
        let found = table(65536);
        assert_eq!(found[0].accesses[0].place, Place::Table(TableId(0)));
    }
}
