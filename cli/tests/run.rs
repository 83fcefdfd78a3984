// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands on the sample program and the sample capture.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn freeport(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(arguments).current_dir(repository()).stdin(Stdio::null());
    // Native code of tests does not go to the user's cache.
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")).env_remove("FREEPORT_ELEMENTS");
    command.output().unwrap()
}

fn standard_output(arguments: &[&str]) -> String {
    let output = freeport(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn complaint(arguments: &[&str]) -> String {
    let output = freeport(arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

const PROGRAM: &str = "examples/capture.cnp";
const TRACE: &str = "from_tor=examples/traces/sample.pcap";
const MACHINES: [[&str; 2]; 2] = [["--on", "native"], ["--on", "interpreter"]];

#[test]
fn a_capture_goes_through_a_program_unchanged_and_is_counted() {
    for machine in MACHINES {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out.pcap");
        let out = format!("to_tor={}", file.display());
        let copy = folder.path().join("copy.pcapng");
        let record = format!("from_tor={}", copy.display());
        let arguments = ["run", PROGRAM, "--in", TRACE, "--out", &out, "--signal", "cnt:0"];
        let more = ["--capture", &record, "--get", "logger.packets", "--get", "logger.lengths[3]"];
        let reported = standard_output(&[&arguments[..], &more, &machine].concat());
        let answer = "signal cnt: 100 0 0 0 0 0 0\n";
        assert_eq!(reported, format!("{answer}logger.packets = 100\nlogger.lengths[3] = 60\n"));
        let sent = std::fs::read(repository().join("examples/traces/sample.pcap")).unwrap();
        assert!(std::fs::read(&file).unwrap() == sent, "the capture has changed");
        assert!(std::fs::metadata(&copy).unwrap().len() > 35_000, "the record is too short");
    }
}

#[test]
fn native_code_and_the_interpreter_write_the_same_captures_and_counters() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("in.pcap").display().to_string();
    let copied = format!("to_tor={source}");
    let made = ["run", PROGRAM, "--in", "from_tor=gen:64-1500x300", "--out", &copied];
    standard_output(&made);
    let input = format!("from_tor={source}");
    for program in [PROGRAM, "examples/checksum.cnp", "examples/mac_swap.ir"] {
        let outcome = |machine: [&str; 2]| {
            let file = folder.path().join(machine[1]).with_extension("pcap");
            let out = format!("to_tor={}", file.display());
            let arguments = ["run", program, "--in", &input, "--out", &out, "--stats", "json"];
            let reported = standard_output(&[&arguments[..], &machine].concat());
            let mut stats: Value = serde_json::from_str(&reported).unwrap();
            if let Some(logger) = stats["variables"].get_mut("logger") {
                // Arrival times depend on when the program ran.
                logger.as_object_mut().unwrap().retain(|name, _| !name.starts_with("time"));
            }
            for channel in stats["channels"].as_array_mut().unwrap() {
                // The peak of a channel depends on the schedule.
                channel.as_object_mut().unwrap().remove("peak").unwrap();
            }
            (std::fs::read(file).unwrap(), stats)
        };
        let [native, interpreted] = MACHINES.map(outcome);
        assert_eq!(native.1, interpreted.1, "{program}");
        assert!(native.0 == interpreted.0, "{program}: the captures differ");
        assert!(native.0.len() > 100_000, "{program}: {} bytes", native.0.len());
    }
}

#[test]
fn instances_run_on_the_workers_they_are_placed_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.pcap");
    let out = format!("to_tor={}", file.display());
    let arguments = ["run", PROGRAM, "--in", TRACE, "--out", &out, "--signal", "cnt:0"];
    let more = ["--place", "logger=2,cnt=1", "--get", "logger.packets", "--cores", "0"];
    let reported = standard_output(&[&arguments[..], &more].concat());
    assert_eq!(reported, "signal cnt: 100 0 0 0 0 0 0\nlogger.packets = 100\n");
    assert!(std::fs::metadata(&file).unwrap().len() > 35_000, "frames are missing");
    let copies = ["--workers", "2", "--set", "cnt.count=7"];
    let reported = standard_output(&[&arguments[..6], &["--stats", "json"], &copies].concat());
    let stats: Value = serde_json::from_str(&reported).unwrap();
    let packets = |name: &str| {
        let mut rows = stats["instances"].as_array().unwrap().iter();
        rows.find(|row| row["instance"] == name).unwrap()["packets_in"].as_u64().unwrap()
    };
    assert_eq!(packets("cnt"), 100);
    assert_eq!(packets("cnt@0") + packets("cnt@1"), 100);
    let refused = |more: &[&str], reason: &str| {
        let reported = complaint(&[&["run", PROGRAM, "--in", TRACE], more].concat());
        assert!(reported.contains(reason), "{reported}");
    };
    refused(&["--place", "lodger=1"], "there is no instance lodger to place; there are cnt, tee");
    refused(&["--place", "logger"], "write INSTANCE=WORKER");
    refused(
        &["--place", "logger=1", "--cores", "900"],
        "worker 1: its thread cannot be pinned to core",
    );
    refused(&["--place", "logger=1", "--on", "interpreter"], "the interpreter runs on one worker");
}

#[test]
fn variables_are_set_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let init = folder.path().join("init.json");
    std::fs::write(&init, "{\"cnt\": {\"count\": 7}}").unwrap();
    let init = init.display().to_string();
    for machine in MACHINES {
        let count = |more: &[&str]| {
            let arguments = ["run", PROGRAM, "--in", "from_tor=gen:64x10", "--signal", "cnt:0"];
            standard_output(&[&arguments[..], more, &machine].concat())
        };
        assert_eq!(count(&[]), "signal cnt: 10 0 0 0 0 0 0\n");
        assert_eq!(count(&["--init", &init]), "signal cnt: 17 0 0 0 0 0 0\n");
        let both = ["--init", &init, "--set", "cnt.count=0x100"];
        assert_eq!(count(&both), "signal cnt: 266 0 0 0 0 0 0\n");
        let seen = count(&["--set", "logger.lengths[63]=1518", "--get", "logger.lengths[63]"]);
        assert!(seen.ends_with("\nlogger.lengths[63] = 1518\n"), "{seen}");
    }
}

#[test]
fn members_of_structs_are_set_and_shown_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limits.cnp");
    let text = "typedef struct { ushort most; int grace : 4; } limit;\n\
        .element Police (flit in -> flit out) {\n\
            .state { limit limits[4]; }\n\
            .handler {\n\
                if (test_input_port(in)) set_output_port(out, read_input_port(in));\n\
            }\n\
        }\n\
        Police :: police\nfrom_tor -> police -> to_tor\n";
    std::fs::write(&file, text).unwrap();
    let file = file.display().to_string();
    let set = ["--set", "police.limits[2]={\"most\": 900, \"grace\": -3}"];
    let part = ["--set", "police.limits[2].most=0x100", "--get", "police.limits[2]"];
    for machine in MACHINES {
        let arguments = [&["run", &file][..], &set, &part, &machine].concat();
        let reported = standard_output(&arguments);
        assert_eq!(reported, "police.limits[2] = {\"grace\":-3,\"most\":256}\n");
    }
}

