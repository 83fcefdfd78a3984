// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules of `ACL SETUSER`, as Redis 7.2 has them: each word changes a user.

use std::fmt::{self, Display};

use super::catalog::Catalog;
use super::selector::{KeyPattern, Selector};
use super::user::{User, digest, parse_hex};

/// Why a rule was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// There is no such command, subcommand or category.
    Unknown,
    /// It is no rule, or has a space or zero byte in a pattern.
    Syntax,
    /// A pattern of keys beside all keys.
    AfterAllKeys,
    /// A pattern of channels beside all channels.
    AfterAllChannels,
    /// A password that the user does not have is to be removed.
    NoSuchPassword,
    /// A digest is not 64 hexadecimal digits.
    Digest,
    /// A first argument of a subcommand.
    WordOfSubcommand,
}

/// The context of rules.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// All commands.
    pub catalog: &'a Catalog,
    /// New selectors have all channels (`acl-pubsub-default`).
    pub all_channels: bool,
}

/// Changes a user by one rule. It may be half changed after an error, as a copy that is dropped.
///
/// # Errors
/// The rule is not right.
pub fn apply(user: &mut User, rule: &[u8], ground: Ground<'_>) -> Result<(), RuleError> {
    match (rule, rule.to_ascii_lowercase().as_slice()) {
        ([], _) => {}
        (_, b"on") => user.is_on = true,
        (_, b"off") => user.is_on = false,
        (_, b"sanitize-payload") => user.skips_sanitizing = false,
        (_, b"skip-sanitize-payload") => user.skips_sanitizing = true,
        (_, word @ (b"nopass" | b"resetpass")) => {
            user.needs_no_password = word == b"nopass";
            user.passwords.clear();
        }
        (_, b"clearselectors") => user.selectors.truncate(1),
        (_, b"reset") => {
            user.is_on = false;
            user.needs_no_password = false;
            user.skips_sanitizing = false;
            user.passwords.clear();
            user.selectors = vec![Selector::new(ground.catalog, ground.all_channels)];
        }
        ([b'>' | b'#' | b'<' | b'!', ..], _) => change_passwords(user, rule)?,
        ([b'(', words @ .., b')'], _) => {
            let mut selector = Selector::new(ground.catalog, ground.all_channels);
            let words = words.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            words.into_iter().try_for_each(|word| refine(&mut selector, word, ground))?;
            user.selectors.push(selector);
        }
        _ => refine(user.root_mut(), rule, ground)?,
    }
    Ok(())
}

fn change_passwords(user: &mut User, rule: &[u8]) -> Result<(), RuleError> {
    let (sign, text) = (rule[0], &rule[1..]);
    let password = match sign {
        b'>' | b'<' => digest(text),
        _ => parse_hex(text).ok_or(RuleError::Digest)?,
    };
    let known = user.passwords.iter().position(|one| *one == password);
    match (sign, known) {
        (b'>' | b'#', known) => {
            if known.is_none() {
                user.passwords.push(password);
            }
            user.needs_no_password = false;
        }
        (_, Some(at)) => _ = user.passwords.remove(at),
        (_, None) => return Err(RuleError::NoSuchPassword),
    }
    Ok(())
}

/// Changes a selector by one rule of commands, keys or channels.
fn refine(selector: &mut Selector, rule: &[u8], ground: Ground<'_>) -> Result<(), RuleError> {
    match (rule, rule.to_ascii_lowercase().as_slice()) {
        (_, b"allkeys" | b"~*") => selector.set_all_keys(true),
        (_, b"resetkeys") => selector.set_all_keys(false),
        (_, b"allchannels" | b"&*") => selector.set_all_channels(true),
        (_, b"resetchannels") => selector.set_all_channels(false),
        (_, b"allcommands" | b"+@all") => selector.set_all_commands(true),
        (_, b"nocommands" | b"-@all") => selector.set_all_commands(false),
        ([b'~' | b'%', ..], _) if selector.has_all_keys() => return Err(RuleError::AfterAllKeys),
        ([b'~', pattern @ ..], _) => add_keys(selector, pattern, (true, true))?,
        ([b'%', rest @ ..], _) => {
            let (rights, pattern) = key_rights(rest).ok_or(RuleError::Syntax)?;
            add_keys(selector, pattern, rights)?;
        }
        ([b'&', ..], _) if selector.has_all_channels() => {
            return Err(RuleError::AfterAllChannels);
        }
        ([b'&', pattern @ ..], _) => {
            check_name(pattern)?;
            selector.add_channels(pattern);
        }
        ([sign @ (b'+' | b'-'), b'@', name @ ..], _) => {
            let is_allowed = *sign == b'+';
            let entries = ground.catalog.category(name).ok_or(RuleError::Unknown)?;
            entries.for_each(|entry| selector.set_commands(entry, is_allowed));
            selector.note_rule(&format!("@{}", String::from_utf8_lossy(name)), is_allowed);
        }
        ([b'+', name @ ..], _) => allow(selector, name, ground.catalog)?,
        ([b'-', name @ ..], _) => {
            let entry = ground.catalog.find(name).ok_or(RuleError::Unknown)?;
            selector.set_commands(entry, false);
            selector.note_rule(&entry.name, false);
        }
        _ => return Err(RuleError::Syntax),
    }
    Ok(())
}

