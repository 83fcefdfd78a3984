// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random functions of the C subset, written so that one text is both ClickNP and C23.
//!
//! The front-end oracle compiles each text twice: by our front end, and as plain C by clang with
//! `_BitInt`. The text avoids C's undefined behaviour (see [`Writer`]); flags determine the
//! implementation-defined behaviour (`-fwrapv`, `-fno-strict-aliasing`). Operations that are total
//! beyond C are tested elsewhere, one by one.

use super::writer::{Integer, Writer};
use std::fmt::Write;

/// A function text and what is needed to call it.
pub struct GeneratedFunction {
    /// Name of the function.
    pub name: String,
    /// Types of its parameters.
    pub params: Vec<Integer>,
    /// Type of its result.
    pub result: Integer,
    /// Definition, in both languages.
    pub text: String,
}

/// Generates the function of that number and seed; the same seed gives the same text.
pub fn generate(number: usize, seed: u64) -> GeneratedFunction {
    let mut writer = Writer::new(seed);
    let name = format!("f{number}");
    let params: Vec<_> =
        (0..writer.random.usize(1..=4)).map(|_| Integer::random(&mut writer.random)).collect();
    let result = Integer::random(&mut writer.random);
    let mut head = format!("inline {} {name}(", result.name());
    for (at, ty) in params.iter().enumerate() {
        let _ = write!(head, "{}{} p{at}", if at > 0 { ", " } else { "" }, ty.name());
        writer.variables.push((format!("p{at}"), *ty));
    }
    writer.declarations();
    writer.statements(3, false);
    let value = writer.expression(4);
    writer.line(&format!("return {value};"));
    let text = format!("{head}) {{\n{}}}\n", writer.text);
    GeneratedFunction { name, params, result, text }
}

/// Typedefs that define ClickNP's built-in types in C.
pub fn c_prelude(functions: &[GeneratedFunction]) -> String {
    let mut widths: Vec<u32> = functions
        .iter()
        .flat_map(|function| function.text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
        .filter_map(|word| word.strip_prefix("uint").or_else(|| word.strip_prefix("int")))
        .filter_map(|digits| digits.parse().ok())
        .collect();
    widths.sort_unstable();
    widths.dedup();
    let mut text = String::from("#include <stdint.h>\n#include <string.h>\n");
    for width in widths {
        let _ = writeln!(text, "typedef _BitInt({width}) int{width};");
        let _ = writeln!(text, "typedef unsigned _BitInt({width}) uint{width};");
    }
    text
}