#[test]
fn counters_agree_in_every_format_and_whatever_the_order_of_firings() {
    let arguments = ["run", PROGRAM, "--in", "from_tor=gen:imixx300", "--out", "to_tor=count"];
    let stats = |more: &[&str]| standard_output(&[&arguments[..], more].concat());
    let json: Value = serde_json::from_str(&stats(&["--stats", "json"])).unwrap();
    assert_eq!(json["endpoints"][0]["endpoint"], "from_tor");
    assert_eq!(json["endpoints"][0]["frames"], 300);
    assert_eq!(json["endpoints"][1]["frames"], 300);
    assert_eq!(json["endpoints"][1]["bytes"], json["endpoints"][0]["bytes"]);
    assert_eq!(json["variables"]["cnt"]["count"], 300);
    let firings = json["instances"][0]["firings"].as_u64().unwrap();
    assert!(firings > 600, "{json}");
    let prometheus = stats(&["--stats", "prometheus"]);
    let mut lines = prometheus.lines();
    let line = lines.find(|it| it.contains("firings") && it.contains("instance=\"cnt\""));
    assert!(line.is_some_and(|line| line.ends_with(&format!(" {firings}"))), "{prometheus}");
    for machine in MACHINES {
        let other = [&["--stats", "json", "--seed", "3", "--batch", "1"][..], &machine].concat();
        let other: Value = serde_json::from_str(&stats(&other)).unwrap();
        assert_eq!(other["instances"], json["instances"]);
    }
}

