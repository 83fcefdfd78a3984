// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Both forwarders, each between its own interfaces, and the measurement of their processor time.

use crate::harness::machine::pin_to;
use crate::harness::{Subject, Work};
use crate::nf::flows::Flows;
use crate::nf::traffic::{Likeness, Traffic};
use anyhow::{Context, Result, bail, ensure};
use freeport_ir::Program;
use freeport_native::Image;
use freeport_port::namespace::Namespace;
use freeport_port::{XdpOptions, XdpPort};
use freeport_runtime::cpu::CpuDevice;
use freeport_runtime::device::{Device, Ports};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

const MINIMAL: &str = include_str!("../../../programs/forward.c");
const WIRE: &str = include_str!("../../../examples/wire.cnp");
/// Interfaces at which frames arrive, leave, and are counted.
const INTERFACES: [&str; 3] = ["in1", "out0", "out1"];
/// Number of frames offered per call.
const OFFERED_AT_ONCE: u32 = 200_000;
/// Time for which frames are offered before the measurement.
const WARM_UP: Duration = Duration::from_millis(300);

/// The compiled C program.
pub struct Minimal {
    folder: TempDir,
}

/// Freeport's program as native code.
pub struct Wire {
    program: Arc<Program>,
    image: Image,
}

/// The subject.
pub enum Side {
    /// Freeport.
    Wire(Rc<Wire>),
    /// The C program.
    Minimal(Rc<Minimal>),
}

/// A forwarder to measure; each round has new interfaces and a new start.
pub struct Forwarding {
    /// Which forwarder it is.
    pub side: Side,
    /// Traffic to forward.
    pub flows: Rc<Flows>,
    /// Length of the measurement.
    pub window: Duration,
    /// The cores on which frames are generated and forwarded.
    pub cores: [usize; 2],
    /// Frames that the rings hold.
    pub frames: u32,
}

/// A forwarder that runs until it is dropped.
enum Running {
    Thread { handle: Option<JoinHandle<()>>, is_wanted: Arc<AtomicBool>, clock: libc::clockid_t },
    Process(Child),
}

impl Minimal {
    /// Compiles the C program.
    ///
    /// # Errors
    /// The compiler is missing, or rejects the program.
    pub fn compile() -> Result<Self> {
        let folder =
            tempfile::tempdir().context("no temporary folder can be created for the compiler")?;
        let source = folder.path().join("forward.c");
        std::fs::write(&source, MINIMAL)?;
        let compiler = freeport_native::Options::default().compiler;
        let mut command = Command::new(&compiler);
        command.args(["-O3", "-march=native", "-o"]).arg(folder.path().join("forward"));
        let result = command.arg(&source).output();
        let result = result.with_context(|| format!("{} cannot be run", compiler.display()))?;
        let reported = String::from_utf8_lossy(&result.stderr);
        ensure!(
            result.status.success(),
            "the forwarder in C does not compile: {}",
            reported.trim()
        );
        Ok(Self { folder })
    }
}

impl Wire {
    /// Builds Freeport's program.
    ///
    /// # Errors
    /// The compiler is missing, or rejects the program.
    pub fn build() -> Result<Self> {
        let compiled = freeport_clicknp::compile_text("wire", WIRE, &Default::default());
        let compiled = compiled.map_err(|failure| anyhow::anyhow!("{}", failure.render()))?;
        let program = Arc::new(Program { name: "wire".into(), ..compiled.program });
        let image = freeport_native::build(&program, &freeport_native::Options::default())?;
        Ok(Self { program, image })
    }
}

impl Subject for Forwarding {
    fn name(&self) -> &str {
        match &self.side {
            Side::Wire(_) => "freeport wire.cnp",
            Side::Minimal(_) => "minimal forwarder in C",
        }
    }

    fn run(&mut self) -> Result<Work> {
        let (traffic, running) = self.begin()?;
        let _counter = traffic.attach("xdp.count", INTERFACES[2])?;
        let (is_wanted, offered) = (AtomicBool::new(true), AtomicU64::new(0));
        let core = self.cores[0];
        let (work, offered) = std::thread::scope(|scope| {
            let offering = scope.spawn(|| {
                pin_to(core);
                while is_wanted.load(Ordering::Relaxed) {
                    traffic.offer(OFFERED_AT_ONCE)?;
                    offered.fetch_add(OFFERED_AT_ONCE.into(), Ordering::Relaxed);
                }
                Ok(())
            });
            std::thread::sleep(WARM_UP);
            let look = || Ok((running.time()?, traffic.count()?, offered.load(Ordering::Relaxed)));
            let begin: Result<_> = look();
            std::thread::sleep(self.window);
            let end: Result<_> = look();
            is_wanted.store(false, Ordering::Relaxed);
            let made: Result<()> = offering.join().expect("it does not panic");
            made?;
            let ((from, counted, offered), (to, all, most)) = (begin?, end?);
            let frames = (all - counted) as f64;
            Ok::<_, anyhow::Error>((Work { frames, elapsed: to - from }, (most - offered) as f64))
        })?;
        let forwarded = work.frames;
        // Otherwise the forwarder has waited, and its time is not only that of the frames.
        let is_busy = forwarded > 0.0 && offered > 1.05 * forwarded;
        ensure!(is_busy, "{forwarded} frames were forwarded, but only {offered} offered");
        Ok(work)
    }
}

