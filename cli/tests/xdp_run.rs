// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp run` on the programs of the repository and on small ones, with captures that are
//! made here.

use freeport_ebpf::interpreter::{Environment, verdict};
use freeport_ebpf::object::Object;
use freeport_nic::port::{Arena, PcapReceiver, PcapTransmitter, Receive, Transmit};
use freeport_xdp::traffic::{Kind, Traffic};
use freeport_xdp::{Arrival, Interpreter, Kernel, Target};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const KINDS: &[Kind] = &[Kind::Tcp, Kind::Udp, Kind::UdpIpv6, Kind::Other];

/// A folder with an object and a capture.
struct Place {
    folder: tempfile::TempDir,
    object: PathBuf,
}

impl Place {
    /// With a program of the repository.
    fn with_program(name: &str) -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../programs/xdp");
        Self::with_source(&Path::new(folder).join(format!("{name}.bpf.c")))
    }

    /// With functions of a program for XDP.
    fn with_text(text: &str) -> Self {
        let source = tempfile::Builder::new().suffix(".bpf.c").tempfile().unwrap();
        let start = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
            char program_license[] SEC(\"license\") = \"GPL\";\n";
        fs::write(source.path(), format!("{start}{text}")).unwrap();
        Self::with_source(source.path())
    }

    fn with_source(source: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let object = folder.path().join("program.o");
        fs::write(&object, freeport_xdp::compile(source).unwrap()).unwrap();
        Self { folder, object }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes packets to a capture, a microsecond after each other.
    fn capture<'p>(&self, packets: impl IntoIterator<Item = &'p [u8]>) -> PathBuf {
        let file = self.file("in.pcap");
        let mut arena = Arena::default();
        for (at, bytes) in packets.into_iter().enumerate() {
            arena.push(bytes, bytes.len(), 1_000 * (at as u64 + 1)).unwrap();
        }
        let mut writer = PcapTransmitter::create(&file).unwrap();
        writer.transmit(arena.frames()).unwrap();
        writer.finish().unwrap();
        file
    }

    fn command(&self, trace: &Path, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
        command.args(["xdp", "run"]).arg(&self.object).arg("--trace").arg(trace).args(more);
        command
    }

    fn run(&self, trace: &Path, more: &[&str]) -> String {
        let output = self.command(trace, more).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, trace: &Path, more: &[&str]) -> Value {
        serde_json::from_str(&self.run(trace, &[more, &["--json"]].concat())).unwrap()
    }

    fn failure(&self, trace: &Path, more: &[&str]) -> Output {
        let output = self.command(trace, more).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{more:?}: {output:?}");
        output
    }

    fn complaint(&self, trace: &Path, more: &[&str]) -> String {
        String::from_utf8(self.failure(trace, more).stderr).unwrap()
    }
}

fn traffic(count: usize) -> Vec<Vec<u8>> {
    let mut traffic = Traffic::new(5, KINDS);
    (0..count).map(|_| traffic.next_packet().bytes).collect()
}

fn slices(packets: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    packets.iter().map(Vec::as_slice)
}

fn read(file: &Path) -> Vec<Vec<u8>> {
    let mut receiver = PcapReceiver::open(file).unwrap();
    let mut packets = vec![];
    while !receiver.is_ended() {
        let batch = receiver.receive(100).unwrap();
        packets.extend((0..batch.len()).map(|at| batch.bytes(at).to_vec()));
    }
    packets
}

/// What follows at most two VLAN tags of a frame that is long enough: the protocol, and the rest.
fn network(frame: &[u8]) -> Option<(u16, &[u8])> {
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let mut at = 12;
    for _ in 0..2 {
        if matches!(word(at)?, 0x8100 | 0x88a8) {
            word(at + 4)?;
            at += 4;
        }
    }
    Some((word(at)?, &frame[at + 2..]))
}

/// Whether `xdp2.bpf.c` sends a frame back: it has a whole header of IPv4 or IPv6.
fn is_sent_back(frame: &[u8]) -> bool {
    match network(frame) {
        Some((0x0800, rest)) => rest.len() >= 20,
        Some((0x86dd, rest)) => rest.len() >= 40,
        _ => false,
    }
}

/// Why parts that need the kernel are left out, if they are.
fn skipped() -> bool {
    let refusal = Kernel::refusal();
    if let Some(reason) = &refusal {
        eprintln!("skipped: {reason}");
    }
    refusal.is_some()
}

