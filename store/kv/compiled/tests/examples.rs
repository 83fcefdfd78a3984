// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of `examples/kv`, as native code and interpreted, and as they are meant.

use crate::values::{INTEGERS, any_bytes, any_operands, call, computed, native, wanted};
use fastrand::Rng;
use freeport_kv_compiled::{Compiled, Options, compile_files};
use freeport_kv_functions::{Element, Kind};
use std::fs;
use std::path::{Path, PathBuf};

type Model = fn(Element, i128, &[i128]) -> i128;

/// Kind, name, and meaning of each function.
const MODELS: &[(Kind, &str, Model)] = &[
    (Kind::Update, "order", |element, v, operands| {
        let [amount, least, refill] = operands[..] else { unreachable!() };
        let rest = computed(element, v - amount);
        if v >= amount && rest >= least { rest } else { rest + refill }
    }),
    (Kind::Filter, "below", |_, v, operands| (v < operands[0]).into()),
    (Kind::Update, "quantise", |_, v, operands| {
        let by = operands[0] & 31;
        let half = if by == 0 { 0 } else { 1 << (by - 1) };
        ((v + half) >> by).clamp(-128, 127)
    }),
    (Kind::Filter, "used", |_, v, _| (v != 0).into()),
    (Kind::Reduce, "gather", |_, v, sigma| {
        sigma[0] + if v & 0xffff == 0 { 0 } else { (v >> 16) / (v & 0xffff) }
    }),
    (Kind::Update, "damp", |element, v, operands| {
        operands[1] + (computed(element, v.wrapping_mul(operands[0])) >> 8)
    }),
    (Kind::Update, "take_tokens", |_, v, operands| {
        let now = operands[0] & 0xff_ffff_ffff;
        let elapsed = (now - (v >> 24)).clamp(0, 100_000);
        let tokens = ((v >> 1 & 0x7f_ffff) + elapsed * 10 / 1000).min(100);
        let is_granted = tokens >= operands[1];
        let tokens = if is_granted { tokens - operands[1] } else { tokens };
        now << 24 | tokens << 1 | i128::from(is_granted)
    }),
    (Kind::Update, "to_gray", |_, v, _| v ^ v >> 1),
    (Kind::Update, "from_gray", |_, v, _| (0..64).fold(0, |sum, at| sum ^ v >> at)),
    (Kind::Update, "square_root", |_, v, _| i128::from((v as u64).isqrt())),
    (Kind::Reduce, "crc8", |_, v, sigma| {
        let round = |crc: i128, _| if crc & 0x80 == 0 { crc << 1 } else { crc << 1 & 0xff ^ 7 };
        (0..8).fold(sigma[0] & 0xff ^ v, round)
    }),
    (Kind::Reduce, "runs", |_, v, sigma| {
        let v = v as u64;
        sigma[0] + i128::from((v & !(v << 1)).count_ones())
    }),
];

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/kv");
    let files = fs::read_dir(folder).expect("the folder of examples");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    files
}

fn compiled(options: &Options) -> Compiled {
    let compiled = compile_files(&files(), options).unwrap_or_else(|refused| panic!("{refused}"));
    assert_eq!((&compiled.warnings[..], &compiled.is_interpreted), (&[][..], &None));
    compiled
}

#[test]
fn examples_do_what_they_say() {
    let (native, interpreted) = (compiled(&native()), compiled(&Options::interpreted()));
    let mut rng = Rng::with_seed(5);
    let users = native.registry.signatures().filter(|signature| signature.id >= 128);
    let mut seen = 0;
    for signature in users {
        let is_it =
            |model: &&(Kind, &str, Model)| (model.0, model.1) == (signature.kind, signature.name);
        let (_, name, model) = MODELS.iter().find(is_it).expect("every example has a model");
        seen += 1;
        for element in INTEGERS.into_iter().filter(|one| signature.elements.contains(one)) {
            for count in [1, 7, 64, 65, 600] {
                let values = any_bytes(&mut rng, count * element.width());
                let operands = any_operands(&mut rng, &signature, element, count);
                let id = signature.id;
                let case = (element, &values[..], &operands[..]);
                let wanted = wanted(&native.registry, id, case, model);
                for (what, one) in [("native", &native), ("interpreted", &interpreted)] {
                    let got = call(&one.registry, id, element, &values, &operands);
                    assert!(got == wanted, "{what} {name} of {count} {element}");
                }
            }
        }
    }
    assert_eq!(seen, MODELS.len());
}
