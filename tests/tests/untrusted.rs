// SPDX-License-Identifier: Apache-2.0 OR MIT
//! No input makes a reader panic: samples for each reader, randomly mutated. A failure prints its
//! seed; `FREEPORT_SEED=<seed>` starts there, and `FREEPORT_LONG=1` runs longer.

use fastrand::Rng;
use freeport_ebpf::instruction::assemble;
use freeport_kv_keyspace::Kind;
use freeport_port::trace::{Sizes, Trace};
use freeport_port::{Generator, PcapTransmitter, Receive, Transmit};
use freeport_testbed::is_long;
use freeport_tests::oracle::seed;
use freeport_tests::repository;
use freeport_tests::untrusted::{READERS, STEERED};
use std::fs;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::process::Command;

/// Number of mutated samples per reader in a usual run.
const TRIES: u64 = 3_000;
/// Maximum length of an input in bytes.
const BYTES_MAX: usize = 20_000;

#[test]
fn no_input_makes_a_reader_panic() {
    let (first, tries) = (seed(1), if is_long() { 100 * TRIES } else { TRIES });
    for (name, read) in READERS {
        let samples = samples(name);
        assert!(!samples.is_empty(), "{name} has samples");
        samples.iter().for_each(|sample| read(sample));
        for seed in first..first + tries {
            let input = changed(&samples, &mut Rng::with_seed(seed));
            let result = catch_unwind(|| read(&input));
            let shown = String::from_utf8_lossy(&input);
            assert!(result.is_ok(), "FREEPORT_SEED={seed}: {name} panics at:\n{shown}");
        }
    }
}

#[test]
fn every_reader_has_a_fuzz_target() {
    for (name, _) in READERS {
        let target = repository().join(format!("tests/fuzz/fuzz_targets/{name}.rs"));
        let text = fs::read_to_string(&target).unwrap_or_default();
        assert!(text.contains(&format!("untrusted::{name}(")), "{}", target.display());
    }
}

/// Fuzz targets are not members of the workspace, so nothing else checks their manifest.
#[test]
fn fuzz_targets_can_be_built_by_their_names() {
    let manifest = repository().join("tests/fuzz/Cargo.toml");
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let output = command.arg("--manifest-path").arg(manifest).output().expect("there is a cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let known: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let targets = known["packages"][0]["targets"].as_array().expect("there are targets");
    let names: Vec<&str> = targets.iter().filter_map(|target| target["name"].as_str()).collect();
    for (name, _) in READERS {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
}

/// Inputs that mutation does not find in the time of a test were found by fuzzing.
#[test]
fn what_fuzzing_found_is_kept_for_rings_and_members() {
    for reader in ["ring", "shared_queue", "hello", "monitor_messages"] {
        assert!(samples(reader).len() > written(reader).len(), "{reader}");
    }
}

/// Fuzzing starts from the samples as well: `FREEPORT_SEEDS=folder` writes them there.
#[test]
fn samples_are_written_for_fuzzing() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let given = std::env::var_os("FREEPORT_SEEDS").map(PathBuf::from);
    let folder = given.unwrap_or_else(|| temporary.path().to_owned());
    for (name, _) in READERS {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).expect("a folder can be made");
        for (at, sample) in samples(name).iter().enumerate() {
            fs::write(folder.join(format!("sample-{at}")), sample).expect("it can be written");
        }
        let written = fs::read_dir(folder).expect("it is there").count();
        assert!(written >= samples(name).len() && written > 0, "{name}");
    }
}

/// Returns a reader's inputs: samples, and kept fuzzing inputs that reach more of its code.
fn samples(reader: &str) -> Vec<Vec<u8>> {
    let kept = repository().join("tests/fuzz/kept").join(reader);
    let mut paths: Vec<_> = match fs::read_dir(kept) {
        Ok(entries) => entries.map(|entry| entry.expect("it can be listed").path()).collect(),
        Err(_) => vec![],
    };
    paths.sort();
    let kept = paths.into_iter().map(|path| fs::read(path).expect("it is in the repository"));
    written(reader).into_iter().chain(kept).collect()
}

