// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules about single source files, line by line.

use super::{File, Finding, Tree};

const LONGEST_LINE: usize = 100;
const MOST_LINES: usize = 600;
const LICENCE: &str = "SPDX-License-Identifier: Apache-2.0 OR MIT";
// Programs loaded by the kernel: its helpers require such a licence.
const KERNEL_LICENCE: &str = "SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause";

// Split in two, so that this file does not break its own rule.
const MARKS: [(&str, &str); 6] = [
    ("dbg", "!("),
    ("todo", "!("),
    ("unimplemented", "!("),
    ("FIX", "ME"),
    ("XX", "X"),
    ("HA", "CK"),
];
const PRINTS: [(&str, &str); 4] =
    [(" println", "!("), (" print", "!("), (" eprintln", "!("), (" eprint", "!(")];

/// Lines have at most 100 characters.
pub fn line_length(tree: &Tree) -> Vec<Finding> {
    each_line(tree, |_, line| {
        let length = line.chars().count();
        (length > LONGEST_LINE).then(|| format!("{length} characters; at most {LONGEST_LINE}"))
    })
}

/// The licence is named in one of the first three lines. Kernel programs (`.bpf.c` and the headers
/// they include, `.bpf.h`) name one that the kernel accepts.
pub fn licence_line(tree: &Tree) -> Vec<Finding> {
    let sources = tree.files.iter().filter(|file| file.is_source());
    let is_for_kernel = |file: &File| [".bpf.c", ".bpf.h"].iter().any(|it| file.path.ends_with(it));
    let licence = |file: &File| if is_for_kernel(file) { KERNEL_LICENCE } else { LICENCE };
    let is_bare =
        |file: &&File| !file.text.lines().take(3).any(|line| line.contains(licence(file)));
    let reported =
        |file: &File| file.finding(1, format!("put `{}` into the first line", licence(file)));
    sources.filter(is_bare).map(reported).collect()
}

/// Nothing unfinished is left.
pub fn leftover_marks(tree: &Tree) -> Vec<Finding> {
    each_line(tree, |_, line| {
        let mark = find(&MARKS, line)?;
        Some(format!("`{mark}` is left over; finish it or remove it"))
    })
}

/// Libraries do not print; the command line does.
pub fn console_prints(tree: &Tree) -> Vec<Finding> {
    each_line_outside_tests(tree, |file, line| {
        if file.path.starts_with("cli/") || file.path.ends_with("build.rs") {
            return None;
        }
        let print = find(&PRINTS, &format!(" {}", line.trim_start()))?;
        Some(format!("`{}` in a library; return the text instead", print.trim_start()))
    })
}

/// A result is handled, or a stated invariant rules the error out.
pub fn unwraps(tree: &Tree) -> Vec<Finding> {
    each_line_outside_tests(tree, |_, line| {
        let code = line.split("//").next().unwrap_or(line);
        let message = "handle the error, or `expect` with the invariant that rules it out";
        code.contains(concat!(".unw", "rap()")).then(|| message.into())
    })
}

/// A value that another process may have written is checked, or a comment states why that is not
/// needed.
pub fn claims(tree: &Tree) -> Vec<Finding> {
    /// Maximum distance in lines between the comment and its use.
    const NEAR: usize = 8;
    let message = "check the claim, or state after `// CLAIM:` above how a false one is handled";
    let mut findings = vec![];
    for file in &tree.files {
        if !["fabric/", "sockets/"].iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        let mut said = None;
        for (at, line) in file.lines_outside_tests() {
            if line.trim_start().starts_with("// CLAIM: ") {
                said = Some(at);
            } else if line.contains(concat!(".ra", "w()")) && said.is_none_or(|it| it + NEAR < at) {
                findings.push(file.finding(at, message));
            }
        }
    }
    findings
}

/// Files have at most 600 lines, or state a reason.
pub fn file_length(tree: &Tree) -> Vec<Finding> {
    let long = tree.files.iter().filter(|file| {
        let states_reason = file.text.lines().take(30).any(|line| {
            let comment = line.trim_start_matches(['/', '#', '!', ' ']);
            comment.strip_prefix("Long because:").is_some_and(|reason| reason.trim().len() > 10)
        });
        file.is_source() && file.text.lines().count() > MOST_LINES && !states_reason
    });
    let message = |file: &File| {
        let count = file.text.lines().count();
        format!("{count} lines; at most {MOST_LINES}, or a line `// Long because: ...`")
    };
    long.map(|file| file.finding(0, message(file))).collect()
}

/// A Rust file opens with a description of itself.
pub fn module_headers(tree: &Tree) -> Vec<Finding> {
    let rust = tree.files.iter().filter(|file| file.extension() == "rs");
    let silent = rust.filter(|file| !file.text.lines().take(4).any(|line| line.starts_with("//!")));
    silent.map(|file| file.finding(2, "describe the file with `//!`")).collect()
}

