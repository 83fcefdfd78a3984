// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Objects that clang compiles: each `objects/<case>.bpf.c` is compiled, and the loaded object, or
//! the reason for its refusal, must equal the `.expect` beside it. `BLESS=1` rewrites those files;
//! review the difference.

use freeport_ebpf::instruction::{assemble, disassemble};
use freeport_ebpf::object::{Layout, MapDefinition, Object};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/objects")
}

/// Compiles the object of a case, for the instruction set version that a line `// -mcpu=` in it
/// names, by default the third. Source files in it have names relative to the folder `.`.
fn compile(case: &Path) -> Vec<u8> {
    let source = fs::read_to_string(case).expect("a readable case");
    let version = source.lines().find_map(|line| line.strip_prefix("// -mcpu=")).unwrap_or("v3");
    let out = tempfile::NamedTempFile::new().expect("a file can be made");
    let prefix = format!("-ffile-prefix-map={}=.", folder().display());
    let built = Command::new("clang-19")
        .args(["-target", "bpf", "-g", "-O2", "-Wall", "-Wno-unused-variable"])
        .arg(format!("-mcpu={version}"))
        .args(["-idirafter", "/usr/include/x86_64-linux-gnu", &prefix, "-c", "-o"])
        .arg(out.path())
        .arg(case)
        .current_dir(folder())
        .output()
        .expect("clang-19 is installed");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    fs::read(out.path()).expect("it was written")
}

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).expect("the cases are there");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "c"));
    found.sort();
    assert!(found.len() > 10, "cases are found");
    found
}

#[test]
fn objects_are_loaded_as_expected() {
    let mut wrong = vec![];
    for case in cases() {
        let got = match Object::parse(&compile(&case)) {
            Ok(object) => {
                assert_text_is_whole(&object);
                object.to_string()
            }
            Err(error) => format!("refused: {error}\n"),
        };
        let golden = case.with_extension("").with_extension("expect");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&golden, &got).expect("it can be written");
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if got != expected {
            wrong.push(format!("{}\n--- expected\n{expected}\n--- got\n{got}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Asserts that a loaded program can be printed and assembled again.
#[track_caller]
fn assert_text_is_whole(object: &Object) {
    for program in &object.programs {
        let text = disassemble(&program.instructions);
        assert_eq!(assemble(&text).as_deref(), Ok(&program.instructions[..]), "{text}");
    }
}

/// Decodes the first bytes of keys and values of its maps.
fn decode_maps(object: &Object) -> Vec<String> {
    let decode = |layout: &Option<Layout>, bytes: &[u8]| {
        layout.as_ref().map_or("?".into(), |layout| layout.decode(bytes).to_string())
    };
    let first: Vec<u8> = (1..=255).collect();
    let map = |map: &MapDefinition| {
        let (key, value) = (first.len().min(map.key_size as usize), map.value_size as usize);
        let key = decode(&map.key_layout, &first[..key]);
        let value = map.initial.as_deref().unwrap_or(&first[..first.len().min(value)]);
        format!("{} {key} {}", map.name, decode(&map.value_layout, value))
    };
    object.maps.iter().map(map).collect()
}

#[test]
fn maps_know_what_they_are_made_of() {
    let decoded = |case: &str| {
        let object = Object::parse(&compile(&folder().join(case))).expect("it is right");
        decode_maps(&object)
    };
    let maps = decoded("maps.bpf.c");
    let flows = "flows {source: 67305985, target: 134678021, ports: [2569, 3083]} \
        [578437695752307201, 1157159078456920585, 1735880461161533969]";
    for expected in [flows, "seen ? ?"] {
        assert!(maps.iter().any(|map| map == expected), "{expected}: {maps:?}");
    }
    let mut variables = decoded("data.bpf.c");
    variables.sort();
    let expected = [
        ".bss ? {unused: [0, 0, 0], count: 0}",
        ".data ? {sum: 1234605616436508552, hidden: 5}",
        ".data.own ? {own: 43981}",
        ".rodata ? {limit: 7, text: [102, 114, 101, 101, 112, 111, 114, 116]}",
    ];
    assert_eq!(variables, expected);
}

/// A file truncated at any of many places is refused, or lacks only parts that are not needed.
#[test]
fn no_part_of_a_file_makes_the_loader_panic() {
    for name in ["maps", "functions", "facts"] {
        let bytes = compile(&folder().join(format!("{name}.bpf.c")));
        let whole = Object::parse(&bytes).expect("it is right").to_string();
        for length in (0..bytes.len()).step_by(5) {
            match Object::parse(&bytes[..length]) {
                Ok(object) => assert_eq!(object.to_string(), whole),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

/// Asserts that an object with one byte changed is refused.
#[track_caller]
fn assert_refused(whole: &[u8], at: usize, byte: u8, expected: &str) {
    let mut bytes = whole.to_vec();
    bytes[at] = byte;
    let error = Object::parse(&bytes).expect_err("it is refused").to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn files_of_other_kinds_are_named() {
    let whole = compile(&folder().join("kinds.bpf.c"));
    assert_refused(&whole, 0, b'M', "is not an ELF file");
    assert_refused(&whole, 4, 1, "is not a 64-bit little-endian ELF file");
    assert_refused(&whole, 5, 2, "is not a 64-bit little-endian ELF file");
    assert_refused(&whole, 16, 2, "is of ELF type 2, not relocatable");
    assert_refused(&whole, 18, 62, "is for machine 62, not for BPF");
    assert!(Object::parse(&whole[..15]).is_err());
}

/// A changed file loads completely or is refused; some changes must be refused with the section's
/// name.
#[test]
fn changed_files_are_loaded_whole_or_refused() {
    let whole = compile(&folder().join("maps.bpf.c"));
    let mut random = fastrand::Rng::with_seed(3);
    let (mut loaded, mut refused, mut placed) = (0, 0, 0);
    for _ in 0..2_000 {
        let mut bytes = whole.clone();
        for _ in 0..random.usize(1..8) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        match Object::parse(&bytes) {
            Ok(object) => {
                assert_text_is_whole(&object);
                decode_maps(&object);
                loaded += 1;
            }
            Err(error) => {
                refused += 1;
                placed += i32::from(error.place.section.is_some());
            }
        }
    }
    assert!(loaded > 100 && refused > 100 && placed > 50, "{loaded}, {refused}, {placed}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Object::open(Path::new("/no/such.o")).expect_err("it is not there").to_string();
    assert!(error.starts_with("/no/such.o: cannot be read: "), "{error}");
}
