// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sources and targets of endpoints on the command line: `from_tor=trace.pcap`,
//! `from_tor=gen:64x1000`, `from_tor=gen:64@5000`, `to_tor=out.pcapng`, `to_tor=count`, and in both
//! directions [interfaces](crate::interface).

use crate::interface::{Interface, Interfaces};
use anyhow::Context;
use freeport_port::trace::{Sizes, Trace};
use freeport_port::{Generator, Pace, PcapReceiver, PcapTransmitter, Receive, Sink, Transmit};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Default number of flows of generated traffic.
const FLOWS: usize = 64;
/// Maximum number of flows.
const MOST_FLOWS: usize = 1 << 16;
/// Number of different frames of a generated trace; a longer run repeats them.
const DIFFERENT_FRAMES: u64 = 4_096;

/// Mean number of frames per flow in a trace of many flows.
const FRAMES_OF_A_FLOW: u64 = 4;

/// `NAME=SOURCE`
#[derive(Clone, Debug, PartialEq)]
pub struct InputSpec {
    /// Name of the endpoint.
    pub endpoint: String,
    /// Its source.
    pub source: Source,
}

/// A source of frames.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A capture file.
    Capture(PathBuf),
    /// Frames that an interface receives.
    Interface(Interface),
    /// Frames that are generated in memory.
    Generated {
        /// Sizes of frames.
        sizes: Sizes,
        /// Number of frames; `None`: no end.
        frames: Option<u64>,
        /// Maximum number of frames per second.
        rate: Option<f64>,
        /// Maximum number of flows.
        flows: usize,
    },
}

/// `NAME=TARGET`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSpec {
    /// Name of the endpoint.
    pub endpoint: String,
    /// Its target.
    pub target: Target,
}

/// A target of frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A capture file.
    Capture(PathBuf),
    /// An interface that transmits frames.
    Interface(Interface),
    /// Frames are counted and dropped.
    Count,
}

impl Source {
    /// Opens the source, or takes it from the open interfaces.
    ///
    /// # Errors
    /// A file that is not a readable capture, or an interface that feeds another endpoint.
    pub fn open(&self, interfaces: &mut Interfaces) -> anyhow::Result<Box<dyn Receive>> {
        Ok(match self {
            Source::Interface(interface) => interfaces.receiver(interface)?,
            Source::Capture(path) => Box::new(PcapReceiver::open(path)?),
            Source::Generated { sizes, frames, rate, flows } => {
                let different = DIFFERENT_FRAMES.max(*flows as u64 * FRAMES_OF_A_FLOW);
                let frames = frames.unwrap_or(u64::MAX);
                let trace = Trace {
                    seed: 1,
                    frames: frames.min(different) as usize,
                    flows: *flows,
                    sizes: sizes.clone(),
                    tcp_percent: 50,
                    bad_checksum_permille: 0,
                    truncated_permille: 0,
                    gap_ns: 1_000,
                };
                let mut generator = Generator::once(&trace.generate())?;
                generator.refill(frames);
                match rate {
                    Some(rate) => Box::new(Pace::new(generator, *rate)?),
                    None => Box::new(generator),
                }
            }
        })
    }

    /// Whether the source has no end.
    pub fn is_endless(&self) -> bool {
        matches!(self, Source::Interface(_) | Source::Generated { frames: None, .. })
    }

    /// The interface, if it is one.
    pub fn interface(&self) -> Option<&Interface> {
        if let Source::Interface(interface) = self { Some(interface) } else { None }
    }
}

impl Target {
    /// Opens the target, or takes it from the open interfaces.
    ///
    /// # Errors
    /// A file that cannot be created, or an interface that is the target of another endpoint.
    pub fn open(&self, interfaces: &mut Interfaces) -> anyhow::Result<Box<dyn Transmit>> {
        Ok(match self {
            Target::Interface(interface) => interfaces.transmitter(interface)?,
            Target::Capture(path) => Box::new(PcapTransmitter::create(path)?),
            Target::Count => Box::new(Sink::counting()),
        })
    }

