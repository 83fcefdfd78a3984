// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parameters of a machine that was measured.

use crate::parameters::{profile, section};

profile! {
    /// A machine, with its path over shared memory between two processes.
    Machine, "machine", "`freeport plan probe --out FILE` writes a complete profile";

    /// Extent of the measurement, which limits estimates.
    measured: Measured,
    /// Caches.
    cache: Cache,
    /// Reads of the other process's memory.
    read: Copying,
    /// Writes to the other process's memory.
    write: Copying,
    /// Waiting of a read for data, before the next request is posted.
    wait: Wait,
    /// Atomic operations on a word of the other process's memory.
    atomic: Atomic,
    /// Messages to the other process, and its answers of the same length.
    message: Message,
    /// All cores together.
    together: Together,
}

section! {
    /// Extent of the measurement, which limits estimates.
    Measured {
        /// Cores that the processes could use.
        cores: "count", 1..4096;
        /// Largest payload of one-sided requests.
        payload: "B", 8..1_073_741_824;
        /// Largest payload of messages.
        message: "B", 8..1_073_741_824;
        /// Largest range of addresses.
        range: "KiB", 64..1_073_741_824;
        /// Most requests that were posted before their completions were polled.
        batch: "count", 1..4096;
        /// Most threads that posted requests at the same time.
        threads: "count", 1..4096;
    }
}

section! {
    /// Caches. The share of random addresses that a cache holds is its size by their range.
    Cache {
        /// Size of the nearest data cache of a core.
        near: "KiB", 1..1_048_576;
        /// Size of the largest cache that a core has by itself.
        middle: "KiB", 1..16_777_216;
        /// Part of the last-level cache that this machine gets.
        last: "KiB", 1..1_073_741_824;
    }
}

section! {
    /// One-sided copies between the memories of two processes, by the core that posts them.
    Copying {
        /// Time to post a request and to poll its completion, in a long batch.
        post: "ns", 0.01..1_000_000;
        /// Additional time if requests are posted one by one.
        alone: "ns", 0..1_000_000;
        /// Additional time if only the last-level cache holds the address, in a long batch.
        last: "ns", 0..1_000_000;
        /// Additional time for such an address if requests are posted one by one.
        last_alone: "ns", 0..1_000_000;
        /// Additional time if only memory holds the address, in a long batch.
        memory: "ns", 0..1_000_000;
        /// Additional time for such an address if requests are posted one by one.
        memory_alone: "ns", 0..1_000_000;
        /// Time for a byte that the nearest cache holds.
        near_byte: "ps", 0..1_000_000;
        /// Time for a byte that the core's largest cache holds.
        middle_byte: "ps", 0..1_000_000;
        /// Time for a byte that the last-level cache holds.
        last_byte: "ps", 0..1_000_000;
        /// Time for a byte that memory holds.
        memory_byte: "ps", 0..1_000_000;
        /// Additional time for a byte if the own buffer is too large for the nearest cache, and
        /// the other side's bytes are in caches of the core.
        own_middle_byte: "ps", 0..1_000_000;
        /// The same if the other side's bytes are farther away, which hides some of it.
        own_far_byte: "ps", 0..1_000_000;
        /// Additional time for a byte if the own buffer is too large for the core's caches.
        own_last_byte: "ps", 0..1_000_000;
        /// Bytes of a page of the last-level cache or of memory after which the core has fetched
        /// the rest.
        ahead: "B", 512..4096;
    }
}

section! {
    /// Time from the request until the first bytes of a read are there, in addition to that for
    /// posting it. Reads that do not wait for each other hide most of it.
    Wait {
        /// If only the last-level cache holds them.
        last: "ns", 0..1_000_000;
        /// If only memory holds them.
        memory: "ns", 0..1_000_000;
    }
}

section! {
    /// Atomic operations on a word, by the core that posts them.
    Atomic {
        /// Time to post a request and to poll its completion, in a long batch.
        post: "ns", 0.01..1_000_000;
        /// Additional time if requests are posted one by one.
        alone: "ns", 0..1_000_000;
        /// Additional time if only the last-level cache holds the word, in a long batch.
        last: "ns", 0..1_000_000;
        /// Additional time for such a word if requests are posted one by one.
        last_alone: "ns", 0..1_000_000;
        /// Additional time if only memory holds the word, in a long batch.
        memory: "ns", 0..1_000_000;
        /// Additional time for such a word if requests are posted one by one.
        memory_alone: "ns", 0..1_000_000;
    }
}

section! {
    /// Messages between two processes that poll on a core each, and answers of the same length.
    Message {
        /// Time from a message to its answer, without bytes.
        trip: "ns", 0.01..1_000_000_000;
        /// Additional time for each byte of a message, there and back.
        trip_byte: "ps", 0..10_000_000;
        /// Time for each further message of a batch, without bytes.
        next: "ns", 0..1_000_000_000;
        /// Additional time for each of the first 1024 bytes of such a message.
        next_first_byte: "ps", 0..10_000_000;
        /// Additional time for each byte of such a message.
        next_byte: "ps", 0..10_000_000;
        /// Time to give the core to the other side, where both share one.
        turn: "ns", 0..1_000_000_000;
    }
}

section! {
    /// How many single cores all cores together are worth.
    Together {
        /// For what needs only caches of the cores.
        near: "cores", 0.1..4096;
        /// For what comes from the last-level cache.
        last: "cores", 0.1..4096;
        /// For what comes from memory.
        memory: "cores", 0.1..4096;
    }
}
