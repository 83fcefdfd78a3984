// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A running program always answers requests, and one that is blocked reports why: the same on both
//! devices, however frames arrive.

use crate::running::Folder;
use std::path::Path;
use std::process::Output;

const DEVICES: [&str; 2] = ["native", "interpreter"];

/// An element that waits for both inputs.
const JOIN: &str = "// SPDX-License-Identifier: Apache-2.0 OR MIT
.element Join (packet a, packet b -> packet out) await all {
  .handler {
    packet p = read_input_port(a);
    packet _q = read_input_port(b);
    set_output_port(out, p);
  }
}
Join :: j
from_tor -> [a] j -> to_tor
from_nic -> [b] j
";
const JOIN_WAITS: &str = "nothing can move, though data waits
  j waits for an item in from_nic -> j.b (0 of 16)
";

/// Two elements that wait for each other.
const RING: &str = "// SPDX-License-Identifier: Apache-2.0 OR MIT
.element Ask (packet in, packet back -> packet out) await all {
  .handler {
    packet p = read_input_port(in);
    packet _q = read_input_port(back);
    set_output_port(out, p);
  }
}
.element Answer (packet in -> packet out, packet back) {
  .handler {
    packet p = read_input_port(in);
    set_output_port(back, p);
    set_output_port(out, p);
  }
}
Ask :: ask
Answer :: answer
from_tor -> [in] ask -> answer [back] -> [back] ask
answer [out] -> to_tor
";
const RING_WAITS: &str = "nothing can move, though data waits
  ask waits for an item in answer.back -> ask.back (0 of 16)
  answer waits for an item in ask.out -> answer.in (0 of 16)
  in a cycle: answer.back -> ask.back (0 of 16) -> ask.out -> answer.in (0 of 16)
";

/// An element that generates packets without end.
const FLOOD: &str = "// SPDX-License-Identifier: Apache-2.0 OR MIT
.element Flood (-> packet out) {
  .handler { packet p = new_packet(60); set_output_port(out, p); }
}
Flood :: f
f -> to_tor
";

/// A loop in which each packet sends another one.
const CIRCLE: &str = "// SPDX-License-Identifier: Apache-2.0 OR MIT
.element Circle (packet in, packet back -> packet out, packet round) {
  .handler {
    if (test_input_port(back)) {
      packet q = read_input_port(back);
      set_output_port(round, q);
    } else if (test_input_port(in)) {
      packet p = read_input_port(in);
      packet r = new_packet(60);
      set_output_port(round, r);
      set_output_port(out, p);
    }
  }
}
Circle :: c
from_tor -> [in] c
c [round] ->{lossy} [back] c
c [out] -> to_tor
";

/// An element with long firings, without end.
const BUSY: &str = "// SPDX-License-Identifier: Apache-2.0 OR MIT
.element Busy (-> packet out) {
  .state { uint sum; }
  .handler {
    for (uint k = 0; k < 1000000; k++) sum = sum * 3 + k;
    packet p = new_packet(60);
    set_output_port(out, p);
  }
}
Busy :: b
b -> to_tor
";

/// A folder with a program, and captures of nine frames, of one, and of odd records.
fn folder(program: &str) -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.path().join("program.cnp"), program).unwrap();
    capture(&folder.path().join("nine.pcap"), &[(60, 60); 9]);
    capture(&folder.path().join("one.pcap"), &[(60, 60)]);
    capture(&folder.path().join("odd.pcap"), &[(60, 60), (9_342, 9_342), (0, 0), (60, 1_500)]);
    folder
}

