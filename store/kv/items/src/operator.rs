// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands for operators. Those that tune the original's lists and classes of memory are accepted
//! if they are valid, and have no effect: there are neither. Logs (`watch`) and storage on disks
//! (`extstore`) are refused as by a server without them.

use freeport_kv_protocol::memcached::reply::{self, Line};
use freeport_kv_protocol::memcached::{Operator, Words, stored_number};

use crate::dump::Dump;
use crate::execute::Control;
use crate::item::CLASS;
use crate::items::Items;
use crate::now::Now;

const FORMAT: &[u8] = b"CLIENT_ERROR bad command line format\r\n";
const BAD_CLASS: &[u8] = b"BADCLASS invalid class id\r\n";
const ERROR: &[u8] = Line::Error.bytes();
const OK: &[u8] = Line::Ok.bytes();

/// Words of a command that are looked at.
const WORDS: usize = 6;
/// Largest number of `cache_memlimit`, which is in MiB.
const MEBIBYTES_MAX: u32 = 1_000_000_000;
/// Smallest number of `cache_memlimit`.
const MEBIBYTES_MIN: u32 = 8;
/// Longest pause of the original's crawler in microseconds.
const SLEEP_US_MAX: u64 = 1_000_000;
/// Shares of the original's lists together at most.
const PERCENT_MAX: u64 = 80;

impl Items {
    pub(crate) fn operate(
        &mut self,
        command: Operator,
        words: Words<'_>,
        is_quiet: bool,
        now: Now,
        output: &mut Vec<u8>,
    ) -> Control {
        let mut first = [&b""[..]; WORDS];
        let count = first.iter_mut().zip(words).map(|(place, word)| *place = word).count();
        let words = &first[..count];
        let begin = output.len();
        let mut control = Control::Continue;
        match command {
            Operator::Stats => control = self.stats(words, now, output),
            Operator::Shutdown => control = self.shutdown(words, output),
            Operator::Slabs => output.extend_from_slice(slabs(words)),
            Operator::Lru => output.extend_from_slice(lru(words)),
            Operator::LruCrawler => control = self.lru_crawler(words, output),
            Operator::Watch => {
                output.extend_from_slice(b"CLIENT_ERROR watch commands not allowed\r\n");
            }
            Operator::ExternalStore => reply::line(output, Line::Error),
        }
        if is_quiet {
            output.truncate(begin);
        }
        match control {
            Control::Dump(_) | Control::ListConnections if is_quiet => Control::Continue,
            control => control,
        }
    }

    fn shutdown(&self, words: &[&[u8]], output: &mut Vec<u8>) -> Control {
        let is_graceful = match words {
            _ if !self.options.is_shutdown_allowed => {
                reply::line(output, Line::ShutdownNotEnabled);
                return Control::Continue;
            }
            [] => false,
            [b"graceful"] => true,
            _ => {
                reply::line(output, Line::ShutdownMode);
                return Control::Continue;
            }
        };
        Control::Shutdown { is_graceful }
    }

    /// Changes the memory that items may use, up to what the engine has reserved.
    pub(crate) fn limit_memory(
        &mut self,
        mebibytes: u32,
        is_quiet: bool,
        output: &mut Vec<u8>,
    ) -> Control {
        if mebibytes > MEBIBYTES_MAX {
            // As in the original, this reply is sent to quiet requests as well.
            output.extend_from_slice(
                b"MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n",
            );
            return Control::Continue;
        }
        let bytes = (mebibytes as usize) << 20;
        let line = if mebibytes < MEBIBYTES_MIN {
            Line::MemoryLimitTooSmall
        } else if bytes > self.options.memory_bytes {
            Line::MemoryLimitFailed
        } else {
            self.limit_bytes = bytes;
            Line::Ok
        };
        if !is_quiet {
            reply::line(output, line);
        }
        Control::Continue
    }

    fn lru_crawler(&self, words: &[&[u8]], output: &mut Vec<u8>) -> Control {
        let reply = match words {
            [b"enable" | b"disable"] => OK,
            [b"sleep", number] => match stored_number(number) {
                None => FORMAT,
                Some(0..=SLEEP_US_MAX) => OK,
                Some(_) => b"CLIENT_ERROR sleep must be one second or less\r\n",
            },
            [b"tocrawl", number] if stored_number(number).is_none() => FORMAT,
            [b"tocrawl", _] => OK,
            [b"crawl", classes] if is_class(classes) => OK,
            [b"metadump", _] if !self.options.is_dump_allowed => b"ERROR metadump not allowed\r\n",
            [b"metadump", classes] if is_class(classes) || *classes == b"hash" => {
                return Control::Dump(Dump::default());
            }
            [b"crawl" | b"metadump", _] => BAD_CLASS,
            _ => ERROR,
        };
        output.extend_from_slice(reply);
        Control::Continue
    }
}

