// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Meta commands: two letters, a key, and flags of one letter each with an optional token. All
//! commands accept all flags, and ignore those that mean nothing to them.

use super::text::{LINE_END_BYTES, value_bytes};
use super::{Error, Expiry, Key, Limits, Refusal, Request, Step, StoreMode, Words};
use super::{KEY_BYTES_MAX, number};

/// Maximum number of words of a meta command.
const WORDS_MAX: usize = 19;
/// Maximum number of bytes of flag `O` with its token.
const OPAQUE_BYTES_MAX: usize = 32;

/// Key and flags of a meta request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta<'a> {
    /// The key.
    pub key: Key<'a>,
    /// The flags as the request has them. Replies repeat some of them, in this order.
    pub flags: Words<'a>,
    /// A bit for each flag.
    seen: u64,
    /// `T`: new expiry of an existing or stored item.
    pub expiry: Option<Expiry>,
    /// `N`: a missing item is made with this expiry. It is that of the last flag `N` or `T`.
    pub vivify: Option<Expiry>,
    /// `R`: the client is to renew an item that expires earlier.
    pub recache: Option<Expiry>,
    /// `C`, or 0.
    cas: u64,
}

/// Tokens of flags that are no part of [`Meta`].
struct Tokens {
    client_flags: u32,
    delta: u64,
    initial: u64,
    /// `M`, or 0.
    mode: u8,
    is_opaque_long: bool,
}

/// Direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// Adds, and wraps around at 64 bits.
    Increment,
    /// Subtracts, and stops at 0.
    Decrement,
}

impl<'a> Meta<'a> {
    /// Returns whether the request has a flag.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        bit(flag).is_some_and(|bit| self.seen & bit != 0)
    }

    /// The usual reply is not sent: `EN` of `mg`, `HD` of the others, and a changed number of `ma`
    /// with its value. All other replies are sent.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.has(b'q')
    }

    /// `C`: CAS number that the item must have.
    #[inline]
    pub fn cas(&self) -> Option<u64> {
        self.has(b'C').then_some(self.cas)
    }

    fn new(written: &'a [u8], flags: Words<'a>) -> Self {
        Self {
            key: Key { written, is_base64: false },
            flags,
            seen: 0,
            expiry: None,
            vivify: None,
            recache: None,
            cas: 0,
        }
    }

    /// Reads flags. The original reports the last invalid token, unless a flag that is unknown or
    /// appears again ends its search.
    fn read(&mut self, words_before: usize) -> Result<Tokens, Error> {
        let mut tokens =
            Tokens { client_flags: 0, delta: 1, initial: 0, mode: 0, is_opaque_long: false };
        let (mut is_ended, mut error) = (false, None);
        for (at, word) in self.flags.enumerate() {
            if at + words_before >= WORDS_MAX {
                return Err(Error::FlagsTooLong);
            }
            let flag = word[0];
            if is_ended {
                continue;
            }
            match bit(flag) {
                None if flag < 0x7f => (is_ended, error) = (true, Some(Error::InvalidFlag)),
                Some(bit) if self.seen & bit == 0 => {
                    self.seen |= bit;
                    match self.read_flag(&mut tokens, flag, &word[1..]) {
                        Ok(()) => {}
                        // The original has no own text for this one.
                        Err(Error::Format) => _ = error.get_or_insert(Error::Format),
                        Err(other) => {
                            (is_ended, error) = (other == Error::InvalidFlag, Some(other))
                        }
                    }
                }
                _ => (is_ended, error) = (true, Some(Error::DuplicateFlag)),
            }
        }
        error.map_or(Ok(tokens), Err)
    }

    #[inline]
    fn read_flag(&mut self, tokens: &mut Tokens, flag: u8, token: &[u8]) -> Result<(), Error> {
        let expiry = || number::signed32(token).map(Expiry::from).ok_or(Error::Token);
        let unsigned = |error| number::unsigned64(token).ok_or(error);
        match flag {
            b'b' => {
                self.key = Key::new(self.key.written, true).ok_or(Error::KeyEncoding)?;
            }
            b'N' => self.vivify = Some(expiry()?),
            b'T' => {
                let expiry = expiry()?;
                self.expiry = Some(expiry);
                self.vivify = self.vivify.map(|_| expiry);
            }
            b'R' => self.recache = Some(expiry()?),
            b'F' => tokens.client_flags = number::unsigned32(token).ok_or(Error::Format)?,
            b'C' => self.cas = unsigned(Error::Token)?,
            b'J' => tokens.initial = unsigned(Error::InitialValue)?,
            b'D' => tokens.delta = unsigned(Error::DeltaValue)?,
            b'M' => {
                let [mode] = *token else { return Err(Error::ModeLength) };
                tokens.mode = mode;
            }
            b'O' => tokens.is_opaque_long = 1 + token.len() > OPAQUE_BYTES_MAX,
            b'P' | b'L' | b'I' | b'k' | b's' | b't' | b'c' | b'f' | b'v' | b'h' | b'l' | b'u'
            | b'q' => {}
            _ => return Err(Error::InvalidFlag),
        }
        Ok(())
    }
}

