// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp load` between network interfaces, with `map` and `stats` beside it.

mod captures;
mod counted;
mod ends;
mod firewall;
mod mistakes;
mod patch;
mod pins;
mod place;
