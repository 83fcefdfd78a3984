// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random pure operations.

use super::statements::Writer;
use super::{random_bits, random_width};
use crate::{BinaryOp, CompareOp, Op, Type, UnaryOp, ValueId};

impl Writer<'_> {
    /// Returns some available value, or a constant.
    pub(super) fn any(&mut self) -> ValueId {
        if self.scope.is_empty() || self.random.u8(0..6) == 0 {
            let width = random_width(self.random);
            return self.constant(width);
        }
        // Recent values are more likely, so that chains grow.
        let recent = self.scope.len().saturating_sub(8);
        let from = if self.random.bool() { recent } else { 0 };
        self.scope[self.random.usize(from..self.scope.len())]
    }

    pub(super) fn constant(&mut self, width: u32) -> ValueId {
        let bits = random_bits(self.random, width);
        self.builder.constant(bits)
    }

    /// Returns some value of that width.
    pub(super) fn of_width(&mut self, width: u32) -> ValueId {
        let value = self.any();
        let from = self.width(value);
        if from > width && self.random.bool() {
            let lo = self.random.u32(0..=from - width);
            return self.builder.extract(value, lo, width);
        }
        let is_signed = self.random.bool();
        self.builder.resize(value, width, is_signed)
    }

    pub(super) fn width(&self, value: ValueId) -> u32 {
        self.builder.function().width_of(value)
    }

    /// Appends a random pure operation on available values.
    pub(super) fn pure(&mut self) -> ValueId {
        let value = self.any();
        let width = self.width(value);
        match self.random.u8(0..20) {
            0..=1 => self.unary(value, width),
            2..=5 => {
                let op = BinaryOp::ALL[self.random.usize(0..BinaryOp::ALL.len())];
                let right = self.of_width(width);
                self.builder.binary(op, value, right)
            }
            6..=7 => self.condition(),
            8 => {
                let cond = self.of_width(1);
                let if_false = self.of_width(width);
                self.builder.push(Op::Select { cond, if_true: value, if_false }, Type::Bits(width))
            }
            9 => {
                let to = width + self.random.u32(0..70);
                let is_signed = self.random.bool();
                self.builder.resize(value, to, is_signed)
            }
            10..=11 => {
                let lo = self.random.u32(0..width);
                let part = self.random.u32(1..=width - lo);
                self.builder.extract(value, lo, part)
            }
            12 => {
                let lo = self.index();
                let part = random_width(self.random);
                self.builder.push(Op::ExtractDynamic { value, lo, width: part }, Type::Bits(part))
            }
            13..=15 => {
                let lo = self.random.u32(0..width);
                let part_width = self.random.u32(1..=width - lo);
                let part = self.of_width(part_width);
                self.builder.push(Op::Insert { value, lo, part }, Type::Bits(width))
            }
            16 => {
                let lo = self.index();
                let part = self.any();
                self.builder.push(Op::InsertDynamic { value, lo, part }, Type::Bits(width))
            }
            _ => self.concat(),
        }
    }

    fn unary(&mut self, value: ValueId, width: u32) -> ValueId {
        match UnaryOp::ALL[self.random.usize(0..UnaryOp::ALL.len())] {
            UnaryOp::ByteSwap if !width.is_multiple_of(8) => value,
            op => self.builder.unary(op, value),
        }
    }

    fn concat(&mut self) -> ValueId {
        let parts: Vec<ValueId> = (0..self.random.usize(1..4)).map(|_| self.any()).collect();
        let width: u32 = parts.iter().map(|part| self.width(*part)).sum();
        if width > 1500 {
            return parts[0];
        }
        self.builder.push(Op::Concat(parts), Type::Bits(width))
    }

    /// Appends a comparison.
    pub(super) fn condition(&mut self) -> ValueId {
        let op = CompareOp::ALL[self.random.usize(0..CompareOp::ALL.len())];
        let left = self.any();
        let width = self.width(left);
        let right = if self.random.bool() { self.constant(width) } else { self.of_width(width) };
        self.builder.compare(op, left, right)
    }

    /// Returns an index: a small constant, a narrow value, or anything.
    pub(super) fn index(&mut self) -> ValueId {
        match self.random.u8(0..8) {
            0..=4 => {
                let (width, value) = (self.random.u32(4..40), self.random.u64(0..4));
                self.builder.number(width, value)
            }
            5..=6 => {
                let width = self.random.u32(1..3);
                self.of_width(width)
            }
            _ => self.any(),
        }
    }
}