/// Returns mostly valid inputs of a reader.
fn written(reader: &str) -> Vec<Vec<u8>> {
    let file = |path: &str| fs::read(repository().join(path)).expect("it is in the repository");
    let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    match reader {
        "language" | "format" => {
            let examples = ["checksum", "capture", "forward", "wire", "gateway"];
            let examples = examples.map(|name| file(&format!("examples/{name}.cnp")));
            examples.into_iter().chain([STEERED.into()]).collect()
        }
        "representation" => {
            let folder = "compiler/ir/tests";
            let paths = ["text/everything", "text/sound", "freeze/histogram"];
            let whole = paths.map(|path| file(&format!("{folder}/{path}.ir")));
            whole.into_iter().chain([file("examples/mac_swap.ir")]).collect()
        }
        "capture" => ["a.pcap", "a.pcapng"].map(recorded).into(),
        "request" => texts(REQUESTS),
        "call" => texts(CALLS),
        "initial_values" => {
            let examples = ["firewall", "router", "balancer", "gateway"];
            let examples = examples.map(|name| file(&format!("examples/{name}.json")));
            examples.into_iter().chain(texts(INITIAL_VALUES)).collect()
        }
        "ring" => (0..30).map(behaviour).collect(),
        // The last samples have many connections.
        "shared_queue" => (0..30).chain(36..39).map(behaviour).collect(),
        "hello" => [1, 0, 3].map(hello).into(),
        "monitor_messages" => (0..30).map(members).collect(),
        "bpf_program" | "bpf_analysis" | "bpf_lift" => {
            BPF_PROGRAMS.iter().map(|text| assembled(text)).collect()
        }
        // Two bytes of options come first.
        "bpf_rows" => {
            let programs =
                BPF_PROGRAMS.iter().zip([[64, 3], [255, 3], [254, 0], [12, 1]].into_iter().cycle());
            programs.map(|(text, options)| [&options[..], &assembled(text)].concat()).collect()
        }
        "executable" => vec![compiled("maps"), with_loader(compiled("maps"))],
        "object" => ["maps", "functions", "facts", "legacy"].map(compiled).into(),
        "assembly" => texts(ASSEMBLY),
        "kv_values" => freeport_tests::untrusted::kv_values::samples(),
        "resp_request" => texts(RESP_REQUESTS),
        "resp_value" => texts(RESP_VALUES),
        "memcached_request" => texts(MEMCACHED_REQUESTS),
        "memcached_server" => texts(MEMCACHED_REQUESTS),
        "kv_commands" => texts(KV_COMMANDS),
        // Strings are the first type, and no part of the other samples.
        "kv_detached" => {
            let values = freeport_tests::untrusted::kv_values::samples();
            let kind = |kind: u8| {
                [Kind::Hash, Kind::List, Kind::Set, Kind::SortedSet, Kind::Stream]
                    [usize::from(kind)] as u8
            };
            let values = values.into_iter().map(|value| [&[kind(value[0])], &value[1..]].concat());
            values.chain([b"\0text".to_vec()]).collect()
        }
        "kv_etcd" => freeport_tests::untrusted::kv_etcd::samples(),
        "kv_journal" => freeport_tests::untrusted::kv_journal::samples(),
        "kv_batch_request" | "kv_batch_reply" => {
            freeport_tests::untrusted::kv_batch::samples(reader)
        }
        "kv_replication" => freeport_tests::untrusted::kv_replication::samples(),
        "plan_files" => freeport_tests::untrusted::plan_files::samples(),
        "plan_profile" => freeport_tests::untrusted::plan_profile::samples(),
        "study_messages" => freeport_tests::untrusted::study_messages::samples(),
        "kv_scripts" => freeport_tests::untrusted::kv_scripts::samples(),
        other => panic!("{other} has no samples"),
    }
}

/// Pipelines, each after a byte that says where they are cut.
const MEMCACHED_REQUESTS: &[&str] = &[
    "\x01set key 7 0 5\r\nvalue\r\nget key other\r\ngats 60 a b\r\n\
     cas k 0 0 1 9 noreply\r\nv\r\n",
    "\x07mg key v k t O12 N30 R-1\r\nms AAE= 2 b C9 F3 MA T0\r\nab\r\n\
     ma k D2 J5 M- q\r\nmd k I T5\r\n",
    "\x30incr k 18446744073709551615\r\ndelete k 0 noreply\r\ntouch k -1\r\n\
     flush_all 5 noreply\r\nme AA== b\r\nmn\r\nstats items\r\nverbosity 1\r\n\
     cache_memlimit 64\r\nquit\r\n",
    "\x05set key 0 0 70000\r\nxx\r\nset k 0 0 1\r\nvv\r\nms k 1 x\r\nv\r\n\
     slabs automove 0 noreply\r\n",
];

