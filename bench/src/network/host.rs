// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host: a named network namespace, and operations in it.

use super::offload;
use crate::harness::namespace::{self, Namespace, run, set, within};
use anyhow::{Context, Result};
use std::process::Command;
use std::sync::Arc;

/// A separate network stack. Clones refer to the same host.
#[derive(Clone, Debug)]
pub struct Host {
    name: String,
    namespace: Arc<Namespace>,
}

impl Host {
    /// Creates a host with only a loopback interface, and IPv4 alone: IPv6 sends packets of its
    /// own.
    ///
    /// # Errors
    /// No right to create a namespace.
    pub fn new(name: &str) -> Result<Self> {
        let namespace = namespace::create()?;
        within(&namespace, || {
            // Kernels without IPv6 have no such parameters.
            for which in ["all", "default"] {
                drop(set(&format!("ipv6/conf/{which}/disable_ipv6"), "1"));
            }
            run("ip", &["link", "set", "lo", "up"], "").map(drop)
        })?;
        Ok(Self { name: name.into(), namespace: Arc::new(namespace) })
    }

    /// Returns its name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a path by which `ip` and `tap:` find its namespace, as long as this process lives.
    pub fn path(&self) -> String {
        self.namespace.path().display().to_string()
    }

    /// Runs `work` on the host, with this thread and the processes and threads that it starts.
    ///
    /// # Errors
    /// The error of `work`, or the namespace cannot be entered.
    pub fn within<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        within(&self.namespace, work).with_context(|| format!("on host {}", self.name))
    }

    /// Runs the lines of `commands`, each with the arguments of an `ip` command.
    ///
    /// # Errors
    /// The first command that fails.
    pub fn ip(&self, commands: &str) -> Result<()> {
        self.within(|| run("ip", &["-batch", "-"], commands).map(drop))
    }

    /// Sets a network parameter, such as `ipv4/ip_forward`.
    ///
    /// # Errors
    /// The parameter does not exist, or there is no right to set it.
    pub fn set(&self, switch: &str, value: &str) -> Result<()> {
        self.within(|| set(switch, value))
    }

    /// Computes checksums and segments frames of an interface in software before they leave: see
    /// [`join`](super::join).
    ///
    /// # Errors
    /// No such interface.
    pub fn finish_in_software(&self, interface: &str) -> Result<()> {
        self.within(|| offload::switch(interface, false))
    }

    /// Leaves checksums and segmentation to an interface, which is the default.
    ///
    /// # Errors
    /// No such interface.
    pub fn leave_to_interface(&self, interface: &str) -> Result<()> {
        self.within(|| offload::switch(interface, true))
    }

    /// Runs a program there until it exits; returns its output.
    ///
    /// # Errors
    /// The program does not exist, or it fails.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        self.within(|| run(program, arguments, ""))
    }

    /// Starts a program there.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(&self, command: &mut Command) -> Result<std::process::Child> {
        self.within(|| command.spawn().with_context(|| format!("{command:?} cannot be started")))
    }
}