fn find(pieces: &[(&str, &str)], line: &str) -> Option<String> {
    pieces.iter().map(|(head, tail)| format!("{head}{tail}")).find(|mark| line.contains(mark))
}

fn each_line(tree: &Tree, check: impl Fn(&File, &str) -> Option<String>) -> Vec<Finding> {
    let mut findings = vec![];
    for file in tree.files.iter().filter(|file| file.is_source()) {
        for (at, line) in file.text.lines().enumerate() {
            findings.extend(check(file, line).map(|message| file.finding(at + 1, message)));
        }
    }
    findings
}

fn each_line_outside_tests(
    tree: &Tree,
    check: impl Fn(&File, &str) -> Option<String>,
) -> Vec<Finding> {
    let mut findings = vec![];
    for file in tree.files.iter().filter(|file| file.extension() == "rs") {
        for (number, line) in file.lines_outside_tests() {
            findings.extend(check(file, line).map(|message| file.finding(number, message)));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn a_line_of_101_characters_is_too_long_and_one_of_100_is_not() {
        let text = format!("{}\n{}\n", "x".repeat(100), "é".repeat(101));
        let files = [("a.rs", text.as_str()), ("a.md", text.as_str()), ("Makefile", &text)];
        assert_eq!(found(line_length, &files), ["Makefile:2", "a.rs:2"]);
    }

    #[test]
    fn every_kind_of_source_names_the_licence() {
        let named = format!("#!/bin/sh\n# {LICENCE}\n");
        let files = [
            ("a.sh", named.as_str()),
            ("b.sh", "#!/bin/sh\n"),
            ("c.cnp", ""),
            ("d.md", ""),
            ("e.h", "// Licence: mine\n"),
            (".ci/run", ""),
            ("f.bpf.c", "// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause\n"),
            ("g.c", "// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause\n"),
            ("h.bpf.h", "/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */\n"),
        ];
        assert_eq!(
            found(licence_line, &files),
            [".ci/run:1", "b.sh:1", "c.cnp:1", "e.h:1", "g.c:1"]
        );
    }

    #[test]
    fn each_leftover_mark_is_found() {
        for (head, tail) in MARKS {
            let text = format!("fine\n    // {head}{tail}\n");
            assert_eq!(found(leftover_marks, &[("a.c", text.as_str())]), ["a.c:2"], "{head}");
        }
    }

    #[test]
    fn libraries_do_not_print_but_tests_and_the_command_line_may() {
        let print = format!("    {}{}\"x\");\n", PRINTS[0].0.trim(), PRINTS[0].1);
        let in_test = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{print}}}\n");
        let files = [
            ("lib/a.rs", print.as_str()),
            ("lib/b.rs", &in_test),
            ("lib/tests/c.rs", &print),
            ("cli/src/main.rs", &print),
        ];
        assert_eq!(found(console_prints, &files), ["lib/a.rs:1"]);
    }

    #[test]
    fn unwrap_is_for_tests() {
        let call = concat!("let x = y.unw", "rap();\n");
        let in_test = format!("#[cfg(test)]\nmod tests {{\n{call}}}\n");
        let comment = format!("// {call}");
        let files = [("a.rs", call), ("b.rs", in_test.as_str()), ("c.rs", comment.as_str())];
        assert_eq!(found(unwraps, &files), ["a.rs:1"]);
    }

    #[test]
    fn what_is_done_about_lies_is_said_near_by() {
        let call = concat!("let x = word.ra", "w();\n");
        let said = format!("// CLAIM: bounded below.\n{call}");
        let far = format!("// CLAIM: bounded below.\n{}{call}", "\n".repeat(9));
        let files = [
            ("fabric/a.rs", call),
            ("sockets/b.rs", &said),
            ("sockets/c.rs", &far),
            ("sockets/tests/d.rs", call),
            ("compiler/e.rs", call),
        ];
        assert_eq!(found(claims, &files), ["fabric/a.rs:1", "sockets/c.rs:11"]);
    }

    #[test]
    fn a_long_file_gives_a_reason() {
        let lines = "x\n".repeat(601);
        let reasoned = format!("// Long because: it is one table of cases\n{lines}");
        let hollow = format!("// Long because: \n{lines}");
        let files =
            [("a.rs", lines.as_str()), ("b.rs", &reasoned), ("c.rs", &hollow), ("d.md", &lines)];
        assert_eq!(found(file_length, &files), ["a.rs:0", "c.rs:0"]);
    }

    #[test]
    fn a_module_says_what_it_is() {
        let files = [("a.rs", "// licence\nuse b;\n"), ("b.rs", "// licence\n//! The b.\n")];
        assert_eq!(found(module_headers, &files), ["a.rs:2"]);
    }
}
