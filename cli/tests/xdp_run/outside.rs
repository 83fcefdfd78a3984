// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Objects for other loaders: with programs that only a kernel runs, maps whose size the loader
//! sets, maps that no kernel creates, and constants that are set before loading.

use super::place::{Place, skipped, slices, traffic};
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// Targets in user space.
const OTHERS: [&str; 4] = ["interpreter", "native", "vliw", "sim"];

/// The line of a report about a verdict, for a run of 20 packets.
fn verdicts(place: &Place, trace: &Path, on: &str, more: &[&str], verdict: &str) {
    let reported = place.json(trace, &[&["--on", on], more].concat());
    assert_eq!(reported["verdicts"][verdict], json!(20), "{on} {more:?}: {reported}");
}

fn capture(place: &Place) -> std::path::PathBuf {
    place.capture(slices(&traffic(20)))
}

/// One program asks the kernel for the time of a packet, the other one does not.
const STAMPED: &str = "extern int bpf_xdp_metadata_rx_timestamp(const struct xdp_md *packet, \
    __u64 *time) __ksym;\n\
    SEC(\"xdp\") int back(struct xdp_md *packet) { return packet ? XDP_TX : XDP_DROP; }\n\
    static __noinline int late(struct xdp_md *packet) { __u64 time;\n\
    return bpf_xdp_metadata_rx_timestamp(packet, &time); }\n\
    SEC(\"xdp\") int stamped(struct xdp_md *packet) {\n\
    return late(packet) ? XDP_PASS : XDP_DROP; }\n";

#[test]
fn a_program_that_calls_the_kernel_keeps_no_other_from_running() {
    let place = Place::with_text(STAMPED);
    let trace = capture(&place);
    for on in OTHERS {
        verdicts(&place, &trace, on, &["--program", "back"], "XDP_TX");
        let error = place.complaint(&trace, &["--on", on, "--program", "stamped"]);
        let reason = "calls `bpf_xdp_metadata_rx_timestamp`, which is not in this object";
        assert!(error.contains(reason), "{on}: {error}");
    }
    let mut show = Command::new(env!("CARGO_BIN_EXE_freeport"));
    let shown = show.args(["xdp", "show"]).arg(&place.object).output().unwrap();
    assert!(shown.status.success(), "{shown:?}");
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("program back: section xdp, xdp, "), "{shown}");
    let reason = "    not outside the kernel: program `stamped`, instruction ";
    assert_eq!(shown.matches(reason).count(), 1, "{shown}");
    assert_eq!(shown.matches("not outside the kernel").count(), 1, "{shown}");
    if !skipped() {
        verdicts(&place, &trace, "both", &["--program", "back"], "XDP_TX");
    }
}

#[test]
fn what_the_kernel_takes_needs_no_other_reader() {
    let place = Place::with_text(
        "extern int LINUX_KERNEL_VERSION __kconfig;\n\
         SEC(\"xdp\") int newer(struct xdp_md *packet) {\n\
         return packet && LINUX_KERNEL_VERSION > 0x40000 ? XDP_TX : XDP_PASS; }\n",
    );
    let trace = capture(&place);
    for on in OTHERS {
        let error = place.complaint(&trace, &["--on", on]);
        assert!(error.contains("`LINUX_KERNEL_VERSION` is a value of the kernel"), "{on}: {error}");
    }
    if !skipped() {
        verdicts(&place, &trace, "kernel", &[], "XDP_TX");
    }
}

#[test]
fn only_the_program_that_is_asked_for_is_loaded() {
    let place = Place::with_text(
        "SEC(\"xdp\") int stray(struct xdp_md *packet) { return *(char *)(long)packet->data; }\n\
         SEC(\"xdp\") int back(struct xdp_md *packet) { return packet ? XDP_TX : XDP_DROP; }\n",
    );
    let trace = capture(&place);
    if skipped() {
        return;
    }
    verdicts(&place, &trace, "kernel", &["--program", "back"], "XDP_TX");
    let error = place.complaint(&trace, &["--on", "kernel", "--program", "stray"]);
    assert!(error.contains("invalid access to packet"), "{error}");
}

