// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The batched protocol on the keys that commands see.

mod model;
mod packet;
mod single;
mod watched;
