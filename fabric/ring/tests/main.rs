// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the public interface of rings: one binary, since each is linked anew. `orderings`, in
//! which loom schedules the threads, and `no_panic`, which inspects the compiled code of a ring,
//! are separate.

mod hostile;
mod memory;
mod model;
mod model_check;
mod random_operations;
mod second_process;
mod shared;
mod shared_queue;
mod two_threads;
