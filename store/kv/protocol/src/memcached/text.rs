// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lines of requests. The number of words of each command, the order of checks, and the replies are
//! those of memcached 1.6.18.

use super::words::WORDS_MAX;
use super::{Arithmetic, Change, Error, Expiry, Get, Key, Limits, Operator, Step};
use super::{KEY_BYTES_MAX, Refusal, Request, Store, StoreMode, Words, meta, number};

/// End of the line behind a value.
pub const LINE_END_BYTES: usize = 2;

/// Reads a line, given without its end. `follows` has to be 0, and becomes the number of bytes of
/// the value behind the line and of its end, also if the request is refused.
#[inline]
pub fn parse<'a>(line: &'a [u8], limits: &Limits, step: &mut Step<'a>, follows: &mut usize) {
    let mut words = Words::of_line(line);
    let Some(command) = words.next() else { return finish(step, refuse(Error::Command)) };
    match command {
        b"get" => finish(step, get(words, false)),
        [b'm', letter] => meta::parse(*letter, words, limits, step, follows),
        b"set" => finish(step, store(StoreMode::Set, words, limits, follows)),
        b"gets" => finish(step, get(words, true)),
        b"gat" => finish(step, get_and_touch(words, false)),
        b"gats" => finish(step, get_and_touch(words, true)),
        b"add" => finish(step, store(StoreMode::Add, words, limits, follows)),
        b"cas" => finish(step, store(StoreMode::CompareAndSwap, words, limits, follows)),
        b"replace" => finish(step, store(StoreMode::Replace, words, limits, follows)),
        b"append" => finish(step, store(StoreMode::Append, words, limits, follows)),
        b"prepend" => finish(step, store(StoreMode::Prepend, words, limits, follows)),
        b"incr" => finish(step, change(Arithmetic::Increment, words)),
        b"decr" => finish(step, change(Arithmetic::Decrement, words)),
        b"delete" => finish(step, delete(words)),
        b"touch" => finish(step, touch(words)),
        // A name of the original that no document mentions.
        b"bget" => finish(step, get(words, false)),
        b"flush_all" => finish(step, flush_all(words)),
        b"version" => finish(step, Ok(Request::Version)),
        b"quit" => finish(step, Ok(Request::Quit)),
        b"verbosity" => finish(step, verbosity(words)),
        b"cache_memlimit" => finish(step, memory_limit(words)),
        b"stats" => finish(step, Ok(operator(Operator::Stats, words, false))),
        b"shutdown" => finish(step, Ok(operator(Operator::Shutdown, words, false))),
        b"lru_crawler" => finish(step, Ok(operator(Operator::LruCrawler, words, false))),
        b"watch" => finish(step, Ok(operator(Operator::Watch, words, true))),
        b"slabs" => finish(step, Ok(slabs(words))),
        b"lru" | b"extstore" if words.is_empty() => finish(step, refuse(Error::Command)),
        b"lru" => finish(step, Ok(operator(Operator::Lru, words, true))),
        b"extstore" => finish(step, Ok(operator(Operator::ExternalStore, words, true))),
        _ => *step = unknown(command, words),
    }
}

/// Makes the step where it is returned: a move of a request takes as long as reading a word.
#[inline(always)]
fn finish<'a>(step: &mut Step<'a>, request: Parse<'a>) {
    *step = match request {
        Ok(request) => Step::Request(request),
        Err(refusal) => Step::Refused(refusal),
    };
}

fn refuse<'a>(error: Error) -> Parse<'a> {
    Err(error.into())
}

/// The original closes the connections of browsers that a page directs to it, and looks for them
/// only where no command begins with the same letter.
fn unknown<'a>(command: &[u8], words: Words<'a>) -> Step<'a> {
    let is_like_a_command = command.len() < 2 || b"gsacidt".contains(&command[0]);
    let last = words.cut(WORDS_MAX - 1).last().unwrap_or(command);
    let is_http = !is_like_a_command && last.starts_with(b"HTTP/");
    if is_http { Step::Close } else { Step::Refused(Error::Command.into()) }
}

type Parse<'a> = Result<Request<'a>, Refusal<'a>>;