/// Writes a capture of records of these captured and original lengths.
fn capture(path: &Path, records: &[(u32, u32)]) {
    let mut bytes = vec![];
    for word in [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for (captured, original) in records {
        for word in [0, 0, *captured, *original] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(bytes.len() + *captured as usize, 0);
    }
    std::fs::write(path, bytes).unwrap();
}

fn run(folder: &Folder, arguments: &[&str]) -> Output {
    let at = |name: &str| folder.path().join(name).display().to_string();
    let arguments: Vec<String> = arguments
        .iter()
        .map(|word| match word.split_once("=.") {
            Some((end, file)) => format!("{end}={}", at(file)),
            None => (*word).to_owned(),
        })
        .collect();
    let program = at("program.cnp");
    let words = arguments.iter().map(String::as_str);
    folder.freeport(&["run", &program].into_iter().chain(words).collect::<Vec<_>>())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_program_that_stalls_ends_with_the_same_report_on_every_device_and_in_any_batches() {
    let join = ["--in", "from_tor=.nine.pcap", "--in", "from_nic=.one.pcap"];
    let ring = ["--in", "from_tor=.nine.pcap"];
    for (program, inputs, waits) in [(JOIN, &join[..], JOIN_WAITS), (RING, &ring[..], RING_WAITS)] {
        let folder = folder(program);
        let file = ["--out", "to_tor=.out.pcap"];
        let count = ["--out", "to_tor=count"];
        for on in DEVICES {
            for how in [&file[..], &count[..], &["--batch", "1"], &["--batch", "256"]] {
                let output = run(&folder, &[inputs, how, &["--on", on]].concat());
                let expected = format!("freeport: the program stalls: {waits}");
                assert_eq!(text(&output.stderr), expected, "{on} {how:?}");
                assert_eq!(output.status.code(), Some(1), "{on} {how:?}");
            }
        }
    }
}

#[test]
fn a_program_that_stalls_and_goes_on_says_so_in_its_statistics() {
    let folder = folder(JOIN);
    let program = folder.path().join("program.cnp").display().to_string();
    for on in DEVICES {
        let ends = ["--in", "from_tor=gen:60", "--in", "from_nic=gen:60x1", "--on", on];
        let mut running = folder.start("join", &[&[program.as_str()][..], &ends].concat());
        let waits = JOIN_WAITS.trim_end();
        let stats = || folder.reported(&["stats", "--to", "join"]);
        running.wait_until("it stalls", || stats().ends_with(&format!("\n\n{waits}\n")));
        assert_eq!(running.stats()["waits"], waits);
        assert!(folder.reported(&["ps"]).contains("stalled"), "{on}");
        running.reported(&["stop"]);
        assert!(running.ended().status.success(), "it was stopped");
    }
}

#[test]
fn a_program_that_never_rests_answers_and_stops() {
    for (program, ends) in [
        (FLOOD, &["--out", "to_tor=count"][..]),
        (FLOOD, &[]),
        (BUSY, &["--out", "to_tor=count"]),
        (CIRCLE, &["--in", "from_tor=gen:60", "--out", "to_tor=count"]),
    ] {
        let folder = folder(program);
        let program = folder.path().join("program.cnp").display().to_string();
        for on in DEVICES {
            // The test waits for its answers without a limit.
            let arguments = [&[program.as_str()][..], ends, &["--on", on]].concat();
            let running = folder.start("endless", &arguments);
            let firings = || running.stats()["instances"][0]["firings"].as_u64().unwrap();
            let before = firings();
            while firings() == before {}
            running.reported(&["stop"]);
            assert!(running.ended().status.success(), "{on}");
        }
    }
}

#[test]
fn a_run_that_goes_on_by_itself_takes_all_frames_and_says_how_it_ends() {
    let folder = folder(CIRCLE);
    for on in DEVICES {
        let ends = ["--in", "from_tor=.nine.pcap", "--out", "to_tor=count", "--time"];
        let output = run(&folder, &[&ends[..], &["--on", on]].concat());
        let reported = text(&output.stderr);
        assert!(reported.contains("the program keeps firing without frames"), "{on}: {reported}");
        assert!(reported.contains("frames in, "), "{on}: {reported}");
        assert!(output.status.success(), "{on}");
    }
}

#[test]
fn a_run_waits_for_packets_that_are_due_later_by_the_same_clock_on_every_device() {
    let limits = "// SPDX-License-Identifier: Apache-2.0 OR MIT
Policer<RATE = 100000000, BURST = 9216> :: police
Shaper<RATE = 100000, BURST = 60> :: shape
from_tor -> police -> shape -> to_tor
";
    let folder = folder(limits);
    for on in DEVICES {
        // At a hundredth of the policer's rate nothing is dropped.
        let ends = ["--in", "from_tor=gen:60x30@2000", "--out", "to_tor=.out.pcap", "--on", on];
        let get = ["--get", "police.dropped", "--get", "shape.sent", "--get", "police.passed"];
        let output = run(&folder, &[&ends[..], &get].concat());
        let expected = "police.dropped = 0\nshape.sent = 30\npolice.passed = 30\n";
        assert_eq!(text(&output.stdout), expected, "{on}: {}", text(&output.stderr));
    }
}

#[test]
fn records_of_a_capture_that_are_no_whole_frames_are_counted_and_told() {
    let folder = folder("// SPDX-License-Identifier: Apache-2.0 OR MIT\nfrom_tor -> to_tor\n");
    for on in DEVICES {
        let ends = ["--in", "from_tor=.odd.pcap", "--out", "to_tor=count", "--on", on];
        let output = run(&folder, &[&ends[..], &["--stats", "json"]].concat());
        let stats: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let input = &stats["endpoints"][0];
        assert_eq!((&input["frames"], &input["lost"]), (&2.into(), &2.into()), "{on}");
        let reported = text(&output.stderr);
        assert!(reported.contains("from_tor: 2 records were skipped; the first: "), "{reported}");
        assert!(reported.contains("record 2: skipped: 9342 bytes"), "{reported}");
        assert!(reported.contains("record 4: the capture kept 60 of 1500 bytes"), "{reported}");
    }
}

#[test]
fn a_run_that_nothing_feeds_says_so() {
    let folder = folder(JOIN);
    let output = run(&folder, &["--out", "to_tor=count", "--on", "interpreter"]);
    let reported = text(&output.stderr);
    assert!(
        reported.starts_with("nothing feeds from_tor, from_nic: name a source, "),
        "{reported}"
    );
    assert!(output.status.success());
}

#[test]
fn what_a_file_of_initial_calls_cannot_have_ends_the_run() {
    let program = "// SPDX-License-Identifier: Apache-2.0 OR MIT
.element Hops (packet in -> packet out) {
  .state { uint hops[4]; }
  .handler { packet p = read_input_port(in); set_output_port(out, p); }
  .method bool set(uint number, uint value) {
    if (number >= 4) return false;
    hops[number] = value;
    return true;
  }
}
Hops :: hops
from_tor -> hops -> to_tor
";
    let folder = folder(program);
    let initial = folder.path().join("initial.json");
    for on in DEVICES {
        for (last, is_good) in [(3, true), (5, false)] {
            let calls: Vec<[u32; 2]> = (0..=last).map(|number| [number, 7]).collect();
            let calls = serde_json::json!({"hops": {"set()": calls}});
            std::fs::write(&initial, calls.to_string()).unwrap();
            let file = initial.display().to_string();
            let ends = ["--in", "from_tor=.one.pcap", "--init", &file, "--on", on];
            let output = run(&folder, &ends);
            let reported = text(&output.stderr);
            assert_eq!(output.status.success(), is_good, "{reported}");
            let expected = format!("{file}: hops.set refused 2 of 6 calls; a table may be full");
            assert_eq!(reported.contains(&expected), !is_good, "{reported}");
        }
    }
}

#[test]
fn named_folders_add_to_the_library_and_elements_are_found_beside_the_program() {
    let mine = "// SPDX-License-Identifier: Apache-2.0 OR MIT
.element Mine (packet in -> packet out) {
  .handler { packet p = read_input_port(in); set_output_port(out, p); }
}
";
    let program = "// SPDX-License-Identifier: Apache-2.0 OR MIT
Mine :: mine
Other :: other
Policer :: police
from_tor -> mine -> other -> police -> to_tor
";
    let folder = folder(program);
    let others = folder.path().join("others");
    std::fs::create_dir(&others).unwrap();
    std::fs::write(folder.path().join("Mine.cnp"), mine).unwrap();
    std::fs::write(others.join("all.cnp"), mine.replace("Mine", "Other")).unwrap();
    let program = folder.path().join("program.cnp").display().to_string();
    let others = others.display().to_string();
    folder.reported(&["check", &program, "-L", &others]);
    let reported = folder.complaint(&["check", &program]);
    assert!(reported.contains("Other") && !reported.contains("no element `Mine`"), "{reported}");
}