#[test]
fn an_outer_end_without_a_port_drops_and_counts() {
    let arguments = ["run", PROGRAM, "--in", "from_tor=gen:64x25", "--stats", "json"];
    let json: Value = serde_json::from_str(&standard_output(&arguments)).unwrap();
    assert_eq!(json["endpoints"][1]["frames"], 0);
    assert_eq!(json["endpoints"][1]["dropped"], 25);
}

#[test]
fn mistakes_are_answered_with_what_there_is() {
    let missing = "No such file or directory (os error 2)";
    for (arguments, wanted) in [
        (["--signal", "foo:0"], "freeport: there is no instance foo; there are cnt, tee, logger"),
        (["--signal", "tee:0"], "freeport: tee has no signal handler"),
        (["--set", "cnt.coun=1"], "freeport: there is no variable cnt.coun; there are count"),
        (["--get", "cnt.coun"], "freeport: there is no variable cnt.coun; there are count"),
        (
            ["--set", "cnt.count=0x1ffffffffffffffff"],
            "freeport: cnt.count: 0x1ffffffffffffffff does not fit 64 bits",
        ),
        (
            ["--get", "logger.lengths[64]"],
            "freeport: logger.lengths[64]: index 64, the array has 64 elements",
        ),
        (["--in", "from_tor=gone.pcap"], &format!("freeport: gone.pcap: {missing}")),
        (["--init", "gone.json"], &format!("freeport: gone.json cannot be read: {missing}")),
        (
            ["--in", "from_nic=gen:64x1"],
            "freeport: no port can be bound to from_nic: the program has from_tor, to_tor",
        ),
        (
            ["--capture", "to_tor=x.pcapng"],
            "freeport: to_tor has no port; join it with --in to_tor=... or --out to_tor=count",
        ),
        (
            ["--in", "from_tor"],
            "error: invalid value 'from_tor' for '--in <END=SOURCE>': expected ENDPOINT=PORT, such \
             as from_tor=trace.pcap\n\nFor more information, try '--help'.",
        ),
        (
            ["--in", "from_tor=gen:9-3x1"],
            "error: invalid value 'from_tor=gen:9-3x1' for '--in <END=SOURCE>': `9-3x1`: expected \
             SIZExCOUNT or SIZE, such as 64x1000\n\nFor more information, try '--help'.",
        ),
    ] {
        let reported = complaint(&[&["run", PROGRAM][..], &arguments].concat());
        assert_eq!(reported, format!("{wanted}\n"), "{arguments:?}");
    }
    assert!(complaint(&["run", PROGRAM, "--in", "from_tor=Cargo.toml"]).contains("Cargo.toml"));
}

