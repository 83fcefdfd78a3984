// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Network interfaces on the command line: `tap:NAME`. An interface has two directions, and is
//! opened once however many of them are joined.

use anyhow::{Context, bail};
use freeport_nic::port::{Receive, TapOptions, TapPort, Transmit};
use std::fmt;

/// An interface, as named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interface {
    /// `tap:NAME`, which is made if it is not there.
    Tap(TapOptions),
}

impl Interface {
    /// The interface that a text names; none if it names something else.
    ///
    /// # Errors
    /// A name that no interface can have.
    pub fn parse(text: &str) -> anyhow::Result<Option<Self>> {
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
            Self::Tap(TapOptions { interface, namespace: None }) => write!(f, "tap:{interface}"),
            Self::Tap(TapOptions { interface, namespace: Some(namespace) }) => {
                write!(f, "tap:{interface}@{namespace}")
            }
        }
    }
}

/// An interface that was opened, with the halves that nobody has taken yet.
struct Opened {
    interface: Interface,
    mode: String,
    receiver: Option<Box<dyn Receive>>,
    transmitter: Option<Box<dyn Transmit>>,
}

/// All interfaces of a run.
#[derive(Default)]
pub struct Interfaces {
    opened: Vec<Opened>,
}

impl Interfaces {
    /// Opens each of them once.
    ///
    /// # Errors
    /// One that cannot be had.
    pub fn open<'i>(named: impl Iterator<Item = &'i Interface>) -> anyhow::Result<Self> {
        let mut opened: Vec<Opened> = vec![];
        for interface in named {
            if opened.iter().all(|other| other.interface != *interface) {
                opened.push(Opened::of(interface)?);
            }
        }
        Ok(Self { opened })
    }

    /// What comes in from it.
    ///
    /// # Errors
    /// It feeds another end already.
    pub fn receiver(&mut self, interface: &Interface) -> anyhow::Result<Box<dyn Receive>> {
        let receiver = self.find(interface).and_then(|opened| opened.receiver.take());
        receiver.with_context(|| format!("{interface} feeds one end of the graph, not two"))
    }

    /// What leaves by it.
    ///
    /// # Errors
    /// Another end leads there already.
    pub fn transmitter(&mut self, interface: &Interface) -> anyhow::Result<Box<dyn Transmit>> {
        let transmitter = self.find(interface).and_then(|opened| opened.transmitter.take());
        transmitter.with_context(|| format!("one end of the graph leads to {interface}, not two"))
    }

    /// How each of them works, in a line for people.
    pub fn modes(&self) -> impl Iterator<Item = &str> {
        self.opened.iter().map(|opened| opened.mode.as_str())
    }

    fn find(&mut self, interface: &Interface) -> Option<&mut Opened> {
        self.opened.iter_mut().find(|opened| opened.interface == *interface)
    }
}

impl Opened {
    fn of(interface: &Interface) -> anyhow::Result<Self> {
        match interface {
            Interface::Tap(options) => {
                let (receiver, transmitter) = TapPort::open(options)?;
                Ok(Self {
                    interface: interface.clone(),
                    mode: format!("{interface}: a system call a frame"),
                    receiver: Some(Box::new(receiver)),
                    transmitter: Some(Box::new(transmitter)),
                })
            }
        }
    }
}
