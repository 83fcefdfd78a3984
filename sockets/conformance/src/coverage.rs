// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table of accelerated calls (`docs/reference/sockets-coverage.csv`), and the functions that
//! the library exports, all of which must be in the table.

/// Columns of the table.
pub const COLUMNS: [&str; 5] = ["call", "situation", "how", "why", "case"];

/// Treatment of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// Served from shared memory.
    Accelerated,
    /// The connection returns to the kernel.
    Demoted,
    /// The kernel serves it, as without the library.
    PassedThrough,
}

/// A row of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Name of the call.
    pub call: String,
    /// Flag or situation.
    pub situation: String,
    /// Treatment.
    pub how: How,
    /// Reason, or a remark.
    pub why: String,
    /// Program and case that demonstrate it.
    pub case: String,
}

/// Parses the rows of a table. A row is one line, without commas in its cells.
///
/// # Errors
/// A description of the first invalid line.
pub fn rows(table: &str) -> Result<Vec<Row>, String> {
    let mut lines = table.lines();
    if lines.next() != Some(COLUMNS.join(",").as_str()) {
        return Err(format!("line 1: the columns are {}", COLUMNS.join(",")));
    }
    let row = |(at, line): (usize, &str)| {
        parse(line).map_err(|problem| format!("line {}: {problem}", at + 2))
    };
    lines.enumerate().map(row).collect()
}

fn parse(line: &str) -> Result<Row, String> {
    let cells: Vec<&str> = line.split(',').collect();
    let [call, situation, how, why, case] = cells[..] else {
        return Err(format!("{} cells instead of {}", cells.len(), COLUMNS.len()));
    };
    let how = match how {
        "accelerated" => How::Accelerated,
        "demoted" => How::Demoted,
        "passed through" => How::PassedThrough,
        other => return Err(format!("`{other}` is not accelerated, demoted or passed through")),
    };
    if [call, situation, why, case].iter().any(|cell| cell.trim().is_empty()) {
        return Err("an empty cell".to_owned());
    }
    let [call, situation, why, case] = [call, situation, why, case].map(str::to_owned);
    Ok(Row { call, situation, how, why, case })
}

/// Returns the functions that a shared library exports, sorted; `None` if it is not an ELF file for
/// this machine.
pub fn exported(library: &[u8]) -> Option<Vec<String>> {
    if library.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let sections = Sections {
        bytes: library,
        at: number(library, 0x28, 8)?,
        size: number(library, 0x3a, 2)?,
        count: number(library, 0x3c, 2)?,
    };
    const DYNAMIC_SYMBOLS: usize = 11;
    let symbols = (0..sections.count)
        .find(|&section| sections.field(section, 4, 4) == Some(DYNAMIC_SYMBOLS))?;
    let names = sections.content(sections.field(symbols, 0x28, 4)?)?;
    let mut found: Vec<String> = sections
        .content(symbols)?
        .chunks_exact(24)
        .filter(|symbol| is_exported_function(symbol))
        .filter_map(|symbol| name(names, number(symbol, 0, 4)?))
        .collect();
    found.sort();
    found.dedup();
    Some(found)
}

/// Section table of an ELF file.
struct Sections<'a> {
    bytes: &'a [u8],
    at: usize,
    size: usize,
    count: usize,
}

impl<'a> Sections<'a> {
    fn field(&self, section: usize, at: usize, size: usize) -> Option<usize> {
        let header = self.size.checked_mul(section)?.checked_add(self.at)?;
        number(self.bytes, header.checked_add(at)?, size)
    }

    fn content(&self, section: usize) -> Option<&'a [u8]> {
        let at = self.field(section, 0x18, 8)?;
        self.bytes.get(at..at.checked_add(self.field(section, 0x20, 8)?)?)
    }
}

/// Returns whether a symbol is a function (or an indirect one), global or weak, and defined here.
fn is_exported_function(symbol: &[u8]) -> bool {
    let (kind, binding) = (symbol[4] & 15, symbol[4] >> 4);
    let section = u16::from_le_bytes([symbol[6], symbol[7]]);
    matches!(kind, 2 | 10) && matches!(binding, 1 | 2) && section != 0
}

fn name(names: &[u8], at: usize) -> Option<String> {
    let name = names.get(at..)?.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Reads a little-endian number of `size` bytes at an offset.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    let value = bytes.iter().rev().fold(0, |value: u64, byte| value << 8 | u64::from(*byte));
    usize::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_all_cells() {
        let table = "call,situation,how,why,case\nsend,blocking,accelerated,in the ring,a: b\n";
        let found = rows(table).unwrap();
        assert_eq!(found[0].how, How::Accelerated);
        assert_eq!((found[0].call.as_str(), found[0].case.as_str()), ("send", "a: b"));
    }

    #[test]
    fn what_is_no_row_is_found() {
        let with = |line: &str| rows(&format!("call,situation,how,why,case\n{line}\n"));
        assert!(with("send,blocking,unsupported,why,a: b").unwrap_err().starts_with("line 2"));
        assert!(with("send,blocking,accelerated,why").is_err());
        assert!(with("send,blocking,accelerated,,a: b").is_err());
        assert!(rows("call,how\n").is_err());
    }

    #[test]
    fn the_c_library_exports_send_but_no_variable() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let path = maps.lines().find_map(|line| line.split(' ').next_back().filter(is_libc));
        let symbols = exported(&std::fs::read(path.unwrap()).unwrap()).unwrap();
        assert!(symbols.binary_search(&"send".to_owned()).is_ok());
        assert!(symbols.binary_search(&"environ".to_owned()).is_err());
    }

    fn is_libc(path: &&str) -> bool {
        path.contains("/libc.so") || path.contains("/libc-")
    }

    #[test]
    fn any_bytes_are_read_without_panic() {
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        assert_eq!(exported(&bytes), None);
        bytes.resize(200, 0xff);
        assert_eq!(exported(&bytes), None);
        bytes.resize(64, 0);
        assert_eq!(exported(b"text"), None);
    }
}