    /// The interface, if it is one.
    pub fn interface(&self) -> Option<&Interface> {
        if let Target::Interface(interface) = self { Some(interface) } else { None }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sizes, frames, rate, flows) = match self {
            Source::Capture(path) => return write!(f, "{}", path.display()),
            Source::Interface(interface) => return write!(f, "{interface}"),
            Source::Generated { sizes, frames, rate, flows } => (sizes, frames, rate, *flows),
        };
        match sizes {
            Sizes::Fixed(size) => write!(f, "gen:{size}")?,
            Sizes::Uniform(range) => write!(f, "gen:{}-{}", range.start(), range.end())?,
            Sizes::InternetMix => write!(f, "gen:imix")?,
        }
        frames.iter().try_for_each(|frames| write!(f, "x{frames}"))?;
        rate.iter().try_for_each(|rate| write!(f, "@{rate}"))?;
        if flows == FLOWS { Ok(()) } else { write!(f, ",flows={flows}") }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Capture(path) => write!(f, "{}", path.display()),
            Target::Interface(interface) => write!(f, "{interface}"),
            Target::Count => write!(f, "count"),
        }
    }
}

impl FromStr for InputSpec {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (endpoint, source) = split(text)?;
        Ok(Self { endpoint: endpoint.into(), source: source.parse()? })
    }
}

impl FromStr for Source {
    type Err = anyhow::Error;

    fn from_str(source: &str) -> anyhow::Result<Self> {
        Ok(match (source.strip_prefix("gen:"), Interface::parse(source)?) {
            (_, Some(interface)) => Source::Interface(interface),
            (Some(made), _) => generated(made).with_context(|| {
                format!("`{made}`: expected SIZExCOUNT or SIZE, such as 64x1000")
            })?,
            _ => Source::Capture(source.into()),
        })
    }
}

impl FromStr for OutputSpec {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (endpoint, target) = split(text)?;
        let target = match (target, Interface::parse(target)?) {
            (_, Some(interface)) => Target::Interface(interface),
            ("count", _) => Target::Count,
            (path, _) => Target::Capture(path.into()),
        };
        Ok(Self { endpoint: endpoint.into(), target })
    }
}

fn split(text: &str) -> anyhow::Result<(&str, &str)> {
    let parts = text.split_once('=').filter(|(name, rest)| !name.is_empty() && !rest.is_empty());
    parts.context("expected ENDPOINT=PORT, such as from_tor=trace.pcap")
}

