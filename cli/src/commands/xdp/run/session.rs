// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A capture on its way through a program: packet after packet from the feed to the targets, into
//! the counters and the files.

use super::Arguments;
use super::feed::Feed;
use super::outputs::Outputs;
use super::tally::Tally;
use super::targets::Targets;
use crate::progress::ProgressLine;
use anyhow::Context;
use freeport_ebpf::object::Program;
use freeport_xdp::{Arrival, Contents};

/// Packets between two looks at whether to say how far it is.
const TOLD_EVERY: u64 = 256;

/// What a run needs and has counted.
pub struct Session<'a> {
    arguments: &'a Arguments,
    program: &'a Program,
    targets: Targets<'a>,
    feed: Feed,
    outputs: Outputs,
    tally: Tally,
}

impl<'a> Session<'a> {
    /// Opens the capture and makes the files.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn begin(
        arguments: &'a Arguments,
        program: &'a Program,
        targets: Targets<'a>,
    ) -> anyhow::Result<Self> {
        let feed = Feed::open(&arguments.subject.trace, arguments.repeat > 1)?;
        let outputs = Outputs::create(&arguments.write, &arguments.subject.trace)?;
        Ok(Self { arguments, program, targets, feed, outputs, tally: Tally::default() })
    }

    /// Runs the capture as often as is asked for.
    ///
    /// # Errors
    /// Where the capture is broken, what a target or a file refuses, and a difference between
    /// targets. What came before is counted and written.
    pub fn run(&mut self) -> anyhow::Result<()> {
        let result = self.run_all();
        let written = self.outputs.finish();
        result.and_then(|()| Ok(written?))
    }

    fn run_all(&mut self) -> anyhow::Result<()> {
        let mut progress = ProgressLine::default();
        let file = self.arguments.subject.trace.display();
        for repetition in 1..=self.arguments.repeat {
            if repetition > 1 {
                self.feed.rewind()?;
            }
            while self.feed.advance()? {
                self.pass().with_context(|| match repetition {
                    1 => file.to_string(),
                    _ => format!("{file}, repetition {repetition}"),
                })?;
                let packets = self.tally.packets();
                if packets.is_multiple_of(TOLD_EVERY) && progress.is_due() {
                    progress.tell(&format!("{packets} packets"));
                }
            }
        }
        Ok(())
    }

    /// Runs the program on the packet that is at hand.
    fn pass(&mut self) -> anyhow::Result<()> {
        let (bytes, number) = (self.feed.bytes(), self.feed.number());
        if !self.targets.take(bytes.len()) {
            self.tally.refuse(number);
            return Ok(());
        }
        self.targets.set_time(self.feed.time_ns());
        let rx_queue = self.arguments.rx_queue;
        let ifindex = self.arguments.subject.ifindex;
        let arrival = Arrival { bytes, ingress_ifindex: ifindex, rx_queue_index: rx_queue };
        self.targets.run(&self.program.name, number, &arrival)?;
        if self.arguments.printk {
            let lines = self.targets.take_trace();
            lines.iter().for_each(|line| eprintln!("packet {number}: {line}"));
        }
        let departure = self.targets.departure();
        self.tally.count(number, bytes.len(), departure.verdict, &self.targets.told());
        let offered = self.outputs.offer(departure, self.feed.timestamp_ns());
        offered.with_context(|| format!("packet {number}"))
    }

    /// Compares all maps if there are two targets, and gives what is in those that are asked for.
    ///
    /// # Errors
    /// A map that is not the same on both, or cannot be read.
    pub fn finish(&mut self) -> anyhow::Result<Vec<(String, Contents)>> {
        self.targets.finish(&self.arguments.dump)
    }

    /// What was counted.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Says on standard error what of the capture was not whole.
    pub fn warn(&self) {
        self.feed.warn();
    }
}
