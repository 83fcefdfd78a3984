// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key-value engine (KV-Direct 5.2): a hash index of 64-byte buckets that hold small pairs
//! themselves, and blocks for larger ones.
