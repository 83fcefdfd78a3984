// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport doctor`: checks each feature of the machine that Freeport uses, and reports what was
//! found and what happens without it. It changes nothing.

mod fabric;
mod parts;
mod report;
mod sockets;

use clap::Args;
use freeport_port::namespace::Namespace;
use freeport_port::{TapOptions, TapPort, XdpOptions, XdpPort};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// State of a feature.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Present,
    Limited,
    Missing,
}

/// The result of a check.
struct Finding {
    name: &'static str,
    state: State,
    /// Observation.
    seen: String,
    /// Uses of the feature, and the effect if it is missing.
    meaning: &'static str,
}

#[derive(Args)]
#[command(after_help = "Example:\n  freeport doctor\n  freeport doctor --json | jq .checks\n  \
    freeport doctor --report\n\n\
    The report names no user, host or address, and of paths outside of the system only the last \
    name.")]
pub struct Arguments {
    /// Print a description of this build and machine to paste into a bug report
    #[arg(long)]
    report: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the checks and prints the results. A missing feature is not a failure.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let findings = [
        parts::card(),
        parts::kernel(),
        compiler(),
        cores(),
        af_xdp(),
        tap(),
        bpf(),
        namespaces(),
        huge_pages(),
        memlock(),
        capabilities(),
        fabric::shared_memory(),
        fabric::descriptors(),
        sockets::acceleration(),
        sockets::monitor_rights(),
    ];
    match (arguments.report, arguments.json) {
        (true, is_json) => report::print(&findings, is_json),
        (false, true) => print_json(&findings),
        (false, false) => print_text(&findings),
    }
    Ok(ExitCode::SUCCESS)
}

fn print_text(findings: &[Finding]) {
    for finding in findings {
        let mark = match finding.state {
            State::Present => "ok     ",
            State::Limited => "limited",
            State::Missing => "missing",
        };
        println!("{mark}  {:<13} {}", finding.name, finding.seen);
        println!("{:24}{}", "", finding.meaning);
    }
    println!("\nThe reference interpreter needs none of these.");
}

fn print_json(findings: &[Finding]) {
    let checks: Vec<_> = findings.iter().map(as_json).collect();
    println!("{}", json!({ "checks": checks }));
}

fn as_json(finding: &Finding) -> Value {
    json!({
        "name": finding.name,
        "state": match finding.state {
            State::Present => "ok",
            State::Limited => "limited",
            State::Missing => "missing",
        },
        "seen": finding.seen,
        "meaning": finding.meaning,
    })
}

/// Compiles a line of C as native code uses it; a version alone does not show that it works.
fn compiler() -> Finding {
    let meaning = "compiles native code (`run`, `build`, `bench`); without it programs run with \
                   --on interpreter only. Install it with scripts/install.sh, or set CLANG";
    let compiler = freeport_native::Options::default().compiler;
    let name = compiler.display();
    let (state, seen) = match (version_of(&compiler), compiles(&compiler)) {
        (Ok(version), Ok(())) => (State::Present, version),
        (Ok(version), Err(reason)) => (State::Missing, format!("{version}, but {reason}")),
        (Err(reason), _) => (State::Missing, format!("{name}: {reason}")),
    };
    Finding { name: "compiler", state, seen, meaning }
}

