// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport doctor --report`: a description of build and machine for a bug report. It contains
//! nothing that identifies the user: no host name, no addresses, and of paths that are not part of
//! the system only the last name.

use super::{Finding, as_json, version_of};
use freeport_monitor::{Control, Error, Location};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;

/// Folders whose names are the same on many machines.
const SYSTEM_FOLDERS: [&str; 9] =
    ["/bin/", "/dev/", "/etc/", "/lib/", "/lib64/", "/proc/", "/sbin/", "/sys/", "/usr/"];

/// Files of the kernel whose values decide what a program may do.
const SETTINGS: [(&str, &str); 4] = [
    ("max_map_count", "/proc/sys/vm/max_map_count"),
    ("unprivileged_bpf_disabled", "/proc/sys/kernel/unprivileged_bpf_disabled"),
    ("ptrace_scope", "/proc/sys/kernel/yama/ptrace_scope"),
    ("max_user_namespaces", "/proc/sys/user/max_user_namespaces"),
];

/// Resource limits of a process.
const LIMITS: [(&str, libc::__rlimit_resource_t); 4] = [
    ("open_files", libc::RLIMIT_NOFILE),
    ("locked_memory_bytes", libc::RLIMIT_MEMLOCK),
    ("processes", libc::RLIMIT_NPROC),
    ("stack_bytes", libc::RLIMIT_STACK),
];

/// Prints the report.
pub fn print(findings: &[Finding], is_json: bool) {
    let report = report(findings);
    match is_json {
        true => println!("{report}"),
        false => print!("{}", text(&report)),
    }
}

fn report(findings: &[Finding]) -> Value {
    let mut checks = findings.iter().map(as_json).collect::<Vec<_>>();
    for check in &mut checks {
        if let Some(check) = check.as_object_mut() {
            // The same in every report.
            check.remove("meaning");
        }
    }
    let mut report = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": option_env!("FREEPORT_COMMIT"),
        "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
        "features": features(),
        "kernel": kernel(),
        "architecture": std::env::consts::ARCH,
        "distribution": distribution(),
        "processor": processor(),
        "processors": std::thread::available_parallelism().map_or(1, usize::from),
        "memory_kib": super::proc_value("/proc/meminfo", "MemTotal:")
            .and_then(|text| text.parse::<u64>().ok()),
        "limits": limits(),
        "tools": tools(),
        "monitor": monitor(),
        "checks": checks,
    });
    redact(&mut report);
    report
}

fn features() -> Vec<&'static str> {
    let features = [("card", cfg!(feature = "card")), ("kernel", cfg!(feature = "kernel"))];
    features.into_iter().filter(|(_, is_built)| *is_built).map(|(name, _)| name).collect()
}

fn kernel() -> Option<String> {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok();
    Some(format!("{} {}", read("ostype")?.trim(), read("osrelease")?.trim()))
}

fn distribution() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    // Processors of ARM have numbers instead of a name.
    value("model name").or_else(|| {
        Some(format!("implementer {}, part {}", value("CPU implementer")?, value("CPU part")?))
    })
}

/// Resource limits, the soft one and the hard one, and settings of the kernel.
fn limits() -> Value {
    let mut limits = Map::new();
    for (name, resource) in LIMITS {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the kernel fills the structure, which lives as long as the call.
        if unsafe { libc::getrlimit(resource, &mut limit) } == 0 {
            let value = |value| match value {
                libc::RLIM_INFINITY => json!("unlimited"),
                value => json!(value),
            };
            let both = json!([value(limit.rlim_cur), value(limit.rlim_max)]);
            limits.insert(name.to_owned(), both);
        }
    }
    for (name, path) in SETTINGS {
        if let Ok(text) = fs::read_to_string(path) {
            limits.insert(name.to_owned(), text.trim().into());
        }
    }
    Value::Object(limits)
}