/// Parses `64x1000`, `64-1500x1000`, `imixx1000`, or without an end `64` and `imix`. The suffix
/// `@5000` is the maximum number of frames per second, and `,flows=8` the number of flows. Sizes
/// are those of frames without check sequences.
fn generated(text: &str) -> anyhow::Result<Source> {
    let (text, flows) = match text.split_once(',') {
        Some((text, option)) => {
            let flows = option.strip_prefix("flows=").context("expected flows=NUMBER")?;
            (text, flows.parse()?)
        }
        None => (text, FLOWS),
    };
    anyhow::ensure!(
        (1..=MOST_FLOWS).contains(&flows),
        "the number of flows must be 1 to {MOST_FLOWS}"
    );
    let (text, rate) = match text.split_once('@') {
        Some((text, rate)) => (text, Some(rate.parse::<u32>()?)),
        None => (text, None),
    };
    anyhow::ensure!(rate != Some(0), "the rate must not be 0");
    let (size, frames) = match text.rsplit_once('x') {
        // The x of `imix`.
        Some((_, "")) | None => (text, None),
        Some((size, frames)) => (size, Some(frames.parse()?)),
    };
    let sizes = match (size, size.split_once('-')) {
        ("imix", _) => Sizes::InternetMix,
        (_, Some((least, most))) => Sizes::Uniform(least.parse()?..=most.parse()?),
        _ => Sizes::Fixed(size.parse()?),
    };
    let most = match &sizes {
        Sizes::Fixed(size) => *size,
        Sizes::Uniform(range) if range.is_empty() => anyhow::bail!("the range of sizes is empty"),
        Sizes::Uniform(range) => *range.end(),
        Sizes::InternetMix => 0,
    };
    anyhow::ensure!(most <= freeport_port::MAX_FRAME, "a frame has at most 9216 bytes");
    Ok(Source::Generated { sizes, frames, rate: rate.map(f64::from), flows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_captures_or_generators() {
        let source = |text: &str| text.parse::<InputSpec>().unwrap().source;
        assert_eq!(source("from_tor=a=b.pcap"), Source::Capture("a=b.pcap".into()));
        let made = |sizes, frames, rate| Source::Generated { sizes, frames, rate, flows: FLOWS };
        let fixed = |size| Sizes::Fixed(size);
        assert_eq!(source("from_tor=gen:64x1000"), made(fixed(64), Some(1_000), None));
        assert_eq!(source("from_tor=gen:imixx5"), made(Sizes::InternetMix, Some(5), None));
        let range = Sizes::Uniform(64..=1_500);
        assert_eq!(source("from_tor=gen:64-1500x5"), made(range, Some(5), None));
        assert_eq!(source("from_tor=gen:64"), made(fixed(64), None, None));
        assert_eq!(source("from_tor=gen:imix@9"), made(Sizes::InternetMix, None, Some(9.0)));
        assert_eq!(source("from_tor=gen:60x2@1000"), made(fixed(60), Some(2), Some(1_000.0)));
        for text in [
            "gen:64",
            "gen:64-1500x5,flows=7",
            "gen:imix@9",
            "a.pcap",
            "tap:t0",
            "tap:t0@blue",
            "xdp:e0/1",
        ] {
            assert_eq!(source(&format!("a={text}")).to_string(), text);
        }
        assert!(source("a=gen:64").is_endless() && !source("a=gen:64x1").is_endless());
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "from_tor",
            "=x",
            "a=",
            "a=gen:",
            "a=gen:x5",
            "a=gen:9x",
            "a=gen:9-3x1",
            "a=gen:9@0",
            "a=gen:9,flows=0",
            "a=gen:9,flows=99999999999999999999",
            "a=gen:9,flow=3",
            "a=tap:",
        ] {
            assert!(text.parse::<InputSpec>().is_err(), "{text}");
        }
        assert!("a=gen:9217x1".parse::<InputSpec>().is_err());
    }

    #[test]
    fn a_generator_makes_as_many_flows_as_it_should() {
        for flows in [1, 5, 3_000] {
            let source: Source = format!("gen:64x20000,flows={flows}").parse().unwrap();
            let mut receiver = source.open(&mut Interfaces::default()).unwrap();
            let mut found = std::collections::HashSet::new();
            while !receiver.is_ended() {
                let batch = receiver.receive(256).unwrap();
                // Protocol, addresses and ports.
                let key = |bytes: &[u8]| [&bytes[23..24], &bytes[26..38]].concat();
                found.extend(batch.as_frames().iter().map(|(_, bytes)| key(bytes)));
            }
            let enough = flows * 9 / 10..=flows;
            assert!(enough.contains(&found.len()), "{} of {flows}", found.len());
        }
    }

    #[test]
    fn a_generator_gives_as_many_frames_as_it_should() {
        for frames in [1, 4_096, 10_000] {
            let sizes = Sizes::Fixed(64);
            let source =
                Source::Generated { sizes, frames: Some(frames), rate: None, flows: FLOWS };
            let mut receiver = source.open(&mut Interfaces::default()).unwrap();
            let mut count = 0;
            while !receiver.is_ended() {
                count += receiver.receive(256).unwrap().len() as u64;
            }
            assert_eq!(count, frames);
        }
    }
}
