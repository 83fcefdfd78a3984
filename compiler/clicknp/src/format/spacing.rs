// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Determines the blanks between two pieces on one line, and the resulting width of the line.

use super::pieces::{Comment, Piece};
use crate::lexer::MARKS;
use crate::parser::Role;
use std::ops::Range;

/// Words before a `(` that are not functions.
const KEYWORDS: [&str; 9] =
    ["if", "else", "for", "while", "do", "switch", "case", "return", "async"];

/// Returns whether a blank precedes piece `right`, which is not the first.
pub fn is_spaced(pieces: &[Piece], right: usize) -> bool {
    wants_space(pieces, right) || would_merge(pieces[right - 1].text, pieces[right].text)
}

/// Returns whether there is a blank between a comment and its neighbour on the same line.
pub fn is_comment_spaced(before: Option<&Piece>, after: Option<&Piece>) -> bool {
    !before.is_some_and(|piece| ["(", "["].contains(&piece.text))
        && !after.is_some_and(|piece| [")", "]", ",", ";"].contains(&piece.text))
}

/// Returns the columns of these pieces on one line; `None` if that exceeds `most`, or if a comment
/// between them ends a line.
pub fn width_within(pieces: &[Piece], range: Range<usize>, most: usize) -> Option<usize> {
    let mut width = 0;
    for at in range.clone() {
        let piece = &pieces[at];
        if at > range.start {
            if piece.comments.iter().any(Comment::needs_line) {
                return None;
            }
            width += match piece.comments.is_empty() {
                true => usize::from(is_spaced(pieces, at)),
                false => {
                    let gap = usize::from(is_comment_spaced(Some(&pieces[at - 1]), None));
                    let comments = piece.comments.iter().map(|it| it.text.chars().count() + gap);
                    comments.sum::<usize>() + usize::from(is_comment_spaced(None, Some(piece)))
                }
            };
        }
        width += piece.text.chars().count();
        if width > most {
            return None;
        }
    }
    Some(width)
}

/// Returns the level of a binary operator, looser ones first.
pub fn operator_level(piece: &Piece) -> Option<usize> {
    if piece.role.is_some() || piece.is_word {
        return None;
    }
    Some(match piece.text {
        "||" => 0,
        "&&" => 1,
        "|" => 2,
        "^" => 3,
        "&" => 4,
        "==" | "!=" => 5,
        "<" | "<=" | ">" | ">=" => 6,
        "<<" | ">>" => 7,
        "+" | "-" => 8,
        "*" | "/" | "%" => 9,
        _ => return None,
    })
}

/// Returns whether it is `=`, or a compound assignment operator.
pub fn is_assignment(piece: &Piece) -> bool {
    let compares = ["==", "!=", "<=", ">="].contains(&piece.text);
    piece.role.is_none() && piece.text.ends_with('=') && piece.text.len() <= 3 && !compares
}

fn wants_space(pieces: &[Piece], at: usize) -> bool {
    let (left, right) = (&pieces[at - 1], &pieces[at]);
    if let Some(is_spaced) = around_brackets(pieces, at) {
        return is_spaced;
    }
    match (left.role, right.role) {
        (Some(Role::Prefix | Role::Pointer | Role::Member | Role::CastEnd), _)
        | (_, Some(Role::Postfix | Role::Member | Role::Label)) => false,
        (Some(Role::Slice), _) => is_wide_slice(pieces, at - 1),
        (_, Some(Role::Slice)) => is_wide_slice(pieces, at),
        _ if [";", ","].contains(&right.text) => false,
        _ if ["##", "#"].contains(&left.text) || ["##", "#"].contains(&right.text) => false,
        _ => left.text != ".",
    }
}

/// Decides like [`wants_space`], if one of the two is a bracket.
fn around_brackets(pieces: &[Piece], at: usize) -> Option<bool> {
    let (left, right) = (&pieces[at - 1], &pieces[at]);
    let is_options = |piece: &Piece, at: usize| {
        let open = if piece.text == "}" { piece.mate.unwrap_or(at) } else { at };
        pieces[open].role == Some(Role::Options)
    };
    Some(match (left.text, right.text) {
        ("{", "}") => left.block().is_some(),
        ("{", _) => !is_options(left, at - 1),
        (_, "}") => !is_options(right, at),
        (_, "{") if right.role == Some(Role::Options) => false,
        (_, "{") => !matches!(left.text, "(" | "[") && left.role != Some(Role::CastEnd),
        ("(" | "[", _) => false,
        (left, ")" | "]") => left == "->",
        _ if left.role == Some(Role::Arguments) || left.role == Some(Role::Parameters) => false,
        _ if right.role == Some(Role::Arguments) || right.role == Some(Role::AngleEnd) => false,
        (_, "(") => match right.role {
            Some(Role::Ports) => true,
            _ if left.role == Some(Role::Keyword) => true,
            _ if matches!(left.text, ")" | "]") || left.role == Some(Role::AngleEnd) => false,
            _ if left.is_word => KEYWORDS.contains(&left.text),
            _ => return None,
        },
        (_, "[") => right.role == Some(Role::Selector),
        _ => return None,
    })
}

/// Returns whether the slice of that colon contains operators, so that the colon needs blanks.
fn is_wide_slice(pieces: &[Piece], colon: usize) -> bool {
    let is_inside = |piece: &&Piece| !matches!(piece.text, "[" | "]");
    let before = pieces[..colon].iter().rev().take_while(is_inside);
    let after = pieces[colon + 1..].iter().take_while(is_inside);
    before.take(SLICE_PIECES).chain(after.take(SLICE_PIECES)).any(|it| operator_level(it).is_some())
}

/// Maximum pieces on each side of a slice's colon that are searched for operators.
const SLICE_PIECES: usize = 16;

/// Returns whether two pieces without a blank between them would be read as something else.
fn would_merge(left: &str, right: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (Some(last), Some(first)) = (left.chars().last(), right.chars().next()) else {
        return false;
    };
    if is_part(last) && (is_part(first) || first == '\'') {
        return true;
    }
    if left.starts_with(|c: char| c.is_ascii_digit()) && first == '.' {
        return true;
    }
    let (mut both, comment) = (String::from(left), ["//", "/*"]);
    both.push(first);
    MARKS.contains(&left) && MARKS.iter().any(|mark| mark.starts_with(&both))
        || comment.contains(&both.as_str())
}
