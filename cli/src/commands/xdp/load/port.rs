// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports of `freeport xdp load`: `xdp:eth0`, `xdp:eth0,host=tap:h0`, `trace.pcap,ifindex=7`.

use crate::endpoint::Source;
use crate::interface::{Interface, Interfaces};
use anyhow::{Context, anyhow, bail};
use freeport_attach::{Host, Port};
use freeport_port::namespace::{Namespace, interface};
use freeport_port::{TapOptions, XdpOptions};
use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

/// The default interface index of packets that come from no interface: the loopback.
const NO_INTERFACE: u32 = 1;

/// `PORT[,host=PORT][,ifindex=NUMBER]`
#[derive(Clone, Debug, PartialEq)]
pub struct PortSpec {
    network: Source,
    host: Option<Interface>,
    ifindex: Option<u32>,
}

impl FromStr for PortSpec {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut parts = text.split(',');
        let network = parts.next().unwrap_or_default();
        // The command line shows the outermost message only.
        let network = source(network).map_err(|error| anyhow!("`{network}`: {error:#}"))?;
        let mut spec = Self { network, host: None, ifindex: None };
        for part in parts {
            match part.split_once('=') {
                Some(("host", host)) if spec.host.is_none() => {
                    let Source::Interface(host) = source(host)? else {
                        bail!("`{host}` is not a host port: expected tap:NAME or xdp:NAME");
                    };
                    spec.host = Some(host);
                }
                Some(("ifindex", number)) if spec.ifindex.is_none() => {
                    let number = number.parse().context("ifindex= takes a number")?;
                    spec.ifindex = Some(number);
                }
                _ => bail!("`{part}`: expected host=PORT or ifindex=NUMBER, each once"),
            }
        }
        Ok(spec)
    }
}

/// Parses a source. A name alone is an interface, unless it has the extension of a capture, or
/// contains a dot and is the name of a file.
fn source(text: &str) -> anyhow::Result<Source> {
    let is_capture = [".pcap", ".pcapng"].iter().any(|end| text.ends_with(end));
    let is_file = is_capture || (text.contains('.') && Path::new(text).is_file());
    match text.contains(':') || is_file {
        true => text.parse(),
        false => format!("xdp:{text}").parse(),
    }
}

impl PortSpec {
    /// The interface, for the kernel.
    ///
    /// # Errors
    /// A port that the kernel cannot attach a program to.
    pub fn for_kernel(&self) -> anyhow::Result<XdpOptions> {
        if self.host.is_some() || self.ifindex.is_some() {
            bail!(
                "{self}: in the kernel, passed packets go to its own network stack, and interfaces \
                 have their own index; omit host= and ifindex="
            );
        }
        match &self.network {
            Source::Interface(Interface::Xdp(options)) if options.queue.is_none() => {
                Ok(options.clone())
            }
            _ => {
                bail!("{self}: the kernel attaches programs to whole interfaces, such as xdp:eth0")
            }
        }
    }

    /// The interfaces of the port and of its host side.
    fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.network.interface().into_iter().chain(&self.host)
    }

    fn port(&self, interfaces: &mut Interfaces) -> anyhow::Result<Port> {
        let receive = self.network.open(interfaces)?;
        let transmit = match &self.network {
            Source::Interface(interface) => Some(interfaces.transmitter(interface)?),
            _ => None,
        };
        let host = self.host.as_ref().map(|host| {
            let (receive, transmit) = (interfaces.receiver(host)?, interfaces.transmitter(host)?);
            anyhow::Ok(Host { receive, transmit })
        });
        let name = self.network.to_string();
        let ifindex = match (self.ifindex, self.network.interface()) {
            (Some(ifindex), _) => ifindex,
            (None, Some(interface)) => number(interface).with_context(|| name.clone())?,
            (None, None) => NO_INTERFACE,
        };
        Ok(Port { name, ifindex, receive, transmit, host: host.transpose()? })
    }
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.network)?;
        self.host.iter().try_for_each(|host| write!(f, ",host={host}"))?;
        self.ifindex.iter().try_for_each(|ifindex| write!(f, ",ifindex={ifindex}"))
    }
}

/// The index of an open interface.
fn number(wanted: &Interface) -> io::Result<u32> {
    let (name, namespace) = match wanted {
        Interface::Xdp(XdpOptions { interface, namespace, .. })
        | Interface::Tap(TapOptions { interface, namespace }) => (interface, namespace),
    };
    match namespace {
        Some(namespace) => Namespace::named(namespace)?.with(|| interface(name))?,
        None => interface(name),
    }
}

/// Opens all ports, and reports the mode of each.
///
/// # Errors
/// A port that cannot be opened, or an interface that is named twice.
pub fn open(specs: &[PortSpec]) -> anyhow::Result<Vec<Port>> {
    let all: Vec<&Interface> = specs.iter().flat_map(PortSpec::interfaces).collect();
    for (at, interface) in all.iter().enumerate() {
        if all[..at].contains(interface) {
            bail!(
                "{interface} is named twice: each port and each host side needs its own interface"
            );
        }
    }
    let mut interfaces = Interfaces::open(all.into_iter())?;
    interfaces.modes().for_each(|mode| eprintln!("{mode}"));
    specs.iter().map(|spec| spec.port(&mut interfaces)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_spelled_as_they_are_read() {
        for text in [
            "xdp:eth0",
            "xdp:eth0/1@blue,host=tap:h0",
            "tap:t0,host=xdp:v0,ifindex=7",
            "a.pcap,ifindex=3",
            "gen:64@1000",
        ] {
            assert_eq!(text.parse::<PortSpec>().unwrap().to_string(), text);
        }
        assert_eq!("eth0,host=h0".parse::<PortSpec>().unwrap().to_string(), "xdp:eth0,host=xdp:h0");
        for (text, reason) in [
            ("eth0,host=a.pcap", "is not a host port"),
            ("eth0,host", "expected host=PORT or ifindex=NUMBER"),
            ("eth0,ifindex=x", "ifindex= takes a number"),
            ("eth0,ifindex=1,ifindex=2", "each once"),
        ] {
            let error = format!("{:#}", text.parse::<PortSpec>().unwrap_err());
            assert!(error.contains(reason), "{text}: {error}");
        }
        let error = "./none".parse::<PortSpec>().unwrap_err().to_string();
        assert!(
            error.starts_with("`./none`: ") && error.len() > 12,
            "the reason is given: {error}"
        );
        let file = tempfile::Builder::new().suffix(".cap").tempfile().unwrap();
        let spec = file.path().to_str().unwrap().parse::<PortSpec>().unwrap();
        assert_eq!(spec.network, Source::Capture(file.path().into()));
        let options = "eth0@blue".parse::<PortSpec>().unwrap().for_kernel().unwrap();
        assert_eq!(options.to_string(), "eth0@blue");
        for text in ["tap:t0", "eth0/1", "eth0,host=tap:h0", "a.pcap", "eth0,ifindex=3"] {
            assert!(text.parse::<PortSpec>().unwrap().for_kernel().is_err(), "{text}");
        }
    }
}
