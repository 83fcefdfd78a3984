// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a case is: a network function, told independently of anybody who does it. Everything that
//! is measured gets the same frames and is compared with the same model.

use super::flows::Tuple;
use super::traffic::Likeness;
use anyhow::{Context, Result, ensure};
use freeport_ir::{Bits, Program};
use freeport_runtime::device::Device;
use std::path::PathBuf;

/// What has to become of the next frame: its bytes, or none if it is dropped. It may keep state.
pub type Model<'c> = Box<dyn FnMut(&[u8]) -> Option<Vec<u8>> + 'c>;

/// A network function and how each subject is made to do it.
pub trait Case {
    /// As in results.
    fn name(&self) -> &'static str;

    /// The job and its tables in a sentence, with the seed.
    fn about(&self) -> String;

    /// The flows in the order of arrival; empty if the frames stay as they are.
    fn tuples(&self) -> &[Tuple];

    /// The job, written for clarity.
    fn model(&self) -> Model<'_>;

    /// Freeport's program, of elements in these folders; none if there is none yet.
    ///
    /// # Errors
    /// A program that does not compile.
    fn ours(&self, library: &[PathBuf]) -> Result<Option<Ours<'_>>>;

    /// The kernel's program.
    fn kernel(&self) -> KernelJob;

    /// How the kernel's own network stack is made to do it, or why it cannot be.
    fn network(&self) -> Result<NetworkJob, &'static str> {
        Err("the kernel's stack does not do this")
    }

    /// How Open vSwitch is made to do it, or why it cannot be: a file of OpenFlow rules, in which
    /// `IN` and `OUT` are the two ports.
    fn open_flow(&self) -> Result<String, &'static str> {
        Err("OpenFlow rules do not do this")
    }

    /// How FastClick is made to do it, or why it cannot be.
    fn click(&self) -> Result<ClickJob, &'static str>;

    /// Packets a second that a publication reports for the same, on frames of that size.
    fn published(&self, _frame_bytes: usize) -> Option<f64> {
        None
    }
}

/// Freeport's way.
pub struct Ours<'c> {
    /// The compiled graph.
    pub program: Program,
    /// The endpoint at which frames come in.
    pub input: &'static str,
    /// The endpoint at which frames leave that are not dropped.
    pub output: &'static str,
    /// Fills the tables, by methods.
    pub set_up: SetUp<'c>,
}

/// Prepares a device before frames come.
pub type SetUp<'c> = Box<dyn Fn(&mut dyn Device) -> Result<()> + 'c>;

/// The kernel's XDP.
pub struct KernelJob {
    /// In C.
    pub source: &'static str,
    /// Maps with as many entries as the case needs.
    pub entries: Vec<(&'static str, usize)>,
    /// What maps hold: the map, the key, the value.
    pub contents: Vec<MapEntry>,
    /// Bytes that the job puts in front of a frame.
    pub growth: usize,
}

/// A map's name, a key and its value.
pub type MapEntry = (&'static str, Vec<u8>, Vec<u8>);

/// The kernel's network stack between two interfaces.
pub struct NetworkJob {
    /// What to call it.
    pub name: &'static str,
    /// Lines for `ip -batch`, in which `IN` and `OUT` are the interfaces.
    pub addresses: String,
    /// A ruleset for `nft -f`, likewise.
    pub rules: String,
    /// How much of a frame it leaves as the model does.
    pub likeness: Likeness,
    /// Frames of a round: as many as take about a second.
    pub frames: u32,
}

/// FastClick.
pub struct ClickJob {
    /// What stands between the elements `in` and `out`.
    pub elements: String,
    /// Frames of a round: as many as take about a second.
    pub frames: usize,
}

impl<'c> Ours<'c> {
    /// A graph of library elements from `from_tor` to `to_tor`.
    ///
    /// # Errors
    /// What is wrong with it, or missing in the library.
    pub fn compile(name: &str, text: &str, library: &[PathBuf], set_up: SetUp<'c>) -> Result<Self> {
        let options = freeport_clicknp::Options { library: library.to_vec() };
        let compiled = freeport_clicknp::compile_text(name, text, &options);
        let compiled = compiled.map_err(|failure| anyhow::anyhow!("{}", failure.render()))?;
        let program = Program { name: name.into(), ..compiled.program };
        Ok(Self { program, input: "from_tor", output: "to_tor", set_up })
    }
}

/// An Ethernet address as a number: the byte that is written first is the highest.
pub fn written(address: [u8; 6]) -> Bits {
    let value = address.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Bits::from_u64(48, value)
}

/// Calls a method of an instance that changes its tables, and answers 0 if it could.
///
/// # Errors
/// No such instance, what the device says, or another answer.
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

/// Calls a method of an instance that is known by its name.
///
/// # Errors
/// No such instance, or what the device says.
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
