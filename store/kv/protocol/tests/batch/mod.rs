// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The batched protocol: every flag, every truncation, and the sizes that its page promises.

mod headers;
mod hello;
mod operations;
mod plain;
mod replies;
mod sizes;
mod speed;