#[test]
fn packets_are_counted_by_verdict_and_those_that_go_on_are_written() {
    let place = Place::with_program("xdp2");
    let packets = traffic(1_000);
    let trace = place.capture(slices(&packets));
    let sent: Vec<&Vec<u8>> = packets.iter().filter(|packet| is_sent_back(packet)).collect();
    assert!((300..900).contains(&sent.len()), "{}", sent.len());
    let (out, dropped) = (place.file("out.pcap"), place.file("drop.pcapng"));
    let text = place.run(
        &trace,
        &["--write", out.to_str().unwrap(), "--write", &format!("drop={}", dropped.display())],
    );
    let bytes: usize = packets.iter().map(Vec::len).sum();
    let title = format!("program `send_back` in the interpreter: 1000 packets, {bytes} bytes\n");
    assert!(text.starts_with(&title), "{text}");
    for (verdict, count) in [("DROP", 1_000 - sent.len()), ("TX", sent.len()), ("ABORTED", 0)] {
        let line = format!("{:<12} {count:>12}", format!("XDP_{verdict}"));
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let turned = |packet: &&Vec<u8>| [&packet[6..12], &packet[..6], &packet[12..]].concat();
    assert_eq!(read(&out), sent.iter().map(turned).collect::<Vec<_>>());
    let left: Vec<Vec<u8>> = packets.iter().filter(|it| !is_sent_back(it)).cloned().collect();
    assert_eq!(read(&dropped), left);
}

#[test]
fn instructions_are_those_that_the_interpreter_executed() {
    let place = Place::with_program("xdp1");
    let packets = traffic(300);
    let trace = place.capture(slices(&packets));
    let object = Object::open(&place.object).unwrap();
    let mut interpreter = Interpreter::load(&object, Environment::default()).unwrap();
    let mut executed: Vec<u64> = packets
        .iter()
        .map(|bytes| {
            let arrival = Arrival { bytes, ingress_ifindex: 1, rx_queue_index: 0 };
            interpreter.run("drop", &arrival).unwrap();
            interpreter.last().unwrap().instructions
        })
        .collect();
    executed.sort_unstable();
    let expected = json!({
        "mean": executed.iter().sum::<u64>() as f64 / 300.0,
        "p50": executed[149],
        "p99": executed[296],
        "max": executed[299],
    });
    assert!(executed[0] < executed[299]);
    let told = place.json(&trace, &[]);
    assert_eq!(told["executed_instructions"], expected);
    assert_eq!(told["verdicts"]["XDP_DROP"], json!(300));
}

/// A frame of a UDP flow between two hosts.
fn datagram(source: u8, target: u8) -> Vec<u8> {
    let mut frame = [&[2; 12][..], &[8, 0], &[0x45, 0, 0, 28, 0, 0, 0, 0, 9, 17, 0, 0]].concat();
    frame.extend([10, 0, 0, source, 10, 0, 0, target, 0, 5, 0, 5, 0, 8, 0, 0]);
    frame
}

const INSIDE: &str = "inside key 0 0 0 0 value 2 0 0 0";
const WAYS: &str = "# where packets leave\n\
    map update name ways key hex 00 00 00 00 value hex 07 00 00 00\n\n\
    map update name ways key 1 0 0 0 value 8 0 0 0 any # inside\n";

#[test]
fn maps_are_set_kept_between_packets_and_dumped() {
    let place = Place::with_program("simple_firewall");
    let other = [2_u8; 60];
    let packets = [datagram(1, 2), datagram(3, 4), other.to_vec(), datagram(2, 1)];
    let trace = place.capture(slices(&packets));
    let file = place.file("maps.txt");
    fs::write(&file, WAYS).unwrap();
    let file = file.to_str().unwrap();
    let options = ["--map", INSIDE, "--map-file", file, "--dump", "flows", "--ifindex"];
    let text = place.run(&trace, &[&options[..], &["2"]].concat());
    // Hosts in order, ports, protocol; packets and bytes.
    let flows = "\nmap flows\n\
        key: 0a 00 00 01 0a 00 00 02 00 05 00 05 11 00 00 00\n\
        value: 02 00 00 00 00 00 00 00 54 00 00 00 00 00 00 00\n\
        key: 0a 00 00 03 0a 00 00 04 00 05 00 05 11 00 00 00\n\
        value: 01 00 00 00 00 00 00 00 2a 00 00 00 00 00 00 00\n\
        Found 2 elements\n";
    assert!(text.ends_with(flows), "{text}");
    let redirected = "XDP_REDIRECT            3\n                        3  to map ways[0]: 7\n";
    assert!(text.contains(redirected), "{text}");
    // From outside nothing is let in.
    let told = place.json(&trace, &[&options[..], &["3"]].concat());
    assert_eq!((&told["verdicts"]["XDP_DROP"], &told["maps"]["flows"]), (&json!(4), &json!([])));
    // Twice: what was outside is known the second time.
    let options = [&options[..], &["2", "--repeat", "2"]].concat();
    let told = place.json(&trace, &options);
    assert_eq!((&told["packets"], &told["verdicts"]["XDP_REDIRECT"]), (&json!(8), &json!(6)));
    let redirect = json!([{ "map": "ways", "key": 0, "target": 7, "packets": 6 }]);
    assert_eq!(told["redirects"], redirect);
    let first = &told["maps"]["flows"][0];
    assert_eq!((&first["key"][3], &first["value"][0]), (&json!("0x01"), &json!("0x04")));
}

#[test]
fn time_is_that_of_packets_and_chance_is_repeated() {
    let place = Place::with_text(
        "struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 9);\n\
         __type(value, __u64); } seen SEC(\".maps\");\n\
         SEC(\"xdp\") int note(struct xdp_md *context __attribute__((unused))) {\n\
         __u64 now = bpf_ktime_get_ns(), chance = bpf_get_prandom_u32();\n\
         bpf_map_push_elem(&seen, &now, 0); bpf_map_push_elem(&seen, &chance, 0);\n\
         return XDP_PASS; }\n",
    );
    let trace = place.capture([&[0_u8; 60][..], &[0; 60]]);
    let seen = |more: &[&str]| {
        let told = place.json(&trace, &[more, &["--dump", "seen"]].concat());
        let word = |item: &Value| {
            let bytes = item["value"].as_array().unwrap().iter();
            let digits = bytes.rev().map(|it| it.as_str().unwrap()[2..].to_owned());
            u64::from_str_radix(&digits.collect::<String>(), 16).unwrap()
        };
        told["maps"]["seen"].as_array().unwrap().iter().map(word).collect::<Vec<_>>()
    };
    let first = seen(&[]);
    assert_eq!((first.len(), first[0], first[2]), (4, 1_000, 2_000));
    assert_eq!(seen(&["--clock", "capture", "--seed", "1"]), first);
    let other = seen(&["--clock", "77", "--seed", "2"]);
    assert_eq!((other[0], other[2]), (77, 77));
    assert_ne!((other[1], other[3]), (first[1], first[3]));
}

/// Reads a byte that is there only in packets of more than 40; the kernel would not take it.
const CARELESS: &str = "SEC(\"xdp\") int careless(struct xdp_md *context) {\n\
    volatile char *data = (void *)(long)context->data;\n\
    return data[40] ? XDP_PASS : XDP_DROP; }\n";

#[test]
fn a_program_that_is_ended_is_told_with_its_line_and_the_others_go_on() {
    let place = Place::with_text(CARELESS);
    let trace = place.capture([&[7_u8; 60][..], &[7; 40], &[7; 41], &[7; 9]]);
    let text = place.run(&trace, &[]);
    assert!(text.contains("XDP_ABORTED             2\n"), "{text}");
    assert!(text.contains("XDP_PASS                2\n"), "{text}");
    let reason = "2 packets, the first is 2: program `careless`, instruction ";
    let at = text.find(reason).unwrap_or_else(|| panic!("{text}"));
    let rest = &text[at..];
    assert!(rest.contains(".bpf.c:6): a read of 1 bytes at "), "{text}");
    assert!(rest.contains("outside the packet (at 40 of 40 bytes)\n    return data[40]"), "{text}");
    let told = place.json(&trace, &[]);
    let abort = &told["aborts"][0];
    assert_eq!(
        (&abort["packets"], &abort["first"], &abort["line"]),
        (&json!(2), &json!(2), &json!(6))
    );
}

const TWO: &str = "SEC(\"xdp\") int one(struct xdp_md *c __attribute__((unused))) \
    { return XDP_PASS; }\n\
    SEC(\"xdp\") int other(struct xdp_md *c __attribute__((unused))) { return 9; }\n\
    SEC(\"xdp/devmap\") int leaving(struct xdp_md *c __attribute__((unused))) \
    { return XDP_DROP; }\n";

#[test]
fn of_several_programs_one_is_named() {
    let place = Place::with_text(TWO);
    let trace = place.capture([&[0_u8; 60][..]]);
    let error = place.complaint(&trace, &[]);
    assert!(error.contains("say which with --program; there are: one, other, leaving"), "{error}");
    let error = place.complaint(&trace, &["--program", "none"]);
    assert!(error.contains("no XDP program `none`; there are: one, other, leaving"), "{error}");
    let text = place.run(&trace, &["--program", "other"]);
    assert!(text.contains("9                       1  no verdict\n"), "{text}");
    assert_eq!(place.json(&trace, &["--program", "leaving"])["verdicts"]["XDP_DROP"], json!(1));
    let error = place.complaint(&trace, &["--program", "leaving", "--on", "kernel"]);
    assert!(error.contains("runs no xdp/devmap programs, as `leaving` is"), "{error}");
}

#[test]
fn errors_name_what_is_wrong() {
    let place = Place::with_program("simple_firewall");
    let trace = place.capture([&[0_u8; 60][..], &[0; 70]]);
    for (options, reason) in [
        (["--map", "insid key 0 0 0 0 value 2 0 0 0"], "map `insid`: there is none; there are: "),
        (
            ["--map", "inside key 0 0 value 2 0 0 0"],
            "`inside`: its key has 4 bytes, and 2 are given",
        ),
        (["--map", "ways key 9 0 0 0 value 2 0 0 0"], "updating ways: E2BIG"),
        (["--dump", "flow"], "program.o: there is no map `flow`; there are: "),
        (["--map-file", "/nonexistent/maps"], "/nonexistent/maps: No such file"),
        (["--write", "/nonexistent/out.pcap"], "/nonexistent/out.pcap: No such file"),
        (["--write", trace.to_str().unwrap()], "in.pcap: is the capture that is read"),
    ] {
        let error = place.complaint(&trace, &options);
        assert!(error.contains(reason), "{error}");
    }
    let file = place.file("maps.txt");
    fs::write(&file, format!("{INSIDE}\ninside key 0 0 0 0 value x\n")).unwrap();
    let error = place.complaint(&trace, &["--map-file", file.to_str().unwrap()]);
    assert!(error.contains("maps.txt: line 2: `x` is no byte of the value; write "), "{error}");
    let error = place.complaint(&place.file("none.pcap"), &[]);
    assert!(error.contains("none.pcap: No such file"), "{error}");
    let classifier = Place::with_text("SEC(\"tc\") int other(void *c) { return c != 0; }\n");
    let error = classifier.complaint(&trace, &[]);
    assert!(error.contains("program.o: there is no XDP program in it"), "{error}");
}

#[test]
fn what_came_before_the_break_of_a_capture_is_told() {
    let place = Place::with_program("xdp1");
    let trace = place.capture([&[0_u8; 60][..], &[0; 70], &[0; 80]]);
    let bytes = fs::read(&trace).unwrap();
    fs::write(&trace, &bytes[..bytes.len() - 5]).unwrap();
    let output = place.failure(&trace, &["--json"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("in.pcap: record 3: the file ends inside it"), "{error}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&told["packets"], &told["bytes"]), (&json!(2), &json!(130)));
    assert!(error.contains(told["error"].as_str().unwrap()), "{error} {told}");
}

#[test]
fn only_ethernet_is_taken() {
    let place = Place::with_program("xdp1");
    let trace = place.capture([&[0_u8; 60][..]]);
    let mut bytes = fs::read(&trace).unwrap();
    bytes[20] = 113;
    fs::write(&trace, bytes).unwrap();
    let error = place.complaint(&trace, &[]);
    assert!(error.contains("in.pcap: its frames are of link type 113, not Ethernet"), "{error}");
    // In the other format each packet has an interface: the second one of these is another.
    let block = |kind: u32, words: &[u32]| {
        let length = 12 + 4 * words.len() as u32;
        let all = [&[kind, length], words, &[length]].concat();
        all.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>()
    };
    let blocks = [
        block(0x0a0d_0d0a, &[0x1a2b_3c4d, 1, !0, !0]),
        block(1, &[1, 0]),
        block(1, &[113, 0]),
        block(6, &[0, 0, 1, 20, 20, 0, 0, 0, 0, 0]),
        block(6, &[1, 0, 2, 20, 20, 0, 0, 0, 0, 0]),
    ];
    let trace = place.file("two.pcapng");
    fs::write(&trace, blocks.concat()).unwrap();
    let error = place.complaint(&trace, &[]);
    assert!(error.contains("two.pcapng: packet 2 is of link type 113, not Ethernet"), "{error}");
}

#[test]
fn the_kernel_and_the_interpreter_agree_packet_by_packet() {
    if skipped() {
        return;
    }
    for name in ["xdp2", "parser_chain", "length_histogram"] {
        let place = Place::with_program(name);
        let mut packets = traffic(200);
        packets.insert(2, vec![1; 13]);
        packets.push(vec![1; 3_521]);
        let trace = place.capture(slices(&packets));
        let options = |on| match name {
            "parser_chain" => vec!["--program", "parse_ethernet", "--on", on],
            _ => vec!["--on", on],
        };
        let both = place.json(&trace, &options("both"));
        assert_eq!(both["refused"], json!({ "packets": 2, "first": [3, 202] }), "{name}");
        assert_eq!((&both["packets"], &both["error"]), (&json!(200), &Value::Null), "{name}");
        let kernel = place.json(&trace, &options("kernel"));
        assert_eq!(kernel["verdicts"], both["verdicts"], "{name}");
        assert_eq!(kernel["executed_instructions"], Value::Null, "the kernel does not count");
        let text = place.run(&trace, &options("kernel"));
        let refused = "2 packets were not run, since the kernel takes 14 to 3520 bytes: 3, 202\n";
        assert!(text.contains(refused), "{text}");
        let interpreter = place.json(&trace, &options("interpreter"));
        assert_eq!(interpreter["packets"], json!(202), "{name}");
    }
}

/// What it gives depends on time: 0 on a clock that is set to that.
const UNSTEADY: &str = "__u64 last;\n\
    SEC(\"xdp\") int uneven(struct xdp_md *context) {\n\
    char *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;\n\
    __u64 now = bpf_ktime_get_ns();\n\
    if (data + 40 > end) return XDP_DROP;\n\
    if (data[20]) last = now;\n\
    if (data[21]) data[30] = now != 0;\n\
    return data[22] && now ? XDP_TX : XDP_PASS; }\n";

#[test]
fn a_difference_is_shown_with_its_packet() {
    if skipped() {
        return;
    }
    let place = Place::with_text(UNSTEADY);
    let frame = |different: usize| {
        let mut frame = [0_u8; 60];
        frame[different] = 1;
        frame
    };
    let options = ["--on", "both", "--clock", "0"];
    // Its bytes and its verdict.
    let trace = place.capture([&frame(50)[..], &frame(21), &frame(22)]);
    let error = place.complaint(&trace, &options);
    let expected = "in.pcap: packet 2, 60 bytes by device 1, queue 0, fares otherwise\n\
        kernel:      XDP_PASS, 60 bytes\n\
        interpreter: XDP_PASS, 60 bytes\n\
        the packet differs in these lines:\n";
    assert!(error.contains(expected), "{error}");
    assert!(error.contains("  0010  kernel       00 00 00 00 00 01 00"), "{error}");
    let trace = place.capture([&frame(50)[..], &frame(22)]);
    let output = place.failure(&trace, &[&options[..], &["--json"]].concat());
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let difference = &told["difference"];
    assert_eq!((&told["packets"], &difference["packet"]), (&json!(1), &json!(2)));
    assert_eq!(difference["kernel"]["verdict"], json!("XDP_TX"));
    assert_eq!(difference["interpreter"]["verdict"], json!("XDP_PASS"));
    // What is in a map, unless it is not to be compared.
    let trace = place.capture([&frame(50)[..], &frame(20), &frame(50)]);
    let error = place.complaint(&trace, &options);
    let expected = "after packet 2, the same after packet 1: map .bss: key 00000000: kernel ";
    assert!(error.contains(expected), "{error}");
    let error = place.complaint(&trace, &[&options[..], &["--maps-every", "9"]].concat());
    assert!(error.contains("at the end: map .bss: key 00000000: kernel "), "{error}");
    place.run(&trace, &[&options[..], &["--except", ".bss:0..8"]].concat());
    let error = place.complaint(&trace, &[&options[..], &["--except", ".bs"]].concat());
    assert!(error.contains("there is no map `.bs`; there are: .bss"), "{error}");
}

/// A call of a program that is in a map, and a look into a map that is in a map.
const NESTED: &str = "struct inner { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1);\n\
    __type(key, __u32); __type(value, __u32); } table SEC(\".maps\");\n\
    struct { __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS); __uint(max_entries, 2);\n\
    __type(key, __u32); __array(values, struct inner); } tables SEC(\".maps\");\n\
    struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __uint(max_entries, 2);\n\
    __uint(key_size, 4); __uint(value_size, 4); } programs SEC(\".maps\");\n\
    SEC(\"xdp\") int first(struct xdp_md *context) {\n\
    bpf_tail_call(context, &programs, 1); return XDP_DROP; }\n\
    SEC(\"xdp\") int second(struct xdp_md *context __attribute__((unused))) {\n\
    __u32 one = 1, zero = 0; void *inside = bpf_map_lookup_elem(&tables, &one);\n\
    __u32 *value = inside ? bpf_map_lookup_elem(inside, &zero) : 0;\n\
    return value ? *value : XDP_PASS; }\n";

#[test]
fn programs_and_maps_are_put_into_maps_by_name() {
    let place = Place::with_text(NESTED);
    let trace = place.capture([&[0_u8; 60][..]]);
    let program = "map update name programs key 1 0 0 0 value name second";
    let table = "tables key 1 0 0 0 value name table";
    let value = "table key 0 0 0 0 value 3 0 0 0";
    let on = if skipped() { "interpreter" } else { "both" };
    let verdicts = |settings: &[&str]| {
        let mut options = vec!["--program", "first", "--on", on];
        settings.iter().for_each(|setting| options.extend(["--map", setting]));
        place.json(&trace, &options)["verdicts"].clone()
    };
    assert_eq!(verdicts(&[])["XDP_DROP"], json!(1));
    assert_eq!(verdicts(&[program])["XDP_PASS"], json!(1));
    assert_eq!(verdicts(&[program, table, value])["XDP_TX"], json!(1));
    let error =
        place.complaint(&trace, &["--program", "first", "--map", "table key 0 0 0 0 value name x"]);
    assert!(error.contains("map `table`: its values are neither maps nor programs"), "{error}");
}

/// The lines of a document that are shown as code, from the first one with these words on.
fn shown(document: &str, words: &str) -> String {
    let lines = document.lines().skip_while(|line| !line.contains(words));
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
    lines.map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect()
}

#[test]
fn the_documented_run_prints_what_is_shown() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let document = fs::read_to_string(repository.join("docs/xdp.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.pcap");
    let command = shown(&document, "freeport xdp run programs/").replace("\\\n", " ");
    let command = command.replace("out.pcap", file.to_str().unwrap());
    let command = command.replacen("freeport", env!("CARGO_BIN_EXE_freeport"), 1);
    let output =
        Command::new("sh").arg("-c").arg(command).current_dir(&repository).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let expected = shown(&document, "program `filter` in the interpreter");
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), expected.trim());
    assert_eq!(read(&file), read(&repository.join("examples/traces/sample.pcap")));
}

/// Numbers of `linux/capability.h`: CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF.
const CAPABILITIES: [libc::c_ulong; 4] = [12, 21, 38, 39];

#[test]
fn who_may_not_use_the_kernel_is_told_what_is_missing() {
    let place = Place::with_program("xdp1");
    let trace = place.capture([&[0_u8; 60][..]]);
    let mut command = place.command(&trace, &["--on", "both"]);
    // SAFETY: one system call a number, which allocates nothing; it fails for who has no such
    // rights anyway.
    unsafe {
        command.pre_exec(|| {
            for capability in CAPABILITIES {
                libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
            }
            Ok(())
        });
    }
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("program.o: the kernel refuses bpf(2): "), "{error}");
    assert!(error.contains("CAP_BPF and CAP_NET_ADMIN, or root: try it with sudo"), "{error}");
    assert!(error.contains("--on interpreter"), "{error}");
    let told = place.json(&trace, &[]);
    assert_eq!(told["verdicts"][verdict::name(verdict::DROP).unwrap()], json!(1));
}
