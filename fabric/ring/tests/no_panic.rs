// SPDX-License-Identifier: Apache-2.0 OR MIT
//! No operation of a ring can panic: in a release build, none of them calls anything of the
//! standard library, which contains every way to panic. A library that is loaded into any program
//! may use them in its entry points.

#[path = "no_panic/entries.rs"]
mod entries;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a source as a library, into a folder of its own, and returns its assembly.
fn assembly(folder: &Path, source: &Path, name: &str, options: &[&str]) -> String {
    let compiler = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let mut command = Command::new(compiler);
    command.arg(source);
    command.args(["--edition=2024", "--crate-type=lib", "--emit=link,asm", "--crate-name", name]);
    command.args(["-Copt-level=3", "-Cpanic=abort", "-Ccodegen-units=1"]);
    command.arg("--out-dir").arg(folder).arg("-L").arg(folder).args(options);
    let output = command.output().expect("there is a compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
    let text: PathBuf = folder.join(format!("{name}.s"));
    fs::read_to_string(text).expect("it was just written")
}

/// Returns the functions of the standard library that an assembly names.
fn standard_functions(assembly: &str) -> Vec<&str> {
    let is_symbol = |part: char| part.is_alphanumeric() || "_.$".contains(part);
    let symbols = assembly.split(|part| !is_symbol(part));
    let mut found: Vec<_> = symbols
        .filter(|symbol| {
            let is_mangled = symbol.starts_with("_ZN") || symbol.starts_with("_R");
            let parts = ["4core", "3std", "5alloc", "panic"];
            is_mangled && parts.iter().any(|part| symbol.contains(part))
                || symbol.starts_with("rust_")
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn no_operation_of_a_ring_can_panic() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_panic");
    fs::create_dir_all(&folder).expect("a folder can be made");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ring = assembly(&folder, &here.join("src/lib.rs"), "freeport_ring", &[]);
    let entries = here.join("tests/no_panic/entries.rs");
    let text = assembly(&folder, &entries, "entries", &["--extern", "freeport_ring"]);
    let exists = |name: &str| text.contains(&format!("{name}:"));
    assert!(exists("ring_read_bytes") && exists("ring_write_bytes"), "they are compiled");
    let names = standard_functions(&text);
    assert!(names.is_empty(), "{names:#?}");
    // In the crate's own code, only the texts of faults use it.
    let names = standard_functions(&ring);
    let panics = names.iter().filter(|name| name.contains("panic") || name.contains("fail"));
    assert_eq!(panics.collect::<Vec<_>>(), Vec::<&&str>::new());

    let control = folder.join("control.rs");
    let text = "#[unsafe(no_mangle)] pub fn at(bytes: &[u8], at: usize) -> u8 { bytes[at] }";
    fs::write(&control, text).expect("it can be written");
    let control = assembly(&folder, &control, "control", &[]);
    let names = standard_functions(&control);
    assert!(names.iter().any(|name| name.contains("panic_bounds_check")), "{names:?}");
}
