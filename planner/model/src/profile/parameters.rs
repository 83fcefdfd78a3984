// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parameters of a device's profile: one table, from which types, reader and documentation
//! follow.

use crate::parameters::{profile, section};

profile! {
    /// A device with its host and the machines of its clients.
    Profile, "device", "`freeport plan profile` prints a complete profile";

    /// The network between clients and the device.
    network: Network,
    /// The NIC cores of the device.
    nic: Nic,
    /// The plain RDMA NIC that the device is compared with.
    rnic: Rnic,
    /// The PCIe switch in the device.
    switch: Switch,
    /// Packets on PCIe and on the internal link.
    pcie: Pcie,
    /// The link between NIC cores and switch.
    pcie1: Link,
    /// The link between switch and host; of a plain NIC, the link between NIC and host.
    pcie0: Link,
    /// The link between switch and the device's processor.
    internal: Link,
    /// The host, its processor and memory.
    host: End,
    /// The device's processor and its memory.
    soc: End,
    /// The engine that copies between host and the device's processor past the NIC cores.
    dma: Dma,
    /// The machines of clients.
    client: Client,
}

section! {
    /// The network between clients and the device.
    Network {
        /// Rate of the device's port in each direction.
        rate: "Gbps", 1..10_000;
        /// Payload of the longest packet.
        mtu: "B", 256..65_536;
        /// Headers and checks of each packet.
        header: "B", 0..512;
        /// Time from one NIC to the other, in one direction.
        latency: "ns", 0..100_000;
    }
}

section! {
    /// The NIC cores of a device, which carry out all operations of RDMA.
    Nic {
        /// Number of requests that are processed at the same time.
        cores: "count", 1..4096;
        /// Cores among them that only requests to the host may use.
        cores_for_host: "count", 0..4096;
        /// Cores among them that only requests to the device's processor may use.
        cores_for_soc: "count", 0..4096;
        /// Time of a core for a request without payload.
        request: "ns", 1..100_000;
        /// Additional time of a core for reading memory.
        read: "ns", 0..100_000;
        /// Additional time of a core for writing memory.
        write: "ns", 0..100_000;
        /// Additional time of a core for a message, which needs a receive buffer, and its answer.
        message: "ns", 0..100_000;
        /// Additional time of a core for a request between two ends of the machine, which it both
        /// sends and receives.
        inside: "ns", 0..100_000;
        /// Rate of data between the two ends of one machine.
        loopback: "Gbps", 1..10_000;
        /// Bytes of one read from the processor's memory of which the NIC keeps track.
        tracked: "MB", 0.001..100_000;
        /// Rate of a read from the processor's memory beyond what is tracked.
        untracked: "Gbps", 0.1..10_000;
        /// Fetches of requests in flight at the same time, after a doorbell for several requests.
        fetches: "count", 1..4096;
        /// Requests that one fetch brings.
        requests_per_fetch: "count", 1..1024;
    }
}

section! {
    /// A plain RDMA NIC: the same NIC cores without a switch, connected to the host by the link
    /// `pcie0`.
    Rnic {
        /// Number of requests that are processed at the same time.
        cores: "count", 1..4096;
        /// Time of a core of the host for a message and its answer.
        echo: "ns", 1..1_000_000;
    }
}

section! {
    /// A PCIe switch.
    Switch {
        /// Time of one pass.
        pass: "ns", 0..100_000;
        /// Passes of a message and its answer that nothing else overlaps.
        message_passes: "count", 0..4;
    }
}

section! {
    /// Packets on PCIe and on the internal link.
    Pcie {
        /// Payload of the longest packet to and from the host's memory.
        mtu_host: "B", 64..4096;
        /// Payload of the longest packet to and from the processor's memory.
        mtu_soc: "B", 64..4096;
        /// Header, framing and check of each packet.
        header: "B", 0..256;
        /// Payload that one read request asks for.
        read_request: "B", 64..4096;
    }
}

section! {
    /// A link inside the machine.
    Link {
        /// Rate in each direction.
        rate: "Gbps", 1..10_000;
        /// Time in one direction.
        latency: "ns", 0..100_000;
    }
}

section! {
    /// An end of paths in the machine: a processor with its memory.
    End {
        /// Cores of the processor.
        cores: "count", 1..4096;
        /// Further cores that post requests; 0 if those that answer messages post as well.
        posting_cores: "count", 0..4096;
        /// Time of a core for posting a request.
        post: "ns", 0..1_000_000;
        /// Time of a core for a doorbell, which is rung for each batch of requests.
        doorbell: "ns", 0..1_000_000;
        /// Time from the arrival of a completion until the requester continues.
        completion: "ns", 0..1_000_000;
        /// Time of a core for a message and its answer.
        echo: "ns", 1..1_000_000;
        /// Time from the arrival of a message until a core has it, apart from queues.
        notice: "ns", 0..1_000_000;
        /// Read requests on the bus that the NIC may have in flight.
        reads: "count", 1..65_536;
        /// Write requests on the bus that the NIC may have in flight.
        writes: "count", 1..65_536;
        /// Time of a read in the memory system.
        read: "ns", 0..100_000;
        /// Time of a write in the memory system.
        write: "ns", 0..100_000;
        /// Memory channels.
        channels: "count", 1..1024;
        /// Rate of a channel.
        channel_rate: "Gbps", 1..10_000;
        /// Time of a channel for a write, at least.
        channel_write: "ns", 0..100_000;
        /// Banks of a channel.
        banks: "count", 1..1024;
        /// Time that an access occupies a bank.
        bank_busy: "ns", 0..100_000;
        /// Bytes that lie in one bank before the next one follows.
        bank_bytes: "B", 64..1_048_576;
        /// Range of addresses that a cache in front of the memory holds; 0 for no cache.
        cached: "MB", 0..100_000;
    }
}

section! {
    /// An engine that copies between host and the device's processor.
    Dma {
        /// Copies at the same time.
        engines: "count", 1..1024;
        /// Time of an engine for a copy, in addition to that for its bytes.
        copy: "ns", 1..1_000_000;
        /// Rate of the engines together.
        rate: "Gbps", 0.1..10_000;
        /// Time of a core for posting a copy.
        post: "ns", 0..1_000_000;
    }
}

section! {
    /// Machines of clients.
    Client {
        /// Number of machines.
        machines: "count", 1..1024;
        /// Threads of a machine that post requests.
        threads: "count", 1..1024;
        /// Requests that a thread has in flight.
        window: "count", 1..65_536;
        /// Time of a thread for posting a request.
        post: "ns", 0..1_000_000;
        /// Time of a thread for a doorbell.
        doorbell: "ns", 0..1_000_000;
        /// Time of the machine's NIC for a request, and again for its answer.
        nic: "ns", 0..100_000;
        /// Time from the arrival of an answer until the thread continues.
        completion: "ns", 0..1_000_000;
        /// Additional time if several requests were posted with one doorbell, and the NIC has to
        /// fetch them.
        fetch: "ns", 0..100_000;
        /// Rate of a machine's port in each direction.
        rate: "Gbps", 1..10_000;
    }
}