#[inline(always)]
fn get(keys: Words<'_>, returns_cas: bool) -> Parse<'_> {
    if keys.is_empty() {
        return refuse(Error::Command);
    }
    if !keys.fit(KEY_BYTES_MAX) {
        return refuse(Error::Format);
    }
    Ok(Request::Get(Get { keys, returns_cas, touch: None }))
}

fn get_and_touch(mut keys: Words<'_>, returns_cas: bool) -> Parse<'_> {
    let expiry = keys.next().ok_or(Error::Command)?;
    let touch = Some(number::signed32(expiry).ok_or(Error::Expiry)?.into());
    if !keys.fit(KEY_BYTES_MAX) {
        return Err(Error::Format.into());
    }
    Ok(Request::Get(Get { keys, returns_cas, touch }))
}

#[inline(always)]
fn store<'a>(mode: StoreMode, words: Words<'a>, limits: &Limits, follows: &mut usize) -> Parse<'a> {
    let (fields, count) = words.first::<6>();
    let least = if mode == StoreMode::CompareAndSwap { 5 } else { 4 };
    if count != least && count != least + 1 {
        return refuse(Error::Command);
    }
    let is_quiet = fields[count - 1] == b"noreply";
    let [key, client_flags, expiry, length, cas, _] = fields;
    let refused = |error: Error| Refusal { is_quiet, ..error.into() };
    let client_flags = number::unsigned32(client_flags);
    let (expiry, length) = (number::signed32(expiry), number::signed32(length));
    let has_cas = mode == StoreMode::CompareAndSwap;
    let cas = if has_cas { number::unsigned64(cas) } else { Some(0) };
    let (Some(client_flags), Some(expiry), Some(value_bytes), Some(cas), ..=KEY_BYTES_MAX) =
        (client_flags, expiry, length.and_then(value_bytes), cas, key.len())
    else {
        return Err(refused(Error::Format));
    };
    *follows = value_bytes + LINE_END_BYTES;
    if !limits.has_room(key.len(), client_flags, value_bytes) {
        let written = Key { written: key, is_base64: false };
        let removes = (mode == StoreMode::Set).then_some(written);
        return Err(Refusal { removes, ..refused(Error::TooLarge) });
    }
    let expiry = expiry.into();
    let store = Store { mode, key, client_flags, expiry, cas, value: &[], is_quiet };
    Ok(Request::Store(store))
}

/// Number of bytes of a value, without the end of its line.
#[inline]
pub fn value_bytes(number: i32) -> Option<usize> {
    (0..=i32::MAX - 2).contains(&number).then_some(number.unsigned_abs() as usize)
}

