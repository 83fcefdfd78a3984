// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values of a registry as text: JSON with the version of its format.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::registry::{RegistryError, SwapError};
use crate::topology::Topology;

/// Version of the format of all values.
const FORMAT: u32 = 1;

/// Largest value that is written or read, in bytes. A slot map whose slots are all apart, with a
/// thousand nodes, has half of it. etcd takes requests of 1.5 MiB, whose values are longer by a
/// third.
pub(crate) const MAXIMUM_BYTES: usize = 1 << 20;

/// A value in its envelope.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<T> {
    format: u32,
    value: T,
}

/// The part of the envelope that all formats have.
#[derive(Deserialize)]
struct AnyFormat {
    format: u32,
}

/// A value as text.
pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let mut text = serde_json::to_vec(&Envelope { format: FORMAT, value })
        .expect("the values have no maps whose keys are no texts");
    text.push(b'\n');
    text
}

/// Reads what [`encode`] wrote. `place` is where it was found, for messages.
pub(crate) fn decode<T: DeserializeOwned>(place: &str, text: &[u8]) -> Result<T, RegistryError> {
    let wrong = |reason: String| RegistryError::Contents(format!("{place}: {reason}"));
    if text.len() > MAXIMUM_BYTES {
        return Err(wrong(format!("{} bytes, more than {MAXIMUM_BYTES}", text.len())));
    }
    let read = serde_json::from_slice::<AnyFormat>(text);
    let AnyFormat { format } = read.map_err(|error| wrong(error.to_string()))?;
    if format != FORMAT {
        return Err(wrong(format!(
            "format {format} of another version of Freeport, which this one (format {FORMAT}) \
             cannot read; start the version that wrote it"
        )));
    }
    let read = serde_json::from_slice::<Envelope<T>>(text);
    read.map(|envelope| envelope.value).map_err(|error| wrong(error.to_string()))
}

/// Refuses a stored topology that breaks the rules of one: nobody may serve by it.
pub(crate) fn checked(place: &str, topology: Topology) -> Result<Topology, RegistryError> {
    let checked = topology.check();
    checked.map_err(|reason| RegistryError::Contents(format!("{place}: {reason}")))?;
    Ok(topology)
}

/// Refuses a text of a topology that is too long to be stored.
pub(crate) fn check_length(text: &[u8]) -> Result<(), SwapError> {
    match text.len() {
        ..=MAXIMUM_BYTES => Ok(()),
        bytes => Err(SwapError::Invalid(format!("{bytes} bytes, more than {MAXIMUM_BYTES}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_written() {
        assert_eq!(decode("here", &encode(&vec![1, 2])), Ok(vec![1, 2]));
    }

    #[test]
    fn values_of_another_format_and_no_values_are_refused() {
        let newer = br#"{"format": 2, "contents": []}"#;
        for (text, reason) in [
            (&newer[..], "here: format 2 of another version"),
            (b"", "here: EOF"),
            (b"[1]", "here: "),
            (br#"{"format": 1, "value": "a"}"#, "here: invalid type"),
            (br#"{"format": 1, "value": [], "more": 1}"#, "here: unknown field"),
            (&vec![b' '; MAXIMUM_BYTES + 1], "bytes, more than"),
        ] {
            let error = decode::<Vec<u32>>("here", text).expect_err(reason).to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
