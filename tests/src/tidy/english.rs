// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules about the English of comments and documents: sentences that name their subject, and the
//! field's verbs.
//!
//! They find the crudest cases only. CONTRIBUTING.md says how we write.

use super::{File, Finding, Tree};

/// Words that do not begin a sentence: the subject does.
const BEGINNINGS: [&str; 6] = ["Who", "Whoever", "Whatever", "What", "So many", "Of"];

/// Phrases, each with what is written instead. All words of one line, in lower case.
const PHRASES: [(&str, &str); 27] = [
    ("goes on", "continues, keeps running"),
    ("go on", "continue, keep running"),
    ("went on", "continued"),
    ("gone on", "continued"),
    ("is no more", "is removed, has exited"),
    ("are no more", "are removed, have exited"),
    ("was no more", "was removed, had exited"),
    ("were no more", "were removed, had exited"),
    ("no more for", "no longer"),
    ("tell of", "report"),
    ("tells of", "reports"),
    ("told of", "notified of"),
    ("ask of", "request"),
    ("asks of", "requests"),
    ("asked of", "requested"),
    ("heard of", "received from"),
    ("behind a fork", "after a fork"),
    ("behind the fork", "after the fork"),
    ("behind a call", "after a call"),
    ("behind the call", "after the call"),
    ("behind the handshake", "after the handshake"),
    ("behind a close", "after a close"),
    ("has it that", "the fact itself"),
    ("at the other end", "the peer"),
    ("so many", "the number"),
    ("whoever", "the process, user or thread"),
    ("just then", "at that moment"),
];

/// Sentences begin with their subject.
pub fn sentences(tree: &Tree) -> Vec<Finding> {
    each_line_of_prose(tree, |text| {
        let beginning = BEGINNINGS.iter().find(|word| begins_sentence(text, word))?;
        Some(format!("a sentence begins with `{beginning}`; name its subject"))
    })
}

/// The field's verbs and nouns stand where a vague phrase could.
pub fn phrases(tree: &Tree) -> Vec<Finding> {
    each_line_of_prose(tree, |text| {
        let text = text.to_lowercase();
        let (phrase, instead) = PHRASES.iter().find(|(phrase, _)| has_words(&text, phrase))?;
        Some(format!("`{phrase}`: write what happens, such as `{instead}`"))
    })
}

/// Whether a sentence on this line begins with `word`. Questions may.
fn begins_sentence(text: &str, word: &str) -> bool {
    if text.contains('?') || text.contains("Of course") {
        return false;
    }
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].trim_end();
        let is_word = text[at + word.len()..].starts_with(' ');
        is_word && (before.is_empty() || before.ends_with('.'))
    })
}

/// Whether the words of `phrase` follow each other in `text`, as whole words.
fn has_words(text: &str, phrase: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(phrase).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + phrase.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

fn each_line_of_prose(tree: &Tree, check: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = vec![];
    // This file quotes what it forbids.
    for file in tree.files.iter().filter(|file| !file.path.ends_with("tidy/english.rs")) {
        let mut in_code = false;
        for (at, line) in file.text.lines().enumerate() {
            in_code ^= line.trim_start().starts_with("```");
            let prose = if file.extension() == "md" {
                (!in_code && !line.starts_with('#'))
                    .then(|| line.trim_start_matches(['-', '|', ' ']))
            } else {
                comment(file, line)
            };
            findings.extend(prose.and_then(&check).map(|message| file.finding(at + 1, message)));
        }
    }
    findings
}

/// The text of the comment on this line, if there is one.
fn comment<'a>(file: &File, line: &'a str) -> Option<&'a str> {
    let mark = match file.extension() {
        "rs" | "c" | "h" | "cnp" | "sv" | "v" | "cpp" => "//",
        "py" | "sh" | "toml" => "#",
        _ if file.is_source() => "#",
        _ => return None,
    };
    let starts = line.match_indices(mark).map(|(at, _)| at);
    // Not within a text in quotes, nor an address or an attribute.
    let at = starts.into_iter().find(|&at| {
        let before = &line[..at];
        before.matches('"').count().is_multiple_of(2)
            && (before.is_empty() || before.ends_with(' '))
    })?;
    Some(line[at..].trim_start_matches(['/', '!', '#', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn a_sentence_names_its_subject() {
        let files = [
            ("a.rs", "/// Who waits is woken.\n// It ends. What is left, is freed.\n"),
            ("b.md", "What it does?\n\nSo many bytes.\n## What it does\n```\nWho is it\n```\n"),
            ("c.c", "int x; // Of both the first.\nchar *it = \"// Who \";\n// Of course not.\n"),
            ("d.sh", "# Whatever is there.\n"),
        ];
        assert_eq!(found(sentences, &files), ["a.rs:1", "a.rs:2", "b.md:3", "c.c:1", "d.sh:1"]);
    }

    #[test]
    fn vague_phrases_are_found_as_whole_words() {
        let files = [
            ("a.rs", "// The stream goes on.\n// It goes one by one.\nlet goes_on = 1;\n"),
            ("b.md", "It runs behind a fork.\n\n    behind the forked child\n"),
        ];
        assert_eq!(found(phrases, &files), ["a.rs:1", "b.md:1"]);
    }
}
