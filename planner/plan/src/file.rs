// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Strict reading of TOML files: an error names file, line and field.

use std::ops::{Range, RangeInclusive};
use thiserror::Error;
use toml_edit::{Document, Item, Table, TableLike, Value};

/// A file that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{file}{}{}: {problem}", at_line(*line), named(field))]
pub struct FileError {
    /// The file, or the name of a built-in one.
    pub file: String,
    /// The line, from 1; none for what is missing from the whole file.
    pub line: Option<usize>,
    /// The field, such as `alternatives[2].steps[1].bytes`; empty if the error concerns none.
    pub field: String,
    /// The reason.
    pub problem: String,
}

fn at_line(line: Option<usize>) -> String {
    line.map(|line| format!(":{line}")).unwrap_or_default()
}

fn named(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!(": {field}") }
}

/// A text that is being read.
pub(crate) struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text }
    }

    /// Parses the text, and hands its root to a reading function.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Fields<'_>) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        let document = Document::parse(self.text).map_err(|error| {
            let problem = error.message().trim().replace('\n', ", ");
            self.error(error.span(), "", format!("it is not TOML: {problem}"))
        })?;
        let root: &Table = document.as_table();
        read(&Fields { reader: self, name: String::new(), at: None, table: root })
    }

    fn error(&self, at: Option<Range<usize>>, field: &str, problem: String) -> FileError {
        let line_of = |span: Range<usize>| {
            let before = self.text.get(..span.start).unwrap_or(self.text);
            1 + before.matches('\n').count()
        };
        let (file, field) = (self.file.to_owned(), field.to_owned());
        FileError { file, line: at.map(line_of), field, problem }
    }
}

/// A table and its fields.
pub(crate) struct Fields<'a> {
    reader: &'a Reader<'a>,
    name: String,
    at: Option<Range<usize>>,
    table: &'a dyn TableLike,
}

impl<'a> Fields<'a> {
    fn field(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// Refuses fields that are not among these.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), FileError> {
        match self.table.iter().find(|(key, _)| !known.contains(key)) {
            None => Ok(()),
            Some((key, item)) => {
                let problem = format!("there is no such field; known are {}", known.join(", "));
                Err(self.reader.error(item.span(), &self.field(key), problem))
            }
        }
    }

    /// Returns an error about a field.
    pub(crate) fn error(&self, key: &str, problem: impl Into<String>) -> FileError {
        let at = self.table.get(key).and_then(Item::span).or_else(|| self.at.clone());
        self.reader.error(at, &self.field(key), problem.into())
    }

    fn required<T>(&self, key: &str, value: Option<T>) -> Result<T, FileError> {
        value.ok_or_else(|| self.error(key, "it is missing"))
    }

    pub(crate) fn text_if_there(&self, key: &str) -> Result<Option<&'a str>, FileError> {
        let of = |item: &'a Item| {
            let text = item.as_str().filter(|text| !text.trim().is_empty());
            text.ok_or_else(|| self.error(key, "it has to be a text in quotation marks"))
        };
        self.table.get(key).map(of).transpose()
    }

    pub(crate) fn text(&self, key: &str) -> Result<&'a str, FileError> {
        self.required(key, self.text_if_there(key)?)
    }

    /// Returns a text that is parsed; the error of the type says what is accepted.
    pub(crate) fn parsed<T: std::str::FromStr<Err = String>>(
        &self,
        key: &str,
    ) -> Result<T, FileError> {
        self.text(key)?.parse().map_err(|problem: String| self.error(key, problem))
    }

    pub(crate) fn number_if_there(
        &self,
        key: &str,
        range: RangeInclusive<f64>,
    ) -> Result<Option<f64>, FileError> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        let number = item.as_float().or_else(|| item.as_integer().map(|number| number as f64));
        let number = number.ok_or_else(|| self.error(key, "it has to be a number"))?;
        if !range.contains(&number) {
            let (least, most) = range.into_inner();
            return Err(self.error(key, format!("{number} is not between {least} and {most}")));
        }
        Ok(Some(number))
    }

    pub(crate) fn number(&self, key: &str, range: RangeInclusive<f64>) -> Result<f64, FileError> {
        self.required(key, self.number_if_there(key, range)?)
    }

    pub(crate) fn whole_if_there(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, FileError> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        let number = item.as_integer();
        let number = number.ok_or_else(|| self.error(key, "it has to be a whole number"))?;
        match u64::try_from(number).ok().filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let (least, most) = range.into_inner();
                Err(self.error(key, format!("{number} is not between {least} and {most}")))
            }
        }
    }

    pub(crate) fn whole(&self, key: &str, range: RangeInclusive<u64>) -> Result<u64, FileError> {
        self.required(key, self.whole_if_there(key, range)?)
    }

    pub(crate) fn truth(&self, key: &str) -> Result<bool, FileError> {
        let Some(item) = self.table.get(key) else { return Ok(false) };
        item.as_bool().ok_or_else(|| self.error(key, "it has to be true or false"))
    }

    /// Returns a list of texts; an empty one if it is not there.
    pub(crate) fn texts(&self, key: &str) -> Result<Vec<&'a str>, FileError> {
        let Some(item) = self.table.get(key) else { return Ok(vec![]) };
        let texts = item.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
        texts.ok_or_else(|| self.error(key, "it has to be a list of texts"))
    }

    pub(crate) fn table_if_there(&self, key: &str) -> Result<Option<Fields<'a>>, FileError> {
        let of = |item: &'a Item| {
            let table = item.as_table_like();
            let table = table.ok_or_else(|| self.error(key, "it has to be a table"))?;
            Ok(self.part(self.field(key), item.span(), table))
        };
        self.table.get(key).map(of).transpose()
    }

    /// Returns a list of tables; an empty one if it is not there.
    pub(crate) fn tables(&self, key: &str) -> Result<Vec<Fields<'a>>, FileError> {
        let Some(item) = self.table.get(key) else { return Ok(vec![]) };
        let wrong = || self.error(key, "it has to be a list of tables");
        let name = |number: usize| format!("{}[{}]", self.field(key), number + 1);
        if let Some(tables) = item.as_array_of_tables() {
            let part =
                |(number, table): (usize, &'a Table)| self.part(name(number), table.span(), table);
            return Ok(tables.iter().enumerate().map(part).collect());
        }
        let list = item.as_array().ok_or_else(wrong)?;
        let part = |(number, value): (usize, &'a Value)| {
            let table = value.as_inline_table()?;
            Some(self.part(name(number), value.span(), table))
        };
        list.iter().enumerate().map(part).collect::<Option<_>>().ok_or_else(wrong)
    }

    fn part(&self, name: String, at: Option<Range<usize>>, table: &'a dyn TableLike) -> Fields<'a> {
        Fields { reader: self.reader, name, at, table }
    }
}
