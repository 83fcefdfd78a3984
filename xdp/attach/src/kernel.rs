// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program that the kernel runs on interfaces. It is attached by links, which are descriptors of
//! this process: they go with it, however it ends, and the interfaces are as they were.

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

/// Longest sleep: nothing but requests wakes it. After it, interfaces are looked for.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Where on an interface a program is to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// In the driver, or behind it if the driver has no place for programs.
    Best,
    /// There, or not at all.
    Only(AttachMode),
}

/// An interface with the program on it.
pub struct Place {
    port: String,
    interface: String,
    ifindex: u32,
    namespace: Namespace,
    mode: AttachMode,
    /// Whether that mode was asked for.
    is_asked: bool,
    /// What it had counted before.
    before: Traffic,
    _attachment: Attachment,
}

/// A program of an object on interfaces.
pub struct OnKernel {
    // Leaves the interfaces before its maps go.
    places: Vec<Place>,
    kernel: Kernel,
    program: String,
    times: Option<RunTimes>,
    /// When the interfaces were last seen.
    seen: Instant,
}

impl OnKernel {
    /// Puts a program of a loaded object on interfaces; with `times`, the kernel counts its runs.
    /// Maps should hold what they have to before: packets come at once.
    ///
    /// # Errors
    /// An interface that is not there or cannot have the program. Then none has it.
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

    /// How it runs on each interface, in a line for people.
    pub fn modes(&self) -> impl Iterator<Item = String> {
        self.places.iter().map(|place| {
            let mode = match place.mode {
                AttachMode::Native => "native: in the driver",
                AttachMode::Generic if place.is_asked => "generic: behind the driver, as asked for",
                AttachMode::Generic => "generic: behind the driver, which has no place for it",
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

    /// Whether the interface is there. If nobody can say, it is.
    fn is_there(&self) -> bool {
        self.namespace.with(|| has_interface(self.ifindex)).unwrap_or(true)
    }

    /// What has passed since the program is on it, if the interface is still there.
    fn traffic(&self) -> Option<Traffic> {
        let now = self.namespace.with(|| Traffic::of(&self.interface)).ok()?;
        now.ok().map(|now| now.since(self.before))
    }
}

/// Whether the driver cannot have a program, or not this one.
fn has_no_place(error: &BpfError) -> bool {
    let refusals = [libc::EOPNOTSUPP, libc::EINVAL, libc::ERANGE, libc::ENOSPC, libc::ENOMEM];
    let code = error.system().and_then(io::Error::raw_os_error);
    code.is_some_and(|code| refusals.contains(&code))
}

/// What whoever wants the program there can do.
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
        Some(libc::EOPNOTSUPP) => "its driver has no place for programs: use --mode generic",
        Some(libc::EINVAL | libc::ERANGE) => {
            "the driver may not take a program with frames as large as the interface's MTU: set a \
             smaller one with `ip link set IFACE mtu 1500`, or use --mode generic"
        }
        Some(libc::ENOENT) => "see `ip netns list` for the namespaces there are",
        _ => "see `freeport doctor` for what this machine can do",
    }
}

impl Running for OnKernel {
    /// The kernel moves the packets. It takes the program off an interface that goes away, and
    /// tells nobody.
    fn round(&mut self) -> Result<bool, Error> {
        if self.seen.elapsed() >= LONGEST_SLEEP {
            self.seen = Instant::now();
            if let Some(place) = self.places.iter().find(|place| !place.is_there()) {
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

    /// The kernel counts what passes an interface and how often a program runs; it does not say
    /// what verdicts those were.
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