/// Turns an object into a program that names a loader.
fn with_loader(mut object: Vec<u8>) -> Vec<u8> {
    // Adds one program header at the end: its type is the first word.
    let place = object.len() as u64;
    object[32..40].copy_from_slice(&place.to_le_bytes());
    object[54..58].copy_from_slice(&[56, 0, 1, 0]);
    object.extend(3_u32.to_le_bytes());
    object.extend([0; 52]);
    object
}

/// Assembles a program into its slots.
fn assembled(text: &str) -> Vec<u8> {
    let slots = assemble(text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    slots.into_iter().flat_map(|slot| slot.to_bytes()).collect()
}

/// Programs that use the packet, maps, functions and helpers.
const BPF_PROGRAMS: &[&str] = &[
    "r6 = r1
     r2 = *(u32 *)(r1 + 0x0)
     r3 = *(u32 *)(r1 + 0x4)
     r4 = r2
     r4 += 0x22
     if r4 > r3 goto +0x6
     r5 = *(u16 *)(r2 + 0xc)
     r5 = be16 r5
     *(u32 *)(r2 + 0x1a) = 0x7
     w5 s>>= w2
     lock *(u64 *)(r10 - 0x8) += r5
     r0 = 0x2
     exit",
    "*(u32 *)(r10 - 0x4) = 0x1
     *(u64 *)(r10 - 0x10) = 0x9
     r1 = map[0x1]
     r2 = r10
     r2 += -0x4
     r3 = r10
     r3 += -0x10
     r4 = 0x0
     call 0x2
     r1 = map[0x1]
     r2 = r10
     r2 += -0x4
     call 0x1
     if r0 == 0x0 goto +0x1
     *(u64 *)(r0 + 0x0) = 0x5
     exit",
    "r1 = map[0x4]
     r2 = 0x10
     r3 = 0x0
     call 0x83
     if r0 == 0x0 goto +0x4
     *(u8 *)(r0 + 0xf) = 0x1
     r1 = r0
     r2 = 0x0
     call 0x84
     call 0x5
     exit",
    "r6 = r1
     r2 = -0x40
     call 0x2c
     r1 = r6
     r2 = 0x80
     call 0x41
     r1 = 0x5
     call pc + 0x1
     exit
     r0 = r1
     r1 += -0x1
     if r1 == 0x0 goto +0x1
     call pc - 0x4
     exit",
];

/// Compiles a source of the loader's own tests with clang.
fn compiled(name: &str) -> Vec<u8> {
    let source = repository().join(format!("compiler/ebpf/tests/objects/{name}.bpf.c"));
    let out = tempfile::NamedTempFile::new().expect("a file can be made");
    let status = Command::new("clang-19")
        .args(["-target", "bpf", "-g", "-O2", "-mcpu=v3", "-w"])
        .args(["-idirafter", "/usr/include/x86_64-linux-gnu", "-c", "-o"])
        .args([out.path(), source.as_path()])
        .status();
    assert!(status.expect("clang-19 is installed").success(), "{name} is compiled");
    fs::read(out.path()).expect("it was written")
}

/// Returns a hello for a stream over rings of 4 KiB.
fn hello(flags: u64) -> Vec<u8> {
    let words = [1 | 1 << 32, flags, 4096, 4096, 3 * 4096];
    let words = words.into_iter().flat_map(u64::to_le_bytes);
    b"FREEPORT".iter().copied().chain(words).collect()
}

const REQUESTS: &[&str] = &[
    r#"{"do": "call", "id": 7, "path": "fw.insert", "arguments": [{"a": "10.0.0.1"}, [2]]}"#,
    r#"{"do": "call", "call": "fw.insert({source: 10.0.0.1}, 0x1f, [1, 2])"}"#,
    r#"{"do": "signal", "instance": "it", "command": 1, "words": [18446744073709551615]}"#,
    r#"{"do": "set", "path": "it.rules[3].key.port", "value": {"a": [1, null, -2.5e3, "x"]}}"#,
    r#"{"do": "stats", "format": "prometheus"}"#,
    r#"{"do": "told", "since": 12}"#,
    r#"{"do": "init", "values": {"it": {"count": 1, "insert()": [[1, 2, 3]]}}}"#,
    r#"{"do": "replace", "file": "a\u0000b.cnp", "force": true}"#,
    r#"{"do": "resume", "instance": "\ud83e\udd80"}"#,
    r#"{"do": "map_lookup", "entry": "flows key hex 0a 0b", "format": "text"}"#,
    r#"{"do": "map_change", "setting": "map update name a key 0 0x1f 017 value name b exist"}"#,
];

const CALLS: &[&str] = &[
    "it.insert({source: 10.0.0.1, port: 80, flags: 0b101, mac: 02:00:00:00:00:01}, \
     {key: {port: 1}, bytes: [1, 2, 3, 4], wide: 0xfffffffffffffffffffffffff, \
     signed_number: -1}, 3)",
    "it.first()",
    "it.exact.update({source: 1}, {wide: 1})",
    "it.exact.lookup({source: 1})",
    "it.prefixes.update(10.0.0.0, 8, 1)",
    "it.prefixes.delete(10.0.0.0, 8)",
    "it.places.update(3, {port: 1})",
    "it.exact.entries()",
];

const ASSEMBLY: &[&str] = &[
    "r1 = 0x1122334455667788 ll\nif w1 s>= -1 goto end\nr0 = be16 r0\nr2 = (s8)r3\nend:\nexit",
    "r1 = map[2]\nr2 = map[0]+0x8\ncall 0x1\ncall pc-0x2\ncall kernel[3, 1]\ngotol +0x8\nexit",
    "w1 = atomic_fetch_add((u32 *)(r2 - 0x8), w1)\nr0 = cmpxchg_64(r1 + 0x0, r0, r2)\n\
     lock *(u64 *)(r1 + 0x8) |= r2\n*(u8 *)(r10 - 0x1) = 0x7\nr1 = *(s16 *)(r2 + 0x4)",
    "r0 = *(u16 *)skb[r1 + 0xc]\nr0 = *(u8 *)skb[0x17]\nr1 s/= r2\nw3 = -w3\nr2 = function+0x1",
];

/// The first byte gives the portions, and whether the client has authenticated.
const RESP_REQUESTS: &[&str] = &[
    "\x7f*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n*1\r\n$4\r\nPING\r\n",
    "\x05SET key \"a\\x41\\n b\" 'it\\'s'\r\n\r\n*0\r\n*-1\r\nPING\n",
    "\x0a*2\r\n$4\r\nECHO\r\n$12\r\n0123456789ab\r\nGET k\r\n",
    "\x20*10\r\n$16385\r\n",
];

/// The first byte gives the version of the replies.
const KV_COMMANDS: &[&str] = &[
    "\x02SET a 1\nINCR a\nAPPEND a 12\nSETRANGE a 5 x\nGETRANGE a 0 -1\nMSET a 1 b 2 c 3\n\
     MGET a b c\nSETBIT a 7 1\nBITCOUNT a\nBITFIELD a GET u8 0 INCRBY i5 3 1\nEXPIRE a 10\n\
     TTL a\nRENAME a b\nDUMP b\nRESTORE a 0 x\nOBJECT ENCODING b\nPFADD p a b\nPFCOUNT p\n",
    "\x03HSET h f 1 g 2\nHGETALL h\nHINCRBYFLOAT h f 1.5\nHSCAN h 0 COUNT 5\nSADD s a b 1\n\
     SADD t 1 2\nSINTERSTORE u s t\nSUNION s t\nSPOP s\nLPUSH l a b c\nLINSERT l BEFORE b x\n\
     LRANGE l 0 -1\nLMOVE l m LEFT RIGHT\nBLPOP none 0\nLMPOP 2 l m LEFT COUNT 2\nLPOS m c\n",
    "\x02ZADD z 1 a 2 b\nZADD y NX 1.5 c\nZRANGE z 0 -1 WITHSCORES\n\
     ZUNIONSTORE x 2 z y WEIGHTS 1 2\nZRANGEBYSCORE x (1 +inf LIMIT 0 5\nZPOPMIN x\n\
     GEOADD g 13.36 38.11 P 15.08 37.5 C\n\
     GEODIST g P C km\nGEOSEARCH g FROMMEMBER P BYRADIUS 200 km ASC WITHDIST\nSCAN 0\n\
     KEYS *\nTYPE z\nCOPY z w\nDEL z y\nRANDOMKEY\nFLUSHALL\nDBSIZE\n",
    "\x03*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$2\r\nPX\r\n$2\r\n10\r\nGETEX k PERSIST\n\
     SET n 5 GET\nLCS k n IDX\nSORT l BY nosort GET #\nSUBSTR k 0 1\nTOUCH k n\n",
];

/// The first byte gives the portions.
const RESP_VALUES: &[&str] = &[
    "\x7f+OK\r\n-ERR no\r\n:-12\r\n$3\r\nabc\r\n$-1\r\n*2\r\n*-1\r\n*1\r\n:1\r\n",
    "\x03_\r\n#t\r\n,1.5e-7\r\n,inf\r\n(-123456789012345678901\r\n!5\r\nERR x\r\n=5\r\ntxt:a\r\n",
    "\0%2\r\n$1\r\na\r\n~1\r\n:1\r\n+b\r\n>0\r\n|1\r\n+ttl\r\n:9\r\n>1\r\n+message\r\n",
    "\x20*?\r\n:1\r\n%?\r\n+a\r\n$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n.\r\n.\r\n~?\r\n.\r\n",
];

const INITIAL_VALUES: &[&str] = &[
    r#"{"it": {"count": 5, "rules": {"1": {"key": {"mac": "02:00:00:00:00:01"}}, "3": {}},
        "is_on": true, "insert()": [[{"port": 80}, {"bytes": [1, 2]}, "0x3"], [0, 0, 9]],
        "exact.update()": [[{"source": "10.0.0.1"}, {"wide": "-1"}]]}}"#,
    r#"{"it": {"rules": [{"wide": 1}, {"signed_number": -7}]}}"#,
];

