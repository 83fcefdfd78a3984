// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times of expiry: EXPIRE and its relatives set them, TTL and its relatives show them, and PERSIST
//! removes them.

use freeport_kv_protocol::resp::reply::shared;

use crate::arguments::{integer, is};
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// How the time of a command is given.
#[derive(Clone, Copy)]
struct Given {
    command: &'static str,
    unit_ms: i64,
    is_relative: bool,
}

pub(super) fn expire(call: &mut Call<'_>) -> Result<(), Error> {
    set(call, Given { command: "expire", unit_ms: 1000, is_relative: true })
}

pub(super) fn pexpire(call: &mut Call<'_>) -> Result<(), Error> {
    set(call, Given { command: "pexpire", unit_ms: 1, is_relative: true })
}

pub(super) fn expire_at(call: &mut Call<'_>) -> Result<(), Error> {
    set(call, Given { command: "expireat", unit_ms: 1000, is_relative: false })
}

pub(super) fn pexpire_at(call: &mut Call<'_>) -> Result<(), Error> {
    set(call, Given { command: "pexpireat", unit_ms: 1, is_relative: false })
}

pub(super) fn ttl(call: &mut Call<'_>) -> Result<(), Error> {
    show(call, 1000, true)
}

pub(super) fn pttl(call: &mut Call<'_>) -> Result<(), Error> {
    show(call, 1, true)
}

pub(super) fn expire_time(call: &mut Call<'_>) -> Result<(), Error> {
    show(call, 1000, false)
}

pub(super) fn pexpire_time(call: &mut Call<'_>) -> Result<(), Error> {
    show(call, 1, false)
}

pub(super) fn persist(call: &mut Call<'_>) -> Result<(), Error> {
    let key = call.arguments[1];
    let expires = matches!(call.database.expires_ms(key), Some(Some(_)));
    if expires {
        call.database.set_expiry(key, None)?;
        call.database.changed(key, Class::Generic, "persist");
    }
    call.reply.integer(i64::from(expires));
    Ok(())
}

fn set(call: &mut Call<'_>, given: Given) -> Result<(), Error> {
    let (key, now_ms) = (call.arguments[1], call.now_ms());
    let conditions = Conditions::read(&call.arguments[3..])?;
    let number = integer(call.arguments[2])?;
    let at_ms = time_ms(number, given, now_ms).ok_or_else(|| {
        Error::new(format!("ERR invalid expire time in '{}' command", given.command))
    })?;
    let current_ms = match call.database.expires_ms(key) {
        Some(current_ms) if conditions.allow(current_ms, at_ms) => current_ms,
        _ => {
            call.reply.raw(shared::ZERO);
            return Ok(());
        }
    };
    match u64::try_from(at_ms) {
        Ok(at_ms) if at_ms > now_ms => {
            if current_ms != Some(at_ms) {
                call.database.set_expiry(key, Some(at_ms))?;
            }
            call.database.changed(key, Class::Generic, "expire");
        }
        _ => {
            call.database.delete(key);
        }
    }
    call.reply.raw(shared::ONE);
    Ok(())
}

/// The time of a number in the unit of its command, in milliseconds since 1970; none: out of range.
fn time_ms(number: i64, given: Given, now_ms: u64) -> Option<i64> {
    let base_ms = if given.is_relative { i64::try_from(now_ms).ok()? } else { 0 };
    number.checked_mul(given.unit_ms)?.checked_add(base_ms)
}

/// When a time of expiry is set; all that are given have to hold.
#[derive(Clone, Copy, Default)]
struct Conditions {
    is_new: bool,
    is_present: bool,
    is_later: bool,
    is_earlier: bool,
}

impl Conditions {
    fn read(words: &[&[u8]]) -> Result<Self, Error> {
        let mut conditions = Self::default();
        for word in words {
            let condition = match word {
                _ if is(word, "NX") => &mut conditions.is_new,
                _ if is(word, "XX") => &mut conditions.is_present,
                _ if is(word, "GT") => &mut conditions.is_later,
                _ if is(word, "LT") => &mut conditions.is_earlier,
                _ => {
                    let word = String::from_utf8_lossy(word);
                    return Err(Error::new(format!("ERR Unsupported option {word}")));
                }
            };
            *condition = true;
        }
        let Self { is_new, is_present, is_later, is_earlier } = conditions;
        if is_new && (is_present || is_later || is_earlier) {
            return Err(Error::fixed(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if is_later && is_earlier {
            return Err(Error::fixed("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(conditions)
    }

    /// A value that never expires is later than any.
    fn allow(self, current_ms: Option<u64>, at_ms: i64) -> bool {
        let at_ms = i128::from(at_ms);
        let current = current_ms.map(i128::from);
        !(self.is_new && current.is_some()
            || self.is_present && current.is_none()
            || self.is_later && current.is_none_or(|current| at_ms <= current)
            || self.is_earlier && current.is_some_and(|current| at_ms >= current))
    }
}

/// Shows the time of expiry in a unit, or what is left of it.
fn show(call: &mut Call<'_>, unit_ms: u64, is_relative: bool) -> Result<(), Error> {
    match call.database.expires_ms(call.arguments[1]) {
        None => call.reply.raw(shared::MINUS_TWO),
        Some(None) => call.reply.raw(shared::MINUS_ONE),
        Some(Some(at_ms)) => {
            let base_ms = if is_relative { call.database.now_ms() } else { 0 };
            // Rounded to the nearest unit.
            let units = (at_ms.saturating_sub(base_ms) + unit_ms / 2) / unit_ms;
            call.reply.integer(i64::try_from(units).unwrap_or(i64::MAX));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(line: &str) -> Result<Conditions, Error> {
        Conditions::read(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    #[test]
    fn conditions_compare_with_the_present_time() {
        let allow = |line, current_ms| conditions(line).expect("they agree").allow(current_ms, 50);
        assert!(allow("NX", None) && !allow("nx", Some(10)));
        assert!(!allow("XX", None) && allow("XX", Some(90)));
        assert!(!allow("GT", None) && allow("GT", Some(49)) && !allow("GT", Some(50)));
        assert!(allow("LT", None) && allow("LT", Some(51)) && !allow("LT", Some(50)));
        assert!(!allow("XX LT", None) && allow("XX GT", Some(49)) && !allow("GT XX", Some(51)));
        assert!(conditions("NX GT").is_err() && conditions("LT GT").is_err());
    }

    #[test]
    fn times_out_of_range_are_none() {
        let seconds = Given { command: "expire", unit_ms: 1000, is_relative: true };
        assert_eq!(time_ms(2, seconds, 500), Some(2_500));
        assert_eq!(time_ms(-2, seconds, 500), Some(-1_500));
        assert_eq!(time_ms(i64::MAX / 1000, seconds, 808), None);
        assert_eq!(time_ms(i64::MAX / 1000, seconds, 807), Some(i64::MAX));
        assert_eq!(time_ms(i64::MIN, seconds, 500), None);
    }
}
