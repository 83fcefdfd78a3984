// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules about the modules of Rust files: every file is reached from a crate's root by `mod`
//! declarations, and no module has an empty name such as `utils`.

use super::documents::resolve;
use super::{File, Finding, Tree};
use std::collections::BTreeSet;

const EMPTY_NAMES: [&str; 6] = ["utils", "util", "misc", "common", "helpers", "helper"];

/// Modules are named after what they hold.
pub fn module_names(tree: &Tree) -> Vec<Finding> {
    let stem = |file: &File| {
        let path = file.path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
        path.rsplit('/').next().unwrap_or(path).to_owned()
    };
    let rust = tree.files.iter().filter(|file| file.extension() == "rs");
    let empty = rust.filter(|file| EMPTY_NAMES.contains(&stem(file).as_str()));
    empty.map(|file| file.finding(0, "name the module after what it holds")).collect()
}

/// Every Rust file is part of a crate.
pub fn dead_files(tree: &Tree) -> Vec<Finding> {
    let mut alive = BTreeSet::new();
    let manifests = tree.files.iter().filter(|file| file.path.ends_with("Cargo.toml"));
    for manifest in manifests {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        for root in crate_roots(tree, manifest, folder) {
            visit(tree, &root, true, &mut alive);
        }
    }
    let rust = tree.files.iter().filter(|file| file.extension() == "rs");
    let dead = rust.filter(|file| !alive.contains(&file.path));
    dead.map(|file| file.finding(0, "no crate declares this file; declare or delete it")).collect()
}

/// Returns the files that cargo compiles by itself: by their location, or by a `path` in the
/// manifest.
fn crate_roots(tree: &Tree, manifest: &File, folder: &str) -> Vec<String> {
    let takes_tests = !manifest.text.contains("autotests = false");
    let by_place = tree.files.iter().filter_map(|file| {
        let below = file.path.strip_prefix(folder)?;
        let parts: Vec<&str> = below.split('/').collect();
        let is_root = match parts.as_slice() {
            ["tests", ..] if !takes_tests => false,
            ["build.rs"] | ["src", "lib.rs" | "main.rs"] => true,
            ["src", "bin", _] | ["tests" | "benches" | "examples", _] => below.ends_with(".rs"),
            ["src", "bin", _, "main.rs"] => true,
            ["tests" | "benches" | "examples", _, "main.rs"] => true,
            _ => false,
        };
        is_root.then(|| file.path.clone())
    });
    let by_path = manifest.text.lines().filter_map(|line| {
        let value = line.trim().strip_prefix("path")?.trim_start().strip_prefix('=')?;
        Some(format!("{folder}{}", value.trim().trim_matches('"')))
    });
    by_place.chain(by_path.filter(|path| path.ends_with(".rs"))).collect()
}

/// Marks `path` and every file it declares.
fn visit(tree: &Tree, path: &str, is_root: bool, alive: &mut BTreeSet<String>) {
    let Some(file) = tree.file(path) else { return };
    if !alive.insert(path.to_owned()) {
        return;
    }
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let below = match name {
        "mod.rs" => folder.to_owned(),
        _ if is_root => folder.to_owned(),
        _ => path.trim_end_matches(".rs").to_owned(),
    };
    let mut given_path = None;
    for line in file.text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("#[path = \"") {
            given_path = rest.split('"').next();
        } else if let Some(module) = declared_module(line) {
            match given_path.take() {
                Some(given) => visit(tree, &resolve(path, given), false, alive),
                None => {
                    visit(tree, &format!("{below}/{module}.rs"), false, alive);
                    visit(tree, &format!("{below}/{module}/mod.rs"), false, alive);
                }
            }
        }
    }
}

/// Returns the name in a line such as `pub(crate) mod name;`.
fn declared_module(line: &str) -> Option<&str> {
    let (before, rest) = line.strip_suffix(';')?.split_once("mod ")?;
    let is_visibility = before.is_empty() || before.starts_with("pub");
    let is_name = rest.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    (is_visibility && is_name).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn names_that_say_nothing_are_found() {
        let files = [("a/src/utils.rs", ""), ("a/src/common/mod.rs", ""), ("a/src/commons.rs", "")];
        assert_eq!(found(module_names, &files), ["a/src/common/mod.rs:0", "a/src/utils.rs:0"]);
    }

    #[test]
    fn files_that_nothing_declares_are_dead() {
        let files = [
            ("a/Cargo.toml", "[lib]\n[[test]]\npath = \"special.rs\"\n"),
            ("a/special.rs", ""),
            ("a/src/lib.rs", "mod one;\npub(crate) mod two;\n// mod three;\nmod inner {}\n"),
            ("a/src/one.rs", "mod deep;\n#[path = \"odd_name.rs\"]\nmod odd;\n"),
            ("a/tests/all/main.rs", "#[path = \"../shared/mod.rs\"]\nmod shared;\n"),
            ("a/tests/shared/mod.rs", ""),
            ("a/src/one/deep.rs", ""),
            ("a/src/odd_name.rs", ""),
            ("a/src/odd.rs", ""),
            ("a/src/two/mod.rs", "mod below;\n"),
            ("a/src/two/below.rs", ""),
            ("a/src/three.rs", ""),
            ("a/src/deep.rs", ""),
            ("a/tests/whole.rs", ""),
            ("b/loose.rs", ""),
            ("c/Cargo.toml", "autotests = false\n[[test]]\npath = \"tests/main.rs\"\n"),
            ("c/tests/main.rs", "mod declared;\n"),
            ("c/tests/declared.rs", ""),
            ("c/tests/forgotten.rs", ""),
        ];
        let dead = ["a/src/deep.rs:0", "a/src/odd.rs:0", "a/src/three.rs:0", "b/loose.rs:0"];
        assert_eq!(found(dead_files, &files), [&dead[..], &["c/tests/forgotten.rs:0"]].concat());
    }
}