/// Returns actions of both ends of a ring, for each size and each kind of end.
fn behaviour(number: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(number);
    // Trailing zeros would have no effect.
    let steps = (0..600).map(|_| if random.bool() { random.u8(1..) } else { 6 });
    [(number / 3) as u8, number as u8].into_iter().chain(steps).collect()
}

/// Returns actions of members: a hello, then arbitrary ones.
fn members(number: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(number);
    let hellos = (0..4).flat_map(|member| [1, member]);
    let steps = (0..200).flat_map(|_| {
        let kind = random.choice([2, 2, 2, 3, 4, 5, 7, 9, 10]).unwrap_or(2);
        [kind, random.u8(..), random.u8(..)]
    });
    let steps: Vec<u8> = steps.collect();
    hellos.chain(steps).collect()
}

/// Returns a small capture file.
fn recorded(name: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join(name);
    let trace = Trace { frames: 20, sizes: Sizes::Uniform(54..=200), ..Trace::default() };
    let trace = trace.generate();
    let mut source = Generator::once(&trace).expect("a good trace");
    let mut port = PcapTransmitter::create(&path).expect("a file can be made");
    let batch = source.receive(trace.len()).expect("there is memory");
    port.transmit(batch.as_frames()).expect("it can be written");
    port.finish().expect("it can be written");
    fs::read(path).expect("it was just written")
}

