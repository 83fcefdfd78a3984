// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions on values of the key-value engine: scalars, and vectors of equal elements
//! (KV-Direct 5.2.2, table of operations).
