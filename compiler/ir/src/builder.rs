// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A builder of functions: a cursor that appends instructions and creates their results.

use crate::{
    BinaryOp, Bits, BlockId, CompareOp, Function, Inst, Loc, LoopInfo, ObjectRef, Op, Target, Term,
    Type, UnaryOp, ValueId,
};

/// Appends to one block of a function at a time.
pub struct Builder {
    function: Function,
    block: BlockId,
    ended: Vec<bool>,
    /// Source location of the next instruction.
    pub loc: Loc,
}

impl Builder {
    /// Starts at the entry block of `function`.
    pub fn new(function: Function) -> Self {
        let ended = vec![false; function.blocks.len()];
        let loc = function.loc;
        Self { function, block: Function::ENTRY, ended, loc }
    }

    /// Returns the function built so far.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Returns the function built so far, mutably.
    pub fn function_mut(&mut self) -> &mut Function {
        &mut self.function
    }

    /// Returns the finished function.
    pub fn finish(self) -> Function {
        self.function
    }

    /// Returns the current block.
    pub fn block(&self) -> BlockId {
        self.block
    }

    /// Adds a block that no other block reaches yet.
    pub fn new_block(&mut self) -> BlockId {
        self.ended.push(false);
        self.function.add_block(Term::Return { value: None })
    }

    /// Continues in `block`.
    pub fn switch_to(&mut self, block: BlockId) {
        self.block = block;
    }

    /// Returns whether the current block already has a terminator.
    pub fn is_ended(&self) -> bool {
        self.ended[self.block.index()]
    }

    /// Adds a parameter to `block`.
    pub fn add_param(&mut self, block: BlockId, ty: Type, name: Option<String>) -> ValueId {
        let value = self.function.add_value(ty, name);
        self.function.block_mut(block).params.push(value);
        value
    }

    /// Marks `block` as the header of a loop.
    pub fn set_loop(&mut self, block: BlockId, info: LoopInfo) {
        self.function.block_mut(block).loop_info = Some(info);
    }

    /// Appends an operation with a result of type `ty`.
    pub fn push(&mut self, op: Op, ty: Type) -> ValueId {
        let result = self.function.add_value(ty, None);
        self.append(Some(result), op);
        result
    }

    /// Appends an operation without a result.
    pub fn push_effect(&mut self, op: Op) {
        self.append(None, op);
    }

    /// Ends the current block; if it has ended already, `term` is unreachable and ignored.
    pub fn end(&mut self, term: Term) {
        if !self.is_ended() {
            let block = self.function.block_mut(self.block);
            block.term = term;
            block.term_loc = self.loc;
            self.ended[self.block.index()] = true;
        }
    }

    /// Ends with a jump.
    pub fn jump(&mut self, block: BlockId) {
        self.end(Term::Jump(Target::to(block)));
    }

    /// Ends with a branch on a 1-bit value.
    pub fn branch(&mut self, cond: ValueId, if_true: BlockId, if_false: BlockId) {
        let (if_true, if_false) = (Target::to(if_true), Target::to(if_false));
        self.end(Term::Branch { cond, if_true, if_false });
    }

    /// Appends a constant.
    pub fn constant(&mut self, bits: Bits) -> ValueId {
        let ty = Type::Bits(bits.width());
        self.push(Op::Const(bits), ty)
    }

    /// Appends a constant of `width` bits.
    pub fn number(&mut self, width: u32, value: u64) -> ValueId {
        self.constant(Bits::from_u64(width, value))
    }

    /// Appends a unary operation.
    pub fn unary(&mut self, op: UnaryOp, value: ValueId) -> ValueId {
        let width = match op {
            UnaryOp::ReduceAnd | UnaryOp::ReduceOr | UnaryOp::ReduceXor => 1,
            _ => self.function.width_of(value),
        };
        self.push(Op::Unary(op, value), Type::Bits(width))
    }

    /// Appends a binary operation on operands of one width.
    pub fn binary(&mut self, op: BinaryOp, left: ValueId, right: ValueId) -> ValueId {
        let ty = self.function.type_of(left);
        self.push(Op::Binary(op, left, right), ty)
    }

    /// Appends a comparison of operands of one width.
    pub fn compare(&mut self, op: CompareOp, left: ValueId, right: ValueId) -> ValueId {
        self.push(Op::Compare(op, left, right), Type::Bits(1))
    }

    /// Extracts `width` bits from `lo` on; returns the value itself if that is all of it.
    pub fn extract(&mut self, value: ValueId, lo: u32, width: u32) -> ValueId {
        if lo == 0 && width == self.function.width_of(value) {
            return value;
        }
        self.push(Op::Extract { value, lo, width }, Type::Bits(width))
    }

    /// Converts the value to another width: truncates, or extends with zeros or the sign.
    pub fn resize(&mut self, value: ValueId, width: u32, signed: bool) -> ValueId {
        let op = match self.function.width_of(value) {
            from if from == width => return value,
            from if from > width => Op::Truncate(value, width),
            _ if signed => Op::SignExtend(value, width),
            _ => Op::ZeroExtend(value, width),
        };
        self.push(op, Type::Bits(width))
    }

    /// Appends a load of bits of an element of an object.
    pub fn load(&mut self, object: ObjectRef, index: ValueId, lo: u32, width: u32) -> ValueId {
        self.push(Op::Load { object, index, lo, width }, Type::Bits(width))
    }

    /// Appends a store to bits of an element of an object.
    pub fn store(&mut self, object: ObjectRef, index: ValueId, lo: u32, value: ValueId) {
        self.push_effect(Op::Store { object, index, lo, value, mask: None });
    }

    fn append(&mut self, result: Option<ValueId>, op: Op) {
        if self.is_ended() {
            // Unreachable code gets its own block, which no other block reaches.
            let block = self.new_block();
            self.switch_to(block);
        }
        let inst = Inst { result, op, loc: self.loc };
        self.function.block_mut(self.block).insts.push(inst);
    }
}
