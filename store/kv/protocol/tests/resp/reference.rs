// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A slow and obvious reader of requests, which looks at all bytes from the begin each time.

use freeport_kv_protocol::resp::{ProtocolError, RequestLimits};

/// The begin of some bytes: a request with its number of bytes, or nothing yet.
pub type Outcome = Result<Option<(Vec<Vec<u8>>, usize)>, ProtocolError>;

const LINE_MAX: usize = 65_536;

/// Reads the first request of `bytes`.
pub fn read(bytes: &[u8], limits: RequestLimits) -> Outcome {
    match bytes.first() {
        None => Ok(None),
        Some(b'*') => multibulk(bytes, limits),
        Some(_) => inline(bytes),
    }
}

fn multibulk(bytes: &[u8], limits: RequestLimits) -> Outcome {
    let Some(line) = line(bytes, "\r", ProtocolError::CountTooBig)? else { return Ok(None) };
    let count = number(&line[1..]).ok_or(ProtocolError::InvalidCount)?;
    if count > limits.arguments as i128 {
        return Err(ProtocolError::InvalidCount);
    }
    if count > 10 && !limits.is_authenticated {
        return Err(ProtocolError::UnauthenticatedCount);
    }
    let (mut at, mut arguments) = (line.len() + 2, vec![]);
    for _ in 0..count.max(0) {
        let rest = &bytes[at..];
        let Some(line) = self::line(rest, "\r", ProtocolError::LengthTooBig)? else {
            return Ok(None);
        };
        if rest[0] != b'$' {
            return Err(ProtocolError::ExpectedBulk { got: rest[0] });
        }
        let length = number(&line[1..]).ok_or(ProtocolError::InvalidLength)?;
        if length < 0 || length > limits.argument_bytes as i128 {
            return Err(ProtocolError::InvalidLength);
        }
        if length > 16_384 && !limits.is_authenticated {
            return Err(ProtocolError::UnauthenticatedLength);
        }
        at += line.len() + 2;
        let length = length as usize;
        if at + length + 2 > limits.request_bytes {
            return Err(ProtocolError::RequestTooLarge);
        }
        if bytes.len() < at + length + 2 {
            return Ok(None);
        }
        arguments.push(bytes[at..at + length].to_vec());
        at += length + 2;
    }
    Ok(Some((arguments, at)))
}

/// A line without its end, if it and, for a carriage return, one more byte are there.
fn line<'a>(
    bytes: &'a [u8],
    end: &str,
    error: ProtocolError,
) -> Result<Option<&'a [u8]>, ProtocolError> {
    let visible = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    match visible.iter().position(|byte| end.as_bytes().contains(byte)) {
        Some(place) if place <= LINE_MAX => {
            let needed = place + if end == "\r" { 2 } else { 1 };
            Ok((bytes.len() >= needed).then(|| &bytes[..place]))
        }
        _ if bytes.len() > LINE_MAX => Err(error),
        _ => Ok(None),
    }
}

fn number(text: &[u8]) -> Option<i128> {
    let text = std::str::from_utf8(text).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number.into())
}

fn inline(bytes: &[u8]) -> Outcome {
    let Some(line) = line(bytes, "\n", ProtocolError::InlineTooBig)? else { return Ok(None) };
    let taken = line.len() + 1;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // Latin-1, so that each byte is a character.
    let characters: Vec<char> = line.iter().map(|&byte| char::from(byte)).collect();
    let words = words(&characters).ok_or(ProtocolError::UnbalancedQuotes)?;
    Ok(Some((words, taken)))
}

fn words(line: &[char]) -> Option<Vec<Vec<u8>>> {
    let is_space = |it: Option<&char>| it.is_none_or(|it| " \t\n\r\x0b\x0c".contains(*it));
    let (mut words, mut at) = (vec![], 0);
    loop {
        while at < line.len() && is_space(line.get(at)) {
            at += 1;
        }
        if at == line.len() {
            return Some(words);
        }
        let (mut word, mut quote) = (vec![], None);
        while let Some(&it) = line.get(at) {
            at += 1;
            let rest: String = line[at..].iter().take(3).collect();
            match (quote, it) {
                (None, ' ' | '\t' | '\n' | '\r') => break,
                (None, '"' | '\'') => quote = Some(it),
                (Some(open), it) if open == it => {
                    if !is_space(line.get(at)) {
                        return None;
                    }
                    quote = None;
                    break;
                }
                (Some('\''), '\\') if rest.starts_with('\'') => {
                    word.push(b'\'');
                    at += 1;
                }
                (Some('"'), '\\') if !rest.is_empty() => {
                    let hexadecimal = rest.strip_prefix('x').filter(|it| it.chars().count() == 2);
                    let digits =
                        hexadecimal.filter(|it| it.chars().all(|it| it.is_ascii_hexdigit()));
                    if let Some(digits) = digits {
                        word.push(u8::from_str_radix(digits, 16).expect("two digits"));
                        at += 3;
                    } else {
                        let escaped = rest.chars().next().expect("it has a character");
                        word.push(match escaped {
                            'n' => b'\n',
                            'r' => b'\r',
                            't' => b'\t',
                            'a' => 7,
                            'b' => 8,
                            other => other as u8,
                        });
                        at += 1;
                    }
                }
                (_, it) => word.push(it as u8),
            }
        }
        if quote.is_some() {
            return None;
        }
        words.push(word);
    }
}
