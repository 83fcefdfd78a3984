// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs programs of library elements on any device, addressed by instance names.

use crate::repository;
use freeport_clicknp::{Options, compile_text};
use freeport_ir::{Bits, Program};
use freeport_native::Options as NativeOptions;
use freeport_port::trace::TraceFrame;
use freeport_port::{Generator, Sink};
use freeport_runtime::cpu::CpuDevice;
use freeport_runtime::device::{Device, Ports, RunEnd};
use freeport_runtime::interpreter::InterpreterDevice;
use freeport_runtime::layouts::Layouts;
use freeport_runtime::steering::Manager;
use freeport_runtime::workers::WorkersDevice;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Number of batches between two checks for progress.
const TURNS: u32 = 100;

/// Compiles a text with the element library.
///
/// # Panics
/// If the text does not compile, with the errors.
pub fn program(text: &str) -> Arc<Program> {
    let library = Options { library: vec![repository().join("elements")] };
    let compiled = compile_text("test.cnp", text, &library);
    Arc::new(compiled.unwrap_or_else(|failure| panic!("{text}\n{failure}")).program)
}

/// A program on a device. Failures panic, since it is for tests.
pub struct Running(Manager<Box<dyn Device>>);

impl Running {
    /// Runs on the interpreter, whose clock advances one nanosecond per firing.
    pub fn interpreted(program: &Arc<Program>) -> Self {
        let device = InterpreterDevice::load(program.clone(), &<_>::default());
        Self::on(Box::new(device.expect("a good program")))
    }

    /// Runs as native code, kept in a folder.
    pub fn native(program: &Arc<Program>, cache: &Path) -> Self {
        let device = CpuDevice::load(program.clone(), &options(cache));
        Self::on(Box::new(device.expect("clang-19 is needed")))
    }

    /// Runs on several workers; `workers` assigns the instances.
    pub fn on_workers(program: &Arc<Program>, cache: &Path, workers: &[usize]) -> Self {
        let device = WorkersDevice::load(program.clone(), workers, &[], &options(cache), 0);
        Self::on(Box::new(device.expect("clang-19 is needed")))
    }

    fn on(device: Box<dyn Device>) -> Self {
        Self(Manager::new(device, Layouts::default()))
    }

    /// Writes variables.
    pub fn set(&mut self, variables: &[(&str, u64)]) {
        for (path, value) in variables {
            self.0.write(path, &value.to_string()).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    /// Returns the value of a variable, or of an element of it.
    pub fn get(&self, path: &str) -> u64 {
        let value = self.0.read(path).unwrap_or_else(|error| panic!("{error}"));
        value.as_u64().or(value.as_bool().map(u64::from)).expect("a number")
    }

    /// Returns the bits of an element of a variable.
    pub fn bits(&self, instance: &str, variable: &str, index: u64) -> Bits {
        let id = self.0.instance(instance).unwrap_or_else(|error| panic!("{error}"));
        let bits = self.0.device().read_variable(id, variable, index);
        bits.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Calls a method; returns 0 if it has no result.
    pub fn call(&mut self, call: &str) -> u64 {
        let call = call.parse().unwrap_or_else(|error| panic!("{error}"));
        let result = self.0.call(&call).unwrap_or_else(|error| panic!("{error}"));
        result.as_u64().or(result.as_bool().map(u64::from)).unwrap_or_default()
    }

    /// Runs until nothing moves; returns the frames sent to `to_tor`.
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        let mut sink = Sink::keeping();
        self.run(None, Some(&mut sink));
        sink.kept().iter().map(|frame| frame.bytes.clone()).collect()
    }

    /// Runs until nothing moves, with these frames at `from_tor`.
    pub fn receive(&mut self, frames: &[Vec<u8>]) {
        let frames: Vec<TraceFrame> = frames.iter().cloned().map(TraceFrame::of).collect();
        let mut source = Generator::once(&frames).expect("frames that can be");
        self.run(Some(&mut source), None);
    }

    /// Runs between two ports until nothing moves.
    pub fn run(&mut self, mut source: Option<&mut Generator>, mut sink: Option<&mut Sink>) {
        let never = AtomicBool::new(false);
        loop {
            let mut ports = Ports::new().with_pause(TURNS, &never);
            if let Some(source) = source.as_deref_mut() {
                ports = ports.with_input("from_tor", source);
            }
            if let Some(sink) = sink.as_deref_mut() {
                ports = ports.with_output("to_tor", sink);
            }
            match self.0.run(&mut ports).unwrap_or_else(|error| panic!("{error}")).end {
                RunEnd::Paused => {}
                end => return assert_eq!(end, RunEnd::Ended),
            }
        }
    }
}

fn options(cache: &Path) -> NativeOptions {
    NativeOptions { optimization: 1, cache: Some(cache.to_owned()), ..NativeOptions::default() }
}
