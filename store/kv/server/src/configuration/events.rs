// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The flags of `notify-keyspace-events`: a letter for each class, and where events are published.

use freeport_kv_commands::Class;

/// `K`: events are published on the channel of their key.
pub const KEYSPACE: u16 = 1;
/// `E`: events are published on the channel of their name.
pub const KEYEVENT: u16 = 1 << 1;

const LETTERS: [(u8, u16); 11] = [
    (b'g', Class::Generic as u16),
    (b'$', Class::String as u16),
    (b'l', Class::List as u16),
    (b's', Class::Set as u16),
    (b'h', Class::Hash as u16),
    (b'z', Class::SortedSet as u16),
    (b'x', Class::Expired as u16),
    (b'e', Class::Evicted as u16),
    (b't', Class::Stream as u16),
    (b'd', MODULE),
    (b'n', Class::New as u16),
];
/// `d`: events of modules, of which there are none.
const MODULE: u16 = 1 << 13;
/// `A`: all classes but misses and new keys.
const ALL: u16 = {
    let (mut all, mut at) = (0, 0);
    while at < LETTERS.len() {
        all |= LETTERS[at].1;
        at += 1;
    }
    all & !(Class::New as u16)
};

/// The classes and channels of a text; none: it has another letter.
pub fn parse(text: &[u8]) -> Option<u16> {
    text.iter().try_fold(0, |flags, letter| {
        let one = match letter {
            b'A' => ALL,
            b'K' => KEYSPACE,
            b'E' => KEYEVENT,
            b'm' => Class::Miss as u16,
            letter => LETTERS.iter().find(|(one, _)| one == letter)?.1,
        };
        Some(flags | one)
    })
}

/// The text of classes and channels.
pub fn text(flags: u16) -> String {
    let mut text = String::new();
    if flags & ALL == ALL {
        text.push('A');
    } else {
        let classes = LETTERS.iter().filter(|(_, class)| class & ALL & flags != 0);
        text.extend(classes.map(|(letter, _)| char::from(*letter)));
    }
    for (letter, flag) in
        [('K', KEYSPACE), ('E', KEYEVENT), ('m', Class::Miss as u16), ('n', Class::New as u16)]
    {
        if flags & flag != 0 {
            text.push(letter);
        }
    }
    text
}

/// Classes that commands have to note: none if events are published nowhere.
pub fn listened(flags: u16) -> u16 {
    if flags & (KEYSPACE | KEYEVENT) == 0 { 0 } else { flags & !(KEYSPACE | KEYEVENT) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_shown_in_one_order() {
        let shown = |letters: &str| parse(letters.as_bytes()).map(text);
        assert_eq!(shown("KEA").as_deref(), Some("AKE"));
        assert_eq!(shown("lKg").as_deref(), Some("glK"));
        assert_eq!(shown("mnEg$lshzxetd").as_deref(), Some("AEmn"));
        assert_eq!(shown("").as_deref(), Some(""));
        assert_eq!(shown("KX"), None);
    }

    #[test]
    fn events_without_a_channel_are_not_noted() {
        assert_eq!(parse(b"A").map(listened), Some(0));
        assert_eq!(parse(b"l$E").map(listened), Some(Class::List as u16 | Class::String as u16));
    }
}
