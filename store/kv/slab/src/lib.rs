// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory of a key-value engine: a region of reserved address space, and an allocator of blocks in
//! it (KV-Direct 5.3, slab allocator).