#[inline(always)]
fn change(operation: Arithmetic, words: Words<'_>) -> Parse<'_> {
    let ([key, delta, last], count) = words.first();
    let is_quiet = is_quiet(&[delta, last], count, 2..=3)?;
    let refuse = |error: Error| Refusal { is_quiet, ..error.into() };
    if key.len() > KEY_BYTES_MAX {
        return Err(refuse(Error::Format));
    }
    let delta = number::unsigned64(delta).ok_or(refuse(Error::Delta))?;
    Ok(Request::Change(Change { key, operation, delta, is_quiet }))
}

#[inline(always)]
fn touch(words: Words<'_>) -> Parse<'_> {
    let ([key, expiry, last], count) = words.first();
    let is_quiet = is_quiet(&[expiry, last], count, 2..=3)?;
    let refuse = |error: Error| Refusal { is_quiet, ..error.into() };
    if key.len() > KEY_BYTES_MAX {
        return Err(refuse(Error::Format));
    }
    let expiry = number::signed32(expiry).ok_or(refuse(Error::Expiry))?.into();
    Ok(Request::Touch { key, expiry, is_quiet })
}

/// Earlier versions had a delay, for which 0 is still accepted.
#[inline(always)]
fn delete(words: Words<'_>) -> Parse<'_> {
    let ([key, second, third], count) = words.first();
    if !(1..=3).contains(&count) {
        return Err(Error::Command.into());
    }
    let is_quiet = count > 1 && [second, third][count - 2] == b"noreply";
    let is_valid = match count {
        1 => true,
        2 => is_quiet || second == b"0",
        _ => is_quiet && second == b"0",
    };
    let refuse = |error: Error| Refusal { is_quiet, ..error.into() };
    if !is_valid {
        return Err(refuse(Error::DeleteUsage));
    }
    if key.len() > KEY_BYTES_MAX {
        return Err(refuse(Error::Format));
    }
    Ok(Request::Delete { key, is_quiet })
}

fn flush_all(words: Words<'_>) -> Parse<'_> {
    let ([first, second], count) = words.first();
    if count > 2 {
        return Err(Error::Command.into());
    }
    let is_quiet = count > 0 && [first, second][count - 1] == b"noreply";
    let mut time = Expiry::Now;
    if count > usize::from(is_quiet) {
        let refusal = Refusal { is_quiet, ..Error::Expiry.into() };
        time = number::signed32(first).ok_or(refusal)?.max(0).into();
    }
    if time == Expiry::Never {
        time = Expiry::Now;
    }
    Ok(Request::FlushAll { time, is_quiet })
}

fn verbosity(words: Words<'_>) -> Parse<'_> {
    let ([level, last], count) = words.first();
    let is_quiet = is_quiet(&[level, last], count, 1..=2)?;
    let refusal = Refusal { is_quiet, ..Error::Format.into() };
    let level = number::unsigned32(level).ok_or(refusal)?;
    Ok(Request::Verbosity { level, is_quiet })
}

fn memory_limit(words: Words<'_>) -> Parse<'_> {
    let ([limit, last], count) = words.first();
    let is_quiet = is_quiet(&[limit, last], count, 1..=2)?;
    let refusal = Refusal { is_quiet, ..Error::Command.into() };
    let mebibytes = number::unsigned32(limit).ok_or(refusal)?;
    Ok(Request::MemoryLimit { mebibytes, is_quiet })
}

/// Returns whether the last word is `noreply`, also where another word has to be. `ends` has the
/// possible last words, one for each possible number of words.
#[inline]
fn is_quiet(
    ends: &[&[u8]; 2],
    count: usize,
    counts: std::ops::RangeInclusive<usize>,
) -> Result<bool, Error> {
    if !counts.contains(&count) {
        return Err(Error::Command);
    }
    Ok(ends[count - counts.start()] == b"noreply")
}

fn operator(command: Operator, words: Words<'_>, may_be_quiet: bool) -> Request<'_> {
    // The command itself is one of the words.
    let words = words.cut(WORDS_MAX - 1);
    let is_quiet = may_be_quiet && words.last() == Some(b"noreply");
    Request::Operator { command, words, is_quiet }
}

/// Only one of the commands about slabs can be quiet.
fn slabs(words: Words<'_>) -> Request<'_> {
    let ([action], count) = words.first();
    operator(Operator::Slabs, words, action == b"automove" && count >= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Step<'_> {
        let (mut step, mut follows) = (Step::Close, 0);
        parse(line.as_bytes(), &Limits::default(), &mut step, &mut follows);
        let has_value = matches!(step, Step::Request(Request::Store(_)));
        assert_eq!(follows > 0, has_value, "{line}");
        step
    }

    #[test]
    fn commands_of_operators_keep_their_words() {
        for (line, expected, count, expected_quiet) in [
            ("stats items noreply", Operator::Stats, 2, false),
            ("slabs automove 0 noreply", Operator::Slabs, 3, true),
            ("slabs reassign 0 noreply", Operator::Slabs, 3, false),
            ("slabs automove", Operator::Slabs, 1, false),
            ("lru mode flat noreply", Operator::Lru, 3, true),
            ("lru_crawler enable noreply", Operator::LruCrawler, 2, false),
            ("watch noreply", Operator::Watch, 1, true),
            (&format!("watch{}", " word".repeat(30)), Operator::Watch, 22, false),
            ("extstore item_age 5", Operator::ExternalStore, 2, false),
        ] {
            let Step::Request(Request::Operator { command, words, is_quiet }) = read(line) else {
                panic!("{line} is valid")
            };
            assert_eq!((command, words.count(), is_quiet), (expected, count, expected_quiet));
        }
    }

    #[test]
    fn a_quiet_request_is_refused_without_a_reply() {
        for line in [
            "set k 0 0 noreply",
            "touch k noreply",
            "incr k noreply",
            "delete k x noreply",
            "flush_all x noreply",
            "cache_memlimit noreply",
        ] {
            let Step::Refused(refusal) = read(line) else { panic!("{line} is valid") };
            assert!(refusal.is_quiet && refusal.reply().is_empty(), "{line}");
        }
        // Only the last word counts.
        let Step::Refused(refusal) = read("set k 0 noreply 1") else { panic!("it is refused") };
        assert_eq!(refusal.reply(), Error::Format.reply());
    }

    #[test]
    fn keys_may_be_removed_now_or_later() {
        for (line, expected) in [
            ("flush_all", Expiry::Now),
            ("flush_all 0", Expiry::Now),
            ("flush_all -9 noreply", Expiry::Now),
            ("flush_all 9", Expiry::InSeconds(9)),
        ] {
            let Step::Request(Request::FlushAll { time, .. }) = read(line) else {
                panic!("{line} is valid")
            };
            assert_eq!(time, expected, "{line}");
        }
    }

    #[test]
    fn browsers_are_recognised_by_the_last_word() {
        for line in ["GET / HTTP/1.1", "HTTP/", "POST 2 HTTP/", "mgx HTTP/"] {
            assert_eq!(read(line), Step::Close, "{line}");
        }
        for line in ["get HTTP/1.1", "send / HTTP/1.1", "GET HTTP/1.1 /", "mx HTTP/1.1", "G"] {
            assert_ne!(read(line), Step::Close, "{line}");
        }
    }
}