/// All items are of one class. Others may be named, as long as the original could have them.
fn is_class(text: &[u8]) -> bool {
    const CLASSES: std::ops::RangeInclusive<u64> = 1..=63;
    let is_one = |text: &[u8]| stored_number(text).is_some_and(|it| CLASSES.contains(&it));
    text == b"all" || text.split(|byte| *byte == b',').all(is_one)
}

fn slabs(words: &[&[u8]]) -> &'static [u8] {
    match words {
        [b"reassign", from, to] => match (stored_number(from), stored_number(to)) {
            (Some(from), Some(to)) if from == to => b"SAME src and dst class are identical\r\n",
            (Some(from), Some(_)) if from == u64::from(CLASS) => {
                b"NOSPARE source class has no spare pages\r\n"
            }
            (Some(_), Some(_)) => b"BADCLASS invalid src or dst class id\r\n",
            _ => FORMAT,
        },
        [b"automove", mode] if stored_number(mode).is_none() => FORMAT,
        [b"automove", mode] if matches!(stored_number(mode), Some(0..=2)) => OK,
        _ => ERROR,
    }
}

fn lru(words: &[&[u8]]) -> &'static [u8] {
    let number = |word: &[u8]| stored_number(word);
    match words {
        [b"mode", b"flat" | b"segmented"] => OK,
        [b"temp_ttl", seconds] if number(seconds).is_some() || *seconds == b"-1" => OK,
        [b"tune", hot, warm, hot_age, warm_age] => {
            let is_age = |word: &[u8]| {
                let text = std::str::from_utf8(word).ok();
                text.and_then(|text| text.parse::<f64>().ok())
            };
            match (number(hot), number(warm), is_age(hot_age), is_age(warm_age)) {
                (Some(hot), Some(warm), Some(_), Some(_))
                    if hot.saturating_add(warm) > PERCENT_MAX =>
                {
                    b"ERROR hot and warm pcts must not exceed 80\r\n"
                }
                (Some(_), Some(_), Some(hot), Some(warm)) if hot > 0.0 && warm > 0.0 => OK,
                (Some(_), Some(_), Some(_), Some(_)) => {
                    b"ERROR hot/warm age factors must be greater than 0\r\n"
                }
                _ => ERROR,
            }
        }
        _ => ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<&[u8]> {
        line.split(' ').filter(|word| !word.is_empty()).map(str::as_bytes).collect()
    }

    #[test]
    fn tuning_is_checked_as_in_the_original() {
        for (line, reply) in [
            ("tune 10 20 0.1 2", OK),
            ("tune 1 2 3", ERROR),
            ("tune 10 20 x 2", ERROR),
            ("tune 60 60 0.1 0.2", b"ERROR hot and warm pcts must not exceed 80\r\n"),
            ("tune 10 20 0 2", b"ERROR hot/warm age factors must be greater than 0\r\n"),
            ("mode flat", OK),
            ("mode x", ERROR),
            ("temp_ttl -1", OK),
            ("temp_ttl x", ERROR),
            ("", ERROR),
        ] {
            assert_eq!(lru(&words(line)), reply, "{line}");
        }
        for (line, reply) in [
            ("reassign x y", FORMAT),
            ("reassign 1 1", b"SAME src and dst class are identical\r\n"),
            ("reassign 1 2", b"NOSPARE source class has no spare pages\r\n"),
            ("reassign 300 1", b"BADCLASS invalid src or dst class id\r\n"),
            ("automove 1", OK),
            ("automove 3", ERROR),
            ("automove x", FORMAT),
            ("", ERROR),
        ] {
            assert_eq!(slabs(&words(line)), reply, "{line}");
        }
    }

    #[test]
    fn classes_are_named_by_numbers() {
        for (text, is_valid) in
            [("all", true), ("1,2", true), ("63", true), ("64", false), ("0", false), ("x", false)]
        {
            assert_eq!(is_class(text.as_bytes()), is_valid, "{text}");
        }
    }
}
