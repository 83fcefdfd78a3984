// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Roles of ambiguous tokens, recorded by the parser for the formatter: the same `*` may be a
//! multiplication or part of a pointer type, and `->` connects instances or accesses a member.

use crate::source::Span;

/// Role of a token, if its text alone is ambiguous.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A prefix operator.
    Prefix,
    /// `++` or `--` after its operand.
    Postfix,
    /// The `*` of a type.
    Pointer,
    /// The `.` or `->` before a member.
    Member,
    /// The `)` after the type of a cast.
    CastEnd,
    /// The `<` before parameters.
    Parameters,
    /// The `<` before arguments, or before the width of a type.
    Arguments,
    /// The `>` that ends parameters or arguments; a `>>` may end two.
    AngleEnd,
    /// The `(` before ports.
    Ports,
    /// The `[` around a port, of an instance in a chain.
    Selector,
    /// The `{` of the options of an edge.
    Options,
    /// The `{` of a block of statements or other items on lines of their own.
    Block(Block),
    /// The `:` between the ends of a slice.
    Slice,
    /// The `:` after a label.
    Label,
    /// The `:` of a conditional expression.
    Conditional,
    /// A keyword that is followed by an expression and could be mistaken for a function name.
    Keyword,
}

/// Contents of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Block {
    /// Statements.
    Statements,
    /// The arms of a `switch`.
    Switch,
    /// The variables of an element.
    State,
    /// The sections of an element or a manager.
    Sections,
    /// The configuration of a group.
    Group,
    /// The members of a struct or union.
    Record,
    /// The values of an enum.
    Enum,
}

/// The roles of a file's tokens, and the ends of configuration statements, which no mark indicates.
#[derive(Clone, Debug, Default)]
pub struct Roles {
    /// Roles by the first byte of the token, in the order of the text.
    of: Vec<(u32, Role)>,
    /// First bytes of the first and the last token of each statement, in the order of the text.
    config: Vec<(u32, u32)>,
}

impl Roles {
    pub(super) fn note(&mut self, token: Span, role: Role) {
        self.of.push((token.start, role));
    }

    pub(super) fn note_config(&mut self, first: Span, last: Span) {
        self.config.push((first.start, last.start));
    }

    /// Returns the role of the token that begins at that byte.
    pub fn at(&self, start: u32) -> Option<Role> {
        let at = self.of.binary_search_by_key(&start, |(start, _)| *start).ok()?;
        Some(self.of[at].1)
    }

    /// Returns the first byte of the last token of the configuration statement that begins at
    /// `start`.
    pub fn config_end(&self, start: u32) -> Option<u32> {
        let at = self.config.binary_search_by_key(&start, |(start, _)| *start).ok()?;
        Some(self.config[at].1)
    }
}