/// Programs in entries of maps are loaded with the program that calls them.
const CALLS: &str = "int second(struct xdp_md *packet);\n\
    struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __uint(max_entries, 2);\n\
    __uint(key_size, 4); __array(values, int (void *)); } steps SEC(\".maps\") =\n\
    { .values = { [0] = (void *)&second } };\n\
    SEC(\"xdp\") int first(struct xdp_md *packet) {\n\
    bpf_tail_call(packet, &steps, 1); bpf_tail_call(packet, &steps, 0); return XDP_DROP; }\n\
    SEC(\"xdp\") int second(struct xdp_md *packet) { return packet ? XDP_TX : XDP_DROP; }\n\
    SEC(\"xdp\") int third(struct xdp_md *packet) { return packet ? XDP_PASS : XDP_DROP; }\n";

#[test]
fn programs_in_maps_are_loaded_too() {
    let place = Place::with_text(CALLS);
    let trace = capture(&place);
    if skipped() {
        return;
    }
    let first = ["--program", "first"];
    verdicts(&place, &trace, "both", &first, "XDP_TX");
    let set = ["--program", "first", "--map", "steps key 1 0 0 0 value name third"];
    verdicts(&place, &trace, "both", &set, "XDP_PASS");
}

/// An array with keys of 8 bytes, which no kernel creates, and a hash with an unknown flag.
const WRONG: &str = "struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 4);\n\
    __uint(key_size, 8); __uint(value_size, 4); } wide SEC(\".maps\");\n\
    struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 4); __uint(key_size, 4);\n\
    __uint(value_size, 4); __uint(map_flags, 0x8000); } odd SEC(\".maps\");\n\
    SEC(\"xdp\") int asks(struct xdp_md *packet) { __u64 key = !packet;\n\
    return bpf_map_lookup_elem(&wide, &key) || bpf_map_lookup_elem(&odd, &key) ? 1 : 2; }\n\
    SEC(\"xdp\") int back(struct xdp_md *packet) { return packet ? XDP_TX : XDP_DROP; }\n";

#[test]
fn maps_that_no_kernel_makes_are_refused_everywhere() {
    let place = Place::with_text(WRONG);
    let trace = capture(&place);
    let kernel = if skipped() { None } else { Some("kernel") };
    for on in OTHERS.into_iter().chain(kernel) {
        let error = place.complaint(&trace, &["--on", on, "--program", "asks"]);
        assert!(error.contains("map `wide`: its key must have 4 bytes"), "{on}: {error}");
        verdicts(&place, &trace, on, &["--program", "back"], "XDP_TX");
    }
    if kernel.is_some() {
        verdicts(&place, &trace, "both", &["--program", "back"], "XDP_TX");
    }
    let setting = ["--program", "back", "--map", "wide key 0 0 0 0 0 0 0 0 value 1 0 0 0"];
    let error = place.complaint(&trace, &setting);
    assert!(error.contains("map `wide`: its key must have 4 bytes"), "{error}");
}

/// A map of sockets, which does not run outside the kernel.
const SOCKETS: &str = "struct { __uint(type, BPF_MAP_TYPE_SOCKMAP); __uint(max_entries, 4);\n\
    __type(key, __u32); __type(value, __u32); } sockets SEC(\".maps\");\n\
    SEC(\"xdp\") int asks(struct xdp_md *packet) { __u32 key = !packet;\n\
    return bpf_map_lookup_elem(&sockets, &key) ? XDP_DROP : XDP_PASS; }\n\
    SEC(\"xdp\") int back(struct xdp_md *packet) { return packet ? XDP_TX : XDP_DROP; }\n";

#[test]
fn kinds_of_maps_that_only_a_kernel_has_keep_no_other_program_from_running() {
    let place = Place::with_text(SOCKETS);
    let trace = capture(&place);
    for on in OTHERS {
        verdicts(&place, &trace, on, &["--program", "back"], "XDP_TX");
        let error = place.complaint(&trace, &["--on", on, "--program", "asks"]);
        let reason = "map `sockets`: maps of kind 15 are not supported";
        assert!(error.contains(reason), "{on}: {error}");
    }
    if !skipped() {
        verdicts(&place, &trace, "both", &["--program", "back"], "XDP_TX");
    }
}

