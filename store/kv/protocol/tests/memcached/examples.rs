// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The examples of `examples.txt`. The tests of the items use them as well.

/// Requests with the replies of memcached 1.6.18.
pub struct Example {
    pub requests: Vec<u8>,
    pub replies: Vec<u8>,
    pub is_closed: bool,
}

/// All examples.
pub fn examples() -> Vec<Example> {
    let paragraphs = include_str!("examples.txt").split("\n\n").skip(1);
    paragraphs.map(example).collect()
}

fn example(paragraph: &str) -> Example {
    let lines = |mark: &str| -> Vec<u8> {
        paragraph.lines().filter_map(|line| line.strip_prefix(mark)).flat_map(unescaped).collect()
    };
    let is_closed = paragraph.lines().any(|line| line == "closed");
    Example { requests: lines("> "), replies: lines("< "), is_closed }
}

fn unescaped(line: &str) -> Vec<u8> {
    let line = line.replace("{250}", &"k".repeat(250)).replace("{251}", &"k".repeat(251));
    let (mut bytes, mut rest) = (vec![], line.as_bytes());
    while let [first, after @ ..] = rest {
        (bytes, rest) = match (first, after) {
            (b'\\', [b'r', after @ ..]) => ([&bytes[..], b"\r"].concat(), after),
            (b'\\', [b'n', after @ ..]) => ([&bytes[..], b"\n"].concat(), after),
            (b'\\', [b'x', high, low, after @ ..]) => {
                let digits = [*high, *low];
                let digits = str::from_utf8(&digits).expect("an example is ASCII");
                let byte = u8::from_str_radix(digits, 16).expect("two digits");
                ([&bytes[..], &[byte]].concat(), after)
            }
            _ => ([&bytes[..], &[*first]].concat(), after),
        };
    }
    bytes
}
