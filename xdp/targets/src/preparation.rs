// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sizes of maps and initial values of variables, which a loader sets before it loads an object.
//! They are set in the parsed [`Object`], from which all targets are loaded, so they are the same
//! on each target.

use crate::{Error, Setting};
use freeport_ebpf::object::{Layout, Object, SlotTarget};
use std::str::FromStr;

/// Number of entries of a map, written `NAME=ENTRIES`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapSize {
    map: String,
    entries: u32,
}

/// Initial value of a variable, or of a member or an element of one, written `VARIABLE=VALUE`,
/// `VARIABLE.member=VALUE` or `VARIABLE[2]=VALUE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    name: String,
    value: String,
}

impl FromStr for MapSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').map(|(map, entries)| (map, entries.parse()));
        match parts {
            Some((map, Ok(entries))) if !map.is_empty() && entries > 0 => {
                Ok(Self { map: map.into(), entries })
            }
            _ => Err("expected NAME=ENTRIES, such as flows=4096".into()),
        }
    }
}

impl FromStr for Variable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => {
                Ok(Self { name: name.into(), value: value.into() })
            }
            _ => Err("expected VARIABLE=VALUE, such as limit=100".into()),
        }
    }
}

/// Sets sizes and variables in an object before it is loaded. Settings of whole sections of
/// variables are applied here too, since the kernel freezes constants when it loads them. Returns
/// the remaining settings.
///
/// # Errors
/// A map or a variable does not exist, or a value does not fit.
pub fn prepare(
    object: &mut Object,
    sizes: &[MapSize],
    variables: &[Variable],
    settings: Vec<Setting>,
) -> Result<Vec<Setting>, Error> {
    sizes.iter().try_for_each(|size| size.set(object))?;
    variables.iter().try_for_each(|variable| variable.set(object))?;
    let mut left = vec![];
    for setting in settings {
        left.extend((!setting.prepare(object)?).then_some(setting));
    }
    Ok(left)
}

/// Returns the names of the programs that must be loaded to run one of them: the program itself,
/// and those in map entries.
pub fn needed<'o>(object: &'o Object, program: &'o str, settings: &'o [Setting]) -> Vec<&'o str> {
    let slots = object.maps.iter().flat_map(|map| &map.slots);
    let in_slots = slots.filter_map(|(_, target)| match target {
        SlotTarget::Program(number) => object.programs.get(*number).map(|it| it.name.as_str()),
        SlotTarget::Map(_) => None,
    });
    let named = settings.iter().filter_map(Setting::name);
    let is_program = |name: &&str| object.programs.iter().any(|it| it.name == **name);
    let mut all: Vec<&str> = [program].into_iter().chain(in_slots).collect();
    all.extend(named.filter(is_program));
    all.sort_unstable();
    all.dedup();
    all
}

