// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One connection, packet by packet.

use crate::address::Address;
use crate::datagrams::{DATAGRAM_BYTES, Datagrams};
use crate::error::Error;
use crate::options::Options;
use crate::stream::StreamLink;
use crate::transport::Transport;
use freeport_kv_protocol::batch::{
    HEADER_BYTES_MAX, Header, Hello, HelloReply, Operation, PacketLimits, PacketWriter, Refused,
    Reply, ReplyReader, Status,
};
use std::ops::Range;

/// One connection to a server, packet by packet: for load generators, and for programs that decide
/// themselves when to send and when to wait. Values are not copied.
///
/// Operations are [pushed](Self::push) into a packet, [submitted](Self::submit) together, and
/// [received](Self::receive) as they come. Over TCP and the fabric, replies have the order of the
/// packets. Over UDP they may come in any order, in parts, and again if the packet was sent again.
///
/// After [`Error::Lost`] and [`Error::Protocol`] a pipeline is of no more use; over TCP and the
/// fabric, [`Error::TimedOut`] also ends it. Over UDP that means that one packet was lost.
///
/// ```no_run
/// use freeport_kv_client::{Options, Pipeline};
/// use freeport_kv_protocol::batch::Operation;
///
/// let address = "fabric:/run/freeport.sock".parse()?;
/// let mut pipeline = Pipeline::connect(&address, &Options::default())?;
/// for number in 0_u64..100 {
///     pipeline.push(&Operation::get(&number.to_le_bytes())).expect("so few fit into a packet");
/// }
/// pipeline.submit()?;
/// while let Some(received) = pipeline.receive()? {
///     for reply in received.replies {
///         assert_eq!(reply?.value, None);
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Pipeline {
    address: Address,
    link: Link,
    hello: HelloReply,
    limits: PacketLimits,
    retries: u32,
    /// The packet that is being written.
    packet: Vec<u8>,
    writer: Option<PacketWriter>,
    /// The packet changes nothing.
    is_read: bool,
    next_batch: u32,
}

#[derive(Debug)]
enum Link {
    Stream(StreamLink),
    Datagrams(Box<Datagrams>),
}

/// Replies that have come.
#[derive(Debug)]
pub struct Received<'a> {
    /// Number that [`Pipeline::submit`] returned for their packet.
    pub batch: u32,
    /// Number of the first reply in its packet: 0 except over UDP.
    pub first: u16,
    /// Number of replies.
    pub count: u16,
    /// All replies of the packet have come.
    pub is_last: bool,
    /// The replies, one after the other.
    pub replies: ReplyReader<'a>,
}

impl Pipeline {
    /// Connects, and logs in. Any worker of the server serves the connection.
    ///
    /// # Errors
    /// The server cannot be reached, is another program, or refuses the login.
    pub fn connect(address: &Address, options: &Options) -> Result<Self, Error> {
        Self::connect_to(address, options, None)
    }

    /// Connects, and logs in. If the server can, that worker serves the connection;
    /// [`worker`](Self::worker) says which does.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect).
    pub fn connect_to_worker(
        address: &Address,
        options: &Options,
        worker: u16,
    ) -> Result<Self, Error> {
        Self::connect_to(address, options, Some(worker))
    }

    fn connect_to(
        address: &Address,
        options: &Options,
        worker: Option<u16>,
    ) -> Result<Self, Error> {
        let stream =
            |transport| Link::Stream(StreamLink::new(address.clone(), options.timeout, transport));
        let (link, bytes) = match address {
            Address::Tcp(host) => (Transport::tcp(host, options).map(stream), options.packet_bytes),
            Address::Fabric(path) => {
                (Transport::fabric(path, options).map(stream), options.packet_bytes)
            }
            Address::Udp(host) => {
                let link = Datagrams::connect(address, host, options);
                let bytes = options.datagram_bytes.min(DATAGRAM_BYTES);
                (link.map(|link| Link::Datagrams(Box::new(link))), bytes)
            }
        };
        let connect = |source| Error::Connect { address: address.clone(), source };
        let mut pipeline = Self {
            address: address.clone(),
            link: link.map_err(connect)?,
            hello: HelloReply::default(),
            limits: PacketLimits { bytes, operations: options.packet_operations.max(1) },
            // Hello is sent again until the time-out.
            retries: u32::MAX,
            packet: Vec::new(),
            writer: None,
            is_read: true,
            next_batch: 0,
        };
        let hello = pipeline.log_in(options, worker).map_err(|error| match error {
            Error::Lost { source, .. } => connect(source),
            Error::TimedOut { .. } => connect(std::io::ErrorKind::TimedOut.into()),
            other => other,
        })?;
        pipeline.hello = hello;
        pipeline.retries = options.retries;
        let payload_limit = hello.payload_limit as usize;
        pipeline.limits.bytes = bytes.min(payload_limit.saturating_add(HEADER_BYTES_MAX));
        Ok(pipeline)
    }

