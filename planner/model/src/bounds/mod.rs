// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bounds that no simulation exceeds: those of the study, and those of each resource on a way.

mod limits;
mod study;

pub use limits::{Limit, limit_in, limits, shares, step_shares, step_time};
pub use study::{
    bulk, packet_rate, path3_budget, ratio_for_path3, replicate_from_host, replicate_over_dma,
    replicate_over_path3, saving,
};
