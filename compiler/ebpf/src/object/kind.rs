// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What starts a program, by the name of its section.

use super::ProgramKind;

impl ProgramKind {
    /// As libbpf takes the names of sections, and as it did before it became strict: then any name
    /// that begins with `xdp` was one. A `?` before it says that the program is not always loaded.
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
