// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that is available to this process: by the system, and by limits of its control groups.

use std::fs;
use std::path::Path;

/// Folder of control groups.
const GROUPS: &str = "/sys/fs/cgroup";

/// Returns the available memory in bytes; none if the system does not say.
pub fn available() -> Option<u64> {
    let text = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let of_system = kib_after(&text("/proc/meminfo"), "MemAvailable:");
    let of_groups = below_limits(Path::new(GROUPS), &text("/proc/self/cgroup"));
    of_system.into_iter().chain(of_groups).min()
}

/// Returns the least memory that a group in the lines of `/proc/self/cgroup`, or a group around
/// it, may still use, in bytes.
fn below_limits(root: &Path, lines: &str) -> Option<u64> {
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        // The one hierarchy of version 2 has no controllers in its line.
        let (top, names) = if controllers.is_empty() {
            (root.to_owned(), ["memory.max", "memory.current"])
        } else if controllers.split(',').any(|controller| controller == "memory") {
            (root.join("memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes"])
        } else {
            return None;
        };
        let folder = top.join(path.trim_start_matches('/'));
        // A container may see its own group as the top, whatever the path says.
        let folders = folder.ancestors().take_while(|folder| folder.starts_with(&top));
        folders.filter_map(|folder| rest(folder, names)).min()
    };
    lines.lines().filter_map(of_line).min()
}

/// Returns what a group may still use; none without a limit.
fn rest(folder: &Path, [limit, usage]: [&str; 2]) -> Option<u64> {
    let number = |name| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    Some(number(limit)?.saturating_sub(number(usage)?))
}

/// Returns the bytes of a line such as `MemAvailable:  1024 kB`.
fn kib_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_what_is_available() {
        assert_eq!(kib_after("A: 1 kB\nMemAvailable:   24 kB\n", "MemAvailable:"), Some(24 << 10));
        assert!(available().is_some_and(|bytes| bytes > 0));
    }

    #[test]
    fn groups_limit_memory() {
        let root = std::env::temp_dir().join(format!("freeport-groups-{}", std::process::id()));
        let group = |path: &str, files: [(&str, &str); 2]| {
            let folder = root.join(path);
            fs::create_dir_all(&folder).expect("a folder");
            for (name, text) in files {
                fs::write(folder.join(name), text).expect("a file");
            }
        };
        group("outer", [("memory.max", "1000\n"), ("memory.current", "400\n")]);
        group("outer/inner", [("memory.max", "max\n"), ("memory.current", "300\n")]);
        group("memory", [("memory.limit_in_bytes", "90\n"), ("memory.usage_in_bytes", "100\n")]);
        assert_eq!(below_limits(&root, "0::/outer/inner\n"), Some(600));
        assert_eq!(below_limits(&root, "1:cpu:/outer\n0::/\n"), None);
        // The usage of a group may exceed its limit. A path outside of a container is not visible.
        assert_eq!(below_limits(&root, "4:memory:/elsewhere\n0::/outer\n"), Some(0));
        fs::remove_dir_all(root).expect("a folder");
    }
}
