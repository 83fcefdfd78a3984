// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A bump in the wire: takes packets from ports, has an engine run the program on them, and carries
//! out the verdicts. Passed packets go to the host side of their port, `XDP_TX` packets leave by
//! their own port, and redirected packets leave by the port with that device number.

use crate::counters::{Counters, Drop};
use crate::outputs::{Outputs, Side};
use crate::running::{Part, Running};
use crate::statistics::{PortRow, Statistics};
use crate::{Engine, Error, Port, Ran, Way};
use freeport_ebpf::interpreter::verdict;
use freeport_ebpf::object::Object;
use freeport_port::{BATCH, Receive};
use freeport_runtime::server::{Waiting, Wake};
use freeport_xdp::{Arrival, Target};
use std::time::{Duration, Instant};

/// Longest time to wait, at the end, for packets that the engine has not finished.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest sleep.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Ports with a program between them.
pub struct Wire<E> {
    engine: E,
    names: Vec<String>,
    ifindexes: Vec<u32>,
    inputs: Vec<Input>,
    outputs: Outputs,
    counters: Counters,
    ran: Ran,
}

/// Sources of the packets of a port.
struct Input {
    network: Box<dyn Receive>,
    host: Option<Box<dyn Receive>>,
}

impl<E: Engine> Wire<E> {
    /// Connects ports to an engine.
    ///
    /// # Errors
    /// Two ports have the same device number.
    pub fn new(engine: E, ports: Vec<Port>) -> Result<Self, Error> {
        let (mut names, mut ifindexes): (Vec<String>, Vec<u32>) = (vec![], vec![]);
        let (mut inputs, mut outputs) = (vec![], Outputs::new());
        for Port { name, ifindex, receive, transmit, host } in ports {
            if let Some(at) = ifindexes.iter().position(|other| *other == ifindex) {
                let first = names[at].clone();
                return Err(Error::SameNumber { first, second: name, ifindex });
            }
            names.push(name);
            ifindexes.push(ifindex);
            let (from_host, to_host) = host.map(|host| (host.receive, host.transmit)).unzip();
            inputs.push(Input { network: receive, host: from_host });
            outputs.add(transmit, to_host);
        }
        let counters = Counters::new(names.len());
        Ok(Self { engine, names, ifindexes, inputs, outputs, counters, ran: Ran::default() })
    }

    /// Moves packets that the host sends to the port, as far as there is room. The program sees
    /// only received packets.
    fn take_from_host(&mut self, port: usize) -> Result<bool, Error> {
        let Self { names, inputs, outputs, counters, .. } = self;
        let Some(host) = &mut inputs[port].host else { return Ok(false) };
        let most = outputs.room(port, Side::Network).min(BATCH);
        if most == 0 {
            return Ok(false);
        }
        let batch = host.receive(most);
        let batch = batch.map_err(|source| Error::Port { port: names[port].clone(), source })?;
        for at in 0..batch.len() {
            let bytes = batch.bytes(at);
            counters.ports[port].from_host.add(bytes.len());
            outputs.put(counters, port, (port, Side::Network), bytes);
        }
        Ok(!batch.is_empty())
    }

    /// Offers packets from the network to the engine, as far as it has room.
    fn take_from_network(&mut self, port: usize) -> Result<bool, Error> {
        let Self { engine, names, ifindexes, inputs, outputs, counters, ran } = self;
        let most = engine.room().min(BATCH);
        if most == 0 {
            return Ok(false);
        }
        let batch = inputs[port].network.receive(most);
        let batch = batch.map_err(|source| Error::Port { port: names[port].clone(), source })?;
        let lengths = engine.lengths();
        for at in 0..batch.len() {
            let bytes = batch.bytes(at);
            counters.ports[port].received.add(bytes.len());
            if !lengths.contains(&bytes.len()) {
                counters.drop(port, Drop::Length);
                continue;
            }
            let ingress_ifindex = ifindexes[port];
            engine.offer(&Arrival { bytes, ingress_ifindex, rx_queue_index: 0 })?;
            take_all(engine, ran, ifindexes, outputs, counters)?;
        }
        Ok(!batch.is_empty())
    }

    /// Has the engine work on its packets.
    fn work(&mut self) -> Result<bool, Error> {
        let Self { engine, ifindexes, outputs, counters, ran, .. } = self;
        let is_moved = engine.work()?;
        take_all(engine, ran, ifindexes, outputs, counters)?;
        Ok(is_moved)
    }
}