/// Pieces for mutation: marks, words, and numbers at boundaries.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"",
    ":",
    ",",
    ".",
    "-",
    "0",
    "-1",
    "1e999",
    "null",
    "true",
    "4294967296",
    "18446744073709551616",
    "0x",
    "0xffffffffffffffffffffffffffffffffffff",
    "10.0.0",
    "256.0.0.1",
    "02:00:00:00:00",
    "\\u0000",
    "\\ud800",
    "\u{0}",
    "\u{80}",
    "🦀",
    "()",
    "[0]",
    "it",
    "rules",
    "entries",
    "%",
    "bits<0>",
    "bits<4097>",
    "[999999999999]",
    "depth 0",
    "\n",
    "\t",
    "//",
];

/// Returns a sample with a few changes.
fn changed(samples: &[Vec<u8>], random: &mut Rng) -> Vec<u8> {
    let mut bytes = samples[random.usize(..samples.len())].clone();
    for _ in 0..random.usize(1..8) {
        let at = random.usize(..=bytes.len());
        let end = (at + random.usize(0..24)).min(bytes.len());
        match random.u32(0..7) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let copy = bytes[at..end].repeat(random.usize(1..4));
                drop(bytes.splice(at..at, copy));
            }
            2 => bytes.truncate(at),
            3 => {
                let other = &samples[random.usize(..samples.len())];
                let rest = other[random.usize(..=other.len())..].to_vec();
                drop(bytes.splice(at..end, rest));
            }
            4 => bytes[at..end].fill([0, 0xff, b' ', random.u8(..)][random.usize(..4)]),
            5 if at < bytes.len() => bytes[at] ^= 1 << random.u32(..8),
            _ => {
                let piece = PIECES[random.usize(..PIECES.len())];
                drop(bytes.splice(at..at, piece.bytes()));
            }
        }
        bytes.truncate(BYTES_MAX);
    }
    bytes
}
