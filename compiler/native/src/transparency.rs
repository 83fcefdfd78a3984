// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Detection of elements that only forward the body of a packet.
//!
//! The handler is specialised to a flit that is not the first of its packet, and folded. If the
//! rest takes the flit, changes nothing, and puts the unchanged flit to ports that do not depend on
//! its contents, then all such flits of a packet take the same path, and the emitted code passes
//! them all at once.

use freeport_ir::analysis::{predecessors, reverse_post_order};
use freeport_ir::flit::{FLIT_BITS, PAD_BITS, SOP_BIT};
use freeport_ir::passes::{self, PassSet};
use freeport_ir::{
    Bits, Element, ElementId, Function, FunctionId, Graph, Inst, Item, ObjectRef, Op, Program,
    Term, Type, ValueId,
};
use std::collections::HashMap;

/// How an element handles flits after the first one of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Transparency {
    /// It processes them.
    None,
    /// It forwards those that are not the last.
    Body,
    /// It forwards all of them.
    Rest,
}

/// Determines how an element handles flits after the first one of a packet.
pub(crate) fn transparency(program: &Program, id: ElementId) -> Transparency {
    let element = program.element(id);
    let is_flit = |ports: &[freeport_ir::Port]| ports.iter().all(|port| port.item == Item::Flit);
    if element.inputs.len() != 1 || !is_flit(&element.inputs) || !is_flit(&element.outputs) {
        return Transparency::None;
    }
    // The `sop` bit alone, then also the `eop` and `pad` bits.
    let cases = [(1, Transparency::Rest), (2 + PAD_BITS, Transparency::Body)];
    let found = cases.into_iter().find(|(width, _)| {
        let special = specialised(program, element, *width);
        special.is_some_and(|handler| only_passes(&handler, *width))
    });
    found.map_or(Transparency::None, |(_, transparency)| transparency)
}

/// Specialises the handler to ready flits with `width` bits of 0 starting at `sop`; returns `None`
/// if its effects can never be skipped.
fn specialised(program: &Program, element: &Element, width: u32) -> Option<Function> {
    let mut handler = program.function(element.handler).clone();
    let insts = || handler.blocks.iter().flat_map(|block| &block.insts);
    let continues = |term: &Term| matches!(term, Term::Suspend { .. });
    if insts().any(|inst| matches!(inst.op, Op::Call { .. } | Op::Handle(_)))
        || handler.blocks.iter().any(|block| continues(&block.term))
    {
        return None;
    }
    let mut known = HashMap::new();
    for at in 0..handler.blocks.len() {
        let insts = std::mem::take(&mut handler.blocks[at].insts);
        for mut inst in insts {
            if let Op::Ready(_) | Op::ReadyMask = inst.op {
                inst.op = Op::Const(Bits::ones(1));
            }
            let read = inst.result.filter(|_| matches!(inst.op, Op::Take(_) | Op::Peek(_)));
            let loc = inst.loc;
            handler.blocks[at].insts.push(inst);
            let Some(flit) = read else { continue };
            let zeros = handler.add_value(Type::Bits(width), None);
            let with_zeros = handler.add_value(Type::Bits(FLIT_BITS), None);
            let op = Op::Insert { value: flit, lo: SOP_BIT, part: zeros };
            handler.blocks[at].insts.extend([
                Inst { result: Some(zeros), op: Op::Const(Bits::zero(width)), loc },
                Inst { result: Some(with_zeros), op, loc },
            ]);
            known.insert(flit, with_zeros);
        }
    }
    for block in &mut handler.blocks {
        for inst in &mut block.insts {
            let is_ours = matches!(inst.op, Op::Insert { value, .. }
                if known.get(&value) == inst.result.as_ref() && inst.result.is_some());
            if !is_ours {
                inst.op.map_operands(|value| known.get(&value).copied().unwrap_or(value));
            }
        }
        block.term.map_operands(|value| known.get(&value).copied().unwrap_or(value));
    }
    handler.owner = Some(ElementId(0));
    let alone = Element {
        init: None,
        handler: FunctionId(0),
        signal: None,
        methods: vec![],
        ..element.clone()
    };
    let mut program = Program {
        name: program.name.clone(),
        files: program.files.clone(),
        functions: vec![handler],
        elements: vec![alone],
        graph: Graph::default(),
    };
    let set = PassSet::only(&["constant_folding", "ssa", "dead_code"]);
    passes::run(&mut program, &set.expect("these passes exist"));
    program.functions.pop()
}

