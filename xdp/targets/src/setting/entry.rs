// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The name of a map entry, in bpftool's syntax.

use super::{NotASetting, check, find, named};
use crate::{Error, Target};
use freeport_ebpf::object::{MapDefinition, Object};
use std::str::FromStr;

/// An entry of a map, written `NAME key [hex] BYTES`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryName {
    map: String,
    key: Vec<u8>,
}

impl FromStr for EntryName {
    type Err = NotASetting;

    fn from_str(text: &str) -> Result<Self, NotASetting> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some((map, words)) = words.split_first() else {
            return Err(NotASetting("no map is named".into()));
        };
        match named("key", words)? {
            (Some(key), []) => Ok(Self { map: (*map).to_owned(), key }),
            (None, _) => Err(NotASetting("there is no key".into())),
            (Some(_), rest) => {
                Err(NotASetting(format!("unexpected `{}` after the key", rest.join(" "))))
            }
        }
    }
}

impl EntryName {
    /// Returns the key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the map.
    ///
    /// # Errors
    /// There is no map of that name, or its keys have another size.
    pub fn map<'o>(&self, object: &'o Object) -> Result<&'o MapDefinition, Error> {
        let map = find(object, &self.map)?;
        check(map, "key", &self.key, map.key_size)?;
        Ok(map)
    }

    /// Returns the value on a target that has loaded the object; `None` if there is no such entry.
    ///
    /// # Errors
    /// As for [`map`](Self::map), or the map refuses the lookup.
    pub fn lookup(
        &self,
        object: &Object,
        target: &mut dyn Target,
    ) -> Result<Option<Vec<u8>>, Error> {
        target.lookup(&self.map(object)?.name, &self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_map_and_a_key() {
        let entry: EntryName = "flows key hex 0a ff".parse().unwrap();
        assert_eq!((entry.map.as_str(), entry.key()), ("flows", &[10, 255][..]));
        for (text, reason) in [
            ("", "no map is named"),
            ("flows", "there is no key"),
            ("flows key 1 value 2", "unexpected `value 2` after the key"),
            ("flows key 300", "`300` is not a valid byte of the key"),
        ] {
            let error = text.parse::<EntryName>().unwrap_err().to_string();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
    }
}
