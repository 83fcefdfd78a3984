// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entries of a batch, on values of all kinds.

use std::ops::ControlFlow;

use freeport_kv_engine::Keys;
use freeport_kv_keyspace::{BatchOptions, Entry, Error, Execute, Expiry, Keyspace, Options};
use freeport_kv_types::{Limits, Set};

struct Names<'a>(&'a [&'a [u8]]);

impl Keys for Names<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn key(&self, number: usize) -> &[u8] {
        self.0[number]
    }
}

struct Calls<F>(F);

impl<F: FnMut(&mut Entry<'_, '_, '_>)> Execute for Calls<F> {
    fn execute(&mut self, _: usize, entry: &mut Entry<'_, '_, '_>) -> ControlFlow<()> {
        self.0(entry);
        ControlFlow::Continue(())
    }
}

/// Calls a function with the entry of each key. Returns the number of values that have expired.
fn run(keyspace: &mut Keyspace, now_ms: u64, call: impl FnMut(&mut Entry<'_, '_, '_>)) -> u64 {
    let names: [&[u8]; 5] = [b"none", b"plain", b"expiring", b"packed", b"large"];
    let options = BatchOptions { now_ms, removes_expired: true };
    let effects = keyspace.run_each(&Names(&names), options, &mut Calls(call));
    assert_eq!(effects.executed, names.len());
    effects.expired
}

/// A keyspace with a value of each kind.
fn filled() -> Keyspace {
    let limits = Limits { set_entries: 3, ..Limits::default() };
    let mut keyspace = Keyspace::new(Options { limits, ..Options::default() }).expect("sound");
    let fits = "there is memory";
    keyspace.set_string(b"plain", b"1", Expiry::Never, 0).expect(fits);
    keyspace.set_string(b"expiring", b"2", Expiry::AtMs(100), 0).expect(fits);
    for (key, members) in [("packed", 2), ("large", 50)] {
        for member in 0..members {
            let add = |set: &mut Set, limits: &Limits| {
                set.add(limits, format!("member {member}").as_bytes())
            };
            keyspace.change(key.as_bytes(), 0, add).expect(fits);
        }
    }
    assert_eq!((keyspace.large_values(), keyspace.expiring()), (1, 1));
    keyspace
}

#[test]
fn strings_are_read_and_other_values_refused() {
    let mut keyspace = filled();
    let mut seen = vec![];
    run(&mut keyspace, 99, |entry| seen.push(entry.string().map(|it| it.map(<[u8]>::to_vec))));
    let string = |bytes: &[u8]| Ok(Some(bytes.to_vec()));
    let wrong = || Err(Error::WrongType);
    assert_eq!(seen, [Ok(None), string(b"1"), string(b"2"), wrong(), wrong()]);
}

#[test]
fn a_string_takes_the_place_of_any_value() {
    let mut keyspace = filled();
    run(&mut keyspace, 99, |entry| entry.set(b"new").expect("there is memory"));
    assert_eq!((keyspace.len(), keyspace.large_values(), keyspace.expiring()), (5, 0, 0));
    run(&mut keyspace, 99, |entry| assert_eq!(entry.string(), Ok(Some(&b"new"[..]))));
}

#[test]
fn values_of_all_kinds_are_removed() {
    let mut keyspace = filled();
    let mut removed = vec![];
    run(&mut keyspace, 99, |entry| removed.push(entry.remove()));
    assert_eq!(removed, [false, true, true, true, true]);
    assert_eq!((keyspace.len(), keyspace.large_values(), keyspace.expiring()), (0, 0, 0));
}

#[test]
fn strings_are_updated_where_they_lie() {
    let mut keyspace = filled();
    let mut updated = vec![];
    run(&mut keyspace, 99, |entry| updated.push(entry.update(|bytes| bytes[0] += 1)));
    let wrong = Err(Error::WrongType);
    assert_eq!(updated, [Ok(None), Ok(Some(())), Ok(Some(())), wrong, wrong]);
    assert_eq!(keyspace.string(b"expiring", 99), Ok(Some(&b"3"[..])));
    assert_eq!(keyspace.expires_ms(b"expiring", 99), Some(Some(100)));
}

#[test]
fn a_value_whose_time_has_passed_is_removed_and_counted() {
    let mut keyspace = filled();
    let mut found = 0;
    let look = |entry: &mut Entry<'_, '_, '_>| found += u32::from(entry.string() != Ok(None));
    assert_eq!(run(&mut keyspace, 100, look), 1);
    // The plain string, and the two sets, which are no strings.
    assert_eq!(found, 3);
    assert_eq!((keyspace.len(), keyspace.expiring()), (3, 0));
    let mut keyspace = filled();
    assert_eq!(run(&mut keyspace, 100, |entry| entry.set(b"new").expect("there is memory")), 1);
    assert_eq!((keyspace.len(), keyspace.expiring()), (5, 0));
    let mut keyspace = filled();
    let mut removed = vec![];
    assert_eq!(run(&mut keyspace, 100, |entry| removed.push(entry.remove())), 1);
    assert_eq!(removed, [false, true, false, true, true]);
}
