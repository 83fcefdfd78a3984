// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Analytic bounds of the off-path SmartNIC study (5.2), as functions of a profile. Rates are in
//! Gbit/s of payload, ratios are compressed by original size.

use crate::profile::Profile;

/// Returns the bandwidth that paths between host and processor may use without slowing clients
/// down: the limit of PCIe minus that of the network.
pub fn path3_budget(profile: &Profile) -> f64 {
    (profile.pcie1.rate - profile.network.rate).max(0.0)
}

/// Returns the bound of file writes that the processor reads from the host over path 3, compresses
/// to `ratio` and replicates (A1): data leave over the network once compressed, and pass the link
/// to the NIC cores twice, the second time compressed.
pub fn replicate_over_path3(profile: &Profile, ratio: f64) -> f64 {
    (profile.network.rate / ratio).min(profile.pcie1.rate / (1.0 + ratio))
}

/// Returns the bound of the same with DMA between host and processor (A2).
pub fn replicate_over_dma(profile: &Profile, ratio: f64) -> f64 {
    let links = profile.pcie1.rate.min(profile.pcie0.rate).min(profile.dma.rate);
    links.min(profile.network.rate / ratio)
}

/// Returns the bound of file writes that the host sends to the backup itself (A3).
pub fn replicate_from_host(profile: &Profile) -> f64 {
    profile.network.rate.min(profile.pcie0.rate)
}

/// Returns the compression ratio below which A1 is better than A3; zero or less if it never is.
pub fn ratio_for_path3(profile: &Profile) -> f64 {
    profile.pcie1.rate / profile.network.rate - 1.0
}

/// Returns the share of network traffic that compression saves if a share `uncompressed` of all
/// data is sent as it is (A2 with A3).
pub fn saving(uncompressed: f64, ratio: f64) -> f64 {
    (1.0 - uncompressed) * (1.0 - ratio)
}

/// Returns the bound of bulk transfers between clients and the machine.
pub fn bulk(profile: &Profile) -> f64 {
    profile.network.rate.min(profile.pcie1.rate)
}

/// Returns packets per second on all PCIe links together, in millions, at the network's full rate
/// with packets of these sizes for each crossing.
pub fn packet_rate(profile: &Profile, mtus: &[f64]) -> f64 {
    let bytes_per_us = profile.network.rate * 1000.0 / 8.0;
    mtus.iter().map(|mtu| bytes_per_us / mtu).sum()
}
