// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the monitor from outside, in one binary, since each is linked separately. `outside` is
//! another binary because it tests how its own process looks.

mod changes;
mod confinement;
mod harness;
mod hostile;
mod pairing;
mod passing;
mod place;
mod policy;
mod shares;
mod statistics;
