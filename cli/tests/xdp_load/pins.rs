// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Maps that an object marks as pinned are pinned in the given folder, and nowhere else.

use super::place::Net;
use crate::hosts::may_make_hosts;
use freeport_testbed::skip;
use freeport_xdp::Kernel;
use std::fs;
use std::process::Command;

const PINNED: &str = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
    struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32);\n\
    __type(value, __u64); __uint(pinning, LIBBPF_PIN_BY_NAME); } freeport_hits SEC(\".maps\");\n\
    SEC(\"xdp\") int counted(struct xdp_md *packet) { __u32 key = !packet;\n\
    return bpf_map_lookup_elem(&freeport_hits, &key) ? XDP_PASS : XDP_DROP; }\n";

#[test]
fn maps_are_pinned_in_the_folder_that_is_named_and_found_there() {
    if !may_make_hosts() {
        return;
    }
    if let Some(reason) = Kernel::refusal() {
        return skip(reason);
    }
    let net = Net::new();
    let object = net.object(PINNED);
    // In a separate bpf file system, which is removed with the process.
    let script = "mount --make-rprivate / && mount -t bpf bpf /sys/fs/bpf && \
        mkdir /sys/fs/bpf/own && exec \"$@\"";
    let load = |more: &[&str]| {
        let words = [&["xdp", "load", object.to_str().unwrap(), "--name", "it"][..], more].concat();
        let plain = net.command(&words);
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, "sh"]).arg(plain.get_program());
        command.args(plain.get_args()).env("FREEPORT_RUN", net.file("."));
        net.begin(command)
    };
    let kernel = ["--on", "kernel", "--port", "m0"];
    let loaded = load(&[&kernel[..], &["--pin-maps", "/sys/fs/bpf/own"]].concat());
    let root = format!("/proc/{}/root/sys/fs/bpf", loaded.process());
    assert!(fs::exists(format!("{root}/own/freeport_hits")).unwrap(), "{}", loaded.said());
    let said = loaded.stop();
    assert!(said.contains("map freeport_hits is pinned in /sys/fs/bpf/own\n"), "{said}");
    let loaded = load(&kernel);
    let root = format!("/proc/{}/root/sys/fs/bpf", loaded.process());
    let pinned = ["", "/own"].map(|folder| format!("{root}{folder}/freeport_hits"));
    assert!(!pinned.iter().any(|file| fs::exists(file).unwrap()), "{}", loaded.said());
    let said = loaded.stop();
    let reported =
        "map freeport_hits is not pinned, although the object marks it so; see --pin-maps\n";
    assert!(said.contains(reported), "{said}");
}