impl Tokens {
    /// Other errors have to come first.
    #[inline]
    fn check_opaque(&self) -> Result<(), Error> {
        if self.is_opaque_long { Err(Error::OpaqueTooLong) } else { Ok(()) }
    }
}

/// The bit of a flag, if it is an ASCII character that may be one.
#[inline]
fn bit(flag: u8) -> Option<u64> {
    (64..127).contains(&flag).then(|| 1 << (flag - 64))
}

/// Reads a meta command from the words behind it. `follows` is that of [`super::text::parse`].
#[inline]
pub fn parse<'a>(
    letter: u8,
    words: Words<'a>,
    limits: &Limits,
    step: &mut Step<'a>,
    follows: &mut usize,
) {
    let result = match letter {
        b'g' => get(words, step),
        b's' => set(words, limits, step, follows),
        b'd' => delete(words, step),
        b'a' => arithmetic(words, step),
        b'e' => debug(words, step),
        b'n' => done(step, Request::MetaNoop),
        _ => Err(Error::Command.into()),
    };
    if let Err(refusal) = result {
        *step = Step::Refused(refusal);
    }
}

type Done<'a> = Result<(), Refusal<'a>>;

#[inline(always)]
fn done<'a>(step: &mut Step<'a>, request: Request<'a>) -> Done<'a> {
    *step = Step::Request(request);
    Ok(())
}

#[inline]
fn key<'a>(words: &mut Words<'a>) -> Result<&'a [u8], Error> {
    let key = words.next().ok_or(Error::Command)?;
    if key.len() <= KEY_BYTES_MAX { Ok(key) } else { Err(Error::Format) }
}

fn get<'a>(mut words: Words<'a>, step: &mut Step<'a>) -> Done<'a> {
    let key = key(&mut words)?;
    let mut meta = Meta::new(key, words);
    let tokens = meta.read(2).map_err(|error| match error {
        Error::FlagsTooLong => Error::GetFlagsTooLong,
        other => other,
    })?;
    tokens.check_opaque()?;
    done(step, Request::MetaGet(meta))
}

/// `md` and `ma` have one text for everything that is wrong with a flag.
fn with_one_text(error: Error) -> Error {
    if error == Error::FlagsTooLong { error } else { Error::InvalidOrDuplicateFlag }
}

fn delete<'a>(mut words: Words<'a>, step: &mut Step<'a>) -> Done<'a> {
    let key = key(&mut words)?;
    let mut meta = Meta::new(key, words);
    let tokens = meta.read(2).map_err(with_one_text)?;
    tokens.check_opaque()?;
    done(step, Request::MetaDelete(meta))
}

fn arithmetic<'a>(mut words: Words<'a>, step: &mut Step<'a>) -> Done<'a> {
    let key = key(&mut words)?;
    let mut meta = Meta::new(key, words);
    let tokens = meta.read(2).map_err(with_one_text)?;
    let operation = match tokens.mode {
        0 | b'I' | b'+' => Arithmetic::Increment,
        b'D' | b'-' => Arithmetic::Decrement,
        _ => return Err(Error::ArithmeticMode.into()),
    };
    tokens.check_opaque()?;
    let Tokens { delta, initial, .. } = tokens;
    done(step, Request::MetaArithmetic { meta, operation, delta, initial })
}

fn debug<'a>(mut words: Words<'a>, step: &mut Step<'a>) -> Done<'a> {
    let key = key(&mut words).map_err(|_| Error::Format)?;
    let is_base64 = words.next() == Some(b"b");
    let key = Key::new(key, is_base64).ok_or(Error::Format)?;
    done(step, Request::MetaDebug(key))
}

