// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The event that runs a program, from the name of its section.

use super::ProgramKind;

impl ProgramKind {
    /// Parses a section name as libbpf does, and as it did before it became strict, when any name
    /// that begins with `xdp` was accepted. A leading `?` means that the program is not loaded by
    /// default.
    pub fn of_section(section: &str) -> Self {
        let name = section.strip_prefix('?').unwrap_or(section);
        match name {
            "xdp/devmap" | "xdp.frags/devmap" => Self::XdpDevmap,
            "xdp/cpumap" | "xdp.frags/cpumap" => Self::XdpCpumap,
            _ if name.starts_with("xdp_devmap") => Self::XdpDevmap,
            _ if name.starts_with("xdp_cpumap") => Self::XdpCpumap,
            _ if name.starts_with("xdp") => Self::Xdp,
            _ => Self::Other(name.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_named_as_libbpf_takes_them() {
        use ProgramKind::{Xdp, XdpCpumap, XdpDevmap};
        for (section, kind) in [
            ("xdp", Xdp),
            ("?xdp", Xdp),
            ("xdp.frags", Xdp),
            ("xdp1", Xdp),
            ("xdp/some_name", Xdp),
            ("xdp.frags/devmap", XdpDevmap),
            ("xdp_devmap/egress", XdpDevmap),
            ("xdp/cpumap", XdpCpumap),
        ] {
            assert_eq!(ProgramKind::of_section(section), kind, "{section}");
        }
        let other = ProgramKind::Other("classifier".to_owned());
        assert_eq!(ProgramKind::of_section("classifier"), other);
    }
}