impl MapSize {
    fn set(&self, object: &mut Object) -> Result<(), Error> {
        let refused =
            |reason: String| Error::Refused { what: format!("map `{}`", self.map), reason };
        let names = |object: &Object| {
            let maps = object.maps.iter().filter(|map| map.initial.is_none());
            maps.map(|map| map.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let found = object.maps.iter().position(|map| map.name == self.map);
        let Some(found) = found else {
            return Err(refused(format!("there is none; there are: {}", names(object))));
        };
        let map = &mut object.maps[found];
        if map.initial.is_some() {
            return Err(refused("it holds variables, and has one entry".into()));
        }
        map.set_entries(self.entries);
        Ok(())
    }
}

impl Variable {
    fn set(&self, object: &mut Object) -> Result<(), Error> {
        let refused = |reason| Error::Refused { what: format!("variable `{}`", self.name), reason };
        let (variable, path) = self.parts();
        let mut names = vec![];
        let mut found = vec![];
        for (number, map) in object.maps.iter().enumerate() {
            let Some(Layout::Struct { members, .. }) = &map.value_layout else { continue };
            if map.initial.is_none() {
                continue;
            }
            for member in members {
                names.push(member.name.as_str());
                if member.name == variable {
                    found.push((number, member.clone()));
                }
            }
        }
        let (number, member) = match found.as_slice() {
            [(number, member)] => (*number, member),
            [] if names.is_empty() => {
                return Err(refused("the object has no variables with types (clang -g)".into()));
            }
            [] => return Err(refused(format!("there is none; there are: {}", names.join(", ")))),
            [(one, _), (other, _), ..] => {
                let [one, other] = [one, other].map(|map| &object.maps[*map].name);
                let reason =
                    format!("there are several of that name, in {one} and {other}: use --map");
                return Err(refused(reason));
            }
        };
        let section = object.maps[number].name.clone();
        let part = member.layout.part(path).map_err(refused)?;
        let start = member.bit_offset as usize / 8;
        let initial = object.maps[number].initial.as_mut();
        let bytes = initial.and_then(|initial| initial.get_mut(start..)).unwrap_or_default();
        part.write(bytes, &self.value).map_err(|reason| match part.layout {
            Layout::Struct { .. } => refused(format!("{reason}: set one of them")),
            Layout::Opaque { .. } => {
                refused(format!("{reason}: set all of `{section}` with --map"))
            }
            _ => refused(reason),
        })
    }

    /// Splits the path into the variable and the member or element within it.
    fn parts(&self) -> (&str, &str) {
        self.name.split_at(self.name.find(['.', '[']).unwrap_or(self.name.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_ebpf::object::{MapDefinition, Member};

    fn object() -> Object {
        let integer = |bytes| Layout::Integer { bytes, is_signed: false };
        let member = |name: &str, bit_offset, layout| Member {
            name: name.into(),
            bit_offset,
            field_bits: 0,
            layout,
        };
        let rule = Layout::Struct {
            bytes: 4,
            members: vec![member("most", 0, integer(1)), member("other", 16, integer(2))],
        };
        let members = vec![
            member("limit", 0, integer(4)),
            member("ports", 32, Layout::Array { element: Box::new(integer(2)), count: 2 }),
            member("rule", 64, rule),
        ];
        let data = MapDefinition {
            name: ".rodata".into(),
            key_size: 4,
            value_size: 12,
            max_entries: 1,
            value_layout: Some(Layout::Struct { bytes: 12, members }),
            initial: Some(vec![9; 12]),
            ..MapDefinition::default()
        };
        let sized = MapDefinition { name: "flows".into(), ..MapDefinition::default() };
        Object { maps: vec![data, sized], ..Object::default() }
    }

    #[test]
    fn sizes_and_variables_are_set() {
        let mut object = object();
        let sizes = ["flows=16".parse().unwrap()];
        let variables = ["limit=0x102", "ports=1,2", "ports[1]=7", "rule.most=3"]
            .map(|text| text.parse().unwrap());
        let settings = vec!["flows key 0 value 1".parse().unwrap()];
        let left = prepare(&mut object, &sizes, &variables, settings.clone()).unwrap();
        assert_eq!((left, object.maps[1].max_entries), (settings, 16));
        let expected = [2, 1, 0, 0, 1, 0, 7, 0, 3, 9, 9, 9];
        assert_eq!(object.maps[0].initial.as_deref(), Some(&expected[..]));
        let all = ".rodata key 0 0 0 0 value 1 2 3 4 5 6 7 8 9 10 11 12".parse().unwrap();
        assert_eq!(prepare(&mut object, &[], &[], vec![all]).unwrap(), []);
        let expected: Vec<u8> = (1..=12).collect();
        assert_eq!(object.maps[0].initial.as_deref(), Some(&expected[..]));
    }

    #[test]
    fn what_cannot_be_set_is_said() {
        for (text, reason) in [
            ("limits=1", "variable `limits`: there is none; there are: limit, ports, rule"),
            (
                "limit=x",
                "variable `limit`: `x` is not an unsigned number of 32 bits, 0 to 4294967295",
            ),
            (
                "limit.x=1",
                "variable `limit.x`: there is no member `x`: it is an unsigned number of 32 bits",
            ),
            (
                "rule.least=1",
                "variable `rule.least`: there is no member `least`; there are: most, other",
            ),
            (
                "rule.most=256",
                "variable `rule.most`: 256 does not fit in an unsigned number of 8 bits, 0 to 255",
            ),
            ("ports[2]=1", "variable `ports[2]`: there is no element 2: they are 0 to 1"),
            ("ports=1", "variable `ports`: it has 2 elements, but 1 are given"),
            (
                "rule=1",
                "variable `rule`: it is a struct with the members most, other: set one of them",
            ),
        ] {
            let error = prepare(&mut object(), &[], &[text.parse().unwrap()], vec![]).unwrap_err();
            assert_eq!(error.to_string(), reason);
        }
        for (text, reason) in [
            ("flow=1", "map `flow`: there is none; there are: flows"),
            (".rodata=2", "map `.rodata`: it holds variables, and has one entry"),
        ] {
            let error = prepare(&mut object(), &[text.parse().unwrap()], &[], vec![]).unwrap_err();
            assert_eq!(error.to_string(), reason);
        }
        for text in ["", "flows", "flows=", "flows=0", "=3", "flows=-1"] {
            assert!(text.parse::<MapSize>().is_err(), "{text}");
        }
        for text in ["", "limit", "limit=", "=3"] {
            assert!(text.parse::<Variable>().is_err(), "{text}");
        }
    }
}
