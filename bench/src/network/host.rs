// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host: a namespace with a name, and what can be done there.

use super::offload;
use crate::harness::namespace::{self, Namespace, run, set, within};
use anyhow::{Context, Result};
use std::process::Command;
use std::sync::Arc;

/// A network stack of its own. Copies are the same host.
#[derive(Clone, Debug)]
pub struct Host {
    name: String,
    namespace: Arc<Namespace>,
}

impl Host {
    /// A host with nothing but a loopback interface, and IPv4 alone: IPv6 sends packets that
    /// nobody asked for.
    ///
    /// # Errors
    /// No right to make a namespace.
    pub fn new(name: &str) -> Result<Self> {
        let namespace = namespace::create()?;
        within(&namespace, || {
            // Kernels without IPv6 have no such switches.
            for which in ["all", "default"] {
                drop(set(&format!("ipv6/conf/{which}/disable_ipv6"), "1"));
            }
            run("ip", &["link", "set", "lo", "up"], "").map(drop)
        })?;
        Ok(Self { name: name.into(), namespace: Arc::new(namespace) })
    }

    /// Its name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A path by which `ip` and `tap:` find its namespace, as long as this process lives.
    pub fn path(&self) -> String {
        self.namespace.path().display().to_string()
    }

    /// Does something there, with this thread and the processes and threads that it starts.
    ///
    /// # Errors
    /// What went wrong there.
    pub fn within<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        within(&self.namespace, work).with_context(|| format!("on host {}", self.name))
    }

    /// Carries out the lines of `commands`, each as `ip` takes it on its command line.
    ///
    /// # Errors
    /// The first one that fails.
    pub fn ip(&self, commands: &str) -> Result<()> {
        self.within(|| run("ip", &["-batch", "-"], commands).map(drop))
    }

    /// Sets a switch of its network, such as `ipv4/ip_forward`.
    ///
    /// # Errors
    /// No such switch, or no right to set it.
    pub fn set(&self, switch: &str, value: &str) -> Result<()> {
        self.within(|| set(switch, value))
    }

    /// Has checksums and segments of an interface finished before frames leave: see
    /// [`join`](super::join).
    ///
    /// # Errors
    /// No such interface.
    pub fn finish_in_software(&self, interface: &str) -> Result<()> {
        self.within(|| offload::switch(interface, false))
    }

    /// Has checksums and segments of an interface left to it, as they are by default.
    ///
    /// # Errors
    /// No such interface.
    pub fn leave_to_interface(&self, interface: &str) -> Result<()> {
        self.within(|| offload::switch(interface, true))
    }

    /// Runs a program to its end there; what it printed.
    ///
    /// # Errors
    /// It is not there, or it failed.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        self.within(|| run(program, arguments, ""))
    }

    /// Starts a program there.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, command: &mut Command) -> Result<std::process::Child> {
        self.within(|| command.spawn().with_context(|| format!("{command:?} cannot be started")))
    }
}
