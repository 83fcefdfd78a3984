// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks that two texts differ only in white space: they have the same tokens, with the same
//! comments between the same tokens. It parses both texts independently of how one was produced
//! from the other.

use super::pieces::{Piece, pieces_of};
use crate::lexer::tokens_of;
use crate::parser::Roles;
use crate::source::SourceMap;

/// Returns the first difference between `before` and `after` other than white space, if any.
pub fn first_change(before: &str, after: &str) -> Option<String> {
    with_pieces(before, |one| {
        with_pieces(after, |other| {
            let pairs = one.iter().zip(other);
            let changed = pairs.clone().find(|(one, other)| !is_same(one, other));
            match changed {
                Some((one, _)) => Some(format!("`{}`, or a comment before it", one.text)),
                None if one.len() != other.len() => Some("the end of the text".into()),
                None => None,
            }
        })
    })
}

fn with_pieces<T>(text: &str, look: impl FnOnce(&[Piece]) -> T) -> T {
    let mut sources = SourceMap::default();
    let file = sources.add("text", text);
    let tokens = tokens_of(&sources, file, &mut vec![]);
    look(&pieces_of(text, &tokens, &Roles::default()))
}

fn is_same(one: &Piece, other: &Piece) -> bool {
    let comments = |piece: &Piece| piece.comments.iter().flat_map(|it| lines(it.text)).count();
    let same_comments = || {
        let lines_of_one = one.comments.iter().flat_map(|it| lines(it.text));
        let lines_of_other = other.comments.iter().flat_map(|it| lines(it.text));
        lines_of_one.eq(lines_of_other)
    };
    one.text == other.text
        && one.is_in_pragma == other.is_in_pragma
        && one.comments.len() == other.comments.len()
        && comments(one) == comments(other)
        && same_comments()
}

/// Returns the lines of a comment, trimmed.
fn lines(comment: &str) -> impl Iterator<Item = &str> {
    comment.split('\n').map(str::trim)
}
