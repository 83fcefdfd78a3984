// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The order of elements: by numbers, where equal ones are ordered by the elements, or by texts,
//! byte by byte.

use std::cmp::Ordering;

use freeport_kv_types::Entry;
use freeport_kv_types::zset::parse_score;

use super::elements::Elements;
use super::options::Options;
use super::pattern::Pattern;
use crate::database::Database;
use crate::error::Error;

const NO_NUMBER: Error = Error::fixed("ERR One or more scores can't be converted into double");

/// The elements that are wanted, in their order. If it has to be repeatable, equal sets have the
/// same order also where none was asked for.
///
/// # Errors
/// Some weight is no number.
pub fn sorted<'a>(
    database: &Database<'_>,
    elements: &Elements<'a>,
    options: &Options<'_>,
    is_repeatable: bool,
) -> Result<Vec<Entry<'a>>, Error> {
    let range = options.range(elements.len());
    let is_ordered_set = matches!(elements, Elements::Set(_)) && is_repeatable;
    let mut sorted = match options.by {
        Some(Pattern::Nothing) if is_ordered_set => by_text(elements.all(), options.is_descending),
        Some(Pattern::Nothing) => {
            return Ok(elements.in_their_order(range, options.is_descending));
        }
        None if options.is_alphabetic => by_text(elements.all(), options.is_descending),
        Some(pattern) if options.is_alphabetic => {
            // Elements with equal weights stay in their order.
            let all = match is_ordered_set {
                true => by_text(elements.all(), false),
                false => elements.all(),
            };
            by_other_text(database, all, pattern, options.is_descending)
        }
        by => by_number(database, elements.all(), by, options.is_descending)?,
    };
    sorted.truncate(range.end);
    sorted.drain(..range.start);
    Ok(sorted)
}

fn directed(order: Ordering, is_descending: bool) -> Ordering {
    if is_descending { order.reverse() } else { order }
}

fn by_text(mut elements: Vec<Entry<'_>>, is_descending: bool) -> Vec<Entry<'_>> {
    elements.sort_unstable_by(|one, other| directed(one.compare(*other), is_descending));
    elements
}

fn by_other_text<'a>(
    database: &Database<'_>,
    elements: Vec<Entry<'a>>,
    pattern: Pattern<'_>,
    is_descending: bool,
) -> Vec<Entry<'a>> {
    // An element without a weight comes before all others.
    let text_of = |element: Entry<'a>| {
        element
            .with_bytes(|element| pattern.read(database, element, |text| text.map(<[u8]>::to_vec)))
    };
    let mut weighted: Vec<_> =
        elements.into_iter().map(|element| (text_of(element), element)).collect();
    weighted.sort_by(|(one, _), (other, _)| directed(one.cmp(other), is_descending));
    weighted.into_iter().map(|(_, element)| element).collect()
}

fn by_number<'a>(
    database: &Database<'_>,
    elements: Vec<Entry<'a>>,
    by: Option<Pattern<'_>>,
    is_descending: bool,
) -> Result<Vec<Entry<'a>>, Error> {
    let mut weighted = Vec::with_capacity(elements.len());
    for element in elements {
        let weight = match (by, element) {
            (None, Entry::Integer(number)) => number as f64,
            (None, Entry::Bytes(text)) => number(text)?,
            (Some(pattern), element) => element.with_bytes(|element| {
                pattern.read(database, element, |text| text.map_or(Ok(0.0), number))
            })?,
        };
        weighted.push((weight, element));
    }
    weighted.sort_unstable_by(|(one, element), (other, other_element)| {
        let order = one.partial_cmp(other).unwrap_or(Ordering::Equal);
        directed(order.then_with(|| element.compare(*other_element)), is_descending)
    });
    Ok(weighted.into_iter().map(|(_, element)| element).collect())
}

/// A weight, as C reads it: spaces may come before it, a zero byte ends it, and no text is zero.
fn number(text: &[u8]) -> Result<f64, Error> {
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let text = &text[..end];
    if text.is_empty() {
        return Ok(0.0);
    }
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let spaces = text.iter().take_while(|byte| is_space(byte)).count();
    parse_score(&text[spaces..]).ok_or(NO_NUMBER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_as_c_does() {
        for (text, expected) in
            [("", 0.0), (" 1.5", 1.5), ("-3", -3.0), ("0x10", 16.0), ("2\0x", 2.0), ("1e3", 1e3)]
        {
            assert_eq!(number(text.as_bytes()), Ok(expected), "{text}");
        }
        for text in [" ", "1 ", "x", "nan", "1e400"] {
            assert_eq!(number(text.as_bytes()), Err(NO_NUMBER), "{text}");
        }
    }
}
