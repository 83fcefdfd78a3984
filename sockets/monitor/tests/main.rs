// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the monitor from outside: one binary, since each is linked anew. `outside` is another,
//! since what its process looks like is what it tests.

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