/// Carries out the verdict of each packet that the engine has finished.
fn take_all<E: Engine>(
    engine: &mut E,
    ran: &mut Ran,
    ifindexes: &[u32],
    outputs: &mut Outputs,
    counters: &mut Counters,
) -> Result<(), Error> {
    while engine.take(ran)? {
        if let Some(stop) = &ran.stop {
            counters.stop(stop);
        }
        let place = |ifindex: u32| ifindexes.iter().position(|it| *it == ifindex);
        // Every packet of the engine came from a port.
        let Some(from) = place(ran.ingress_ifindex) else { continue };
        let bytes = &ran.departure.bytes;
        counters.verdict(from, ran.departure.verdict, bytes.len());
        let mut redirect = |ifindex| match place(ifindex) {
            Some(to) => outputs.put(counters, from, (to, Side::Network), bytes),
            None => counters.drop(from, Drop::NoPort(ifindex)),
        };
        match (ran.departure.verdict, &ran.way) {
            (verdict::REDIRECT, Some(Way::Device(ifindex))) => redirect(*ifindex),
            (verdict::REDIRECT, Some(Way::Devices(all))) => all.iter().copied().for_each(redirect),
            (verdict::REDIRECT, Some(Way::Socket)) => counters.drop(from, Drop::Socket),
            (verdict::PASS, _) | (verdict::REDIRECT, Some(Way::Host)) => {
                outputs.put(counters, from, (from, Side::Host), bytes);
            }
            (verdict::TX, _) => outputs.put(counters, from, (from, Side::Network), bytes),
            (verdict::REDIRECT, _) => counters.drop(from, Drop::Nowhere),
            _ => {}
        }
    }
    Ok(())
}

impl<E: Engine> Running for Wire<E> {
    fn round(&mut self) -> Result<bool, Error> {
        let mut is_moved = false;
        for port in 0..self.names.len() {
            is_moved |= self.take_from_host(port)?;
            is_moved |= self.take_from_network(port)?;
        }
        is_moved |= self.work()?;
        Ok(is_moved | self.outputs.send(&mut self.counters, &self.names)?)
    }

    fn wait(&self, wake: &Wake) -> Result<(), Error> {
        let mut waiting = Waiting::new(Some(wake)).at_most(LONGEST_SLEEP);
        for (port, input) in self.inputs.iter().enumerate() {
            if !input.network.is_ended() {
                waiting.for_frames(input.network.readiness());
            }
            if let Some(host) = &input.host
                && self.outputs.room(port, Side::Network) > 0
            {
                waiting.for_frames(host.readiness());
            }
        }
        self.outputs.wait_in(&mut waiting);
        waiting.wait().map_err(Error::Wait)
    }

    fn has_ended(&self) -> bool {
        let is_ended = |input: &Input| input.network.is_ended() && input.host.is_none();
        let are_ended = self.inputs.iter().all(is_ended);
        are_ended && self.engine.at_work() == 0 && self.outputs.waiting() == 0
    }

    fn target_mut(&mut self) -> &mut dyn Target {
        self.engine.target_mut()
    }

    fn maps_changed(&mut self) {
        self.engine.maps_changed();
    }

    fn contents(&mut self, map: &str) -> Result<Vec<Part>, Error> {
        let contents = self.engine.target_mut().contents(map)?;
        Ok(vec![Part { processor: None, contents }])
    }

    fn statistics(&mut self, object: &Object) -> Result<Statistics, Error> {
        let ports = self.names.iter().zip(&self.ifindexes).enumerate();
        let ports = ports.map(|(port, (name, ifindex))| {
            let input = &self.inputs[port];
            let before = input.network.lost() + input.host.as_ref().map_or(0, |it| it.lost());
            let lost = before + self.outputs.lost(port);
            PortRow::of_counters(name, *ifindex, &self.counters.ports[port], lost)
        });
        let ports = ports.collect();
        let figures = self.engine.figures()?;
        let figures = figures.into_iter().map(|(name, value)| (name, Some(value))).collect();
        Ok(Statistics::new(ports, self.engine.name(), figures).with_stopped(&self.counters, object))
    }

    fn finish(&mut self) -> Result<(), Error> {
        let begin = Instant::now();
        while self.engine.at_work() + self.outputs.waiting() > 0 && begin.elapsed() < PATIENCE {
            self.work()?;
            self.outputs.send(&mut self.counters, &self.names)?;
        }
        self.outputs.flush(&self.names)
    }
}
