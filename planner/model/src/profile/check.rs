// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values of a profile that contradict each other.

use super::{Profile, SECTIONS};

/// Largest number of requests of all clients in flight.
const IN_FLIGHT_MAX: f64 = 65_536.0;

impl Profile {
    /// Returns whether a parameter is in its range and contradicts no other one.
    pub fn is_possible(&self, name: &str) -> bool {
        let key = name.split_once('.').and_then(|(section, key)| {
            let (_, keys) = SECTIONS.iter().find(|(known, _)| *known == section)?;
            keys.iter().find(|known| known.name == key)
        });
        let is_in_range = |value| key.is_some_and(|key| (key.least..=key.most).contains(&value));
        self.value(name).is_some_and(is_in_range) && self.contradiction().is_none()
    }

    /// Returns the first parameter that contradicts another one, and the reason.
    pub(super) fn contradiction(&self) -> Option<(&'static str, String)> {
        let Self { nic, pcie, network, .. } = self;
        let reserved = nic.cores_for_host + nic.cores_for_soc;
        if reserved > nic.cores {
            let reason = format!(
                "together with nic.cores_for_soc, {reserved} cores are reserved of {}",
                nic.cores
            );
            return Some(("nic.cores_for_host", reason));
        }
        for (field, cores, end) in [
            ("nic.cores_for_host", nic.cores_for_host, "the device's processor"),
            ("nic.cores_for_soc", nic.cores_for_soc, "the host"),
        ] {
            if cores >= nic.cores {
                let reason = format!("no core of nic.cores is left for requests to {end}");
                return Some((field, reason));
            }
        }
        for (field, mtu) in [("pcie.mtu_host", pcie.mtu_host), ("pcie.mtu_soc", pcie.mtu_soc)] {
            if !(mtu as u64).is_power_of_two() || mtu.fract() != 0.0 {
                return Some((field, format!("{mtu} is not a power of two")));
            }
        }
        let client = &self.client;
        let in_flight = client.machines * client.threads * client.window;
        if in_flight > IN_FLIGHT_MAX {
            let reason = format!(
                "client.machines, client.threads and client.window allow {in_flight} requests in \
                 flight; at most {IN_FLIGHT_MAX} can be simulated"
            );
            return Some(("client.window", reason));
        }
        if nic.untracked > network.rate {
            let reason = format!("it is more than network.rate, {} Gbps", network.rate);
            return Some(("nic.untracked", reason));
        }
        None
    }
}
