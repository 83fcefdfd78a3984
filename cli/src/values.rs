// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Variables and signals as they are named on the command line: `cnt.count=5`,
//! `table.keys[3]=0xff`, `cnt:0,7`; and initial values from a JSON file.

use crate::program;
use anyhow::{Context, bail};
use freeport_ir::{Bits, InstanceId, Program, SIGNAL_BITS, SIGNAL_PARAM_BIT, SIGNAL_WORDS};
use serde_json::Value;
use std::str::FromStr;

/// `INSTANCE.VARIABLE[INDEX]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableName {
    /// Whose.
    pub instance: String,
    /// Its name.
    pub variable: String,
    /// Which element; 0 for a scalar.
    pub index: u64,
}

/// `VARIABLE=VALUE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// To what.
    pub target: VariableName,
    /// A number in any notation of [`number`].
    pub value: String,
}

/// `INSTANCE:WORD,WORD`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalSpec {
    /// To whom.
    pub instance: String,
    /// `LParam`, from the first.
    pub words: Vec<u64>,
}

impl FromStr for VariableName {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        // Instances of groups have dots in their names; variables have none.
        let (instance, rest) =
            text.rsplit_once('.').context("expected INSTANCE.VARIABLE, such as cnt.count")?;
        let (variable, index) = match rest.split_once('[') {
            Some((variable, index)) => {
                let index = index.strip_suffix(']').context("a `]` is missing")?;
                (variable, index.parse().with_context(|| format!("`{index}` is no index"))?)
            }
            None => (rest, 0),
        };
        Ok(Self { instance: instance.into(), variable: variable.into(), index })
    }
}

impl FromStr for Assignment {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (target, value) = text
            .split_once('=')
            .context("expected INSTANCE.VARIABLE=VALUE, such as cnt.count=5")?;
        Ok(Self { target: target.parse()?, value: value.into() })
    }
}

impl FromStr for SignalSpec {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (instance, words) =
            text.split_once(':').context("expected INSTANCE:WORD,WORD, such as cnt:0,7")?;
        let words = words.split(',').filter(|word| !word.is_empty());
        let words = words.map(|word| number(64, word).map(|bits| bits.to_u64()));
        let words: Vec<u64> = words.collect::<anyhow::Result<_>>()?;
        if words.len() > SIGNAL_WORDS {
            bail!("a signal has at most {SIGNAL_WORDS} words");
        }
        Ok(Self { instance: instance.into(), words })
    }
}

/// A decimal or hexadecimal (`0x`) number of at most `width` bits.
///
/// # Errors
/// It is none, or does not fit.
pub fn number(width: u32, text: &str) -> anyhow::Result<Bits> {
    let digits = text.replace('_', "");
    let (digits, radix) = match digits.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (digits.as_str(), 10),
    };
    // Wide enough for any value of that many digits, so that nothing is cut off unseen.
    let all = width.max(4 * digits.len() as u32);
    let value = Bits::parse(all, digits, radix);
    let fits = value.filter(|value| value.resize(width).resize(all) == *value);
    Ok(fits.with_context(|| format!("`{text}` is no number of {width} bits"))?.resize(width))
}

/// A signal with these words.
pub fn signal(words: &[u64]) -> Bits {
    let insert = |signal: Bits, (at, word): (usize, &u64)| {
        signal.insert(SIGNAL_PARAM_BIT + 64 * at as u32, &Bits::from_u64(64, *word))
    };
    words.iter().enumerate().fold(Bits::zero(SIGNAL_BITS), insert)
}

/// The words of a signal's answer.
pub fn answer_words(answer: &Bits) -> [u64; SIGNAL_WORDS] {
    std::array::from_fn(|at| answer.extract(SIGNAL_PARAM_BIT + 64 * at as u32, 64).to_u64())
}

/// The instance that a variable is of, and the width of one element.
///
/// # Errors
/// No such instance or variable; the message lists those there are.
pub fn resolve(program: &Program, name: &VariableName) -> anyhow::Result<(InstanceId, u32)> {
    let id = program::instance(program, &name.instance)?;
    let state = &program.element_of(id).state;
    match state.iter().find(|object| object.name == name.variable) {
        Some(object) => Ok((id, object.elem_bits)),
        None => {
            let names: Vec<&str> = state.iter().map(|object| object.name.as_str()).collect();
            let (instance, variable) = (&name.instance, &name.variable);
            bail!("`{instance}` has no variable `{variable}`; it has [{}]", names.join(", "))
        }
    }
}

/// The assignments of a JSON file: `{"instance": {"variable": value, "array": [value, ...]}}`,
/// where a value is a number or, above 64 bits, a text.
///
/// # Errors
/// Another shape.
pub fn initial_values(json: &str) -> anyhow::Result<Vec<Assignment>> {
    let file: Value = serde_json::from_str(json)?;
    let shape = "expected {\"instance\": {\"variable\": value}}";
    let mut assignments = vec![];
    for (instance, variables) in file.as_object().context(shape)? {
        for (variable, value) in variables.as_object().context(shape)? {
            let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            for (index, value) in values.iter().enumerate() {
                let value = match value {
                    Value::Number(number) if number.is_u64() => number.to_string(),
                    Value::String(text) => text.clone(),
                    other => bail!("{instance}.{variable}: {other} is no value"),
                };
                let (instance, variable) = (instance.clone(), variable.clone());
                let target = VariableName { instance, variable, index: index as u64 };
                assignments.push(Assignment { target, value });
            }
        }
    }
    Ok(assignments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(instance: &str, variable: &str, index: u64) -> VariableName {
        VariableName { instance: instance.into(), variable: variable.into(), index }
    }

    #[test]
    fn assignments_name_an_element_of_a_variable() {
        let parsed: Assignment = "outer.inner.keys[3]=0xff".parse().unwrap();
        let value = "0xff".to_owned();
        assert_eq!(parsed, Assignment { target: name("outer.inner", "keys", 3), value });
        for text in ["a.b", "a=1", "a.b[1=2", "a.b[x]=2"] {
            assert!(text.parse::<Assignment>().is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        assert_eq!(number(8, "0xff").unwrap().to_u64(), 255);
        assert_eq!(number(104, "1_000").unwrap().to_u64(), 1_000);
        for text in ["256", "0x100", "-1", "", "x", "0x"] {
            assert!(number(8, text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_signal_has_its_words_in_place() {
        let spec: SignalSpec = "cnt:7,0x10".parse().unwrap();
        assert_eq!(answer_words(&signal(&spec.words)), [7, 16, 0, 0, 0, 0, 0]);
        assert!("cnt:".parse::<SignalSpec>().unwrap().words.is_empty());
        assert!("cnt:1,2,3,4,5,6,7,8".parse::<SignalSpec>().is_err());
        assert!("cnt".parse::<SignalSpec>().is_err());
    }

    #[test]
    fn initial_values_are_scalars_arrays_and_wide_texts() {
        let json = r#"{"t": {"keys": [1, "0xffffffffffffffffff"], "on": 1}}"#;
        let seen: Vec<(VariableName, String)> =
            initial_values(json).unwrap().into_iter().map(|it| (it.target, it.value)).collect();
        assert_eq!(
            seen,
            [
                (name("t", "keys", 0), "1".to_owned()),
                (name("t", "keys", 1), "0xffffffffffffffffff".to_owned()),
                (name("t", "on", 0), "1".to_owned()),
            ]
        );
        for json in ["[]", "{\"a\": 1}", "{\"a\": {\"b\": -1}}", "{\"a\": {\"b\": null}}", "{"] {
            assert!(initial_values(json).is_err(), "{json}");
        }
    }
}