fn set<'a>(
    mut words: Words<'a>,
    limits: &Limits,
    step: &mut Step<'a>,
    follows: &mut usize,
) -> Done<'a> {
    let key = key(&mut words)?;
    let length = words.next().ok_or(Error::Format)?;
    let mut meta = Meta::new(key, words);
    let read = meta.read(3);
    if let Err(Error::FlagsTooLong) = read {
        return Err(Error::FlagsTooLong.into());
    }
    let length = number::signed32(length).and_then(value_bytes).ok_or(Error::Format)?;
    // From here on, the value follows whatever is wrong.
    *follows = length + LINE_END_BYTES;
    let tokens = read?;
    let mode = set_mode(&meta, &tokens)?;
    let client_flags = tokens.client_flags;
    if !limits.has_room(meta.key.length(), client_flags, length) {
        return Err(Refusal { removes: Some(meta.key), ..Error::TooLarge.into() });
    }
    done(step, Request::MetaSet { meta, mode, client_flags, value: &[] })
}

#[inline]
fn set_mode(meta: &Meta, tokens: &Tokens) -> Result<StoreMode, Error> {
    let mode = match tokens.mode {
        0 | b'S' => StoreMode::Set,
        b'E' => StoreMode::Add,
        b'A' => StoreMode::Append,
        b'P' => StoreMode::Prepend,
        b'R' => StoreMode::Replace,
        _ => return Err(Error::SetMode),
    };
    tokens.check_opaque()?;
    let is_conditional = meta.has(b'C') && matches!(mode, StoreMode::Set | StoreMode::Replace);
    Ok(if is_conditional { StoreMode::CompareAndSwap } else { mode })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the words behind a command of two letters.
    fn read<'a>(line: &'a str, follows: &mut usize) -> Result<Request<'a>, Error> {
        let mut step = Step::Close;
        let words = Words::of_line(&line.as_bytes()[2..]);
        parse(line.as_bytes()[1], words, &Limits::default(), &mut step, follows);
        match step {
            Step::Request(request) => Ok(request),
            Step::Refused(refusal) => Err(refusal.error),
            step => panic!("{step:?}"),
        }
    }

    #[test]
    fn flags_are_read_with_their_tokens() {
        let line = "mg AAE= b v T60 N-1 R0 C7 q Oabc";
        let Ok(Request::MetaGet(meta)) = read(line, &mut 0) else { panic!("it is valid") };
        assert_eq!(meta.key, Key { written: b"AAE=", is_base64: true });
        assert_eq!(meta.expiry, Some(Expiry::InSeconds(60)));
        assert_eq!((meta.vivify, meta.recache), (Some(Expiry::Now), Some(Expiry::Never)));
        assert_eq!((meta.cas(), meta.is_quiet()), (Some(7), true));
        assert!(meta.has(b'v') && meta.has(b'O') && !meta.has(b'k') && !meta.has(b'\x7f'));
        assert_eq!(meta.flags.last(), Some(&b"Oabc"[..]));
    }

    #[test]
    fn the_last_expiry_is_that_of_a_made_item() {
        for (line, vivify) in [
            ("mg k T60 N0", Some(Expiry::Never)),
            ("mg k N0 T60", Some(Expiry::InSeconds(60))),
            ("mg k T60", None),
        ] {
            let Ok(Request::MetaGet(meta)) = read(line, &mut 0) else { panic!("it is valid") };
            assert_eq!(meta.vivify, vivify, "{line}");
        }
    }

    #[test]
    fn arithmetic_has_defaults() {
        let Ok(Request::MetaArithmetic { operation, delta, initial, .. }) = read("ma k", &mut 0)
        else {
            panic!("it is valid")
        };
        assert_eq!((operation, delta, initial), (Arithmetic::Increment, 1, 0));
    }

    #[test]
    fn a_cas_number_makes_two_modes_conditional() {
        for (mode, expected) in [
            ("", StoreMode::CompareAndSwap),
            ("MR", StoreMode::CompareAndSwap),
            ("ME", StoreMode::Add),
            ("MA", StoreMode::Append),
        ] {
            let (line, mut follows) = (format!("ms k 3 C1 {mode}"), 0);
            let read = read(&line, &mut follows);
            let Ok(Request::MetaSet { mode, .. }) = read else { panic!("it is valid") };
            assert_eq!((mode, follows), (expected, 5), "{line}");
        }
    }

    #[test]
    fn a_value_follows_once_its_length_is_known() {
        let many = "ms k 3 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8";
        for (line, error, bytes) in [
            ("ms k 3 x", Error::InvalidFlag, 5),
            ("ms k 3 MX", Error::SetMode, 5),
            ("ms k 2000000", Error::TooLarge, 2_000_002),
            ("ms k x x", Error::Format, 0),
            (many, Error::FlagsTooLong, 0),
            (&many[..many.len() - 2], Error::InvalidFlag, 5),
        ] {
            let mut follows = 0;
            assert_eq!((read(line, &mut follows), follows), (Err(error), bytes), "{line}");
        }
    }
}
