// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses the graph: instances, endpoints and channels.

use super::cursor::Result;
use super::parse::Parser;
use super::print::source_item;
use crate::{
    Channel, DEFAULT_DEPTH, Direction, ElementId, Endpoint, EndpointId, Instance, InstanceId,
    OnFull, Port, PortId, Sink, Source,
};

/// One end of a channel.
enum End {
    Endpoint(EndpointId),
    Port(InstanceId, PortId),
}

impl Parser<'_> {
    pub(super) fn graph(&mut self) -> Result<()> {
        self.cursor.sign("{")?;
        while !self.cursor.take_sign("}") {
            if self.cursor.take_attribute("instance") {
                self.instance()?;
            } else if self.cursor.take_attribute("endpoint") {
                self.endpoint()?;
            } else {
                self.channel()?;
            }
            self.cursor.skip_separators();
        }
        Ok(())
    }

    fn instance(&mut self) -> Result<()> {
        let name = self.cursor.name("the instance's name")?;
        self.cursor.sign(":")?;
        let names = self.program.elements.iter().map(|element| element.name.clone()).collect();
        let element = ElementId(self.named(names, "element")?);
        let mut instance = Instance {
            name,
            element,
            host: false,
            controlled: false,
            verilog: false,
            loc: Default::default(),
        };
        loop {
            if self.cursor.take_attribute("host") {
                instance.host = true;
            } else if self.cursor.take_attribute("controlled") {
                instance.controlled = true;
            } else if self.cursor.take_attribute("verilog") {
                instance.verilog = true;
            } else {
                break;
            }
        }
        instance.loc = self.cursor.loc();
        self.program.graph.instances.push(instance);
        Ok(())
    }

    fn endpoint(&mut self) -> Result<()> {
        let name = self.cursor.name("the endpoint's name")?;
        self.cursor.sign(":")?;
        let direction = match self.cursor.word() {
            Some("into") => Direction::Into,
            Some("out_of") => Direction::OutOf,
            _ => return Err(self.cursor.expected("`into` or `out_of`")),
        };
        self.cursor.next();
        let item = self.item()?;
        self.program.graph.endpoints.push(Endpoint { name, direction, item });
        Ok(())
    }

    fn channel(&mut self) -> Result<()> {
        let at = self.cursor.index();
        let source = match self.end(true)? {
            End::Endpoint(endpoint) => Source::Endpoint(endpoint),
            End::Port(instance, port) => Source::Port(instance, port),
        };
        self.cursor.sign("->")?;
        let sink = match self.end(false)? {
            End::Endpoint(endpoint) => Sink::Endpoint(endpoint),
            End::Port(instance, port) => Sink::Port(instance, port),
        };
        let mut item = source_item(&self.program, source);
        let (mut depth, mut on_full) = (DEFAULT_DEPTH, OnFull::Block);
        loop {
            if self.cursor.take_attribute("item") {
                item = Some(self.item()?);
            } else if self.cursor.take_attribute("depth") {
                depth = self.cursor.number_u32()?;
            } else if self.cursor.take_attribute("drop") {
                on_full = OnFull::DropCounted;
            } else {
                break;
            }
        }
        let Some(item) = item else {
            return Err(self.cursor.error_at(at, "this channel's `item` is not known"));
        };
        let loc = self.cursor.loc();
        self.program.graph.channels.push(Channel { source, sink, item, depth, on_full, loc });
        Ok(())
    }

    /// Parses `endpoint` or `instance.port`.
    fn end(&mut self, is_source: bool) -> Result<End> {
        let instances: Vec<String> =
            self.program.graph.instances.iter().map(|each| each.name.clone()).collect();
        let endpoints: Vec<String> =
            self.program.graph.endpoints.iter().map(|each| each.name.clone()).collect();
        // The token after the name decides; `#3` is one token longer.
        let start = self.cursor.index();
        self.cursor.take_sign("#");
        self.cursor.next();
        let is_port = self.cursor.take_sign(".");
        self.cursor.go_to(start);
        if !is_port {
            return Ok(End::Endpoint(EndpointId(self.named(endpoints, "endpoint")?)));
        }
        let instance = InstanceId(self.named(instances, "instance")?);
        self.cursor.sign(".")?;
        let element = self.program.graph.instances.get(instance.index());
        let element = element.and_then(|each| self.program.elements.get(each.element.index()));
        let ports: &[Port] = match element {
            Some(element) if is_source => &element.outputs,
            Some(element) => &element.inputs,
            None => &[],
        };
        let ports = ports.iter().map(|port| port.name.clone()).collect();
        let what = if is_source { "output port" } else { "input port" };
        Ok(End::Port(instance, PortId(self.named(ports, what)?)))
    }

    /// Parses the index of one of `names`, or an index after `#`.
    pub(super) fn named(&mut self, names: Vec<String>, what: &str) -> Result<u32> {
        if let Some(index) = self.cursor.optional_index()? {
            return Ok(index);
        }
        let at = self.cursor.index();
        let name = self.cursor.name(&format!("the {what}'s name"))?;
        match names.iter().position(|each| *each == name) {
            Some(index) => Ok(index as u32),
            None => Err(self.cursor.error_at(at, format!("no {what} has the name `{name}`"))),
        }
    }
}