#[test]
fn files_that_are_no_programs_are_answered_with_the_reason() {
    let missing = "No such file or directory (os error 2)";
    let cnp = format!(
        "freeport: gone.cnp cannot be used\nerror[E0517]: cannot read `gone.cnp`: {missing}\n \
         --> gone.cnp:1:1\n"
    );
    assert_eq!(complaint(&["run", "gone.cnp"]), cnp);
    let ir = "freeport: gone.ir cannot be used\nerror[F0002]: gone.ir:1:1: cannot be read: ";
    assert_eq!(complaint(&["graph", "gone.ir"]), format!("{ir}{missing}\n"));
    let other = "freeport: Cargo.toml cannot be used\nerror[F0001]: Cargo.toml:1:1: a program is \
        a .cnp file, or a .ir file with the text form of the IR\n";
    assert_eq!(complaint(&["build", "Cargo.toml", "-o", "out"]), other);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("unsound.ir");
    let text = "program x\nelement A {\n  out o: flit\n  handler {\n    entry:\n      \
        %a = const 1:8\n      put o, %a\n      done\n  }\n}\n";
    std::fs::write(&file, text).unwrap();
    let file = file.display();
    let unsound = "1:1: function A.handler, entry, operation 1: the port has items of another type";
    let reported = format!("freeport: {file} cannot be used\nerror[I0002]: {file}:{unsound}\n");
    assert_eq!(complaint(&["run", &file.to_string()]), reported);
}

#[test]
fn a_program_is_built_and_what_became_of_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("new/images");
    let build = ["build", PROGRAM, "-o", &output.display().to_string(), "--json"];
    let reported: Value = serde_json::from_str(&standard_output(&build)).unwrap();
    let find = |list: &str, key: &str, name: &str| {
        let rows = reported[list].as_array().unwrap();
        rows.iter().find(|row| row[key] == name).cloned().unwrap_or_else(|| panic!("{reported}"))
    };
    let logger = find("elements", "element", "PktLogger<64>");
    let lengths = logger["variables"].as_array().unwrap();
    let lengths = lengths.iter().find(|it| it["variable"] == "lengths").unwrap();
    let wanted = serde_json::json!({"variable": "lengths", "width": 32, "depth": 64,
        "stored": "local"});
    assert_eq!(*lengths, wanted);
    assert_eq!(find("channels", "channel", "cnt.out -> tee.in")["is_fused"], true);
    assert!(find("passes", "pass", "ssa")["changes"]["variables"].as_u64().unwrap() > 0);
    assert_eq!(reported["files"].as_array().unwrap().len(), 3);
    let source = std::fs::read_to_string(output.join("capture.c")).unwrap();
    assert!(source.contains("PktLogger"));
    assert!(std::fs::read(output.join("capture.so")).unwrap().starts_with(b"\x7fELF"));
    let manifest = std::fs::read_to_string(output.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["instances"][2]["name"], "logger");
    let text = standard_output(&build[..4]);
    assert!(text.contains("\n  variable lengths: 32 bits x 64, local\n"), "{text}");
}

