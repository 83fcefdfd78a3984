// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of rings from outside: one binary, since each is linked anew. `orderings`, where loom
//! schedules the threads, and `no_panic`, which reads what is made of a ring, are others.

mod hostile;
mod memory;
mod model;
mod model_check;
mod random_operations;
mod second_process;
mod shared;
mod shared_queue;
mod two_threads;
