// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SVG documents. A [`Drawing`] is written from top to bottom, element by element, with attributes
//! in the order given. It escapes all texts and attribute values, so that no name of a program or
//! of a source line can break the document; it does not check which elements and attributes exist.

#![forbid(unsafe_code)]

pub mod chart;
pub mod page;
pub mod sankey;

use std::fmt::{self, Display, Write};

/// Names of attributes and their values.
pub type Attributes<'a> = &'a [(&'a str, &'a dyn Display)];

/// A document that is being written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Drawing {
    text: String,
}

/// A coordinate or length, written with one digit after the decimal point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tenths(pub f64);

impl Display for Tenths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}", self.0)
    }
}

impl Drawing {
    /// Begins a document whose root element has these attributes.
    pub fn new(attributes: Attributes<'_>) -> Self {
        let mut drawing = Self { text: "<svg xmlns=\"http://www.w3.org/2000/svg\"".into() };
        drawing.attributes(attributes);
        drawing.text += ">\n";
        drawing
    }

    /// Begins a document for a page: with a size, a title for screen readers, and a style sheet,
    /// which is written as it is.
    pub fn titled((width, height): (f64, f64), title: &str, style: &str) -> Self {
        let view = format!("0 0 {width} {height}");
        let mut drawing = Self::new(&[
            ("width", &width),
            ("height", &height),
            ("viewBox", &view),
            ("role", &"img"),
        ]);
        drawing.text("title", &[], title);
        let _ = writeln!(drawing.text, "<style>\n{style}\n</style>");
        drawing
    }

    /// Fills the whole document with a colour.
    pub fn background(&mut self, colour: &str) {
        self.element("rect", &[("width", &"100%"), ("height", &"100%"), ("fill", &colour)]);
    }

    /// Writes an element without content, and ends the line.
    pub fn element(&mut self, name: &str, attributes: Attributes<'_>) {
        let _ = write!(self.text, "<{name}");
        self.attributes(attributes);
        self.text += "/>\n";
    }

    /// Writes an element that contains a text, and ends the line.
    pub fn text(&mut self, name: &str, attributes: Attributes<'_>, text: &str) {
        self.open(name, attributes);
        self.words(text);
        self.close(name);
    }

    /// Begins an element that has content; [`close`](Self::close) ends it.
    pub fn open(&mut self, name: &str, attributes: Attributes<'_>) {
        let _ = write!(self.text, "<{name}");
        self.attributes(attributes);
        self.text.push('>');
    }

    /// Ends the innermost open element, which has this name, and the line.
    pub fn close(&mut self, name: &str) {
        let _ = writeln!(self.text, "</{name}>");
    }

    /// Writes text into the open element.
    pub fn words(&mut self, text: &str) {
        self.text += &escape(text);
    }

    /// Ends the document.
    pub fn finish(mut self) -> String {
        self.close("svg");
        self.text
    }

    fn attributes(&mut self, attributes: Attributes<'_>) {
        for (name, value) in attributes {
            let _ = write!(self.text, " {name}=\"{}\"", escape(&value.to_string()));
        }
    }
}

/// Replaces the characters that have a meaning in a document, and those that XML does not allow.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' => escaped.push('\n'),
            '\u{fffe}' | '\u{ffff}' => escaped.push(' '),
            _ if character.is_control() => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_the_document() {
        assert_eq!(escape("a<b>&\"c\"\u{1}\n\u{ffff}"), "a&lt;b&gt;&amp;&quot;c&quot; \n ");
        let mut drawing = Drawing::new(&[]);
        drawing.element("path", &[("d", &"\"/>")]);
        assert!(drawing.finish().contains("<path d=\"&quot;/&gt;\"/>"));
    }

    #[test]
    fn a_document_has_its_elements_in_order() {
        let mut drawing = Drawing::titled((20.0, 10.5), "a & b", ".x { fill: none }");
        drawing.background("#fff");
        drawing.open("g", &[("class", &"box")]);
        drawing.element("rect", &[("x", &Tenths(1.25)), ("y", &Tenths(2.0))]);
        drawing.text("text", &[("class", &"dim")], "<1>");
        drawing.close("g");
        assert_eq!(
            drawing.finish(),
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"20\" height=\"10.5\" \
             viewBox=\"0 0 20 10.5\" role=\"img\">\n<title>a &amp; b</title>\n\
             <style>\n.x { fill: none }\n</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <g class=\"box\"><rect x=\"1.2\" y=\"2.0\"/>\n<text class=\"dim\">&lt;1&gt;</text>\n\
             </g>\n</svg>\n"
        );
    }
}
