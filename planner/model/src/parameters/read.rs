// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading files of parameters, with an error that names file, line and parameter.

use super::{Key, Origin, Parameters, Problem, ProfileError};
use std::ops::Range;
use toml_edit::{Document, Item, Table, TableLike};

/// Attributes of a parameter in a file.
const ATTRIBUTES: [&str; 4] = ["value", "unit", "source", "fitted"];

/// The kind of files that do not state it.
const DEVICE: &str = "device";

/// Reads a profile from the text of a file, whose name appears in errors.
///
/// # Errors
/// The text is not a complete and consistent profile of this kind.
pub fn parse<P: Parameters>(file: &str, text: &str) -> Result<P, ProfileError> {
    let reader = Reader { file, text };
    let document = reader.document()?;
    let profile = reader.profile(document.as_table())?;
    reader.check(&profile, document.as_table())?;
    Ok(profile)
}

/// Returns the kind that a file states; `device` if it states none.
///
/// # Errors
/// The text is not TOML, or the kind is not a text.
pub fn kind_of(file: &str, text: &str) -> Result<String, ProfileError> {
    let reader = Reader { file, text };
    Ok(reader.kind(reader.document()?.as_table())?.to_owned())
}

/// A text that is being read.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    fn error(&self, at: Option<Range<usize>>, field: &str, problem: Problem) -> ProfileError {
        let line_of = |span: Range<usize>| {
            let before = self.text.get(..span.start).unwrap_or(self.text);
            1 + before.matches('\n').count()
        };
        let (file, field) = (self.file.to_owned(), field.to_owned());
        ProfileError { file, line: at.map(line_of), field, problem }
    }

    fn document(&self) -> Result<Document<&str>, ProfileError> {
        Document::parse(self.text).map_err(|error| {
            let problem = Problem::Syntax(error.message().trim().replace('\n', ", "));
            self.error(error.span(), "", problem)
        })
    }

    fn kind<'a>(&self, root: &'a Table) -> Result<&'a str, ProfileError> {
        let Some(kind) = root.get("kind") else { return Ok(DEVICE) };
        kind.as_str().ok_or_else(|| self.wrong(kind, "kind", "a text in quotation marks"))
    }

    fn profile<P: Parameters>(&self, root: &Table) -> Result<P, ProfileError> {
        let kind = self.kind(root)?;
        if kind != P::KIND {
            let problem = Problem::Kind { found: kind.to_owned(), expected: P::KIND };
            return Err(self.error(root.get("kind").and_then(Item::span), "kind", problem));
        }
        let name = root.get("name").ok_or_else(|| self.missing::<P>(None, "name", "it"))?;
        let text = name.as_str().filter(|text| !text.trim().is_empty());
        let text = text.ok_or_else(|| self.wrong(name, "name", "a text in quotation marks"))?;
        let mut profile = P::default();
        text.clone_into(profile.name_mut());
        for (section, item) in root.iter().filter(|(key, _)| !["name", "kind"].contains(key)) {
            let Some((_, keys)) = P::SECTIONS.iter().find(|(name, _)| *name == section) else {
                return Err(self.error(item.span(), section, Problem::Unknown("section")));
            };
            let table = item.as_table_like();
            let table = table.ok_or_else(|| self.wrong(item, section, "a section"))?;
            self.section(&mut profile, section, keys, table)?;
        }
        for (section, keys) in P::SECTIONS {
            for key in *keys {
                let field = format!("{section}.{}", key.name);
                if !profile.origins_mut().contains_key(&field) {
                    let section = root.get(section).and_then(Item::span);
                    return Err(self.missing::<P>(section, &field, "it"));
                }
            }
        }
        Ok(profile)
    }

    fn section<P: Parameters>(
        &self,
        profile: &mut P,
        section: &str,
        keys: &[Key],
        table: &dyn TableLike,
    ) -> Result<(), ProfileError> {
        for (name, item) in table.iter() {
            let field = format!("{section}.{name}");
            let Some(key) = keys.iter().find(|key| key.name == name) else {
                return Err(self.error(item.span(), &field, Problem::Unknown("parameter")));
            };
            let (value, origin) = self.parameter::<P>(&field, key, item)?;
            if let Some(place) = profile.place(section, name) {
                *place = value;
            }
            profile.origins_mut().insert(field, origin);
        }
        Ok(())
    }

    fn parameter<P: Parameters>(
        &self,
        field: &str,
        key: &Key,
        item: &Item,
    ) -> Result<(f64, Origin), ProfileError> {
        let form = "of the form { value = 1, unit = \"...\", source = \"...\" }";
        let table = item.as_table_like().ok_or_else(|| self.wrong(item, field, form))?;
        if let Some((name, other)) = table.iter().find(|(name, _)| !ATTRIBUTES.contains(name)) {
            let field = format!("{field}.{name}");
            return Err(self.error(other.span(), &field, Problem::Unknown("attribute")));
        }
        let attribute = |name: &str| {
            table
                .get(name)
                .ok_or_else(|| self.missing::<P>(item.span(), field, &format!("its {name}")))
        };
        let text_of = |name| {
            let item = attribute(name)?;
            let text = item.as_str().filter(|text| !text.trim().is_empty());
            let field = format!("{field}.{name}");
            text.ok_or_else(|| self.wrong(item, &field, "a text in quotation marks"))
        };
        let value = self.value(field, key, attribute("value")?)?;
        let unit = text_of("unit")?;
        if unit != key.unit {
            let problem = Problem::Unit(key.unit, unit.to_owned());
            return Err(self.error(attribute("unit")?.span(), field, problem));
        }
        let fitted = match table.get("fitted") {
            None => false,
            Some(item) => {
                let wrong = || self.wrong(item, field, "true or false for `fitted`");
                item.as_bool().ok_or_else(wrong)?
            }
        };
        Ok((value, Origin { source: text_of("source")?.to_owned(), fitted }))
    }

    fn value(&self, field: &str, key: &Key, item: &Item) -> Result<f64, ProfileError> {
        let number = item.as_float().or_else(|| item.as_integer().map(|number| number as f64));
        let value = number.ok_or_else(|| self.wrong(item, field, "a number"))?;
        let Key { unit, least, most, .. } = *key;
        if !(least..=most).contains(&value) {
            let problem = Problem::Range { value, unit, least, most };
            return Err(self.error(item.span(), field, problem));
        }
        if ["count", "B"].contains(&unit) && value.fract() != 0.0 {
            return Err(self.wrong(item, field, "a whole number"));
        }
        Ok(value)
    }

    /// Checks whether values contradict each other; the error names the line of the first one.
    fn check<P: Parameters>(&self, profile: &P, root: &Table) -> Result<(), ProfileError> {
        match profile.contradiction() {
            None => Ok(()),
            Some((field, reason)) => {
                let (section, key) = field.split_once('.').unwrap_or((field, ""));
                let table = root.get(section).and_then(Item::as_table_like);
                let at = table.and_then(|table| table.get(key)).and_then(Item::span);
                Err(self.error(at, field, Problem::Contradiction(reason)))
            }
        }
    }

    fn missing<P: Parameters>(
        &self,
        at: Option<Range<usize>>,
        field: &str,
        what: &str,
    ) -> ProfileError {
        self.error(at, field, Problem::Missing(what.to_owned(), P::COMPLETE))
    }

    fn wrong(&self, item: &Item, field: &str, expected: &'static str) -> ProfileError {
        self.error(item.span(), field, Problem::Wrong(expected))
    }
}
