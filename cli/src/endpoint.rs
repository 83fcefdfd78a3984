// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the command line joins to an outer end of a program: `from_tor=trace.pcap`,
//! `from_tor=gen:64x1000`, `to_tor=out.pcapng`, `to_tor=count`.

use anyhow::Context;
use freeport_nic::port::{Generator, PcapReceiver, PcapTransmitter, Receive, Sink, Transmit};
use freeport_nic::trace::{Sizes, Trace};
use std::path::PathBuf;
use std::str::FromStr;

/// Different flows of generated traffic.
const FLOWS: usize = 64;
/// Frames of a generated trace that differ; a longer run goes round them.
const DIFFERENT_FRAMES: u64 = 4_096;

/// `NAME=SOURCE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputSpec {
    /// The outer end.
    pub endpoint: String,
    /// What feeds it.
    pub source: Source,
}

/// Where frames come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A capture file.
    Capture(PathBuf),
    /// Made in memory.
    Generated {
        /// How long they are.
        sizes: Sizes,
        /// How many.
        frames: u64,
    },
}

/// `NAME=TARGET`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSpec {
    /// The outer end.
    pub endpoint: String,
    /// Where frames go.
    pub target: Target,
}

/// Where frames go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A capture file.
    Capture(PathBuf),
    /// Nowhere; they are counted.
    Count,
}

impl Source {
    /// Opens it.
    ///
    /// # Errors
    /// A file that is no readable capture.
    pub fn open(&self) -> anyhow::Result<Box<dyn Receive>> {
        Ok(match self {
            Source::Capture(path) => Box::new(PcapReceiver::open(path)?),
            Source::Generated { sizes, frames } => {
                let trace = Trace {
                    seed: 1,
                    frames: (*frames).min(DIFFERENT_FRAMES) as usize,
                    flows: FLOWS,
                    sizes: sizes.clone(),
                    tcp_percent: 50,
                    bad_checksum_permille: 0,
                    truncated_permille: 0,
                    gap_ns: 1_000,
                };
                let mut generator = Generator::once(&trace.generate())?;
                generator.refill(*frames);
                Box::new(generator)
            }
        })
    }
}

impl Target {
    /// Opens it.
    ///
    /// # Errors
    /// A file that cannot be made.
    pub fn open(&self) -> anyhow::Result<Box<dyn Transmit>> {
        Ok(match self {
            Target::Capture(path) => Box::new(PcapTransmitter::create(path)?),
            Target::Count => Box::new(Sink::counting()),
        })
    }
}

impl FromStr for InputSpec {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (endpoint, source) = split(text)?;
        let source = match source.strip_prefix("gen:") {
            Some(made) => generated(made)
                .with_context(|| format!("`{made}`: expected SIZExCOUNT, such as 64x1000"))?,
            None => Source::Capture(source.into()),
        };
        Ok(Self { endpoint: endpoint.into(), source })
    }
}

impl FromStr for OutputSpec {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (endpoint, target) = split(text)?;
        let target = match target {
            "count" => Target::Count,
            path => Target::Capture(path.into()),
        };
        Ok(Self { endpoint: endpoint.into(), target })
    }
}

fn split(text: &str) -> anyhow::Result<(&str, &str)> {
    let parts = text.split_once('=').filter(|(name, rest)| !name.is_empty() && !rest.is_empty());
    parts.context("expected NAME=WHAT, such as from_tor=trace.pcap")
}

/// `64x1000`, `64-1500x1000` or `imixx1000`; sizes are those of frames without check sequences.
fn generated(text: &str) -> anyhow::Result<Source> {
    let (size, frames) = text.rsplit_once('x').context("there is no x")?;
    let frames = frames.parse()?;
    let sizes = match (size, size.split_once('-')) {
        ("imix", _) => Sizes::InternetMix,
        (_, Some((least, most))) => Sizes::Uniform(least.parse()?..=most.parse()?),
        _ => Sizes::Fixed(size.parse()?),
    };
    let most = match &sizes {
        Sizes::Fixed(size) => *size,
        Sizes::Uniform(range) if range.is_empty() => anyhow::bail!("the range is empty"),
        Sizes::Uniform(range) => *range.end(),
        Sizes::InternetMix => 0,
    };
    anyhow::ensure!(most <= freeport_nic::port::MAX_FRAME, "a frame has at most 9216 bytes");
    Ok(Source::Generated { sizes, frames })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_captures_or_generators() {
        let source = |text: &str| text.parse::<InputSpec>().unwrap().source;
        assert_eq!(source("from_tor=a=b.pcap"), Source::Capture("a=b.pcap".into()));
        let fixed = Source::Generated { sizes: Sizes::Fixed(64), frames: 1_000 };
        assert_eq!(source("from_tor=gen:64x1000"), fixed);
        let mix = Source::Generated { sizes: Sizes::InternetMix, frames: 5 };
        assert_eq!(source("from_tor=gen:imixx5"), mix);
        let range = Source::Generated { sizes: Sizes::Uniform(64..=1_500), frames: 5 };
        assert_eq!(source("from_tor=gen:64-1500x5"), range);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["from_tor", "=x", "a=", "a=gen:64", "a=gen:x5", "a=gen:9x", "a=gen:9-3x1"] {
            assert!(text.parse::<InputSpec>().is_err(), "{text}");
        }
        assert!("a=gen:9217x1".parse::<InputSpec>().is_err());
    }

    #[test]
    fn a_generator_gives_as_many_frames_as_it_should() {
        for frames in [1, 4_096, 10_000] {
            let source = Source::Generated { sizes: Sizes::Fixed(64), frames };
            let mut receiver = source.open().unwrap();
            let mut count = 0;
            while !receiver.is_ended() {
                count += receiver.receive(256).unwrap().len() as u64;
            }
            assert_eq!(count, frames);
        }
    }
}
