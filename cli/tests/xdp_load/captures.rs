// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captures and generated frames as ports: they deliver packets, and the run ends after the last
//! one.

use super::place::Net;
use crate::hosts::may_make_hosts;
use freeport_port::{Arena, PcapTransmitter, Transmit};

#[test]
fn a_capture_passes_and_the_run_ends() {
    if !may_make_hosts() {
        return;
    }
    let net = Net::new();
    let object = net.object("xdp2");
    let file = net.file("in.pcap");
    let mut arena = Arena::default();
    for bytes in [&[8_u8; 60][..], &[9; 13], &[0; 3_600]] {
        arena.push(bytes, bytes.len(), 1_000).unwrap();
    }
    let mut writer = PcapTransmitter::create(&file).unwrap();
    writer.transmit(arena.frames()).unwrap();
    writer.finish().unwrap();
    let capture = format!("{},ifindex=9", file.display());
    for (on, dropped) in [("interpreter", 3), ("sim", 2)] {
        let words = ["xdp", "load", object.to_str().unwrap(), "--on", on, "--port", &capture];
        let reported = net.reported(&[&words[..], &["--port", "gen:64x1000,ifindex=7"]].concat());
        let lines: Vec<Vec<&str>> =
            reported.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(lines.contains(&vec!["received", "3", "3673"]), "{reported}");
        let dropped = dropped.to_string();
        let drops = lines.iter().filter(|it| it[..2] == ["XDP_DROP", dropped.as_str()]);
        assert_eq!(drops.count(), 1, "{reported}");
        let refused = "in.pcap: 1 too short or too long for the target";
        assert_eq!(reported.contains(refused), on == "sim", "{reported}");
        let back = "dropped, gen:64x1000: 1000 sent to a port that only receives";
        assert!(reported.contains(back), "{reported}");
    }
}
