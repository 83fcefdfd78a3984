// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of RESP.

mod reference;
mod requests;
mod server;
mod speed;
mod values;