impl Forwarding {
    /// Sets up interfaces with the forwarder between them, and compares what arrives with what was
    /// sent.
    fn begin(&self) -> Result<(Traffic, Running)> {
        let traffic = Traffic::new(&self.flows)?;
        let running = self.start(&traffic.namespace)?;
        let model = Box::new(|frame: &[u8]| Some(frame.to_vec()));
        traffic.check(INTERFACES[2], model, &self.flows, Likeness::Whole)?;
        Ok((traffic, running))
    }

    fn start(&self, namespace: &Namespace) -> Result<Running> {
        match &self.side {
            Side::Wire(wire) => start_wire(wire, namespace, self.frames, self.cores[1]),
            Side::Minimal(minimal) => {
                let mut command = Command::new(minimal.folder.path().join("forward"));
                command.args(&INTERFACES[..2]);
                command.arg(self.frames.to_string()).arg(self.cores[1].to_string());
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                let mut child = namespace.with(|| command.spawn())??;
                let output = child.stdout.take().context("standard output is no pipe")?;
                let mut line = String::new();
                BufReader::new(output).read_line(&mut line)?;
                if line.trim() != "ready" {
                    let reported = child.wait_with_output()?.stderr;
                    bail!(
                        "the forwarder does not start: {}",
                        String::from_utf8_lossy(&reported).trim()
                    );
                }
                Ok(Running::Process(child))
            }
        }
    }
}

/// Starts a thread that forwards on `core` until it is stopped.
fn start_wire(wire: &Wire, namespace: &Namespace, frames: u32, core: usize) -> Result<Running> {
    let option = |name: &&str| XdpOptions { ring_frames: frames, ..XdpOptions::new(*name) };
    let options: Vec<XdpOptions> = INTERFACES[..2].iter().map(option).collect();
    let mut ports = namespace.with(|| XdpPort::open_all(&options))??.into_iter();
    let (Some(from), Some(to)) = (ports.next(), ports.next()) else {
        bail!("exactly two ports must be opened")
    };
    let ((mut receiver, _), (_, mut transmitter)) = (from.split(), to.split());
    let mut device = CpuDevice::of_image(wire.program.clone(), &wire.image, 0)?;
    let is_wanted = Arc::new(AtomicBool::new(true));
    let (tell, reported) = mpsc::channel();
    let continues = is_wanted.clone();
    let handle = std::thread::spawn(move || {
        pin_to(core);
        // SAFETY: the call takes no arguments.
        let number = unsafe { libc::gettid() };
        tell.send(number).expect("the other side waits for it");
        while continues.load(Ordering::Relaxed) {
            let mut ports = Ports::new()
                .with_input("from_tor", &mut receiver)
                .with_output("to_tor", &mut transmitter);
            if device.run(&mut ports).is_err() {
                return;
            }
        }
    });
    let clock = clock_of(reported.recv().context("the forwarding thread has ended")?, true);
    Ok(Running::Thread { handle: Some(handle), is_wanted, clock })
}

impl Running {
    /// Returns its processor time so far.
    fn time(&self) -> Result<Duration> {
        let clock = match self {
            Self::Thread { clock, .. } => *clock,
            Self::Process(child) => clock_of(child.id() as libc::pid_t, false),
        };
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel fills the structure.
        let result = unsafe { libc::clock_gettime(clock, &mut time) };
        ensure!(result == 0, "the forwarder has exited");
        Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
}

/// Returns the clock of the processor time of a process, or of a thread of this process
/// (`include/linux/posix-timers_types.h`).
fn clock_of(number: libc::pid_t, is_thread: bool) -> libc::clockid_t {
    const SCHEDULED: libc::clockid_t = 2;
    const OF_THREAD: libc::clockid_t = 4;
    (!number << 3) | SCHEDULED | if is_thread { OF_THREAD } else { 0 }
}

impl Drop for Running {
    fn drop(&mut self) {
        match self {
            Self::Thread { handle, is_wanted, .. } => {
                is_wanted.store(false, Ordering::Relaxed);
                handle.take().map(JoinHandle::join);
            }
            Self::Process(child) => {
                // Fails only if it has already exited.
                drop(child.kill());
                drop(child.wait());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::machine::allowed_cores;
    use crate::ports::flows;
    use freeport_testbed::skip;

    #[test]
    fn both_forward_frames_as_they_are_and_use_processor_time() {
        if Namespace::new().is_err() {
            skip("this process may not make network namespaces");
            return;
        }
        let minimal = Rc::new(Minimal::compile().expect("it compiles"));
        let wire = Rc::new(Wire::build().expect("it compiles"));
        let cores = allowed_cores();
        let cores = [cores[0], cores[cores.len() - 1]];
        for side in [Side::Wire(wire), Side::Minimal(minimal)] {
            let (flows, window) = (Rc::new(flows(64)), Duration::ZERO);
            let forwarding = Forwarding { side, flows, window, cores, frames: 1_024 };
            let (_traffic, running) = forwarding.begin().expect("frames arrive as they were sent");
            assert!(running.time().expect("it runs") > Duration::ZERO);
        }
    }
}
