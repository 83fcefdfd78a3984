// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The registers themselves, for PFDEBUG.

use super::sparse::{Run, runs_of};
use super::{
    DENSE, ENCODING_AT, HEADER_BYTES, InvalidString, REGISTERS, Registers, check, merge_into,
};

/// Whether registers are stored one by one, and not as runs.
///
/// # Errors
/// [`InvalidString::WrongType`].
pub fn is_dense(bytes: &[u8]) -> Result<bool, InvalidString> {
    check(bytes)?;
    Ok(bytes[ENCODING_AT] == DENSE)
}

/// Returns the values of all 16384 registers.
///
/// # Errors
/// [`InvalidString`].
pub fn registers(bytes: &[u8]) -> Result<Registers, InvalidString> {
    let mut registers = [0; REGISTERS];
    merge_into(&mut registers, bytes)?;
    Ok(registers)
}

/// Returns the runs of sparse registers as text: `Z:16000` and `z:5` for zeros in two bytes and in
/// one, `v:2,1` for one register of value 2.
///
/// # Errors
/// [`InvalidString`].
pub fn describe_runs(bytes: &[u8]) -> Result<String, InvalidString> {
    check(bytes)?;
    let words: Option<Vec<String>> = runs_of(&bytes[HEADER_BYTES..])
        .map(|run| {
            run.map(|Run { value, len, bytes }| match (value, bytes) {
                (0, 1) => format!("z:{len}"),
                (0, _) => format!("Z:{len}"),
                _ => format!("v:{value},{len}"),
            })
        })
        .collect();
    Ok(words.ok_or(InvalidString::Corrupt)?.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hyperloglog::{add, make_dense, new};
    use crate::limits::Limits;

    #[test]
    fn runs_and_registers_are_those_of_the_elements() {
        let mut bytes = new();
        assert_eq!(describe_runs(&bytes).as_deref(), Ok("Z:16384"));
        add(&Limits::default(), &mut bytes, b"a").expect("a new string is valid");
        let text = describe_runs(&bytes).expect("it is valid");
        assert_eq!(text.split(' ').count(), 3, "{text}");
        let sparse = registers(&bytes).expect("it is valid");
        assert_eq!(sparse.iter().filter(|value| **value != 0).count(), 1);
        assert_eq!(is_dense(&bytes), Ok(false));
        make_dense(&mut bytes).expect("it is valid");
        assert_eq!(is_dense(&bytes), Ok(true));
        assert_eq!(registers(&bytes), Ok(sparse));
        assert_eq!(describe_runs(b"x"), Err(InvalidString::WrongType));
        bytes[ENCODING_AT] = 1;
        bytes.truncate(HEADER_BYTES);
        bytes.push(0x40);
        assert_eq!(describe_runs(&bytes), Err(InvalidString::Corrupt));
        assert_eq!(registers(&bytes), Err(InvalidString::Corrupt));
    }
}
