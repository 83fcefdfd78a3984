// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Network interfaces on the command line: `xdp:NAME` and `tap:NAME`. An interface has two
//! directions, and is opened once for both.

use anyhow::{Context, bail};
use freeport_port::{Receive, TapOptions, TapPort, Transmit, XdpOptions, XdpPort};
use std::fmt;

/// An interface, as named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interface {
    /// `xdp:NAME` or `xdp:NAME/QUEUE`, by AF_XDP sockets.
    Xdp(XdpOptions),
    /// `tap:NAME`, which is created if it does not exist.
    Tap(TapOptions),
}

impl Interface {
    /// Parses an interface; `None`: the text names something else.
    ///
    /// # Errors
    /// An invalid name of an interface.
    pub fn parse(text: &str) -> anyhow::Result<Option<Self>> {
        if let Some(name) = text.strip_prefix("xdp:") {
            return Ok(Some(Self::Xdp(name.parse()?)));
        }
        let Some(name) = text.strip_prefix("tap:") else { return Ok(None) };
        match name.parse() {
            Ok(options) => Ok(Some(Self::Tap(options))),
            Err(error) => bail!("{error}"),
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Xdp(options) => write!(f, "xdp:{options}"),
            Self::Tap(TapOptions { interface, namespace: None }) => write!(f, "tap:{interface}"),
            Self::Tap(TapOptions { interface, namespace: Some(namespace) }) => {
                write!(f, "tap:{interface}@{namespace}")
            }
        }
    }
}

/// An open interface, with the directions that are not taken yet.
struct Opened {
    interface: Interface,
    mode: String,
    receiver: Option<Box<dyn Receive>>,
    transmitter: Option<Box<dyn Transmit>>,
}

/// All open interfaces of a run.
#[derive(Default)]
pub struct Interfaces {
    opened: Vec<Opened>,
}

impl Interfaces {
    /// Opens each interface once; those of AF_XDP share their memory, so that a frame need not be
    /// copied from one to another.
    ///
    /// # Errors
    /// An interface that cannot be opened.
    pub fn open<'i>(named: impl Iterator<Item = &'i Interface>) -> anyhow::Result<Self> {
        let mut distinct: Vec<&Interface> = vec![];
        for interface in named {
            if !distinct.contains(&interface) {
                distinct.push(interface);
            }
        }
        let of_xdp = distinct.iter().filter_map(|interface| match interface {
            Interface::Xdp(options) => Some(options.clone()),
            Interface::Tap(_) => None,
        });
        let mut of_xdp = XdpPort::open_all(&of_xdp.collect::<Vec<_>>())?.into_iter();
        let opened = distinct.into_iter().map(|interface| {
            Ok(match interface {
                Interface::Xdp(_) => {
                    let port = of_xdp.next().context("a requested port is missing")?;
                    let mode = port.mode().to_string();
                    let (receiver, transmitter) = port.split();
                    Opened::new(interface, mode, receiver, transmitter)
                }
                Interface::Tap(options) => {
                    let (receiver, transmitter) = TapPort::open(options)?;
                    let mode = format!("{interface}: a system call per frame");
                    Opened::new(interface, mode, receiver, transmitter)
                }
            })
        });
        Ok(Self { opened: opened.collect::<anyhow::Result<_>>()? })
    }

    /// Takes the receiver of an interface.
    ///
    /// # Errors
    /// It feeds another endpoint already.
    pub fn receiver(&mut self, interface: &Interface) -> anyhow::Result<Box<dyn Receive>> {
        let receiver = self.find(interface).and_then(|opened| opened.receiver.take());
        receiver.with_context(|| format!("{interface} can feed only one endpoint"))
    }

    /// Takes the transmitter of an interface.
    ///
    /// # Errors
    /// It is the target of another endpoint already.
    pub fn transmitter(&mut self, interface: &Interface) -> anyhow::Result<Box<dyn Transmit>> {
        let transmitter = self.find(interface).and_then(|opened| opened.transmitter.take());
        transmitter.with_context(|| format!("{interface} can be the target of only one endpoint"))
    }

    /// The mode of each interface, in a line.
    pub fn modes(&self) -> impl Iterator<Item = &str> {
        self.opened.iter().map(|opened| opened.mode.as_str())
    }

    fn find(&mut self, interface: &Interface) -> Option<&mut Opened> {
        self.opened.iter_mut().find(|opened| opened.interface == *interface)
    }
}

impl Opened {
    fn new(
        interface: &Interface,
        mode: String,
        receiver: impl Receive + 'static,
        transmitter: impl Transmit + 'static,
    ) -> Self {
        Self {
            interface: interface.clone(),
            mode,
            receiver: Some(Box::new(receiver)),
            transmitter: Some(Box::new(transmitter)),
        }
    }
}
