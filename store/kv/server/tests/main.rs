// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server and its clients, on loopback.

mod basics;
mod blocking;
mod client;
mod ending;
mod history;
mod pubsub;
mod slow;
mod vanishing;
mod workers;
