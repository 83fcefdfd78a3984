// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random pipelines of requests, most of them malformed. The tests of the items use them as well.

use fastrand::Rng;

/// Makes a pipeline of requests, some of them malformed.
pub fn pipeline(rng: &mut Rng) -> Vec<u8> {
    let mut pipeline = vec![];
    for _ in 0..rng.usize(1..8) {
        request(&mut pipeline, rng);
    }
    // Otherwise there may be no byte to change.
    pipeline.extend_from_slice(b"mn\r\n");
    for _ in 0..rng.usize(..4).saturating_sub(1) {
        let (place, alphabet) = (rng.usize(..pipeline.len()), b"\0\r\n\t  019-kqvOMTN\xff");
        let byte = alphabet[rng.usize(..alphabet.len())];
        match rng.u8(..3) {
            0 => pipeline[place] = byte,
            1 => pipeline.insert(place, byte),
            _ => _ = pipeline.remove(place),
        }
    }
    pipeline
}

fn request(pipeline: &mut Vec<u8>, rng: &mut Rng) {
    let mut choose = |of: &[&'static str]| of[rng.usize(..of.len())];
    let long = "k".repeat(251);
    let keys = ["a", "b", "key", "k\t", "\u{1}", &long[..250]];
    let key = |at: &str| keys[usize::from(at.as_bytes()[0] - b'0')];
    let some_key = key(choose(&["0", "1", "2", "3", "4", "5"]));
    let number = choose(&[
        "0",
        "0",
        "1",
        "1",
        "2",
        "7",
        "10",
        "-1",
        "+3",
        "x",
        "",
        "4294967297",
        "99999999999999999999",
        "18446744073709551615",
        "-18446744073709551615",
        "2147483646",
        "3\t5",
        "1x",
    ]);
    let expiry = choose(&["0", "0", "0", "-1", "1000", "2592001", "x", "2592000"]);
    let end = choose(&["\r\n", "\r\n", "\r\n", "\n", " \r\n", "\r\r\n"]);
    let noreply = choose(&["", "", "", " noreply", " 0", " x", " 0 noreply", " noreply x"]);
    let mut flags = String::new();
    for _ in 0..choose(&["", "1", "12", "123", "1234", "12345678901234567890"]).len() {
        flags += " ";
        flags += choose(&[
            "v",
            "k",
            "q",
            "s",
            "f",
            "O1",
            "Oabcdef",
            "I",
            "u",
            "L",
            "P1",
            "T0",
            "T-1",
            "T",
            "N0",
            "N-1",
            "Nx",
            "R0",
            "R-1",
            "R30",
            "C0",
            "C9999999999",
            "Cx",
            "F5",
            "Fx",
            "F",
            "D2",
            "D",
            "J5",
            "Jx",
            "MS",
            "MA",
            "ME",
            "MP",
            "MR",
            "MI",
            "MD",
            "M+",
            "M-",
            "M",
            "MX",
            "MXX",
            "x",
            "z",
            "5",
            "\u{7f}",
            "O1234567890123456789012345678901",
        ]);
    }
    let length = choose(&["0", "1", "2", "3", "5"]);
    let shown = choose(&["0", "1", "2", "3", "5", "5", "x", "-1", "5\t1"]);
    // Usually the value has the given length.
    let shown = if choose(&["1", "1", "1", "0"]) == "1" { length } else { shown };
    let value = &"12\r\n3"[..length.parse().expect("it is a number")];
    let value_end = choose(&["\r\n", "\r\n", "\r\n", "\r\n", "\n", ""]);
    let line = match choose(&["s", "s", "g", "i", "d", "t", "m", "S", "S", "D", "A", "o", "c", "G"])
    {
        "s" => {
            let name = choose(&["set", "add", "replace", "append", "prepend", "set"]);
            format!("{name} {some_key} {number} {expiry} {shown}{noreply}{end}{value}{value_end}")
        }
        "c" => {
            let rest = format!("{shown} {number}{noreply}{end}{value}{value_end}");
            format!("cas {some_key} 0 {expiry} {rest}")
        }
        "g" => format!("get {some_key} a b  key{end}"),
        "G" => format!("gat {expiry} {some_key} a{end}"),
        "i" => format!("{} {some_key} {number}{noreply}{end}", choose(&["incr", "decr"])),
        "d" => format!("delete {some_key}{noreply}{end}"),
        "t" => format!("touch {some_key} {expiry}{noreply}{end}"),
        "m" => format!("mg {some_key}{flags}{end}"),
        "S" => format!("ms {some_key} {shown}{flags}{end}{value}{value_end}"),
        "D" => format!("md {some_key}{flags}{end}"),
        "A" => format!("ma {some_key}{flags}{end}"),
        _ => {
            let line = choose(&[
                "flush_all",
                "flush_all noreply",
                "flush_all x",
                "flush_all 0 noreply",
                "verbosity 0",
                "verbosity",
                "verbosity x noreply",
                "",
                " ",
                "m",
                "mx",
                "mn",
                "mn x",
                "unknown",
                "ge",
                "delete",
                "set",
                "shutdown",
                "cache_memlimit x",
                "slabs",
                "lru",
                "quit",
                "a HTTP/1",
                "HTTP/",
                "gets",
                "extstore",
                "get",
                "gat",
                "gat 0",
                "incr a",
                "mg",
                "ms",
                "ms a",
            ]);
            format!("{line}{end}")
        }
    };
    pipeline.extend_from_slice(line.as_bytes());
}