/// Returns whether a specialised handler takes its flit, puts it unchanged to ports that do not
/// depend on it, and has no other lasting effect. `width` is that of the specialisation.
fn only_passes(handler: &Function, width: u32) -> bool {
    let facts = Facts::of(handler, width);
    let order = reverse_post_order(handler);
    let before = predecessors(handler);
    let mut is_done = vec![false; handler.blocks.len()];
    let mut takes = vec![false; handler.blocks.len()];
    for at in order {
        // A loop could reach its bound.
        if at != 0 && !before[at].iter().all(|from| is_done[*from]) {
            return false;
        }
        let block = &handler.blocks[at];
        let mut has_taken = at != 0 && before[at].iter().all(|from| takes[*from]);
        let may_have_taken = at != 0 && before[at].iter().any(|from| takes[*from]);
        if has_taken != may_have_taken {
            return false;
        }
        for inst in &block.insts {
            match inst.op {
                Op::Take(_) | Op::Peek(_) if has_taken => return false,
                Op::Take(_) => has_taken = true,
                _ if !facts.allows(&inst.op) => return false,
                _ => {}
            }
        }
        let is_good = match &block.term {
            Term::Jump(_) => true,
            Term::Branch { cond: value, .. } | Term::Switch { value, .. } => !facts.depends(*value),
            Term::Done { mask: None } => has_taken,
            Term::Done { mask: Some(mask) } => has_taken && facts.is_one(*mask),
            Term::Suspend { .. } | Term::Return { .. } | Term::Trap(_) => false,
        };
        if !is_good {
            return false;
        }
        (takes[at], is_done[at]) = (has_taken, true);
    }
    true
}

/// Properties of the values of a handler.
struct Facts<'f> {
    /// By value: whether it may depend on the flit.
    depends: Vec<bool>,
    /// By value: its definition.
    definitions: HashMap<ValueId, &'f Op>,
    /// Number of bits of the flit, starting at `sop`, that are known to be 0.
    width: u32,
}

impl<'f> Facts<'f> {
    fn of(handler: &'f Function, width: u32) -> Self {
        let insts = || handler.blocks.iter().flat_map(|block| &block.insts);
        let definitions =
            insts().filter_map(|inst| Some((inst.result?, &inst.op))).collect::<HashMap<_, _>>();
        let depends = vec![false; handler.values.len()];
        let mut this = Self { depends, definitions, width };
        // Propagates dependence until nothing is added. Locals need no tracking, because stores of
        // dependent values are rejected.
        loop {
            let mut found = this.depends.clone();
            for inst in insts() {
                let Some(result) = inst.result else { continue };
                let mut depends = matches!(inst.op, Op::Take(_) | Op::Peek(_));
                inst.op.for_each_operand(|operand| depends |= this.depends(operand));
                found[result.index()] |= depends;
            }
            for target in handler.blocks.iter().flat_map(|block| block.term.targets()) {
                let params = &handler.block(target.block).params;
                for (param, arg) in params.iter().zip(&target.args) {
                    found[param.index()] |= this.depends(*arg);
                }
            }
            if found == this.depends {
                return this;
            }
            this.depends = found;
        }
    }

    fn depends(&self, value: ValueId) -> bool {
        self.depends[value.index()]
    }

    /// Returns whether a mask selects the only port.
    fn is_one(&self, mask: ValueId) -> bool {
        let definition = self.definitions.get(&mask);
        matches!(definition, Some(Op::Const(bits)) if bits.checked_u64() == Some(1))
    }

    /// Returns whether an operation other than a take may be part of forwarding a flit.
    fn allows(&self, op: &Op) -> bool {
        match op {
            Op::Put { value, .. } => self.is_flit(*value),
            // Accesses out of range are counted, so they must be the same for each flit.
            Op::Load { index, .. } => !self.depends(*index),
            Op::LoadBytes { offset, .. } => !self.depends(*offset),
            Op::Store { object: ObjectRef::Local(_), index, value, mask, .. } => {
                !self.depends(*index)
                    && !self.depends(*value)
                    && mask.is_none_or(|mask| !self.depends(mask))
            }
            Op::Peek(_) => true,
            op => op.is_pure(),
        }
    }

