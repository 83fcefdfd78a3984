// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Building: the cache, the manifest, and error messages.

use freeport_ir::text::parse;
use freeport_ir::{Bits, FunctionId, Program, TrapCode};
use freeport_native::manifest::ItemInfo;
use freeport_native::{Error, Graph, Manifest, Options, Returned, build, build_function};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

fn chain() -> Program {
    let text =
        format!("{}{}", include_str!("programs/flits.ir"), include_str!("programs/chain.ir"));
    parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

fn options(cache: &Path) -> Options {
    Options { optimization: 0, cache: Some(cache.to_owned()), ..Options::default() }
}

#[test]
fn what_was_built_is_found_again_until_something_changes() {
    let cache = tempfile::tempdir().expect("a directory");
    let program = chain();
    let first = build(&program, &options(cache.path())).expect("a program of flits");
    let written = |path: &Path| fs::metadata(path).and_then(|it| it.modified()).expect("a file");
    let time = written(&first.library);
    let again = build(&program, &options(cache.path())).expect("a program of flits");
    assert_eq!(again, first);
    assert_eq!(written(&again.library), time);
    let recording = Options { record: true, ..options(cache.path()) };
    let other = build(&program, &recording).expect("a program of flits");
    assert_ne!(other.library, first.library);
    fs::remove_file(&first.library).expect("a file of ours");
    let rebuilt = build(&program, &options(cache.path())).expect("a program of flits");
    assert_eq!(rebuilt, first);
    assert!(Graph::load(&rebuilt).is_ok());
    let names = fs::read_dir(cache.path()).expect("a directory");
    assert_eq!(names.count(), 6, "nothing but two sources, libraries and manifests");
}

#[test]
fn the_manifest_names_what_is_inside() {
    let cache = tempfile::tempdir().expect("a directory");
    let image = build(&chain(), &options(cache.path())).expect("a program of flits");
    let json = fs::read_to_string(image.library.with_extension("json")).expect("a manifest");
    let manifest: Manifest = serde_json::from_str(&json).expect("JSON of a manifest");
    assert_eq!(manifest, image.manifest);
    let names: Vec<&str> = manifest.instances.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["swap", "count", "again"]);
    let count = &manifest.elements[manifest.instances[1].element];
    let variable = &count.variables[1];
    assert_eq!((variable.name.as_str(), variable.width, variable.depth), ("lengths", 32, 16));
    assert_eq!(variable.place, "local");
    assert!(count.takes_signals && variable.is_host_visible);
    assert_eq!((count.methods[0].parameters[..].to_vec(), count.methods[0].result), {
        (vec![64], Some(64))
    });
    assert_eq!(manifest.channels[2].name, "count.out -> again.in");
    assert_eq!((manifest.channels[2].depth, manifest.channels[2].item), (3, ItemInfo::Flit));
}

#[test]
fn a_library_that_its_manifest_does_not_describe_is_not_loaded() {
    let cache = tempfile::tempdir().expect("a directory");
    let mut image = build(&chain(), &options(cache.path())).expect("a program of flits");
    image.manifest.channels.pop();
    assert!(matches!(Graph::load(&image), Err(Error::Load { .. })));
    fs::write(&image.library, "no library").expect("a file of ours");
    assert!(matches!(Graph::load(&image), Err(Error::Load { .. })));
}

/// A planted library would run with the rights of any user who builds the same program.
#[test]
fn what_others_could_have_written_is_neither_loaded_nor_replaced() {
    let cache = tempfile::tempdir().expect("a directory");
    let program = chain();
    let image = build(&program, &options(cache.path())).expect("a program of flits");
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    for path in [&image.library, &image.source, &image.library.with_extension("json")] {
        assert_eq!(fs::metadata(path).expect("it is built").mode() & 0o777, 0o600);
        set_mode(path, 0o602);
        let error = build(&program, &options(cache.path())).expect_err("others may write to it");
        let text = error.to_string();
        assert!(matches!(error, Error::NoFolder(_)), "{text}");
        assert!(
            text.contains(&format!("{} may be written to by others", path.display())),
            "{text}"
        );
        set_mode(path, 0o600);
    }
    set_mode(cache.path(), 0o777);
    let error = build(&program, &options(cache.path())).expect_err("others may put files there");
    assert!(error.to_string().contains("(mode 777)"), "{error}");
    set_mode(cache.path(), 0o700);
    assert_eq!(build(&program, &options(cache.path())).expect("it is ours again"), image);
}

#[test]
fn a_missing_compiler_is_told_with_what_to_install() {
    let cache = tempfile::tempdir().expect("a directory");
    let options = Options { compiler: "/no/such/clang".into(), ..options(cache.path()) };
    let error = build(&chain(), &options).expect_err("there is no such compiler");
    let text = error.to_string();
    assert!(text.contains("/no/such/clang") && text.contains("clang-19"), "{text}");
}

#[test]
fn a_function_on_its_own_takes_and_gives_bit_vectors() {
    let text = "program sums\n\
        fn @sum(%from: bits<8>, %add: bits<100>) -> bits<100> {\n\
          entry:\n    %zero = const 0:8\n    jump head(%from, %add)\n\
          head(%left: bits<8>, %sum: bits<100>) loop(bound 20):\n\
            %is_over = eq %left, %zero\n    br %is_over, end, body\n\
          body:\n    %one = const 1:8\n    %next = sub %left, %one\n\
            %more = add %sum, %add\n    jump head(%next, %more)\n\
          end:\n    ret %sum\n}\n\ngraph {\n}\n";
    let program = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let cache = tempfile::tempdir().expect("a directory");
    let built = build_function(&program, FunctionId(0), &options(cache.path()));
    let mut sum = built.unwrap_or_else(|error| panic!("{error}"));
    let arguments = |from| [Bits::from_u64(8, from), Bits::from_u64(100, 1 << 60)];
    let result = Some(Bits::from_u128(100, 21 << 60));
    let returned = Returned { result, trap: None, out_of_range: 0 };
    assert_eq!(sum.call(0, &arguments(20)).expect("two arguments"), returned);
    let trapped = sum.call(0, &arguments(21)).expect("two arguments");
    assert_eq!(trapped.trap, Some(TrapCode::LoopBound));
    assert_eq!(trapped.result, Some(Bits::zero(100)));
    assert!(matches!(sum.call(0, &arguments(1)[..1]), Err(Error::Mismatch { .. })));
    assert!(matches!(sum.call(1, &arguments(1)), Err(Error::Unknown { .. })));
}
