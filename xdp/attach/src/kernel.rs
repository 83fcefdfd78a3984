// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program that the kernel runs on interfaces. It is attached by links, which are file
//! descriptors of this process: the kernel detaches them when the process ends for any reason, and
//! the interfaces return to their former state.

use crate::Error;
use crate::running::{Part, Running};
use crate::statistics::{PortRow, Statistics};
use crate::traffic::Traffic;
use freeport_ebpf::object::Object;
use freeport_port::XdpOptions;
use freeport_port::bpf::{AttachMode, Attachment, BpfError, attach};
use freeport_port::namespace::{Namespace, has_interface, interface};
use freeport_runtime::server::{Waiting, Wake};
use freeport_xdp::{Kernel, RunTimes, Target};
use std::io;
use std::time::{Duration, Instant};

/// Longest sleep. Only requests end a sleep early; after each sleep the interfaces are checked.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Attach mode requested for an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// In the driver, or in generic mode if the driver does not support XDP.
    Best,
    /// In this mode only; fails if it is not available.
    Only(AttachMode),
}

/// An interface to which the program is attached.
pub struct Place {
    port: String,
    interface: String,
    ifindex: u32,
    namespace: Namespace,
    mode: AttachMode,
    /// Whether the user requested this mode explicitly.
    is_asked: bool,
    /// Traffic counters of the interface before the program was attached.
    before: Traffic,
    _attachment: Attachment,
}

/// A program of an object, attached to interfaces.
pub struct OnKernel {
    // Declared first, so that the program is detached before its maps are closed.
    places: Vec<Place>,
    kernel: Kernel,
    program: String,
    times: Option<RunTimes>,
    /// When the interfaces were last checked.
    seen: Instant,
}

impl OnKernel {
    /// Attaches a program of a loaded object to interfaces; with `times`, the kernel counts its
    /// runs. Maps should have their initial contents before, because packets arrive immediately.
    ///
    /// # Errors
    /// An interface does not exist or cannot run the program. The program is then attached to none
    /// of them.
    pub fn attach(
        kernel: Kernel,
        program: &str,
        ports: &[XdpOptions],
        mode: Mode,
        times: Option<RunTimes>,
    ) -> Result<Self, Error> {
        let places = ports.iter().map(|port| Place::of(&kernel, program, port, mode));
        let places = places.collect::<Result<_, _>>()?;
        let (program, seen) = (program.to_owned(), Instant::now());
        Ok(Self { places, kernel, program, times, seen })
    }

    /// Returns the attach mode of each interface as a line for people.
    pub fn modes(&self) -> impl Iterator<Item = String> {
        self.places.iter().map(|place| {
            let mode = match place.mode {
                AttachMode::Native => "native: in the driver",
                AttachMode::Generic if place.is_asked => {
                    "generic: in the network stack, as requested"
                }
                AttachMode::Generic => "generic: in the network stack, as the driver has no XDP",
            };
            format!("{}: {mode}", place.port)
        })
    }
}

impl Place {
    fn of(kernel: &Kernel, program: &str, port: &XdpOptions, mode: Mode) -> Result<Self, Error> {
        let name = format!("xdp:{port}");
        let failed = |action, source: io::Error| {
            let advice = advice(&source);
            Error::Interface { port: name.clone(), action, source, advice }
        };
        let namespace = match &port.namespace {
            Some(namespace) => Namespace::named(namespace),
            None => Namespace::current(),
        };
        let namespace =
            namespace.map_err(|error| failed("its network namespace cannot be opened", error))?;
        let is_asked = matches!(mode, Mode::Only(_));
        let program = kernel.program(program)?;
        let put = |ifindex, mode| {
            attach(program, ifindex, mode).map_err(|source| {
                let advice = source.system().map_or("see the kernel's log", advice);
                Error::Attach { port: name.clone(), source, advice }
            })
        };
        let placed = namespace.with(|| -> Result<_, Error> {
            let ifindex = interface(&port.interface)
                .map_err(|error| failed("there is no such interface", error))?;
            let before = Traffic::of(&port.interface)
                .map_err(|error| failed("its counters cannot be read", error))?;
            let (mode, attachment) = match mode {
                Mode::Only(mode) => (mode, put(ifindex, mode)?),
                Mode::Best => match attach(program, ifindex, AttachMode::Native) {
                    Err(error) if has_no_place(&error) => {
                        (AttachMode::Generic, put(ifindex, AttachMode::Generic)?)
                    }
                    Err(_) => (AttachMode::Native, put(ifindex, AttachMode::Native)?),
                    Ok(attachment) => (AttachMode::Native, attachment),
                },
            };
            Ok((ifindex, before, mode, attachment))
        });
        let placed = placed.map_err(|error| failed("its namespace cannot be entered", error))?;
        let (ifindex, before, mode, attachment) = placed?;
        let interface = port.interface.clone();
        let port = name.clone();
        Ok(Self {
            port,
            interface,
            ifindex,
            namespace,
            mode,
            is_asked,
            before,
            _attachment: attachment,
        })
    }

