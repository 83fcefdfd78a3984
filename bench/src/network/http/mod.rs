// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A subset of HTTP/1.1 for a small server and its clients: GET, known lengths, and connections
//! that are kept or closed.

mod client;
mod load;
mod server;

pub use client::{Connection, Response, get};
pub use load::{Connections, Load, Outcome};
pub use server::HttpServer;

use std::io::{self, BufRead};

/// Maximum number of header lines.
const MOST_LINES: usize = 100;
/// Maximum length of a line in bytes.
const MOST_LINE_BYTES: u64 = 8_192;

/// Reads the lines of a head, without the empty line after it; none if the peer closed instead.
fn read_head(reader: &mut impl BufRead) -> io::Result<Option<Vec<String>>> {
    let mut lines = vec![];
    while lines.len() < MOST_LINES {
        let mut line = String::new();
        let length = io::Read::take(&mut *reader, MOST_LINE_BYTES).read_line(&mut line)?;
        if length == 0 && lines.is_empty() {
            return Ok(None);
        }
        let Some(line) = line.strip_suffix("\r\n") else { break };
        if line.is_empty() {
            return Ok(Some(lines));
        }
        lines.push(line.to_owned());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the header is too long or truncated"))
}

/// Returns the value of a header field.
fn field<'h>(head: &'h [String], name: &str) -> Option<&'h str> {
    head.iter().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
