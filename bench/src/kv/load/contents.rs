// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The contents of a server, how they are stored and read, and the operations of a load.

use super::wire::Wire;
use anyhow::{Result, ensure};
use freeport_kv_protocol::batch::{HEADER_BYTES, TOKEN_BYTES};
use freeport_kv_study::workload::{Keys, Mix, Shares, Sizes, Values};

/// The operations of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Workload {
    /// Half reads, half updates
    A,
    /// 5 % updates
    B,
    /// Reads only
    #[value(alias = "get")]
    C,
    /// Half reads, half reads that an update of the same key follows
    F,
    /// Updates only
    Put,
    /// Adds one to a number, and returns it
    FetchAdd,
}

impl Workload {
    /// Name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "ycsb-a",
            Self::B => "ycsb-b",
            Self::C => "ycsb-c",
            Self::F => "ycsb-f",
            Self::Put => "put",
            Self::FetchAdd => "fetch-add",
        }
    }

    /// Whether values are numbers.
    pub fn is_of_counters(self) -> bool {
        self == Self::FetchAdd
    }

    /// The shares of operations. An update of a counter adds one to it.
    pub fn shares(self) -> Shares {
        match self {
            Self::A => Mix::A.shares(),
            Self::B => Mix::B.shares(),
            Self::C => Mix::C.shares(),
            Self::F => Mix::F.shares(),
            Self::Put | Self::FetchAdd => Shares { updates: 100, ..Shares::default() },
        }
    }
}

/// How requests are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Each by itself.
    Single(Wire),
    /// Packets of the batched protocol, of at most this number of bytes with the header.
    Packets { bytes: usize },
}

/// Bytes of a packet over streams: much less than servers refuse.
const STREAM_BYTES: usize = 4 << 20;
/// Bytes of a packet in a datagram for Ethernet, without the token.
const DATAGRAM_BYTES: usize = 1472 - TOKEN_BYTES;
/// Bytes of an operation beside key and value: code, function, type, and wide lengths.
const OPERATION_BYTES: usize = 11;
/// Digits of numbers in protocols of text. Sums have as many, so replies are of one length.
const DIGITS: usize = 18;
const COUNTER_BYTES: usize = 8;

impl Form {
    /// Packets over a stream of bytes.
    pub const STREAM: Self = Self::Packets { bytes: STREAM_BYTES };
    /// Packets in datagrams.
    pub const DATAGRAM: Self = Self::Packets { bytes: DATAGRAM_BYTES };

    /// Bytes of a number.
    fn counter_bytes(self) -> usize {
        match self {
            Self::Single(_) => DIGITS,
            Self::Packets { .. } => COUNTER_BYTES,
        }
    }

    /// Bytes of the longest key.
    fn key_bytes_max(self) -> usize {
        match self {
            Self::Single(wire) => wire.key_bytes_max(),
            Self::Packets { .. } => Wire::Resp.key_bytes_max(),
        }
    }
}

/// The contents of a server: pairs of the ranks below `pairs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contents {
    /// How they are stored and read.
    pub form: Form,
    /// Bytes per key.
    pub key_bytes: usize,
    /// Bytes per value.
    pub value_bytes: usize,
    /// Number of pairs.
    pub pairs: u64,
    /// Whether values are numbers.
    pub are_counters: bool,
}

impl Contents {
    /// The same number of pairs with a number as the value of each.
    pub fn of_counters(self) -> Self {
        Self { value_bytes: self.form.counter_bytes(), are_counters: true, ..self }
    }

    /// The same contents, stored and read in another form.
    pub fn in_form(self, form: Form) -> Self {
        let own = Self { form, ..self };
        if self.are_counters { own.of_counters() } else { own }
    }

    /// Keys of all protocols are text, as memcached's have to be.
    pub fn keys(&self) -> Keys {
        Keys::Decimal(self.key_bytes)
    }

    /// Makes the value of a record in place of what `value` contained.
    pub fn write_value(&self, rank: u64, version: u32, value: &mut Vec<u8>) {
        if !self.are_counters {
            return Values::new(Sizes::fixed(self.value_bytes)).write(rank, version, value);
        }
        value.clear();
        match self.form {
            Form::Single(_) => {
                value.push(b'1');
                value.resize(DIGITS, b'0');
            }
            Form::Packets { .. } => value.resize(COUNTER_BYTES, 0),
        }
    }

    /// Operations in a packet, if there shall be `pipeline`.
    pub fn packet(&self, pipeline: usize) -> Option<usize> {
        let Form::Packets { bytes } = self.form else { return None };
        let fit = (bytes - HEADER_BYTES) / self.operation_bytes();
        Some(pipeline.min(fit).clamp(1, u16::MAX.into()))
    }

    /// Bytes of an operation at most.
    fn operation_bytes(&self) -> usize {
        self.key_bytes + self.value_bytes + OPERATION_BYTES
    }

    /// Checks that there is a key for each pair, and that the protocol takes it.
    ///
    /// # Errors
    /// Keys are too short or too long, or a pair does not fit in a datagram.
    pub fn check(&self) -> Result<()> {
        let Self { form, key_bytes, pairs, .. } = *self;
        ensure!(
            pairs <= self.keys().ranks(),
            "keys of {key_bytes} digits are too short for {pairs} pairs"
        );
        ensure!(
            key_bytes <= form.key_bytes_max(),
            "keys of this protocol have at most {} bytes",
            form.key_bytes_max()
        );
        if let Form::Packets { bytes } = form
            && form != Form::STREAM
        {
            let most = bytes - HEADER_BYTES - OPERATION_BYTES;
            ensure!(
                HEADER_BYTES + self.operation_bytes() <= bytes,
                "a key and its value have at most {most} bytes together in a datagram"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_do_not_fit_are_refused() {
        let form = Form::Single(Wire::Text);
        let contents =
            Contents { form, key_bytes: 8, value_bytes: 20, pairs: 1_000, are_counters: false };
        assert!(contents.check().is_ok());
        assert!(Contents { key_bytes: 2, ..contents }.check().is_err());
        assert!(Contents { key_bytes: 251, ..contents }.check().is_err());
        for form in [Form::Single(Wire::Resp), Form::STREAM] {
            assert!(Contents { key_bytes: 251, form, ..contents }.check().is_ok());
        }
    }

    #[test]
    fn packets_have_as_many_operations_as_fit() {
        let of = |bytes, value_bytes| Contents {
            form: Form::Packets { bytes },
            key_bytes: 8,
            value_bytes,
            pairs: 10,
            are_counters: false,
        };
        let single = Contents { form: Form::Single(Wire::Resp), ..of(0, 2) };
        assert_eq!(single.packet(64), None);
        assert_eq!(of(STREAM_BYTES, 2).packet(64), Some(64));
        assert_eq!(of(STREAM_BYTES, 2).packet(1 << 20), Some(65_535));
        assert_eq!(of(STREAM_BYTES, 8 << 20).packet(16), Some(1));
        assert_eq!(of(1464, 92).packet(16), Some(13));
        assert!(of(1464, 92).check().is_ok());
        let error = of(1464, 2000).check().expect_err("it fits in no datagram").to_string();
        assert!(error.contains("at most 1437 bytes"), "{error}");
        assert!(of(STREAM_BYTES, 8 << 20).check().is_ok());
    }
}