    /// Returns whether the interface still exists; true if that cannot be determined.
    fn exists(&self) -> bool {
        self.namespace.with(|| has_interface(self.ifindex)).unwrap_or(true)
    }

    /// Returns the traffic since the program was attached, if the interface still exists.
    fn traffic(&self) -> Option<Traffic> {
        let now = self.namespace.with(|| Traffic::of(&self.interface)).ok()?;
        now.ok().map(|now| now.since(self.before))
    }
}

/// Returns whether the driver supports no XDP program, or not this one.
fn has_no_place(error: &BpfError) -> bool {
    let refusals = [libc::EOPNOTSUPP, libc::EINVAL, libc::ERANGE, libc::ENOSPC, libc::ENOMEM];
    let code = error.system().and_then(io::Error::raw_os_error);
    code.is_some_and(|code| refusals.contains(&code))
}

/// Returns advice for a user who wants the program attached in this mode.
fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENODEV | libc::ENXIO) => "see `ip link` for the interfaces there are",
        Some(libc::EPERM | libc::EACCES) => {
            "the process needs the capabilities NET_ADMIN and BPF: run it as root"
        }
        Some(libc::EBUSY | libc::EEXIST) => {
            "it has another program: see `ip link`, then take that off with `ip link set IFACE xdp \
             off`, or end the process that has put it there; an interface can be named once only"
        }
        Some(libc::EOPNOTSUPP) => "its driver does not support XDP: use --mode generic",
        Some(libc::EINVAL | libc::ERANGE) => {
            "the driver may not take a program with frames as large as the interface's MTU: set a \
             smaller one with `ip link set IFACE mtu 1500`, or use --mode generic"
        }
        Some(libc::ENOENT) => "see `ip netns list` for the namespaces there are",
        _ => "see `freeport doctor` for what this machine can do",
    }
}

impl Running for OnKernel {
    /// The kernel moves the packets. If an interface disappears, the kernel detaches the program
    /// without a notification.
    fn round(&mut self) -> Result<bool, Error> {
        if self.seen.elapsed() >= LONGEST_SLEEP {
            self.seen = Instant::now();
            if let Some(place) = self.places.iter().find(|place| !place.exists()) {
                return Err(Error::Gone { port: place.port.clone() });
            }
        }
        Ok(false)
    }

    fn wait(&self, wake: &Wake) -> Result<(), Error> {
        Waiting::new(Some(wake)).at_most(LONGEST_SLEEP).wait().map_err(Error::Wait)
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn target_mut(&mut self) -> &mut dyn Target {
        &mut self.kernel
    }

    fn maps_changed(&mut self) {}

    fn contents(&mut self, map: &str) -> Result<Vec<Part>, Error> {
        Ok(match self.kernel.contents_by_processor(map)? {
            None => vec![Part { processor: None, contents: self.kernel.contents(map)? }],
            Some(all) => {
                let parts = all.into_iter().enumerate();
                parts.map(|(at, contents)| Part { processor: Some(at), contents }).collect()
            }
        })
    }

    /// The kernel counts packets by interface and program runs; it does not count verdicts.
    fn statistics(&mut self, _: &Object) -> Result<Statistics, Error> {
        let ports = self.places.iter().map(|place| {
            let traffic = place.traffic();
            PortRow {
                name: place.port.clone(),
                ifindex: place.ifindex,
                ways: vec![
                    ("received", traffic.map(|traffic| traffic.received)),
                    ("sent", traffic.map(|traffic| traffic.sent)),
                    ("to host", None),
                    ("from host", None),
                ],
                verdicts: None,
                drops: None,
            }
        });
        let ports = ports.collect();
        let runs = match self.times {
            Some(_) => Some(self.kernel.runs(&self.program)?),
            None => None,
        };
        let figures = vec![
            ("runs", runs.map(|runs| runs.count)),
            ("run time in ns", runs.map(|runs| runs.time_ns)),
        ];
        Ok(Statistics::new(ports, "kernel", figures))
    }

    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
