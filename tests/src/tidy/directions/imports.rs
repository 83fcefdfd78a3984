// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds the paths in a Rust file that begin at the root of its crate: after `crate::`, and after
//! as many `super::` as lead to the root. The file must be formatted by rustfmt: an inline module
//! ends with a brace at its own indentation.

/// A path that begins at the root of the crate.
#[derive(PartialEq, Eq, Debug)]
pub struct Import {
    /// Line number, from 1.
    pub line: usize,
    /// First name of the path; `*` for a glob.
    pub name: String,
    /// Source text up to that name.
    pub text: String,
}

/// Returns all such paths outside tests. `depth` is the number of modules from the root to the
/// file.
pub fn imports(text: &str, depth: usize) -> Vec<Import> {
    let lines: Vec<&str> = text.lines().map(without_comment).collect();
    let is_test = lines_of_tests(&lines);
    let mut found = vec![];
    // Indentations of the inline modules around the present line.
    let mut modules: Vec<usize> = vec![];
    for (at, line) in lines.iter().enumerate() {
        if modules.last().is_some_and(|indent| line[..].starts_with(&closing(*indent))) {
            modules.pop();
        }
        if !is_test[at] {
            for (start, length) in roots(line, depth + modules.len()) {
                let names = names_after(&lines, at, start + length);
                let spelling = &line[start..start + length];
                found.extend(names.into_iter().map(|(line, name)| {
                    let text = format!("{spelling}{name}");
                    Import { line: line + 1, name, text }
                }));
            }
        }
        if is_module(line) {
            modules.push(indentation(line));
        }
    }
    found
}

/// Returns the line up to `//`.
fn without_comment(line: &str) -> &str {
    line.split("//").next().unwrap_or(line)
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the line that ends an item with this indentation.
fn closing(indent: usize) -> String {
    format!("{}}}", " ".repeat(indent))
}

/// Returns whether an inline module begins on this line.
fn is_module(line: &str) -> bool {
    let declaration = line.trim().strip_suffix('{').map(str::trim_end);
    let name = declaration.and_then(|it| match it.rsplit_once("mod ") {
        Some(("", name)) => Some(name),
        Some((before, name)) if before.starts_with("pub") => Some(name),
        _ => None,
    });
    name.is_some_and(|name| name.chars().all(|letter| letter.is_alphanumeric() || letter == '_'))
}

/// Returns for each line whether it belongs to an item under `#[cfg(test)]`.
fn lines_of_tests(lines: &[&str]) -> Vec<bool> {
    let mut is_test = vec![false; lines.len()];
    let mut at = 0;
    while at < lines.len() {
        if lines[at].trim() != "#[cfg(test)]" {
            at += 1;
            continue;
        }
        let indent = indentation(lines[at]);
        while at < lines.len() && lines[at].trim_start().starts_with("#[") {
            is_test[at] = true;
            at += 1;
        }
        let is_whole = |line: &str| line.trim_end().ends_with([';', ',', '}']);
        let ends = |line: &str| line.starts_with(&closing(indent));
        let mut is_first = true;
        while at < lines.len() {
            let is_last = if is_first { is_whole(lines[at]) } else { ends(lines[at]) };
            is_test[at] = true;
            at += 1;
            if is_last {
                break;
            }
            is_first = false;
        }
    }
    is_test
}

/// Returns the start and length of each `crate::` in a line, and of each series of `super::` that
/// leads to the root from `depth` modules below it.
fn roots(line: &str, depth: usize) -> Vec<(usize, usize)> {
    let mut found = vec![];
    let mut at = 0;
    while let Some(start) = line[at..].find("::").map(|colons| at + colons) {
        let word = |end: usize| line[..end].rfind(|it: char| !(it.is_alphanumeric() || it == '_'));
        let begin = word(start).map_or(0, |before| before + 1);
        match &line[begin..start] {
            "crate" => {
                found.push((begin, start + 2 - begin));
                at = start + 2;
            }
            "super" => {
                let mut end = start + 2;
                while line[end..].starts_with("super::") {
                    end += "super::".len();
                }
                if (end - begin) / "super::".len() >= depth {
                    found.push((begin, end - begin));
                }
                at = end;
            }
            _ => at = start + 2,
        }
    }
    found
}

/// Returns the next names of a path, several for a group in braces, with their lines from 0.
fn names_after(lines: &[&str], line: usize, column: usize) -> Vec<(usize, String)> {
    let name = |text: &str| -> String {
        let text = text.trim_start();
        if text.starts_with('*') {
            return "*".to_owned();
        }
        text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
    };
    let rest = &lines[line][column..];
    if !rest.starts_with('{') {
        return vec![(line, name(rest))];
    }
    let (mut found, mut open) = (vec![], 0);
    for (at, text) in lines.iter().enumerate().skip(line) {
        let from = if at == line { column } else { 0 };
        for (place, letter) in text.char_indices().skip_while(|(place, _)| *place < from) {
            let is_start = match letter {
                '{' => {
                    open += 1;
                    open == 1
                }
                '}' => {
                    open -= 1;
                    false
                }
                ',' => open == 1,
                _ => false,
            };
            if open == 0 {
                return found;
            }
            if is_start {
                found.extend(first_name(lines, at, place + 1, name));
            }
        }
    }
    found
}

/// Returns the next name from a position on, which may be on a later line; none before a closing
/// brace.
fn first_name(
    lines: &[&str],
    line: usize,
    column: usize,
    name: impl Fn(&str) -> String,
) -> Option<(usize, String)> {
    let rest = lines.iter().enumerate().skip(line);
    let mut texts = rest.map(|(at, text)| (at, if at == line { &text[column..] } else { text }));
    let (at, text) = texts.find(|(_, text)| !text.trim().is_empty())?;
    let found = name(text);
    (!found.is_empty()).then_some((at, found))
}
