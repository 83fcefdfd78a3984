// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the parser learned about single tokens, for who lays a text out anew: the same `*` is a
//! multiplication here and a pointer there, and `->` joins instances or reaches a member.

use crate::source::Span;

/// What a token does where it stands, if its text alone does not say so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// An operator before its operand.
    Prefix,
    /// `++` or `--` behind its operand.
    Postfix,
    /// The `*` of a type.
    Pointer,
    /// The `.` or `->` before a member.
    Member,
    /// The `)` behind the type of a cast.
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
    /// The `{` of what an edge is like.
    Options,
    /// The `{` of statements or other items that have lines of their own.
    Block(Block),
    /// The `:` between the ends of a slice.
    Slice,
    /// The `:` behind a label.
    Label,
    /// The `:` of a conditional expression.
    Conditional,
    /// A word that an expression follows, and that could be the name of a function.
    Keyword,
}

/// What stands between the braces of a block.
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

/// The roles of a file's tokens, and where statements of the configuration end, which no mark says.
#[derive(Clone, Debug, Default)]
pub struct Roles {
    /// By the first byte of the token, in the order of the text.
    of: Vec<(u32, Role)>,
    /// The first byte of a statement's first token, and that of its last, in the order of the text.
    config: Vec<(u32, u32)>,
}

impl Roles {
    pub(super) fn note(&mut self, token: Span, role: Role) {
        self.of.push((token.start, role));
    }

    pub(super) fn note_config(&mut self, first: Span, last: Span) {
        self.config.push((first.start, last.start));
    }

    /// The role of the token that begins at that byte.
    pub fn at(&self, start: u32) -> Option<Role> {
        let at = self.of.binary_search_by_key(&start, |(start, _)| *start).ok()?;
        Some(self.of[at].1)
    }

    /// Where the last token begins of the statement of the configuration that begins at that byte.
    pub fn config_end(&self, start: u32) -> Option<u32> {
        let at = self.config.binary_search_by_key(&start, |(start, _)| *start).ok()?;
        Some(self.config[at].1)
    }
}