/// Allows a command, a subcommand, or a command with a first argument.
fn allow(selector: &mut Selector, name: &[u8], catalog: &Catalog) -> Result<(), RuleError> {
    check_name(name)?;
    let text = std::str::from_utf8(name).map_err(|_| RuleError::Unknown)?;
    let Some(bar) = name.iter().rposition(|byte| *byte == b'|') else {
        let entry = catalog.find(name).ok_or(RuleError::Unknown)?;
        selector.set_commands(entry, true);
        selector.note_rule(&entry.name, true);
        return Ok(());
    };
    let (command, word) = (&name[..bar], &name[bar + 1..]);
    let entry = catalog.find(command).ok_or(RuleError::Unknown)?;
    if entry.parent.is_some() {
        return Err(RuleError::WordOfSubcommand);
    }
    if word.is_empty() {
        return Err(RuleError::Syntax);
    }
    if entry.subcommands.is_empty() {
        selector.allow_first_word(entry, word);
    } else {
        selector.set_commands(catalog.find(name).ok_or(RuleError::Unknown)?, true);
    }
    selector.note_rule(text, true);
    Ok(())
}

fn add_keys(
    selector: &mut Selector,
    pattern: &[u8],
    (reads, writes): (bool, bool),
) -> Result<(), RuleError> {
    check_name(pattern)?;
    selector.add_keys(KeyPattern { pattern: pattern.to_vec(), reads, writes });
    Ok(())
}

/// Rights to read and to write in front of a pattern: `R~`, `W~` or both.
fn key_rights(text: &[u8]) -> Option<((bool, bool), &[u8])> {
    let (mut reads, mut writes) = (false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte.to_ascii_uppercase() {
            b'R' if !reads => reads = true,
            b'W' if !writes => writes = true,
            b'~' if reads || writes => return Some(((reads, writes), &text[at + 1..])),
            _ => return None,
        }
    }
    // Redis takes `%R` for the empty pattern.
    (reads || writes).then_some(((reads, writes), &[]))
}

/// A name or pattern can be written in a list of words.
///
/// # Errors
/// It has a space or a zero byte.
pub fn check_name(name: &[u8]) -> Result<(), RuleError> {
    let is_wrong = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0B);
    if name.iter().any(is_wrong) { Err(RuleError::Syntax) } else { Ok(()) }
}

/// Joins words that are parts of one selector in parentheses.
///
/// # Errors
/// The word with a parenthesis that no other word closes.
pub fn merge(words: &[&[u8]]) -> Result<Vec<Vec<u8>>, Vec<u8>> {
    let mut merged = vec![];
    let mut open: Option<(usize, Vec<u8>)> = None;
    for (at, word) in words.iter().enumerate() {
        let ends = word.ends_with(b")");
        match &mut open {
            Some((_, text)) => {
                text.push(b' ');
                text.extend_from_slice(word);
                if ends {
                    merged.extend(open.take().map(|(_, text)| text));
                }
            }
            None if word.starts_with(b"(") && !ends => open = Some((at, word.to_vec())),
            None => merged.push(word.to_vec()),
        }
    }
    match open {
        Some((at, _)) => Err(words[at].to_vec()),
        None => Ok(merged),
    }
}

