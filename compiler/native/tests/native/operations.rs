// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every pure operation in native code compared with the interpreter's evaluation, at widths on
//! both sides of every boundary between representations. All functions are in one library.

use freeport_ir::interp::eval_pure;
use freeport_ir::passes::PassSet;
use freeport_ir::{
    BinaryOp, Bits, Builder, CompareOp, Function, FunctionId, Loc, Op, Program, Term, Type,
    UnaryOp, ValueId,
};
use freeport_native::{Functions, Options, build_functions};
use freeport_testbed::cache::Cache;

const WIDTHS: [u32; 15] = [1, 7, 8, 31, 32, 33, 63, 64, 65, 127, 128, 129, 256, 512, 1024];

/// An operation on values 0, 1, ..., their widths, and the width of the result.
struct Case {
    op: Op,
    operands: Vec<u32>,
    result: u32,
}

fn case(op: Op, operands: &[u32], result: u32) -> Case {
    Case { op, operands: operands.to_vec(), result }
}

fn arithmetic(cases: &mut Vec<Case>) {
    let [a, b] = [ValueId(0), ValueId(1)];
    for width in WIDTHS {
        for op in UnaryOp::ALL {
            let result = match op {
                UnaryOp::ByteSwap if !width.is_multiple_of(8) => continue,
                UnaryOp::ReduceAnd | UnaryOp::ReduceOr | UnaryOp::ReduceXor => 1,
                _ => width,
            };
            cases.push(case(Op::Unary(op, a), &[width], result));
        }
        let binary = BinaryOp::ALL.map(|op| case(Op::Binary(op, a, b), &[width, width], width));
        cases.extend(binary);
        cases.extend(CompareOp::ALL.map(|op| case(Op::Compare(op, a, b), &[width, width], 1)));
        let select = Op::Select { cond: a, if_true: b, if_false: ValueId(2) };
        cases.push(case(select, &[1, width, width], width));
        let constant = Bits::ones(width).insert(0, &Bits::zero(width.div_ceil(2)));
        cases.push(case(Op::Const(constant), &[], width));
    }
}

fn resizing(cases: &mut Vec<Case>) {
    let a = ValueId(0);
    for from in WIDTHS {
        for to in WIDTHS {
            if to >= from {
                cases.push(case(Op::ZeroExtend(a, to), &[from], to));
                cases.push(case(Op::SignExtend(a, to), &[from], to));
            }
            if to <= from {
                cases.push(case(Op::Truncate(a, to), &[from], to));
            }
        }
    }
}

fn parts(cases: &mut Vec<Case>, random: &mut fastrand::Rng) {
    let [value, lo, part] = [ValueId(0), ValueId(1), ValueId(2)];
    for width in WIDTHS {
        for of in WIDTHS.into_iter().filter(|of| *of <= width) {
            for lo in [random.u32(0..=width - of), random.u32(0..=(width - of) / 8) * 8] {
                cases.push(case(Op::Extract { value, lo, width: of }, &[width], of));
                let part = ValueId(1);
                cases.push(case(Op::Insert { value, lo, part }, &[width, of], width));
            }
        }
        for of in [3, 32, 64, 100, 200] {
            for by in [4, 8, 12, 64, 70, 140] {
                let op = Op::ExtractDynamic { value, lo, width: of };
                cases.push(case(op, &[width, by], of));
                let op = Op::InsertDynamic { value, lo, part };
                cases.push(case(op, &[width, by, of], width));
            }
        }
    }
    for _ in 0..20 {
        let widths: Vec<u32> = (0..random.u32(1..6)).map(|_| WIDTHS[random.usize(0..13)]).collect();
        let values = (0..widths.len() as u32).map(ValueId).collect();
        cases.push(case(Op::Concat(values), &widths, widths.iter().sum()));
    }
}

fn function(case: &Case, at: usize) -> Function {
    let mut function = Function::new(format!("case_{at}"), None, Loc::default());
    function.result = Some(Type::Bits(case.result));
    let mut builder = Builder::new(function);
    for width in &case.operands {
        builder.add_param(Function::ENTRY, Type::Bits(*width), None);
    }
    let value = builder.push(case.op.clone(), Type::Bits(case.result));
    builder.end(Term::Return { value: Some(value) });
    builder.finish()
}

/// Returns small, large, sparse and dense numbers.
fn operand(random: &mut fastrand::Rng, width: u32) -> Bits {
    let bytes: Vec<u8> = (0..width.div_ceil(8)).map(|_| random.u8(..)).collect();
    let dense = Bits::from_le_bytes(width, &bytes);
    match random.u32(0..8) {
        0 => Bits::zero(width),
        1 => Bits::ones(width),
        2 => Bits::from_u64(width, random.u64(0..=u64::from(width) + 2)),
        3 => Bits::zero(width).insert(random.u32(0..width), &Bits::from_u64(1, 1)),
        4 => Bits::from_u64(width, 1).sign_extend(width).insert(width - 1, &Bits::ones(1)),
        5 => dense.extract(random.u32(0..width), width),
        _ => dense,
    }
}

#[test]
fn every_operation_agrees_with_the_interpreter_at_every_kind_of_width() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut cases = vec![];
    arithmetic(&mut cases);
    resizing(&mut cases);
    parts(&mut cases, &mut random);
    let functions = cases.iter().enumerate().map(|(at, case)| function(case, at)).collect();
    let program = Program { name: "operations".into(), functions, ..Program::default() };
    let cache = Cache::of("native");
    // No passes: they would evaluate the constants themselves.
    let options = Options {
        optimization: 1,
        passes: PassSet::none(),
        sanitize: true,
        cache: Some(cache.path().to_owned()),
        ..Options::default()
    };
    let all: Vec<FunctionId> = (0..cases.len()).map(FunctionId::new).collect();
    let image = build_functions(&program, &all, &options).expect("functions of bit vectors");
    let mut native = Functions::load(&image).expect("a library that was just built");
    for (at, case) in cases.iter().enumerate() {
        for _ in 0..40 {
            let operands: Vec<Bits> =
                case.operands.iter().map(|width| operand(&mut random, *width)).collect();
            let want = eval_pure(&case.op, |value| &operands[value.index()]);
            let got = native.call(at, &operands).expect("operands of the right widths");
            assert_eq!(got.result, want, "{:?} of {operands:?}", case.op);
        }
    }
}
