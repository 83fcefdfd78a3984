// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Analysis of which packets the values of a function may be, to avoid copies.
//!
//! Every operation that reads a packet from a port, or creates one, is a site, with storage for one
//! packet. A value is a pointer to such storage. The sites that each value may point to determine
//! which puts may give the packet away, because nothing uses it afterwards, and which peeks may
//! view it in place, because nothing changes it.

use super::functions::suspends;
use super::{Emitter, has_fixed_mask};
use crate::Error;
use freeport_ir::analysis::{ControlFlow, Dominators, Loops, reverse_post_order};
use freeport_ir::{ElementId, Function, FunctionId, Item, Op, PortId, Program, Type, ValueId};
use std::collections::{BTreeSet, HashMap};

/// Position of an operation: its block and its index there.
pub(super) type Place = (usize, usize);

/// Stands for the packet of a caller among the sites that a value may point to.
const OUTSIDE: usize = usize::MAX;

/// An operation that produces a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Site {
    pub place: Place,
    from: Origin,
}

/// Origin of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    Taken(PortId),
    Peeked(PortId),
    New,
}

/// Result of the analysis of a function.
#[derive(Default)]
pub(super) struct PacketFlow {
    pub sites: Vec<Site>,
    /// By value: the sites that it may point to.
    points_to: HashMap<ValueId, BTreeSet<usize>>,
    moves: BTreeSet<Place>,
    views: BTreeSet<Place>,
}

/// Returns the sites of a function, in the order of their blocks.
pub(super) fn sites(program: &Program, function: &Function) -> Vec<Site> {
    let inputs = function.owner.map_or(&[][..], |owner| &program.element(owner).inputs);
    let is_packet = |port: PortId| {
        matches!(inputs.get(port.index()).map(|it| it.item), Some(Item::Packet { .. }))
    };
    let mut blocks = reverse_post_order(function);
    blocks.sort_unstable();
    let insts = blocks.into_iter().flat_map(|block| {
        let insts = function.blocks[block].insts.iter().enumerate();
        insts.map(move |(at, inst)| ((block, at), &inst.op))
    });
    insts
        .filter_map(|(place, op)| {
            match op {
                Op::Take(port) if is_packet(*port) => Some(Origin::Taken(*port)),
                Op::Peek(port) if is_packet(*port) => Some(Origin::Peeked(*port)),
                Op::NewPacket { .. } => Some(Origin::New),
                _ => None,
            }
            .map(|from| Site { place, from })
        })
        .collect()
}

impl PacketFlow {
    /// # Errors
    /// A packet carried from iteration to iteration by a loop, or returned by a function.
    pub fn of(emitter: &Emitter<'_>, id: FunctionId) -> Result<Self, Error> {
        let function = emitter.function(id);
        if function.result == Some(Type::Packet) {
            return Err(emitter.unsupported(function, "a packet as the result of a function"));
        }
        if function.values.iter().all(|value| value.ty != Type::Packet) {
            let sites = sites(emitter.program, function);
            return Ok(Self { sites, ..Self::default() });
        }
        let mut this = Self { sites: sites(emitter.program, function), ..Self::default() };
        this.points_to = points_to(function, &this.sites);
        this.check_loops(emitter, function)?;
        let uses = Uses::of(function);
        for (place, op) in all_insts(function) {
            if let Op::Put { value, .. } = op
                && this.is_last(&uses, place, *value)
            {
                this.moves.insert(place);
            }
        }
        if emitter.is_handler(id) && may_have_views(function) {
            let views = this.sites.iter().filter(|site| this.is_view(function, &uses, site));
            this.views = views.map(|site| site.place).collect();
        }
        Ok(this)
    }

    /// Returns the number of the site at a position.
    pub fn site_at(&self, place: Place) -> Option<usize> {
        self.sites.iter().position(|site| site.place == place)
    }

