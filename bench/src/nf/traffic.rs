// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traffic through virtual interfaces: the kernel generates frames with the flows of a case, and
//! counts or keeps those that arrive.

use super::case::Model;
use super::flows::Flows;
use super::ours::hexadecimal;
use crate::harness::namespace::{Namespace, create, interface, run, set, within};
use crate::kernel::{AttachMode, Attachment, XdpObject, XdpProgram};
use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};

const GENERATOR: &str = include_str!("../../../programs/generator.bpf.c");

/// Default number of frames that the generator sends per batch.
const BATCH: u32 = 64;
/// Maximum number of frames compared before the measurement: as many as the program keeps.
const CHECKED_FRAMES: usize = 4_096;
/// Bytes of each that are compared.
const KEPT_BYTES: usize = 56;
/// Time to wait for the last frames.
const PATIENCE: Duration = Duration::from_millis(200);
/// Frames in flight at a time while they are compared.
const CHECKED_AT_ONCE: usize = 32;

/// Parts of a frame that must agree with the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Likeness {
    /// The whole frame.
    Whole,
    /// The whole frame; frames of different flows may overtake each other.
    AnyOrder,
    /// Protocol, addresses and ports only: the peer also routes the frame.
    Tuple,
}

/// A namespace with a generator and a counter.
pub struct Traffic {
    /// Namespace of the interfaces.
    pub namespace: Namespace,
    generator: XdpObject,
    frame: Vec<u8>,
    /// Frames per batch of the generator.
    pub batch: u32,
}

/// Attaches a program to an interface of the thread's namespace, in native mode.
pub fn put(program: &XdpProgram, name: &str) -> Result<Attachment> {
    Ok(program.attach(interface(name)?, AttachMode::Native)?)
}

impl Traffic {
    /// Creates two pairs of interfaces, `in0` with `in1` and `out0` with `out1`, all up, and a
    /// generator that sends to `in0`.
    pub fn new(flows: &Flows) -> Result<Self> {
        ensure!(!flows.stamps.is_empty(), "the frames of this case carry no flows");
        let namespace = create()?;
        let frame = flows.ring[0].bytes.clone();
        let generator = XdpObject::compile(GENERATOR, &[("stamps", flows.stamps.len())])?;
        let number = within(&namespace, || {
            // Only frames of the trace may be in flight.
            drop(set("ipv6/conf/default/disable_ipv6", "1"));
            let address = frame[..6].iter().map(|byte| format!("{byte:02x}"));
            let address = address.collect::<Vec<_>>().join(":");
            let links = format!(
                "link add in0 type veth peer in1\nlink add out0 type veth peer out1\n\
                 link set in1 address {address}\nlink set out0 address 02:00:03:00:00:01\n\
                 link set lo up\nlink set in0 up\nlink set in1 up\nlink set out0 up\n\
                 link set out1 up\n"
            );
            run("ip", &["-batch", "-"], &links)?;
            Ok(interface("in0")?)
        })?;
        for (number, stamp) in (0_u32..).zip(&flows.stamps) {
            generator.map("stamps")?.update(&number.to_le_bytes(), stamp)?;
        }
        let settings = [&number.to_le_bytes()[..], &frame[..12]].concat();
        generator.map("settings")?.update(&[0; 4], &settings)?;
        let traffic = Self { namespace, generator, frame, batch: BATCH };
        traffic.rewind(flows)?;
        Ok(traffic)
    }

    /// Restarts with the first flow and resets the counter.
    pub fn rewind(&self, flows: &Flows) -> Result<()> {
        let mut state = [0; 16];
        state[4..8].copy_from_slice(&u32::try_from(flows.stamps.len())?.to_le_bytes());
        self.generator.map("states")?.update(&[0; 4], &state)?;
        Ok(self.generator.map("counts")?.update(&[0; 4], &[0; 8])?)
    }

    /// Attaches a program of the generator to an interface.
    pub fn attach(&self, section: &str, name: &str) -> Result<Attachment> {
        within(&self.namespace, || put(self.generator.program(section)?, name))
    }

    /// Sends frames and waits until `expected` of them have arrived, or no more arrive.
    pub fn send(&self, frames: u32, expected: u64) -> Result<(u64, Duration)> {
        let before = self.count()?;
        let program = self.generator.program("xdp.send")?;
        let begin = Instant::now();
        within(&self.namespace, || Ok(program.send_live(&self.frame, frames, self.batch)?))?;
        let mut elapsed = begin.elapsed();
        let end = Instant::now();
        let mut arrived = self.count()? - before;
        while arrived < expected && end.elapsed() < PATIENCE {
            let more = self.count()? - before;
            if more > arrived {
                (arrived, elapsed) = (more, begin.elapsed());
            }
        }
        Ok((arrived, elapsed))
    }

    /// Sends frames without waiting for them.
    pub fn offer(&self, frames: u32) -> Result<()> {
        let program = self.generator.program("xdp.send")?;
        within(&self.namespace, || Ok(program.send_live(&self.frame, frames, self.batch)?))
    }

    /// Returns the number of frames counted so far.
    pub fn count(&self) -> Result<u64> {
        let value = self.generator.map("counts")?.lookup(&[0; 4])?;
        Ok(u64::from_le_bytes(value.try_into().ok().context("the counter does not have 8 bytes")?))
    }

    /// Sends the first flows and compares the frames that arrive at an interface with the model.
    pub fn check(
        &self,
        at: &str,
        mut model: Model<'_>,
        flows: &Flows,
        likeness: Likeness,
    ) -> Result<()> {
        let keeper = self.attach("xdp.keep", at)?;
        let count = CHECKED_FRAMES.min(flows.stamps.len());
        // The generator always sends the first frame of the ring.
        let alone = Flows { ring: vec![flows.ring[0].clone()], ..flows.clone() };
        let results: Vec<_> = alone.frames().take(count).map(|frame| model(&frame)).collect();
        let before = self.count()?;
        for part in results.chunks(CHECKED_AT_ONCE) {
            let passed = part.iter().flatten().count() as u64;
            if self.send(part.len() as u32, passed)?.0 != passed {
                break;
            }
        }
        let arrived = self.count()? - before;
        drop(keeper);
        let mut expected: Vec<Vec<u8>> = results.into_iter().flatten().collect();
        let wanted = expected.len() as u64;
        ensure!(arrived == wanted, "{arrived} of {count} frames arrived, not {wanted}");
        let map = self.generator.map("kept")?;
        let place = |number: u32| Ok(map.lookup(&number.to_le_bytes())?);
        let mut kept = (0..wanted as u32).map(place).collect::<Result<Vec<_>>>()?;
        if likeness == Likeness::AnyOrder {
            kept.sort_unstable();
            expected.sort_unstable();
        }
        for (number, (kept, expected)) in kept.iter().zip(&expected).enumerate() {
            ensure!(
                is_like(kept, expected, likeness),
                "arrived frame {number} is {}; expected {}",
                hexadecimal(kept),
                hexadecimal(expected)
            );
        }
        Ok(())
    }
}

fn is_like(kept: &[u8], expected: &[u8], likeness: Likeness) -> bool {
    match likeness {
        Likeness::Whole | Likeness::AnyOrder => kept == &expected[..KEPT_BYTES],
        Likeness::Tuple => kept[23] == expected[23] && kept[26..38] == expected[26..38],
    }
}
