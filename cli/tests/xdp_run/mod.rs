// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp run` on the programs of the repository and on small ones, with captures written by
//! the tests.

mod kernel;
mod maps;
mod mistakes;
mod native;
mod outside;
mod packets;
mod place;
mod vliw;
