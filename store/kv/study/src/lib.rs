// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Studies of the key-value engine: workloads, memory accesses per operation, the choice of its
//! parameters, and rival hash tables (KV-Direct 5.3).