fn version_of(compiler: &Path) -> Result<String, String> {
    let output = Command::new(compiler).arg("--version").output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("failed: {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn compiles(compiler: &Path) -> Result<(), String> {
    let mut command = Command::new(compiler);
    command.args(["-std=gnu23", "-x", "c", "-fsyntax-only", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        let line = b"#include <stdint.h>\nunsigned _BitInt(512) flit; uint64_t word;\n";
        // A compiler that exits early reports that by its status.
        let _ = input.write_all(line);
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let reason = "it does not compile C23 with wide integers: install clang-19 and libc6-dev";
    if status.success() { Ok(()) } else { Err(reason.to_owned()) }
}

fn cores() -> Finding {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let state = if count > 1 { State::Present } else { State::Limited };
    let meaning = "a graph runs on one core, or on those where its instances are placed; with a \
         single core, everything shares it";
    Finding { name: "cores", state, seen: format!("{count} usable"), meaning }
}

/// Opens two ports on a pair of virtual interfaces, in a temporary namespace.
fn af_xdp() -> Finding {
    let meaning = "fast ports on interfaces, xdp:IFACE; without it, use tap:NAME. The driver of a \
                   card may support more than the virtual interfaces of this check";
    let tried = in_a_namespace(|| {
        let pair = ["link", "add", "fp0", "up", "type", "veth", "peer", "name", "fp1"];
        let made = Command::new("ip").args(pair).stderr(Stdio::null()).status();
        if !made.map_err(|error| format!("ip cannot be run: {error}"))?.success() {
            return Err("no pair of virtual interfaces can be created".into());
        }
        let option = |name: &str| XdpOptions { ring_frames: 64, ..XdpOptions::new(name) };
        let ports = XdpPort::open_all(&["fp0", "fp1"].map(option));
        let ports = ports.map_err(|error| error.to_string())?;
        Ok(ports.first().map(|port| port.mode().manner()).unwrap_or_default())
    });
    let (state, seen) = match tried {
        Ok(seen) => (State::Present, seen),
        Err(reason) => (State::Missing, reason),
    };
    Finding { name: "AF_XDP", state, seen, meaning }
}

fn tap() -> Finding {
    let tried = in_a_namespace(|| {
        let options = TapOptions { interface: "fp0".into(), namespace: None };
        TapPort::open(&options).map(drop).map_err(|error| error.to_string())
    });
    let outcome = tried.map_err(io::Error::other);
    let meaning = "ports on interfaces of every kernel, tap:NAME";
    finding_of("TAP", outcome, "an interface was created", meaning)
}

fn in_a_namespace<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let namespace =
        Namespace::new().map_err(|error| format!("no network namespace for the check: {error}"));
    namespace?.with(work).map_err(|error| error.to_string())?
}

/// Loads a program that only returns 0, and unloads it.
fn bpf() -> Finding {
    const LOAD: libc::c_int = 5;
    const SOCKET_FILTER: u32 = 1;
    let code: [u64; 2] = [0x0000_0000_0000_00b7, 0x0000_0000_0000_0095];
    let licence = c"GPL";
    #[repr(C)]
    struct Attributes {
        kind: u32,
        instructions: u32,
        code: u64,
        licence: u64,
        rest: [u64; 13],
    }
    let attributes = Attributes {
        kind: SOCKET_FILTER,
        instructions: 2,
        code: code.as_ptr() as u64,
        licence: licence.as_ptr() as u64,
        rest: [0; 13],
    };
    let bytes = size_of::<Attributes>();
    // SAFETY: the attributes and what they point to live until the call returns.
    let program = unsafe { libc::syscall(libc::SYS_bpf, LOAD, &raw const attributes, bytes) };
    let outcome = if program < 0 {
        Err(io::Error::last_os_error())
    } else {
        // SAFETY: the call above has returned the descriptor, which has no other owner.
        unsafe { libc::close(program as libc::c_int) };
        Ok(())
    };
    let meaning =
        "attaches programs to the interfaces of AF_XDP ports, and benchmarks XDP in the kernel";
    finding_of("BPF", outcome, "a program was loaded", meaning)
}

fn namespaces() -> Finding {
    let mut command = Command::new("true");
    // SAFETY: no memory is passed.
    let leave = || match unsafe { libc::unshare(libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: between fork and exec, only this one system call is made.
    unsafe { command.pre_exec(leave) };
    let outcome = command.status().map(drop);
    let meaning = "end-to-end tests on virtual interfaces, which are skipped without them";
    finding_of("namespaces", outcome, "network namespaces can be created", meaning)
}

fn huge_pages() -> Finding {
    let free = proc_value("/proc/meminfo", "HugePages_Free:").unwrap_or_default();
    let advice = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let transparent = advice.is_ok_and(|text| !text.contains("[never]"));
    let state = match (free.parse::<u64>(), transparent) {
        (Ok(count), _) if count > 0 => State::Present,
        (_, true) => State::Limited,
        _ => State::Missing,
    };
    let reserved = if free.is_empty() { "none" } else { &free };
    let given = if transparent { "on request" } else { "off" };
    let seen = format!("{reserved} reserved and free; transparent huge pages: {given}");
    let meaning = "fewer TLB misses on large tables; only speed depends on it";
    Finding { name: "huge pages", state, seen, meaning }
}

fn memlock() -> Finding {
    const ENOUGH_BYTES: u64 = 64 << 20;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills the structure.
    unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
    let bytes = limit.rlim_cur;
    let state = if bytes >= ENOUGH_BYTES { State::Present } else { State::Limited };
    let seen = match bytes {
        libc::RLIM_INFINITY => "unlimited".to_owned(),
        bytes => format!("{} KiB may be locked", bytes >> 10),
    };
    let meaning = "limits the memory of AF_XDP ports without IPC_LOCK: raise it with ulimit -l";
    Finding { name: "memlock", state, seen, meaning }
}

fn capabilities() -> Finding {
    const WANTED: [(u32, &str); 5] =
        [(12, "NET_ADMIN"), (13, "NET_RAW"), (14, "IPC_LOCK"), (21, "SYS_ADMIN"), (39, "BPF")];
    let mask = proc_value("/proc/self/status", "CapEff:")
        .and_then(|text| u64::from_str_radix(&text, 16).ok())
        .unwrap_or(0);
    let names = |held: bool| {
        let some = WANTED.iter().filter(|(bit, _)| (mask >> bit & 1 == 1) == held);
        some.map(|(_, name)| *name).collect::<Vec<_>>()
    };
    let (held, lacked) = (names(true), names(false));
    let state = match (held.is_empty(), lacked.is_empty()) {
        (_, true) => State::Present,
        (true, _) => State::Missing,
        _ => State::Limited,
    };
    let seen = match state {
        State::Present => held.join(", "),
        _ => format!("held: [{}], missing: [{}]", held.join(", "), lacked.join(", ")),
    };
    let meaning = "ports on network interfaces need NET_ADMIN, NET_RAW and BPF";
    Finding { name: "capabilities", state, seen, meaning }
}

fn finding_of(
    name: &'static str,
    outcome: io::Result<()>,
    success: &str,
    meaning: &'static str,
) -> Finding {
    let (state, seen) = match outcome {
        Ok(()) => (State::Present, success.to_owned()),
        Err(error) => (State::Missing, error.to_string()),
    };
    Finding { name, state, seen, meaning }
}

/// Returns the first word after `key` in a file of `key value` lines.
fn proc_value(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.split_whitespace().next()?.to_owned())
}
