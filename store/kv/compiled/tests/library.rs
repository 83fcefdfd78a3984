// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registries of files: ids, names, fallback to the interpreter, and calls of several threads.

use crate::values::{any_bytes, native};
use freeport_kv_compiled::{Code, Options, compile_files, compile_text};
use freeport_kv_functions::{Deltas, Element, Kind};
use std::path::Path;
use std::thread;

#[test]
fn ids_follow_the_order_of_files_and_declarations() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let first = write(
        "first.cnp",
        "import \"shared.cnp\"\n\
         inline uint helper(uint v) { return shared(v); }\n\
         uint second_last(uint v, uint a, uint b) { return helper(v) + a + b; }\n\
         template <T> bool odd(T v) { return (v & 1) != 0; }\n",
    );
    write("shared.cnp", "inline uint shared(uint v) { return v + 1; }\n");
    let second = write("second.cnp", "long total(short v, long sigma) { return sigma + v; }\n");
    let compiled = compile_files(&[first, second], &Options::interpreted());
    let registry = compiled.unwrap_or_else(|refused| panic!("{refused}")).registry;
    let rows: Vec<String> = registry
        .signatures()
        .filter(|signature| signature.id >= 128)
        .map(|it| {
            format!("{} {} {} ({}) {}", it.id, it.kind, it.name, it.operands, it.elements.len())
        })
        .collect();
    assert_eq!(
        rows,
        ["128 update second_last (a, b) 1", "129 filter odd () 8", "130 reduction total (sigma) 1"]
    );
    let mut value = 5_u32.to_le_bytes();
    let operands = [10_u32, 100].map(u32::to_le_bytes).concat();
    registry.update(128).unwrap().scalar(Element::U32, &mut value, &operands).unwrap();
    assert_eq!(u32::from_le_bytes(value), 116);
    assert_eq!(registry.named(Kind::Filter, "ODD").map(|signature| signature.id), Some(129));
}

#[test]
fn names_are_unique_over_all_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("one.cnp");
    std::fs::write(&path, "ulong one(ulong v) { return v; }\n").expect("a file");
    let refused = compile_files(&[&path, &path], &Options::interpreted());
    let message = refused.expect_err("the second has the name of the first").to_string();
    assert!(message.contains("`one` is the name of function 128"), "{message}");
    assert!(message.contains("one.cnp:1:7"), "{message}");
    let missing = compile_files(&[folder.path().join("none.cnp")], &Options::interpreted());
    assert!(missing.expect_err("no file").to_string().contains("none.cnp"));
}

#[test]
fn only_128_functions_can_be_registered() {
    let text = |count| {
        let each = |at| format!("ulong f{at}(ulong v) {{ return v + {at}; }}\n");
        (0..count).map(each).collect::<String>()
    };
    let compiled = compile_text("all.cnp", &text(128), &Options::interpreted());
    let registry = compiled.unwrap_or_else(|refused| panic!("{refused}")).registry;
    let mut value = 1_u64.to_le_bytes();
    registry.update(255).unwrap().scalar(Element::U64, &mut value, &[]).unwrap();
    assert_eq!(u64::from_le_bytes(value), 128);
    let refused = compile_text("all.cnp", &text(129), &Options::interpreted());
    let message = refused.expect_err("one too many").to_string();
    assert!(message.contains("`f128` is one function too many; 128 are allowed"), "{message}");
}

#[test]
fn without_a_compiler_functions_are_interpreted() {
    let compiler = "/nowhere/clang".into();
    let native = freeport_native::Options { compiler, ..freeport_native::Options::default() };
    let options = Options { code: Code::Native(Box::new(native)), ..Options::default() };
    let compiled = compile_text("a.cnp", "uchar next(uchar v) { return v + 1; }", &options);
    let compiled = compiled.unwrap_or_else(|refused| panic!("{refused}"));
    let reason = compiled.is_interpreted.expect("it cannot be built");
    assert!(reason.contains("/nowhere/clang") && reason.contains("install clang 19"), "{reason}");
    let mut values = [1, 255, 7];
    let next = compiled.registry.update(128).unwrap();
    next.vector(Element::U8, &mut values, Deltas::Same(&[]), None).unwrap();
    assert_eq!(values, [2, 0, 8]);
}

#[test]
fn threads_call_the_same_function_at_the_same_time() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/kv/bits.cnp");
    for options in [native(), Options::interpreted()] {
        let compiled = compile_files(&[&file], &options).unwrap_or_else(|it| panic!("{it}"));
        assert_eq!(compiled.is_interpreted, None);
        let registry = compiled.registry;
        let id = registry.named(Kind::Update, "from_gray").expect("an update").id;
        let mut rng = fastrand::Rng::with_seed(1);
        let values = any_bytes(&mut rng, 8 * 200);
        let run = || {
            let mut values = values.clone();
            let update = registry.update(id).unwrap();
            update.vector(Element::U64, &mut values, Deltas::Same(&[]), None).unwrap();
            values
        };
        let wanted = run();
        thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(|| (run(), run()))).collect();
            for one in all {
                assert!(one.join().unwrap() == (wanted.clone(), wanted.clone()));
            }
        });
    }
}

#[test]
fn warnings_of_the_language_are_reported() {
    let text = "ulong f(ulong v) { ulong unused = 3; return v; }";
    let compiled = compile_text("warned.cnp", text, &Options::interpreted()).unwrap();
    assert!(compiled.warnings.concat().contains("warned.cnp:1:26"), "{:?}", compiled.warnings);
}
