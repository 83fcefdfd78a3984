// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations of the host on a running program: it feeds and collects at the endpoints, sends
//! signals, calls methods, reads and writes variables and tables, and holds instances at
//! breakpoints.

use super::channel::Token;
use super::endpoint::{InputEnd, OutputEnd};
use super::packet::PacketBuffer;
use super::{Error, Interpreter};
use crate::oracle::{HostAction, TableEntries};
use crate::{Bits, Direction, Element, EndpointId, InstanceId, Item, ObjectId, TableId, flit};

impl Interpreter<'_> {
    /// Finds the instance of that name.
    pub fn instance(&self, name: &str) -> Option<InstanceId> {
        let at = self.instances.iter().position(|instance| instance.name == name)?;
        Some(InstanceId::new(at))
    }

    /// Finds the endpoint of that name.
    pub fn endpoint(&self, name: &str) -> Option<EndpointId> {
        let mut endpoints = self.program.graph.endpoints.iter();
        Some(EndpointId::new(endpoints.position(|endpoint| endpoint.name == name)?))
    }

    /// Returns whether an item fed to an endpoint still waits for room in its channel.
    pub fn is_holding(&self, endpoint: EndpointId) -> bool {
        let is_input = self.program.graph.endpoints[endpoint.index()].direction == Direction::Into;
        is_input && !self.inputs[self.endpoints[endpoint.index()]].queue.is_empty()
    }

    /// Feeds a packet to an endpoint into the graph; on a flit channel it is cut into flits, of
    /// which an empty packet has none.
    ///
    /// # Errors
    /// An endpoint out of the graph, or one of records.
    pub fn feed_packet(&mut self, endpoint: EndpointId, packet: &[u8]) -> Result<(), Error> {
        let item = self.program.graph.endpoints[endpoint.index()].item;
        let given = || "a packet".to_owned();
        match item {
            Item::Packet { .. } => {
                let token = Token::Packet(PacketBuffer::new(packet));
                self.input(endpoint, given)?.queue.push_back(token);
            }
            Item::Flit => {
                let flits = flit::cut(packet).into_iter().map(Token::Bits);
                self.input(endpoint, given)?.queue.extend(flits);
            }
            Item::Bits(_) => return Err(self.mismatch(endpoint, given())),
        }
        Ok(())
    }

    /// Feeds a flit or a record to an endpoint into the graph.
    ///
    /// # Errors
    /// An endpoint out of the graph, or one of packets, or of another width.
    pub fn feed_item(&mut self, endpoint: EndpointId, item: Bits) -> Result<(), Error> {
        let given = || format!("{} bits", item.width());
        let wanted = self.program.graph.endpoints[endpoint.index()].item.value_type();
        if wanted.bits() != Some(item.width()) {
            return Err(self.mismatch(endpoint, given()));
        }
        self.input(endpoint, given)?.queue.push_back(Token::Bits(item.clone()));
        Ok(())
    }

    /// Returns the whole packets that have left an endpoint since the last call.
    ///
    /// # Errors
    /// An endpoint into the graph, or one of records.
    pub fn take_packets(&mut self, endpoint: EndpointId) -> Result<Vec<Vec<u8>>, Error> {
        let item = self.program.graph.endpoints[endpoint.index()].item;
        if matches!(item, Item::Bits(_)) {
            return Err(self.mismatch(endpoint, "a request for packets".into()));
        }
        Ok(self.output(endpoint)?.take_packets())
    }

    /// Returns the items that have left an endpoint since the last call, a packet as its
    /// [bits](super::packet_bits).
    ///
    /// # Errors
    /// An endpoint into the graph.
    pub fn take_items(&mut self, endpoint: EndpointId) -> Result<Vec<Bits>, Error> {
        Ok(self.output(endpoint)?.take_items())
    }

    /// Makes an endpoint out of the graph refuse a read with a probability of `percent` percent,
    /// drawn from `seed`; with 100 it never reads.
    ///
    /// # Errors
    /// An endpoint into the graph.
    pub fn stall_output(
        &mut self,
        endpoint: EndpointId,
        percent: u8,
        seed: u64,
    ) -> Result<(), Error> {
        self.output(endpoint)?.stall(percent, seed);
        Ok(())
    }

    /// Sends a signal to an instance, between firings; returns its answer.
    ///
    /// # Errors
    /// An instance without a signal handler; a signal of the wrong width; a replay.
    pub fn signal(&mut self, instance: InstanceId, signal: Bits) -> Result<Bits, Error> {
        let answer = self.act_for_host(instance, HostAction::Signal(signal))?;
        Ok(answer.unwrap_or_else(|| Bits::zero(crate::SIGNAL_BITS)))
    }

    /// Calls a method of an instance, between firings; returns its result, if it has one.
    ///
    /// # Errors
    /// An unknown method; arguments that do not match its parameters; a replay.
    pub fn call_method(
        &mut self,
        instance: InstanceId,
        method: &str,
        args: Vec<Bits>,
    ) -> Result<Option<Bits>, Error> {
        let mut methods = self.element_for_host(instance)?.methods.iter();
        let at = methods.position(|it| it.name == method);
        let at = at.ok_or_else(|| self.unknown(instance, &format!("method {method}")))?;
        self.act_for_host(instance, HostAction::Method(at, args))
    }

    /// Returns element `index` of a state variable.
    ///
    /// # Errors
    /// An unknown variable or element, or one that the host may not access.
    pub fn read_variable(
        &self,
        instance: InstanceId,
        name: &str,
        index: u64,
    ) -> Result<Bits, Error> {
        let object = self.visible_object(instance, name)?;
        let value = self.instances[instance.index()].objects[object.index()].element(index);
        value.ok_or_else(|| self.unknown(instance, &format!("element {index} of {name}")))
    }

    /// Writes element `index` of a state variable, between firings.
    ///
    /// # Errors
    /// As for [`read_variable`](Self::read_variable); a value of the wrong width; a replay.
    pub fn write_variable(
        &mut self,
        instance: InstanceId,
        name: &str,
        index: u64,
        value: Bits,
    ) -> Result<(), Error> {
        let old = self.read_variable(instance, name, index)?;
        if old.width() != value.width() {
            return Err(Error::Mismatch {
                what: format!("{}.{name}", self.instances[instance.index()].name),
                wanted: format!("{} bits", old.width()),
                given: format!("{} bits", value.width()),
            });
        }
        let object = self.visible_object(instance, name)?;
        self.act_for_host(instance, HostAction::Write { object, index, value })?;
        Ok(())
    }

    /// Returns the value that a key matches in a table. This is not a use of the entry: an LRU
    /// table keeps its order.
    ///
    /// # Errors
    /// An unknown table; a key of the wrong width.
    pub fn table_lookup(
        &self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
    ) -> Result<Option<Bits>, Error> {
        let table = self.table_named(instance, table)?;
        self.check_table(instance, table, key, None)?;
        Ok(self.instances[instance.index()].tables[table.index()].peek(key))
    }

    /// Sets the value under a key, between firings; returns false if there is no room or the key is
    /// invalid.
    ///
    /// # Errors
    /// An unknown table; a key or value of the wrong width; a replay.
    pub fn table_update(
        &mut self,
        instance: InstanceId,
        table: &str,
        key: Bits,
        value: Bits,
    ) -> Result<bool, Error> {
        let table = self.table_named(instance, table)?;
        let action = HostAction::TableUpdate { table, key, value };
        Ok(self.act_for_host(instance, action)?.is_some_and(|done| !done.is_zero()))
    }

    /// Removes the entry under a key, between firings; returns false if there is none.
    ///
    /// # Errors
    /// As for [`table_update`](Self::table_update).
    pub fn table_delete(
        &mut self,
        instance: InstanceId,
        table: &str,
        key: Bits,
    ) -> Result<bool, Error> {
        let table = self.table_named(instance, table)?;
        let action = HostAction::TableDelete { table, key };
        Ok(self.act_for_host(instance, action)?.is_some_and(|done| !done.is_zero()))
    }

    /// Returns all entries of a table.
    ///
    /// # Errors
    /// An unknown table.
    pub fn table_entries(&self, instance: InstanceId, table: &str) -> Result<TableEntries, Error> {
        let table = self.table_named(instance, table)?;
        Ok(self.instances[instance.index()].tables[table.index()].entries())
    }

    /// Sets whether an instance is held after a firing that passed a breakpoint.
    pub fn set_breakpoints_enabled(&mut self, enabled: bool) {
        self.breakpoints_enabled = enabled;
        if !enabled {
            self.instances.iter_mut().for_each(|instance| instance.held_at = None);
        }
    }

    /// Resumes an instance from its breakpoint.
    pub fn resume(&mut self, instance: InstanceId) {
        self.instances[instance.index()].held_at = None;
    }

    /// Stops an instance permanently after this many firings that did something, to replay a record
    /// that was stopped while it could have continued.
    pub fn limit_firings(&mut self, instance: InstanceId, firings: u64) {
        self.instances[instance.index()].firing_limit = firings;
    }

    fn act_for_host(&mut self, id: InstanceId, action: HostAction) -> Result<Option<Bits>, Error> {
        if self.is_replay {
            return Err(Error::HostInReplay);
        }
        self.element_for_host(id)?;
        self.act(id, action)
    }

    /// Returns the element of an instance that the host selects by number.
    fn element_for_host(&self, id: InstanceId) -> Result<&Element, Error> {
        let graph = &self.program.graph;
        let instance = graph.instances.get(id.index());
        instance.map(|instance| self.program.element(instance.element)).ok_or_else(|| {
            let what = format!("instance {}", id.index());
            Error::Unknown { instance: self.program.name.clone(), what }
        })
    }

    fn table_named(&self, instance: InstanceId, name: &str) -> Result<TableId, Error> {
        let mut tables = self.element_for_host(instance)?.tables.iter();
        let at = tables.position(|table| table.name == name);
        at.map(TableId::new).ok_or_else(|| self.unknown(instance, &format!("table {name}")))
    }

    fn visible_object(&self, instance: InstanceId, name: &str) -> Result<ObjectId, Error> {
        let mut objects = self.element_for_host(instance)?.state.iter();
        let at = objects.position(|object| object.name == name && object.host_visible);
        let unknown = || self.unknown(instance, &format!("variable {name} open to the host"));
        at.map(ObjectId::new).ok_or_else(unknown)
    }

    fn input(
        &mut self,
        endpoint: EndpointId,
        given: impl FnOnce() -> String,
    ) -> Result<&mut InputEnd, Error> {
        if self.program.graph.endpoints[endpoint.index()].direction != Direction::Into {
            return Err(self.mismatch(endpoint, given()));
        }
        Ok(&mut self.inputs[self.endpoints[endpoint.index()]])
    }

    fn output(&mut self, endpoint: EndpointId) -> Result<&mut OutputEnd, Error> {
        if self.program.graph.endpoints[endpoint.index()].direction != Direction::OutOf {
            return Err(self.mismatch(endpoint, "a request to read".into()));
        }
        Ok(&mut self.outputs[self.endpoints[endpoint.index()]])
    }

    fn mismatch(&self, endpoint: EndpointId, given: String) -> Error {
        let endpoint = &self.program.graph.endpoints[endpoint.index()];
        let what = endpoint.name.clone();
        let wanted = match endpoint.direction {
            Direction::Into => format!("{:?} in", endpoint.item),
            Direction::OutOf => format!("{:?} out", endpoint.item),
        };
        Error::Mismatch { what, wanted, given }
    }
}
