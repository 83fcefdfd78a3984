// SPDX-License-Identifier: Apache-2.0 OR MIT
//! XDP programs for a small processor with several lanes (hXDP's Sephirot): eBPF in, rows of
//! [operations](operation) out.

pub mod check;
pub mod encode;
pub mod image;
pub mod machine;
pub mod operation;
