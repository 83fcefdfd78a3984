// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The manual block of an element or a group: the `/** ... */` right before it, in fields.
//!
//! ```text
//! /**
//!  * purpose: Counts packets.
//!  * input: in: any packets
//!  * output: out: the same packets
//!  * example: Count :: counter @
//!  *   from_tor -> counter -> to_tor
//!  */
//! ```
//!
//! A line `key: text` begins a field if the key is one of [`Field::ALL`]; every other line
//! continues the previous field.

/// The fields of a manual block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Field {
    /// Purpose, in a sentence or two.
    Purpose,
    /// `name: text`, for an input port.
    Input,
    /// `name: text`, for an output port.
    Output,
    /// `name: text`, for a compile-time parameter.
    Parameter,
    /// Meaning of a signal, and its answer.
    Signal,
    /// `name: text`, for a method.
    Method,
    /// Clocks between firings in hardware, with the reason.
    Interval,
    /// A configuration that uses it.
    Example,
    /// Origin of the idea.
    Source,
}

impl Field {
    /// Every field, in the order of a page.
    pub const ALL: [Field; 9] = [
        Field::Purpose,
        Field::Input,
        Field::Output,
        Field::Parameter,
        Field::Signal,
        Field::Method,
        Field::Interval,
        Field::Example,
        Field::Source,
    ];

    /// Returns its key in the block.
    pub fn key(self) -> &'static str {
        match self {
            Field::Purpose => "purpose",
            Field::Input => "input",
            Field::Output => "output",
            Field::Parameter => "parameter",
            Field::Signal => "signal",
            Field::Method => "method",
            Field::Interval => "interval",
            Field::Example => "example",
            Field::Source => "source",
        }
    }

    /// Returns the field with that key.
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.key() == key)
    }
}

/// A manual block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Manual {
    /// Fields and their texts, in the order written; a field may occur several times. The lines of
    /// a text keep their indentation relative to the least indented one.
    pub fields: Vec<(Field, String)>,
}

impl Manual {
    /// Parses the text between `/**` and `*/`. Lines before the first field are ignored.
    pub fn parse(block: &str) -> Self {
        let mut fields: Vec<(Field, Vec<&str>)> = vec![];
        for line in block.lines() {
            let line = line.trim();
            let line = line.strip_prefix('*').map_or(line, |rest| rest.trim_end());
            let key = line.split_once(':');
            let field = key.and_then(|(key, text)| Some((Field::of_key(key.trim())?, text)));
            match (field, fields.last_mut()) {
                (Some((field, text)), _) => fields.push((field, vec![text.trim()])),
                (None, Some((_, lines))) => lines.push(line),
                (None, None) => {}
            }
        }
        let joined = fields.into_iter().map(|(field, lines)| (field, join(&lines)));
        Self { fields: joined.collect() }
    }

    /// Returns the texts of a field.
    pub fn all(&self, field: Field) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(move |(own, _)| *own == field).map(|(_, text)| text.as_str())
    }

    /// Returns the text of a field's first occurrence.
    pub fn first(&self, field: Field) -> Option<&str> {
        self.all(field).next()
    }

    /// Returns the name and the text of each field such as `input: in: any packets`.
    pub fn named(&self, field: Field) -> impl Iterator<Item = (&str, &str)> {
        self.all(field).map(|text| match text.split_once(':') {
            Some((name, text)) if !name.contains(char::is_whitespace) => (name, text.trim()),
            _ => ("", text),
        })
    }
}

/// Joins the first line and the others without their common indentation.
fn join(lines: &[&str]) -> String {
    let (first, rest) = lines.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
    let indent = |line: &&&str| line.len() - line.trim_start().len();
    let shared = rest.iter().filter(|line| !line.is_empty()).map(|line| indent(&line)).min();
    let rest = rest.iter().map(|line| line.get(shared.unwrap_or(0)..).unwrap_or(line.trim()));
    let text: Vec<&str> = [first].into_iter().chain(rest).collect();
    text.join("\n").trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_into_fields() {
        let manual = Manual::parse(
            "\n * purpose: Counts packets\n *   of any length.\n * input: in: any packets\n \
             * input: more\n * note: not a field\n * example:\n *   Count :: c @\n *     a -> c\n ",
        );
        assert_eq!(manual.first(Field::Purpose), Some("Counts packets\nof any length."));
        let inputs: Vec<_> = manual.named(Field::Input).collect();
        assert_eq!(inputs, [("in", "any packets"), ("", "more\nnote: not a field")]);
        assert_eq!(manual.first(Field::Example), Some("Count :: c @\n  a -> c"));
        assert_eq!(manual.first(Field::Signal), None);
    }

    #[test]
    fn any_text_is_a_manual() {
        assert_eq!(Manual::parse(""), Manual::default());
        assert_eq!(Manual::parse("é\n*\n *ü: x\npurpose:").fields.len(), 1);
        assert_eq!(Manual::parse("purpose: é\n  é\n \u{3000}ü").fields.len(), 1);
    }
}
