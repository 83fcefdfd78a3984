// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A case is a network function, described independently of the subjects that implement it. All
//! subjects receive the same frames and are checked against the same model.

use super::flows::Tuple;
use super::traffic::Likeness;
use anyhow::{Context, Result, ensure};
use freeport_ir::{Bits, Program};
use freeport_runtime::device::Device;
use std::path::PathBuf;

/// Returns the expected output for the next frame; none if the frame is dropped. It may keep state.
pub type Model<'c> = Box<dyn FnMut(&[u8]) -> Option<Vec<u8>> + 'c>;

/// A network function, and its implementation for each subject.
pub trait Case {
    /// Returns the name of the case in results.
    fn name(&self) -> &'static str;

    /// Describes the function and its tables in a sentence, with the seed.
    fn about(&self) -> String;

    /// Returns the flows in order of arrival; empty if frames are not modified.
    fn tuples(&self) -> &[Tuple];

    /// Returns a reference implementation, written for clarity.
    fn model(&self) -> Model<'_>;

    /// Returns Freeport's program, built from elements in these folders; none if there is none yet.
    ///
    /// # Errors
    /// The program does not compile.
    fn ours(&self, library: &[PathBuf]) -> Result<Option<Ours<'_>>>;

    /// Returns the XDP program for the kernel.
    fn kernel(&self) -> KernelJob;

    /// Returns the configuration of the kernel's network stack, or why it cannot do this.
    fn network(&self) -> Result<NetworkJob, &'static str> {
        Err("the kernel's stack does not do this")
    }

    /// Returns the configuration of Open vSwitch, or why it cannot do this. It is a file of
    /// OpenFlow rules in which `IN` and `OUT` are the two ports.
    fn open_flow(&self) -> Result<String, &'static str> {
        Err("OpenFlow rules do not do this")
    }

    /// Returns the configuration of FastClick, or why it cannot do this.
    fn click(&self) -> Result<ClickJob, &'static str>;

    /// Returns the packets per second that a publication reports for the same function and frame
    /// size.
    fn published(&self, _frame_bytes: usize) -> Option<f64> {
        None
    }
}

/// Freeport's implementation.
pub struct Ours<'c> {
    /// The compiled graph.
    pub program: Program,
    /// Input endpoint.
    pub input: &'static str,
    /// Output endpoint.
    pub output: &'static str,
    /// Fills the tables by method calls.
    pub set_up: SetUp<'c>,
}

/// Prepares a device before the first frame.
pub type SetUp<'c> = Box<dyn Fn(&mut dyn Device) -> Result<()> + 'c>;

/// Implementation in XDP.
pub struct KernelJob {
    /// C source text.
    pub source: &'static str,
    /// Maximum number of entries of maps, where the source has another.
    pub entries: Vec<(&'static str, usize)>,
    /// Contents of maps.
    pub contents: Vec<MapEntry>,
    /// Bytes that the program prepends to a frame.
    pub growth: usize,
}

/// Name of a map, a key, and its value.
pub type MapEntry = (&'static str, Vec<u8>, Vec<u8>);

/// Configuration of the kernel's network stack between two interfaces.
pub struct NetworkJob {
    /// Name of the subject.
    pub name: &'static str,
    /// Commands for `ip -batch`, in which `IN` and `OUT` are the interfaces.
    pub addresses: String,
    /// Ruleset for `nft -f`, in which `IN` and `OUT` are the interfaces.
    pub rules: String,
    /// Parts of a frame that have to match the model.
    pub likeness: Likeness,
    /// Frames per round; they take about a second.
    pub frames: u32,
}

/// Configuration of FastClick.
pub struct ClickJob {
    /// Elements between the elements `in` and `out`.
    pub elements: String,
    /// Frames per round; they take about a second.
    pub frames: usize,
}

impl<'c> Ours<'c> {
    /// Compiles a graph of library elements from `from_tor` to `to_tor`.
    ///
    /// # Errors
    /// The text has an error, or the library lacks an element.
    pub fn compile(name: &str, text: &str, library: &[PathBuf], set_up: SetUp<'c>) -> Result<Self> {
        let options = freeport_clicknp::Options { library: library.to_vec() };
        let compiled = freeport_clicknp::compile_text(name, text, &options);
        let compiled = compiled.map_err(|failure| anyhow::anyhow!("{}", failure.render()))?;
        let program = Program { name: name.into(), ..compiled.program };
        Ok(Self { program, input: "from_tor", output: "to_tor", set_up })
    }
}

/// Returns an Ethernet address as a number; its first byte is the most significant.
pub fn written(address: [u8; 6]) -> Bits {
    let value = address.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Bits::from_u64(48, value)
}

/// Calls a method that changes a table of an instance and returns 0 on success.
///
/// # Errors
/// The program has no such instance, the device reports an error, or the method returns another
/// value.
pub fn insert(
    device: &mut dyn Device,
    instance: &str,
    method: &str,
    arguments: &[Bits],
) -> Result<()> {
    let answer = call(device, instance, method, arguments)?.map_or(0, |answer| answer.to_u64());
    ensure!(answer == 0, "{instance}.{method} answers {answer}");
    Ok(())
}

/// Calls a method of an instance, by the instance's name.
///
/// # Errors
/// The program has no such instance, or the device reports an error.
pub fn call(
    device: &mut dyn Device,
    instance: &str,
    method: &str,
    arguments: &[Bits],
) -> Result<Option<Bits>> {
    let instances = &device.program().graph.instances;
    let at = instances.iter().position(|it| it.name == instance);
    let at = at.with_context(|| format!("the program has no instance {instance}"))?;
    Ok(device.call_method(freeport_ir::InstanceId::new(at), method, arguments)?)
}