    /// Returns whether a put gives its packet away.
    pub fn moves(&self, place: Place) -> bool {
        self.moves.contains(&place)
    }

    /// Returns whether a peek views its packet in place.
    pub fn is_view_at(&self, place: Place) -> bool {
        self.views.contains(&place)
    }

    /// Returns the sites that own their packets.
    pub fn owners(&self) -> impl Iterator<Item = usize> {
        let owns = |(_, site): &(usize, &Site)| !self.views.contains(&site.place);
        self.sites.iter().enumerate().filter(owns).map(|(at, _)| at)
    }

    fn may_be_same(&self, left: ValueId, right: ValueId) -> bool {
        let sets = (self.points_to.get(&left), self.points_to.get(&right));
        matches!(sets, (Some(left), Some(right)) if !left.is_disjoint(right))
    }

    fn may_be(&self, value: ValueId, is_wanted: impl Fn(&Site) -> bool) -> bool {
        let set = self.points_to.get(&value);
        set.is_some_and(|set| set.iter().any(|at| self.sites.get(*at).is_some_and(&is_wanted)))
    }

    /// Returns whether nothing uses the packet of a put afterwards.
    fn is_last(&self, uses: &Uses<'_>, place: Place, put: ValueId) -> bool {
        let is_own = self.points_to.get(&put).is_some_and(|set| !set.contains(&OUTSIDE));
        is_own && !uses.after(place).any(|(_, value)| self.may_be_same(put, value))
    }

    /// Returns whether a peeked packet is only read, and always before anything else happens to the
    /// packet at its port.
    fn is_view(&self, function: &Function, uses: &Uses<'_>, site: &Site) -> bool {
        let Origin::Peeked(peeked) = site.from else { return false };
        let of_this = |value| self.may_be(value, |it| it == site);
        let of_port = |value| self.may_be(value, |it| it.from == Origin::Taken(peeked));
        let looks = |op: &Op| matches!(op, Op::PacketLength(_) | Op::PacketLoad { .. });
        let is_looked_at_after =
            |place| uses.after(place).any(|(op, value)| looks(op) && of_this(value));
        all_insts(function).all(|(place, op)| match used_packet(op) {
            Some(value) if looks(op) || !of_this(value) => {
                looks(op) || !of_port(value) || !is_looked_at_after(place)
            }
            Some(_) => false,
            // A previously taken packet ends when another one is taken to the same storage.
            None => match op {
                Op::Take(port) if *port == peeked => {
                    !can_come_again(function, place.0) || !is_looked_at_after(place)
                }
                _ => true,
            },
        })
    }

    /// Returns the input from which come all packets that the handler puts to `port`, if it changes
    /// only their bytes.
    fn passed(&self, function: &Function, port: PortId) -> Option<PortId> {
        let mut of_port = all_insts(function).filter_map(|(place, op)| match op {
            Op::Put { port: to, value } if *to == port => Some((place, *value)),
            _ => None,
        });
        let (_, first) = of_port.clone().next()?;
        let set = self.points_to.get(&first).filter(|set| set.len() == 1)?;
        let site = self.sites.get(*set.first()?)?;
        let Origin::Taken(input) = site.from else { return None };
        let is_same = |value| self.points_to.get(&value) == Some(set);
        let takes = self.sites.iter().filter(|it| it.from == site.from).count();
        let is_adjusted = all_insts(function).any(|(_, op)| match op {
            Op::PacketAdjustHead { packet, .. } | Op::PacketAdjustTail { packet, .. } => {
                self.may_be(*packet, |it| it == site)
            }
            Op::Call { .. } => true,
            _ => false,
        });
        let is_only = takes == 1 && !can_come_again(function, site.place.0);
        let is_passed = of_port.all(|(place, value)| self.moves(place) && is_same(value));
        (is_only && !is_adjusted && is_passed).then_some(input)
    }