    /// Sends hello, and waits for the reply.
    fn log_in(&mut self, options: &Options, worker: Option<u16>) -> Result<HelloReply, Error> {
        let Options { user, password, database, .. } = options;
        let (user, password) = (user.as_bytes(), password.as_bytes());
        let value = Hello { user, password, database: *database, worker }.value();
        let address = self.address.clone();
        let login = |text: String| {
            let (address, user) = (address.clone(), options.user.clone());
            Error::Login { address, user, text }
        };
        let protocol = |reason: String| Error::Protocol { address: address.clone(), reason };
        let is_written = self.push(&Operation::hello(user, &value));
        is_written.map_err(|refusal| login(refusal.to_string()))?;
        // A hello is not a read, but a second one only logs in again.
        self.is_read = true;
        self.submit()?;
        let received = self.receive()?.expect("a packet is in flight");
        let Reply { status, value } = match received.replies.last() {
            Some(Ok(reply)) => reply,
            Some(Err(error)) => return Err(protocol(error.to_string())),
            None => return Err(protocol("hello has no reply".to_owned())),
        };
        let value = value.unwrap_or(&[]);
        if status != Status::Done {
            return Err(login(String::from_utf8_lossy(value).into_owned()));
        }
        HelloReply::decode(value).ok_or_else(|| protocol("hello has another reply".to_owned()))
    }

    /// Address of the server.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Worker of the server that serves this connection.
    pub fn worker(&self) -> u16 {
        self.hello.worker
    }

    /// Number of workers of the server.
    pub fn workers(&self) -> u16 {
        self.hello.workers
    }

    /// Largest size of a packet.
    pub fn packet_limits(&self) -> PacketLimits {
        self.limits
    }

    /// Number of packets without all of their replies. Over TCP and the fabric, this counts those
    /// whose replies were not received by the program.
    pub fn in_flight(&self) -> usize {
        match &self.link {
            Link::Stream(link) => link.in_flight(),
            Link::Datagrams(link) => link.in_flight(),
        }
    }

    /// Number of operations in the packet that is being written.
    pub fn pushed(&self) -> u16 {
        self.writer.as_ref().map_or(0, PacketWriter::count)
    }

    /// Puts an operation into the packet that is being written.
    ///
    /// # Errors
    /// [`Refused::Full`] if the packet has to be submitted first. Nothing has changed then.
    #[inline]
    pub fn push(&mut self, operation: &Operation<'_>) -> Result<(), Refused> {
        if self.writer.is_none() {
            self.begin();
        }
        let writer = self.writer.as_mut().expect("a packet was begun");
        writer.push(&mut self.packet, operation)?;
        self.is_read &= operation.opcode.is_read();
        Ok(())
    }

    fn begin(&mut self) {
        self.packet.clear();
        self.is_read = true;
        let token = match self.link {
            Link::Datagrams(_) if self.hello.workers > 0 => Some(self.hello.token),
            _ => None,
        };
        let batch = self.next_batch;
        self.writer = Some(PacketWriter::begin(&mut self.packet, self.limits, batch, token));
    }

    /// Sends the packet that is being written, and returns its number. `None` means that it has no
    /// operations, and is not sent.
    ///
    /// # Errors
    /// The connection is lost, or the server took nothing for the time-out.
    pub fn submit(&mut self) -> Result<Option<u32>, Error> {
        let Some(writer) = self.writer.take_if(|writer| writer.count() > 0) else {
            return Ok(None);
        };
        let header = writer.finish(&mut self.packet);
        let batch = self.next_batch;
        self.next_batch = batch.wrapping_add(1);
        match &mut self.link {
            Link::Stream(link) => link.send(&self.packet, batch, header.count)?,
            Link::Datagrams(link) => {
                let retries = if self.is_read { self.retries } else { 0 };
                link.send(&mut self.packet, batch, header.count, retries)?;
            }
        }
        Ok(Some(batch))
    }

    /// Waits for replies. `None` means that no packet is in flight.
    ///
    /// # Errors
    /// The connection is lost, the server sent nothing for the time-out, or it sent something else
    /// than replies. [`Error::Packet`] is its error for one packet, which is no longer in flight.
    pub fn receive(&mut self) -> Result<Option<Received<'_>>, Error> {
        if self.in_flight() == 0 {
            return Ok(None);
        }
        let (batch, header, payload, is_last): (u32, Header, Range<usize>, bool);
        let payload = match &mut self.link {
            Link::Stream(link) => {
                (header, payload) = link.receive()?;
                (batch, is_last) = (header.batch, true);
                link.payload(payload)
            }
            Link::Datagrams(link) => {
                (batch, header, payload, is_last) = link.receive()?;
                link.payload(payload)
            }
        };
        if header.is_error {
            let text = String::from_utf8_lossy(payload).into_owned();
            return Err(Error::Packet { address: self.address.clone(), text });
        }
        let Header { first, count, .. } = header;
        let replies = ReplyReader::new(payload, count);
        Ok(Some(Received { batch, first, count, is_last, replies }))
    }
}
