// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The front-end oracle: a generated function has the same meaning in ClickNP and, compiled by
//! clang, in C23.
//!
//! Each function becomes a method of one element; the same text is compiled by clang. Both are
//! called with the same arguments. `FREEPORT_SEED` selects other functions, `FREEPORT_LONG` runs
//! many more.

use fastrand::Rng;
use freeport_clicknp::{Options, compile_text};
use freeport_ir::Bits;
use freeport_ir::interp::{self, Interpreter};
use freeport_testbed::is_long;
use freeport_tests::oracle::c_oracle::CLibrary;
use freeport_tests::oracle::functions::{self, GeneratedFunction};
use freeport_tests::oracle::seed;
use std::fmt::Write;

const BATCH: u64 = 300;
const CALLS: usize = 20;

#[test]
fn generated_functions_agree_with_plain_c() {
    let first = seed(1);
    let batches = if is_long() { 40 } else { 2 };
    for batch in 0..batches {
        check_batch(first + batch * BATCH);
    }
}

fn check_batch(first: u64) {
    let functions: Vec<_> =
        (first..first + BATCH).map(|seed| functions::generate(seed as usize, seed)).collect();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let library = CLibrary::build(&functions, "clang-19", folder.path());
    let text = as_methods(&functions);
    let compiled = match compile_text("functions.cnp", &text, &Options::default()) {
        Ok(compiled) => compiled,
        Err(failure) => panic!("first seed {first}: {}", failure.render()),
    };
    let options = interp::Options::default();
    let mut interpreter = Interpreter::new(&compiled.program, &options).expect("it is sound");
    let instance = interpreter.instance("methods").expect("it was declared");
    let mut random = Rng::with_seed(first);
    for function in &functions {
        for _ in 0..CALLS {
            let args: Vec<_> =
                function.params.iter().map(|ty| argument(&mut random, ty.width)).collect();
            let method = format!("call_{}", function.name);
            let ours = interpreter.call_method(instance, &method, args.clone());
            let ours = ours.expect("the method takes these").expect("it has a result");
            let theirs = library.call(function, &args);
            assert_eq!(ours, theirs, "seed {}: {args:?}\n{}", function.name, function.text);
        }
    }
}

/// An element with a method for each function.
fn as_methods(functions: &[GeneratedFunction]) -> String {
    let mut text = String::new();
    let mut methods = String::new();
    for function in functions {
        text += &function.text;
        let typed = function.params.iter().enumerate();
        let params: Vec<_> = typed.map(|(at, ty)| format!("{} q{at}", ty.name())).collect();
        let args: Vec<_> = (0..function.params.len()).map(|at| format!("q{at}")).collect();
        let (result, name) = (function.result.name(), &function.name);
        let _ = writeln!(methods, "    .method {result} call_{name}({}) {{", params.join(", "));
        let _ = writeln!(methods, "        return {name}({});\n    }}", args.join(", "));
    }
    text + ".element Methods (->) {\n    .handler { }\n" + &methods + "}\nMethods :: methods\n"
}

/// Returns an argument, mostly at the boundaries of its range.
fn argument(random: &mut Rng, width: u32) -> Bits {
    match random.u32(0..6) {
        0 => Bits::zero(width),
        1 => Bits::ones(width),
        2 => Bits::from_u64(width, random.u64(0..20)),
        3 => Bits::ones(width).insert(width - 1, &Bits::zero(1)),
        _ => {
            let bytes: Vec<u8> = (0..width.div_ceil(8)).map(|_| random.u8(..)).collect();
            Bits::from_le_bytes(width, &bytes)
        }
    }
}