/// The loader sets the number of entries.
const SIZED: &str = "struct { __uint(type, BPF_MAP_TYPE_ARRAY); __type(key, __u32);\n\
    __type(value, __u64); } counts SEC(\".maps\");\n\
    SEC(\"xdp\") int back(struct xdp_md *packet) { return packet ? XDP_TX : XDP_DROP; }\n\
    SEC(\"xdp\") int counted(struct xdp_md *packet) { __u32 key = packet ? 2 : 0;\n\
    __u64 *count = bpf_map_lookup_elem(&counts, &key);\n\
    if (!count) return XDP_DROP;\n\
    *count += 1; return XDP_PASS; }\n";

#[test]
fn a_map_gets_its_size_before_loading() {
    let place = Place::with_text(SIZED);
    let trace = capture(&place);
    let kernel = if skipped() { None } else { Some("kernel") };
    for on in OTHERS.into_iter().chain(kernel) {
        verdicts(&place, &trace, on, &["--program", "back"], "XDP_TX");
        let counted = ["--on", on, "--program", "counted"];
        let error = place.complaint(&trace, &counted);
        let advice =
            "map `counts`: max_entries is 0: give it a size, with `--map-size NAME=ENTRIES`";
        assert!(error.contains(advice), "{on}: {error}");
        let more = ["--map-size", "counts=3", "--dump", "counts"];
        let reported = place.json(&trace, &[&counted[..], &more].concat());
        assert_eq!(reported["verdicts"]["XDP_PASS"], json!(20), "{on}: {reported}");
        let entries = reported["maps"]["counts"].as_array().unwrap();
        let values: Vec<_> = entries.iter().map(|it| &it["formatted"]["value"]).collect();
        assert_eq!(values, [0, 0, 20], "{on}: {reported}");
        let small = ["--program", "counted", "--map-size", "counts=2"];
        verdicts(&place, &trace, on, &small, "XDP_DROP");
    }
    let error = place.complaint(&trace, &["--program", "back", "--map-size", "count=3"]);
    assert!(error.contains("map `count`: there is none; there are: counts"), "{error}");
}

/// Constants and variables; the program returns elements of the array.
const SET: &str = "const volatile __u32 which = 1;\n\
    const volatile __u8 verdicts[3] = { XDP_DROP, XDP_DROP, XDP_DROP };\n\
    int more = 0;\n\
    SEC(\"xdp\") int chosen(struct xdp_md *packet) {\n\
    __u32 at = which; return packet && at < 3 ? verdicts[at] + more : XDP_ABORTED; }\n";

#[test]
fn constants_and_variables_are_set_before_loading() {
    let place = Place::with_text(SET);
    let trace = capture(&place);
    let kernel = if skipped() { None } else { Some("kernel") };
    for on in OTHERS.into_iter().chain(kernel) {
        verdicts(&place, &trace, on, &[], "XDP_DROP");
        let set = ["--set", "which=2", "--set", "verdicts=1, 1, 2"];
        verdicts(&place, &trace, on, &set, "XDP_PASS");
        verdicts(&place, &trace, on, &["--set", "more=0x2"], "XDP_TX");
        verdicts(&place, &trace, on, &["--map", ".bss key 0 0 0 0 value 2 0 0 0"], "XDP_TX");
        // The constants of the whole section.
        let all = ".rodata key 0 0 0 0 value 0 0 0 0 3 3 3";
        verdicts(&place, &trace, on, &["--map", all], "XDP_TX");
    }
    for (set, reason) in [
        ("wich=1", "variable `wich`: there is none; there are: "),
        ("which=x", "variable `which`: `x` is not an unsigned number of 32 bits, 0 to 4294967295"),
        ("verdicts=1", "variable `verdicts`: it has 3 elements, but 1 are given"),
    ] {
        let error = place.complaint(&trace, &["--set", set]);
        assert!(error.contains(reason), "{error}");
    }
}

