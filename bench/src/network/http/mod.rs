// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HTTP/1.1, as much of it as a small server and its clients need: GET, lengths known in advance,
//! connections that are kept or closed.

mod client;
mod load;
mod server;

pub use client::{Connection, Response, get};
pub use load::{Connections, Load, Outcome};
pub use server::HttpServer;

use std::io::{self, BufRead};

/// Most lines of a head: more are not read.
const MOST_LINES: usize = 100;
/// Most bytes of a line.
const MOST_LINE_BYTES: u64 = 8_192;

/// The lines of a head, without the empty one behind it; none where the other side closed instead.
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
    Err(io::Error::new(io::ErrorKind::InvalidData, "a head that does not end as HTTP has it"))
}

/// The value of a field of a head.
fn field<'h>(head: &'h [String], name: &str) -> Option<&'h str> {
    head.iter().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