    /// Returns whether a value is the unchanged flit.
    fn is_flit(&self, value: ValueId) -> bool {
        match self.definitions.get(&value) {
            Some(Op::Take(_) | Op::Peek(_)) => true,
            // The value inserted by the specialisation.
            Some(Op::Insert { value, lo: SOP_BIT, part }) => {
                let part = self.definitions.get(part);
                self.is_flit(*value)
                    && matches!(part, Some(Op::Const(bits)) if bits.is_zero()
                        && bits.width() <= self.width)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_ir::text::parse;

    const FLITS: &str = include_str!("../tests/native/programs/flits.ir");

    fn program(text: &str) -> Program {
        parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Determines the transparency of an element of two outputs and one variable with that handler.
    fn of_handler(body: &str) -> Transparency {
        let text = format!(
            "program one\nelement It {{\n in in: flit\n out left: flit\n out right: flit\n \
             reg state: bits<8>[4]\n handler {{\n{body}\n }}\n}}\n"
        );
        transparency(&program(&text), ElementId(0))
    }

    #[test]
    fn elements_are_as_transparent_as_they_look() {
        let program = program(FLITS);
        let found: Vec<(&str, Transparency)> = (program.elements.iter().enumerate())
            .map(|(at, element)| (&element.name[..], transparency(&program, ElementId::new(at))))
            .collect();
        let expected = [
            ("MacSwap", Transparency::Rest),
            ("Count", Transparency::None),
            ("Tee", Transparency::Rest),
            ("Join", Transparency::None),
            ("Alternate", Transparency::None),
            ("Route", Transparency::Rest),
            ("Drop", Transparency::Body),
            ("Hold", Transparency::None),
            ("Grow", Transparency::None),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_not_there_is_not_waited_for() {
        let handler = "entry:\n %has = ready in\n br %has, go, end\ngo:\n %flit = take in\n \
                       put left, %flit\n jump end\nend:\n done";
        assert_eq!(of_handler(handler), Transparency::Rest);
        let mask = handler.replace("done", "%all = const 1:1\n done %all");
        assert_eq!(of_handler(&mask), Transparency::Rest);
        let dropped = handler.replace("put left, %flit", "");
        assert_eq!(of_handler(&dropped), Transparency::Rest);
    }

    #[test]
    fn whatever_could_be_seen_is_opaque() {
        let start = "entry:\n %zero = const 0:2\n %flit = take in\n \
                     %byte = extract %flit[0 +: 8]\n %bit = extract %flit[0 +: 1]\n \
                     %last = extract %flit[257 +: 1]\n ";
        let opaque = [
            "store state[%zero], %byte\n put left, %flit\n done",
            "br %bit, one, two\none:\n put left, %flit\n done\ntwo:\n put right, %flit\n done",
            "%index = extract %flit[0 +: 3]\n %x = load state[%index]\n put left, %flit\n done",
            "%mark = const 7:8\n %meta = insert %flit[320], %mark\n put left, %meta\n done",
            "put left, %flit\n done %bit",
            "put left, %flit\n trap user 1",
            "put left, %flit\n %now = now\n done",
            "%again = take in\n put left, %again\n done",
            "put left, %flit\n suspend entry2\nentry2:\n done",
        ];
        for rest in opaque {
            assert_eq!(of_handler(&format!("{start}{rest}")), Transparency::None, "{rest}");
        }
        // For all but the last flit, the marks keep their values.
        let last = "br %last, one, two\none:\n store state[%zero], %byte\n jump two\n\
                    two:\n put left, %flit\n done";
        assert_eq!(of_handler(&format!("{start}{last}")), Transparency::Body);
        let cleared = "%marks = const 0:10\n %new = insert %flit[256], %marks\n \
                       put left, %new\n done";
        assert_eq!(of_handler(&format!("{start}{cleared}")), Transparency::Body);
    }

    #[test]
    fn a_way_that_takes_nothing_is_opaque() {
        let handler = "entry:\n %zero = const 0:2\n %waits = load state[%zero][0 +: 1]\n \
                       br %waits, end, go\ngo:\n %flit = take in\n put left, %flit\n jump end\n\
                       end:\n done";
        assert_eq!(of_handler(handler), Transparency::None);
        let takes = handler.replace("br %waits, end, go", "br %waits, other, go")
            + "\nother:\n %same = take in\n put right, %same\n done";
        assert_eq!(of_handler(&takes), Transparency::Rest);
    }
}