/// Constants whose members and elements are set.
const PARTS: &str = "const volatile struct { struct { __u8 few : 3, more : 5; } bits;\n\
    __u16 verdicts[2]; char name[8]; } config;\n\
    SEC(\"xdp\") int chosen(struct xdp_md *packet) {\n\
    if (!packet || config.name[0] != 'e' || config.name[3] != '0' || config.name[4])\n\
    return XDP_DROP;\n\
    return config.verdicts[1] + config.bits.more - config.bits.few; }\n";

#[test]
fn members_elements_and_texts_are_set_before_loading() {
    let place = Place::with_text(PARTS);
    let trace = capture(&place);
    let kernel = if skipped() { None } else { Some("kernel") };
    let set = ["config.bits.more=1", "config.verdicts[1]=2", "config.name=\"eth0\""];
    let set: Vec<&str> = set.iter().flat_map(|set| ["--set", *set]).collect();
    for on in OTHERS.into_iter().chain(kernel) {
        verdicts(&place, &trace, on, &[], "XDP_DROP");
        verdicts(&place, &trace, on, &set, "XDP_TX");
    }
    for (set, reason) in [
        ("config=1", "variable `config`: it is a struct with the members bits, verdicts, name"),
        ("config.bit=1", "variable `config.bit`: there is no member `bit`; there are: bits, "),
        (
            "config.bits.few=8",
            "variable `config.bits.few`: 8 does not fit in an unsigned number of 3 bits, 0 to 7",
        ),
        ("config.verdicts[2]=1", "there is no element 2: they are 0 to 1"),
        ("config.name=\"eternity\"", "a text of 8 bytes and its final 0 do not fit in 8 bytes"),
    ] {
        let error = place.complaint(&trace, &["--set", set]);
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_large_array_takes_what_is_touched() {
    let place = Place::with_text(
        "struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 40000000);\n\
         __type(key, __u32); __type(value, __u32); } places SEC(\".maps\");\n\
         SEC(\"xdp\") int far(struct xdp_md *packet) { __u32 key = packet ? 39999999 : 0;\n\
         __u32 *place = bpf_map_lookup_elem(&places, &key);\n\
         if (!place) return XDP_ABORTED;\n\
         *place += 1; return *place <= 20 ? XDP_TX : XDP_DROP; }\n",
    );
    let trace = capture(&place);
    for on in ["interpreter", "vliw"] {
        verdicts(&place, &trace, on, &[], "XDP_TX");
    }
    let output = place.command(&trace, &["--on", "interpreter,vliw"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let reason =
        "map places is neither compared nor printed: it is an array of more than 1048576 entries";
    assert!(output.status.success() && said.contains(reason), "{said}");
    let error = place.complaint(&trace, &["--map-size", "places=400000000"]);
    let reason = "map `places`: 400000000 entries with values of 4 bytes take 3200000008 bytes of \
        memory, and 1073741824 are left: give it fewer entries";
    assert!(error.contains(reason), "{error}");
}

/// Counts packets in a map that is marked as pinned, and detects counts of earlier runs.
const PINNED: &str = "struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1);\n\
    __type(key, __u32); __type(value, __u64); __uint(pinning, LIBBPF_PIN_BY_NAME); }\n\
    freeport_test_hits SEC(\".maps\");\n\
    SEC(\"xdp\") int counted(struct xdp_md *packet) { __u32 key = !packet;\n\
    __u64 *hits = bpf_map_lookup_elem(&freeport_test_hits, &key);\n\
    if (hits) *hits += 1;\n\
    return hits && *hits > 20 ? XDP_DROP : XDP_PASS; }\n";

#[test]
fn a_run_pins_no_map_and_takes_up_none() {
    let place = Place::with_text(PINNED);
    let trace = capture(&place);
    if skipped() {
        return;
    }
    // With a separate bpf file system, and without any.
    for mounted in ["mount -t bpf bpf /sys/fs/bpf && ", "mount -t tmpfs none /sys/fs/bpf && "] {
        let run = place.command(&trace, &["--on", "kernel", "--json"]);
        let words = std::iter::once(run.get_program()).chain(run.get_args());
        let mut inside = Command::new("unshare");
        let script = format!(
            "mount --make-rprivate / && {mounted}before=$(ls -A /sys/fs/bpf) && \"$@\" && \
             \"$@\" && [ \"$(ls -A /sys/fs/bpf)\" = \"$before\" ]"
        );
        inside.args(["-m", "sh", "-c", &script, "sh"]).args(words);
        let output = inside.output().unwrap();
        assert!(output.status.success(), "{mounted}: {output:?}");
        let reported = String::from_utf8(output.stdout).unwrap();
        let (one, other) = reported.split_at(reported.len() / 2);
        assert_eq!(one, other, "both runs give the same");
        assert!(one.contains("\"XDP_PASS\": 20"), "{one}");
    }
}

#[test]
fn every_command_that_runs_or_compiles_takes_sizes_and_values() {
    let place = Place::with_text(&format!(
        "const volatile __u32 verdict = XDP_DROP;\n{SIZED}\
         SEC(\"xdp\") int given(struct xdp_md *packet) {{ return packet ? verdict : XDP_DROP; }}\n"
    ));
    let trace = capture(&place);
    let freeport = |command: &str, words: &[&str]| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_freeport"));
        let run = run.args(["xdp", command]).arg(&place.object).args(words);
        // Sockets and compiled code of tests do not go to the user's folders.
        run.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
        run.env("FREEPORT_RUN", place.object.parent().unwrap()).output().unwrap()
    };
    let reported = |command: &str, words: &[&str]| {
        let output = freeport(command, words);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command} {words:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    };
    let set = ["--program", "given", "--set", "verdict=3"];
    let sized = ["--program", "counted", "--map-size", "counts=3"];
    let file = trace.to_str().unwrap();
    for (command, verdict) in [("trace", "packet 1: XDP_TX"), ("estimate", "sent back 20")] {
        let reported = reported(command, &[&set[..], &["--trace", file]].concat());
        assert!(reported.contains(verdict), "{reported}");
    }
    let port = format!("{file},ifindex=3");
    let loaded = reported("load", &[&set[..], &["--on", "native", "--port", &port]].concat());
    let mut lines = loaded.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert!(lines.any(|line| line.starts_with(&["XDP_TX", "20"])), "{loaded}");
    for command in ["compile", "explain"] {
        assert!(reported(command, &sized).contains("counted"), "{command}");
        let error = String::from_utf8(freeport(command, &sized[..2]).stderr).unwrap();
        assert!(error.contains("map `counts`: max_entries is 0"), "{command}: {error}");
    }
    let error = String::from_utf8(freeport("explain", &set).stderr).unwrap();
    assert!(error.contains("--map, --map-file and --set need --trace"), "{error}");
}

/// Bytes after the first 32,768 of values and data are beyond the offset of an instruction.
const FAR: &str = "struct wide { __u8 bytes[70000]; };\n\
    struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32);\n\
    __type(value, struct wide); } values SEC(\".maps\");\n\
    __u64 sums[10000];\n\
    volatile const __u8 table[50000] = { [40000] = 7, [33000] = 9 };\n\
    SEC(\"xdp\") int far(struct xdp_md *packet) { __u32 zero = 0;\n\
    struct wide *wide = bpf_map_lookup_elem(&values, &zero);\n\
    if (!wide || !packet) return XDP_ABORTED;\n\
    wide->bytes[33001] += 3; wide->bytes[65536]++; wide->bytes[69999] += wide->bytes[33001];\n\
    *(volatile __u64 *)&sums[9000] += table[40000];\n\
    *(volatile __u64 *)&sums[5000] += table[33000];\n\
    return sums[9000] % 7 || sums[5000] % 9 ? XDP_DROP : XDP_TX; }\n";

#[test]
fn what_is_behind_the_reach_of_an_offset_is_found_on_all_targets() {
    let place = Place::with_text(FAR);
    let trace = capture(&place);
    for on in ["native", "vliw", "sim"] {
        let both = format!("interpreter,{on}");
        verdicts(&place, &trace, &both, &["--maps-every", "10"], "XDP_TX");
    }
    if !skipped() {
        verdicts(&place, &trace, "both", &["--maps-every", "10"], "XDP_TX");
    }
}