#[test]
fn passes_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().display().to_string();
    let build = ["build", PROGRAM, "-o", &output, "--json"];
    let ran = |without: &[&str]| {
        let reported = standard_output(&[&build, without].concat());
        let reported: Value = serde_json::from_str(&reported).unwrap();
        let passes = reported["passes"].as_array().unwrap().iter();
        passes.map(|it| it["pass"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = ran(&[]);
    assert!(all.contains(&"ssa".to_owned()) && all.contains(&"unroll".to_owned()), "{all:?}");
    let mut others = all.clone();
    others.retain(|pass| pass != "ssa" && pass != "unroll");
    assert_eq!(ran(&["--without", "ssa", "--without", "unroll"]), others);
    let unknown = complaint(&[&build[..], &["--without", "magic"]].concat());
    let list = format!("there is no pass `magic`; the passes are: async_extraction, {}", all[0]);
    assert!(unknown.contains(&list), "{unknown}");
    let input = ["--in", "from_tor=examples/traces/sample.pcap", "--signal", "cnt:0"];
    for pass in &all {
        let run = [&["run", PROGRAM, "--without", pass][..], &input].concat();
        assert_eq!(standard_output(&run), "signal cnt: 100 0 0 0 0 0 0\n", "{pass}");
    }
}

#[test]
fn a_program_is_drawn() {
    let drawing = standard_output(&["graph", "examples/checksum.cnp"]);
    assert!(drawing.starts_with("<svg ") && drawing.ends_with("</svg>\n"));
    for name in [">check<", ">swap<", ">logger<", ">from_tor<", ">to_tor<", "channel lossy"] {
        assert!(drawing.contains(name), "{name}");
    }
}

#[test]
fn a_machine_is_examined() {
    let reported: Value = serde_json::from_str(&standard_output(&["doctor", "--json"])).unwrap();
    let names: Vec<&str> = reported["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    let expected = ["compiler", "cores", "AF_XDP", "BPF", "namespaces", "memlock", "capabilities"];
    for name in expected.into_iter().chain(["shared memory", "descriptors", "sockets"]) {
        assert!(names.contains(&name), "{names:?}");
    }
    // Optional parts, which this build has.
    for name in ["card", "kernel"] {
        let check = reported["checks"].as_array().unwrap().iter().find(|it| it["name"] == name);
        assert_eq!(check.expect("it is told")["state"], "ok", "{name}");
    }
}

#[test]
fn syntax_errors_are_told_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.cnp");
    std::fs::write(&path, "Count :: cnt\nfrom_tor => cnt\n").unwrap();
    let path = path.display().to_string();
    assert!(complaint(&["check", &path]).contains("bad.cnp:2:"));
    let output = freeport(&["check", "--json", &path]);
    let first = String::from_utf8(output.stdout).unwrap();
    let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert_eq!((&first["severity"], &first["line"]), (&"error".into(), &2.into()));
}

const TABLE: &str = "
    struct Key { uint address; ushort port; };
    .element Table (flit in -> flit out) {
        .state { Key keys[4]; uint count; }
        .handler { set_output_port(out, read_input_port(in)); }
        .method int insert(Key key, uint index) {
            if (index >= 4) return -1;
            keys[index] = key;
            count = count + 1;
            return count;
        }
        .method Key at(uint index) { return keys[index & 3]; }
    }
    Table :: table
    from_tor -> table -> to_tor
";

#[test]
fn methods_are_called_before_and_after_a_run_and_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let [program, initial] = ["table.cnp", "initial.json"].map(|it| folder.path().join(it));
    std::fs::write(&program, TABLE).unwrap();
    let calls = r#"{"table": {"insert()": [[{"address": "10.0.0.9"}, 0], [{}, 4], [{}, 5]]}}"#;
    std::fs::write(&initial, calls).unwrap();
    let [program, initial] = [program, initial].map(|it| it.display().to_string());
    for machine in MACHINES {
        let call = "table.insert({address: 10.0.0.1, port: 80}, 2)";
        let run = ["run", &program, "--in", TRACE, "--init", &initial, "--call", call];
        let then = ["--then", "table.at(2)", "--then", "table.at(0)", "--get", "table.count"];
        let output = freeport(&[&run[..], &then, &machine].concat());
        let reported = String::from_utf8(output.stdout).unwrap();
        let at_2 = r#"table.at = {"address":167772161,"port":80}"#;
        let at_0 = r#"table.at = {"address":167772169,"port":0}"#;
        assert_eq!(reported, format!("table.insert = 2\n{at_2}\n{at_0}\ntable.count = 2\n"));
        let reported = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            reported,
            "table.insert: 2 calls returned -1\ntable.insert: 1 calls returned 1\n"
        );
        let wrong = [&run[..6], &["--call", "table.insert({mac: 1}, 2)"], &machine].concat();
        let expected = "table.insert, key: there is no member mac; there are address, port";
        assert!(complaint(&wrong).contains(expected), "{}", complaint(&wrong));
    }
}