    fn check_loops(&self, emitter: &Emitter<'_>, function: &Function) -> Result<(), Error> {
        for found in Loops::of(function, &Dominators::of(function)).loops {
            for param in &function.blocks[found.header].params {
                if self.may_be(*param, |site| found.body.contains(&site.place.0)) {
                    let what = "a packet that a loop carries from turn to turn";
                    let loc = function.blocks[found.header].term_loc;
                    return Err(emitter.unsupported_at(function, what, loc));
                }
            }
        }
        Ok(())
    }
}

/// Returns, by output of an element, the input whose packets it forwards there. They need not be
/// staged: the descriptor in the input's ring or from the host is still valid when they leave.
pub(super) fn passed(emitter: &Emitter<'_>, id: ElementId) -> Vec<Option<PortId>> {
    let element = emitter.program.element(id);
    let handler = emitter.function(element.handler);
    let is_ready = element.await_all || element.inputs.len() == 1;
    let puts_elsewhere = |port: PortId| {
        let functions = emitter.program.functions.iter();
        let mut others = functions.filter(|it| it.owner == Some(id) && !std::ptr::eq(*it, handler));
        others.any(|function| {
            let puts = |op: &Op| matches!(op, Op::Put { port: to, .. } if *to == port);
            all_insts(function).any(|(_, op)| puts(op))
        })
    };
    // Reading a port without an item would give another packet.
    let flow = match is_ready && has_fixed_mask(emitter.program, element) && !suspends(handler) {
        true => PacketFlow::of(emitter, element.handler).ok(),
        false => None,
    };
    let of = |at| {
        let port = PortId::new(at);
        flow.as_ref()?.passed(handler, port).filter(|_| !puts_elsewhere(port))
    };
    (0..element.outputs.len()).map(of).collect()
}

fn all_insts(function: &Function) -> impl Iterator<Item = (Place, &Op)> + Clone {
    let blocks = function.blocks.iter().enumerate();
    blocks.flat_map(|(block, it)| {
        it.insts.iter().enumerate().map(move |(at, inst)| ((block, at), &inst.op))
    })
}

/// Views are impossible with suspensions, which release the viewed packet, and with calls, which
/// may take it.
fn may_have_views(function: &Function) -> bool {
    let calls = all_insts(function).any(|(_, op)| matches!(op, Op::Call { .. }));
    !calls && !suspends(function)
}

fn points_to(function: &Function, sites: &[Site]) -> HashMap<ValueId, BTreeSet<usize>> {
    let mut found: HashMap<ValueId, BTreeSet<usize>> = HashMap::new();
    let is_packet = |value: &ValueId| function.type_of(*value) == Type::Packet;
    for param in function.params().iter().filter(|param| is_packet(param)) {
        found.entry(*param).or_default().insert(OUTSIDE);
    }
    for (at, site) in sites.iter().enumerate() {
        let (block, inst) = site.place;
        if let Some(result) = function.blocks[block].insts[inst].result {
            found.entry(result).or_default().insert(at);
        }
    }
    let mut flows = vec![];
    for block in &function.blocks {
        for inst in &block.insts {
            if let (Op::Select { if_true, if_false, .. }, Some(to)) = (&inst.op, inst.result) {
                flows.extend([(*if_true, to), (*if_false, to)]);
            }
        }
        for target in block.term.targets() {
            let params = &function.block(target.block).params;
            flows.extend(target.args.iter().copied().zip(params.iter().copied()));
        }
    }
    flows.retain(|(from, _)| is_packet(from));
    let mut has_changed = true;
    while std::mem::take(&mut has_changed) {
        for (from, to) in &flows {
            let more = found.get(from).cloned().unwrap_or_default();
            let set = found.entry(*to).or_default();
            let before = set.len();
            set.extend(more);
            has_changed |= set.len() > before;
        }
    }
    found
}

