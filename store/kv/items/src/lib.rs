// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The items of a memcached server: requests of the text and meta protocols, carried out in the
//! memory of a key-value engine. There are no sockets: the server hands over received bytes, and
//! sends what was appended to its output.
//!
//! Each worker has its own [`Items`] and owns a part of the keys ([`keys_of`] says which keys a
//! request has). A worker that serves whole connections calls [`Items::serve`]; one that carries
//! out requests for others calls [`Items::execute`].
//!
//! ```
//! use freeport_kv_items::{Connection, Items, Next, Now, Options};
//!
//! let mut items = Items::new(Options::default())?;
//! let mut connection = Connection::new(items.options().limits);
//! let mut output = vec![];
//! let received = b"set k 0 0 2\r\n42\r\nget k\r\nincr k";
//! let served = items.serve(&mut connection, received, Now(1_700_000_000), &mut output);
//! assert_eq!(output, b"STORED\r\nVALUE k 0 2\r\n42\r\nEND\r\n");
//! // The last request is not complete.
//! assert_eq!((served.taken, served.next), (24, Next::Receive { needs: 7 }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod batch;
mod counters;
mod dump;
mod evict;
mod execute;
mod item;
mod items;
mod meta;
mod now;
mod number;
mod operator;
mod options;
mod pipeline;
mod route;
mod serve;
mod server;
mod stats;
mod store;
mod victim;

pub use counters::Counters;
pub use dump::Dump;
pub use execute::Control;
pub use items::Items;
pub use now::Now;
pub use options::Options;
pub use route::{Keys, keys_of};
pub use serve::{Connection, Next, Served, serve_untrusted};
pub use server::Server;
pub use stats::Statistics;
