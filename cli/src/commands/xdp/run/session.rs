// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The loop of a run: each packet goes from the feed to the targets, and then to the counters and
//! output files.

use super::Arguments;
use super::feed::Feed;
use super::outputs::Outputs;
use super::tally::Tally;
use super::targets::Targets;
use crate::progress::ProgressLine;
use anyhow::Context;
use freeport_ebpf::object::Program;
use freeport_xdp::{Arrival, Contents};

/// Number of packets between checks whether to report progress.
const TOLD_EVERY: u64 = 256;

/// The state of a run.
pub struct Session<'a> {
    arguments: &'a Arguments,
    program: &'a Program,
    targets: Targets<'a>,
    feed: Feed,
    outputs: Outputs,
    tally: Tally,
}

impl<'a> Session<'a> {
    /// Opens the capture and creates the output files.
    ///
    /// # Errors
    /// A file that cannot be opened or created.
    pub fn begin(
        arguments: &'a Arguments,
        program: &'a Program,
        targets: Targets<'a>,
    ) -> anyhow::Result<Self> {
        let feed = Feed::open(&arguments.subject.trace, arguments.repeat > 1)?;
        let outputs = Outputs::create(&arguments.write, &arguments.subject.trace)?;
        Ok(Self { arguments, program, targets, feed, outputs, tally: Tally::default() })
    }

    /// Runs the capture the requested number of times.
    ///
    /// # Errors
    /// A malformed capture, an error of a target or an output file, or a difference between
    /// targets. Packets before the error are counted and written.
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

    /// Runs the program on the current packet.
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
        self.tally.count(number, bytes.len(), departure.verdict, &self.targets.reported());
        let offered = self.outputs.offer(departure, self.feed.timestamp_ns());
        offered.with_context(|| format!("packet {number}"))
    }

    /// Compares all maps if there are two targets; returns the contents of the requested maps.
    ///
    /// # Errors
    /// A map that differs between the targets, or cannot be read.
    pub fn finish(&mut self) -> anyhow::Result<Vec<(String, Contents)>> {
        self.targets.finish(&self.arguments.dump)
    }

    /// The counters.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Warns about incomplete records of the capture.
    pub fn warn(&self) {
        self.feed.warn();
    }
}