/// Returns the packet that an operation uses, other than to pass it on.
fn used_packet(op: &Op) -> Option<ValueId> {
    match op {
        Op::PacketLength(packet)
        | Op::PacketLoad { packet, .. }
        | Op::PacketStore { packet, .. }
        | Op::PacketAdjustHead { packet, .. }
        | Op::PacketAdjustTail { packet, .. } => Some(*packet),
        Op::Put { value, .. } => Some(*value),
        _ => None,
    }
}

/// Packet uses of a function.
struct Uses<'f> {
    function: &'f Function,
    all: Vec<(Place, &'f Op, ValueId)>,
}

impl<'f> Uses<'f> {
    fn of(function: &'f Function) -> Self {
        let mut all = vec![];
        for (place, op) in all_insts(function) {
            all.extend(used_packet(op).map(|packet| (place, op, packet)));
            if let Op::Call { args, .. } = op {
                all.extend(args.iter().map(|arg| (place, op, *arg)));
            }
        }
        Self { function, all }
    }

    /// Returns the uses reachable after `place`.
    fn after(&self, place: Place) -> impl Iterator<Item = (&'f Op, ValueId)> {
        let behind = blocks_behind(self.function, place.0);
        let is_after = move |at: Place| behind[at.0] || (at.0 == place.0 && at.1 > place.1);
        let uses = self.all.iter().filter(move |(at, ..)| is_after(*at));
        uses.map(|(_, op, value)| (*op, *value))
    }
}

/// Returns the blocks reachable from the end of `block`.
fn blocks_behind(function: &Function, block: usize) -> Vec<bool> {
    let mut is_seen = vec![false; function.blocks.len()];
    let mut left = function.successors(block);
    while let Some(at) = left.pop() {
        if !std::mem::replace(&mut is_seen[at], true) {
            left.extend(function.successors(at));
        }
    }
    is_seen
}

fn can_come_again(function: &Function, block: usize) -> bool {
    blocks_behind(function, block)[block]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    /// Returns, by output, the input that an element forwards which has the input `in` and the
    /// ports of `more`.
    fn passed_by(more: &str, handler: &str) -> Vec<Option<PortId>> {
        let text = format!(
            "program p\nelement E {{\n{more}\nin in: packet<64>\nout out: packet<64>\n\
             out bad: packet<64>\nhandler {{\nentry:\n%one = const 1:32\n%yes = const 1:1\n\
             {handler}\ndone\n}}\n}}\ngraph {{}}\n"
        );
        let program = freeport_ir::text::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        passed(&Emitter::new(&program, &Options::default()), ElementId::new(0))
    }

    #[test]
    fn a_packet_that_is_not_adjusted_passes() {
        let (first, none) = (Some(PortId::new(0)), None);
        let take = "%p = take in\n";
        let put = "put out, %p";
        let branch = "br %yes, a, b\na:\nput out, %p\ndone\nb:\nput bad, %p";
        for (more, handler, expected) in [
            ("", format!("{take}{put}"), [first, none]),
            ("", format!("{take}{branch}"), [first, first]),
            // These change the descriptor.
            ("", format!("{take}%is = adjust_head %p, %one\n{put}"), [none, none]),
            ("", format!("{take}%is = adjust_tail %p, %one\n{branch}"), [none, none]),
            // The first of two puts copies.
            ("", format!("{take}put bad, %p\n{put}"), [first, none]),
            // There may be no packet, or it is not a taken one.
            ("in other: bits<8>", format!("{take}{put}"), [none, none]),
            ("", format!("%p = new_packet %one\n{put}"), [none, none]),
            ("", format!("%p = peek in\n{put}"), [none, none]),
        ] {
            assert_eq!(passed_by(more, &handler), expected, "{more}\n{handler}");
        }
        let both = passed_by("await_all;\nin other: bits<8>", &format!("{take}{put}"));
        assert_eq!(both, [Some(PortId::new(1)), None]);
    }
}