impl Display for RuleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Unknown => "Unknown command or category name in ACL",
            Self::Syntax => "Syntax error",
            Self::AfterAllKeys => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and \
                 does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            Self::AfterAllChannels => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and \
                 does not have any effect. Try 'resetchannels' to start with an empty list of \
                 channels"
            }
            Self::NoSuchPassword => {
                "The password you are trying to remove from the user does not exist"
            }
            Self::Digest => {
                "The password hash must be exactly 64 characters and contain only lowercase \
                 hexadecimal characters"
            }
            Self::WordOfSubcommand => "Allowing first-arg of a subcommand is not supported",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Denial;

    /// A user with rules, which are words of a line.
    fn user(catalog: &Catalog, line: &str) -> Result<User, RuleError> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let mut user = User::new(1, b"user", Selector::new(catalog, false));
        for rule in merge(&words).expect("parentheses are closed") {
            apply(&mut user, &rule, Ground { catalog, all_channels: false })?;
        }
        Ok(user)
    }

    fn form(catalog: &Catalog, line: &str) -> String {
        let user = user(catalog, line).expect("the rules are right");
        String::from_utf8(user.describe()).expect("the rules are text")
    }

    #[test]
    fn rules_have_a_normal_form() {
        let catalog = Catalog::new(&crate::commands::table());
        for (rules, expected) in [
            ("on nopass ~* &* +@all", "on nopass sanitize-payload ~* &* +@all"),
            ("+GET +@all -Config +config|get", "+@all -config +config|get"),
            ("+config|get +config|set -config", "-@all -config"),
            ("+client +client|id -client|id", "-@all +client -client|id"),
            ("+@read -@Write +get +@read", "-@all -@write +get +@read"),
            ("+select|0 +SELECT|1 +select|0", "-@all +select|1 +select|0"),
            ("+get +@all -@all", "-@all"),
            ("%R~a %w~a %RW~b %W~c", "~a ~b %W~c -@all"),
        ] {
            let shown = form(&catalog, rules);
            let rest = shown.replace("off sanitize-payload ", "").replace("resetchannels ", "");
            assert_eq!(rest, expected, "{rules}");
        }
        assert_eq!(
            form(&catalog, "&b (~a +get) ( &x +set )"),
            "off sanitize-payload resetchannels &b -@all (~a resetchannels -@all +get) \
             (resetchannels &x -@all +set)"
        );
        assert_eq!(
            form(&catalog, "on >a ~* (+get) reset"),
            "off sanitize-payload resetchannels -@all"
        );
    }

    #[test]
    fn a_normal_form_is_a_list_of_rules() {
        let catalog = Catalog::new(&crate::commands::table());
        for rules in [
            "on >a >b ~x %R~y &z +@all -@dangerous +config|get +select|0",
            "nopass skip-sanitize-payload allkeys allchannels -@all +@set (%W~* +@all) (~b +get)",
        ] {
            let first = user(&catalog, rules).expect("the rules are right");
            let again = user(&catalog, &form(&catalog, rules)).expect("the form is right");
            assert!(first.equals(&again), "{rules}");
        }
    }

    #[test]
    fn wrong_rules_are_refused() {
        let catalog = Catalog::new(&crate::commands::table());
        for (rules, expected) in [
            ("nosuch", RuleError::Syntax),
            ("%~a", RuleError::Syntax),
            ("%RR~a", RuleError::Syntax),
            ("~a\tb", RuleError::Syntax),
            ("+select|", RuleError::Syntax),
            ("+nosuch", RuleError::Unknown),
            ("-select|0", RuleError::Unknown),
            ("+config|nosuch", RuleError::Unknown),
            ("+@nosuch", RuleError::Unknown),
            ("+config|get|x", RuleError::WordOfSubcommand),
            ("~* ~a", RuleError::AfterAllKeys),
            ("&* &a", RuleError::AfterAllChannels),
            ("<a", RuleError::NoSuchPassword),
            ("#00", RuleError::Digest),
            ("(~a +nosuch)", RuleError::Unknown),
        ] {
            let refused = user(&catalog, rules).expect_err("the rules are wrong");
            assert_eq!(refused, expected, "{rules}");
        }
        assert_eq!(merge(&[b"a", b"(b", b"c"]), Err(b"(b".to_vec()));
    }

    #[test]
    fn one_selector_has_to_allow_all_of_a_call() {
        let catalog = Catalog::new(&crate::commands::table());
        let table = crate::commands::table();
        let user = user(&catalog, "+get ~a (+set ~b +copy %R~c %W~d &x +publish) +select|0");
        let user = user.expect("the rules are right");
        let check = |line: &str| {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let spec = &table.get(words[0]).expect("it is a command").spec;
            user.check(catalog.of(spec, &words), &words)
        };
        assert_eq!(check("get a"), Ok(()));
        assert_eq!(check("get b"), Err((Denial::Key, 1)));
        assert_eq!(check("set b 1"), Ok(()));
        assert_eq!(check("copy c d"), Ok(()));
        assert_eq!(check("copy d c"), Err((Denial::Key, 1)));
        assert_eq!(check("copy c b"), Ok(()));
        assert_eq!(check("copy b a"), Err((Denial::Key, 2)));
        assert_eq!(check("publish y 1"), Err((Denial::Channel, 1)));
        assert_eq!(check("select 0"), Ok(()));
        assert_eq!(check("select 1"), Err((Denial::Command, 0)));
        assert_eq!(check("auth x"), Ok(()));
    }
}
