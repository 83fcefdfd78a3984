// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Texts for the formatter: the files of a folder, and texts with changed white space and
//! additional comments.

use fastrand::Rng;
use freeport_clicknp::lexer::{Token, TokenKind, tokens_of};
use freeport_clicknp::source::SourceMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Text inserted between tokens: first blanks that are allowed where a line must not end, then
/// others.
const BLANKS: [&str; 3] = [" ", "\t", "  /* a */ "];
const LINES: [&str; 11] = [
    "\n",
    "\n\n\n",
    "\r\n\t",
    "   \n  ",
    " // é\n",
    " // to the end\n",
    "\n// own\n",
    " /* b */",
    "\n/* c\n     d */\n",
    " /* e\n    * f */ ",
    "\n\n  /* g */ /* h */\n",
];

/// Returns the `.cnp` files of a folder with their texts.
pub fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut all = vec![];
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "cnp") {
            let text = fs::read_to_string(&path).unwrap();
            all.push((path, text));
        }
    }
    all
}

/// Changes the text between tokens; most gaps are removed, become one blank or stay unchanged, so
/// that lines get long and short.
pub fn respaced(text: &str, random: &mut Rng) -> String {
    let mut sources = SourceMap::default();
    let file = sources.add("text.cnp", text);
    let tokens = tokens_of(&sources, file, &mut vec![]);
    let often = [4, 20, 200][random.usize(..3)];
    let mut other = String::new();
    let mut end = 0;
    for token in &tokens {
        let between = &text[end..token.span.start as usize];
        let is_pragma = matches!(token.kind, TokenKind::Pragma(_));
        match random.u32(0..often) {
            0 => other += LINES[random.usize(..LINES.len())],
            1 => other += BLANKS[random.usize(..BLANKS.len())],
            // Two tokens without anything between them could merge.
            _ if between.is_empty() => {}
            _ if between.contains("//") || random.bool() => other += between,
            _ => other += " ",
        }
        let is_first = other.rsplit('\n').next().is_none_or(|line| line.trim().is_empty());
        if is_pragma && !is_first {
            other.push('\n');
        }
        other += &token_text(text, token, is_pragma);
        end = token.span.end as usize;
    }
    other
}

/// Returns a token as written; a pragma gets its own line.
fn token_text(text: &str, token: &Token, is_pragma: bool) -> String {
    let own = &text[token.span.start as usize..token.span.end as usize];
    if is_pragma { format!("{own}\n") } else { own.to_string() }
}