/// Versions of programs that Freeport calls, or why one cannot be called.
fn tools() -> Value {
    let native = freeport_native::Options::default().compiler;
    let of_objects = std::env::var("FREEPORT_BPF_CLANG").unwrap_or_else(|_| "clang-19".into());
    let verilator = std::env::var("VERILATOR").unwrap_or_else(|_| "verilator".into());
    let tools = [
        ("clang", native.as_path()),
        ("clang_for_objects", Path::new(&of_objects)),
        ("verilator", Path::new(&verilator)),
    ];
    let version = |path| match version_of(path) {
        Ok(version) => version,
        Err(reason) => format!("cannot be run: {reason}"),
    };
    let tools = tools.map(|(name, path)| (name.to_owned(), Value::from(version(path))));
    Value::Object(tools.into_iter().collect())
}

fn monitor() -> String {
    match Control::at(Location::of_programs()).stats() {
        Ok(stats) => format!("running, {} members", stats["members"]),
        Err(Error::NoMonitor { .. }) => "not running".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn text(report: &Value) -> String {
    let word = |name: &str| match &report[name] {
        Value::Null => "unknown".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let features = report["features"].as_array().into_iter().flatten();
    let features: Vec<&str> = features.filter_map(Value::as_str).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    let mut lines = vec![
        (
            "freeport",
            format!("{}, {} build, commit {}", word("version"), word("profile"), word("commit")),
        ),
        ("features", features),
        ("kernel", format!("{} {}", word("kernel"), word("architecture"))),
        ("distribution", word("distribution")),
        ("processor", format!("{}, {} usable", word("processor"), word("processors"))),
        ("memory", format!("{} KiB", word("memory_kib"))),
    ];
    for (name, value) in report["limits"].as_object().into_iter().flatten() {
        let value = match value.as_array().map(Vec::as_slice) {
            Some([soft, hard]) => format!("{} of {}", plain(soft), plain(hard)),
            _ => plain(value),
        };
        lines.push(("limit", format!("{name} {value}")));
    }
    for (name, version) in report["tools"].as_object().into_iter().flatten() {
        lines.push(("tool", format!("{name}: {}", plain(version))));
    }
    lines.push(("monitor", word("monitor")));
    for check in report["checks"].as_array().into_iter().flatten() {
        let [name, state, seen] = ["name", "state", "seen"].map(|it| plain(&check[it]));
        lines.push(("check", format!("{state} {name}: {seen}")));
    }
    let lines = lines.iter().map(|(name, value)| format!("{name:<13} {value}\n"));
    lines.collect()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Removes from all texts what could identify the user.
fn redact(value: &mut Value) {
    match value {
        Value::String(text) => *text = without_folders(text, std::env::var("HOME").ok().as_deref()),
        Value::Array(values) => values.iter_mut().for_each(redact),
        Value::Object(members) => members.values_mut().for_each(redact),
        _ => {}
    }
}

/// A text in which paths have lost the folders that are not of the system.
fn without_folders(text: &str, home: Option<&str>) -> String {
    // A home folder may have spaces in its name.
    let text = match home.filter(|home| home.len() > 1) {
        Some(home) => text.replace(home, "~"),
        None => text.to_owned(),
    };
    let words = text.split_inclusive(|letter: char| letter.is_whitespace());
    let words = words.map(|word| {
        let begin = word.find(['/', '~']).unwrap_or(word.len());
        let (before, path) = word.split_at(begin);
        let is_path = path.starts_with('/') || path.starts_with("~/");
        // Before a path there may be a quote or a bracket; letters mean a URL or a fraction.
        let begins = before.chars().all(|letter| !letter.is_alphanumeric());
        let is_of_system = SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder));
        match path.rfind('/') {
            Some(end) if is_path && begins && !is_of_system => {
                format!("{before}...{}", &path[end..])
            }
            _ => word.to_owned(),
        }
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_their_folders_and_other_texts_stay() {
        let redacted = |text: &str| without_folders(text, Some("/home/A Person"));
        for (text, expected) in [
            ("/opt/me/lib/it.so; no monitor", ".../it.so; no monitor"),
            ("in `/home/A Person/x y`:", "in `.../x y`:"),
            ("at /run/user/1000/freeport/monitor.sock: none", "at .../monitor.sock: none"),
            ("read /proc/meminfo", "read /proc/meminfo"),
            ("5/s, https://x.y/z and a/b", "5/s, https://x.y/z and a/b"),
            ("\u{e9}/\u{e8} /\u{e9}", "\u{e9}/\u{e8} .../\u{e9}"),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }
}
