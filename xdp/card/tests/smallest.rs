// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The smallest programs, and the identity of the card.

use freeport_card::{Nic, address, control};
use freeport_xdp::Arrival;

/// Returns a row of four lanes whose first one exits with a verdict.
fn exits(verdict: u32) -> Vec<u8> {
    let mut row = vec![0; 32];
    row[0] = 0x9d;
    row[4..8].copy_from_slice(&verdict.to_le_bytes());
    row
}

fn card(rows: &[u8], bits: u64) -> Nic {
    let mut nic = Nic::new().expect("there is a card");
    nic.load_rows(rows).expect("it answers");
    let count = (rows.len() / 32) as u64;
    nic.host_write(address::ENTRY, &[count << 16]).expect("it answers");
    nic.host_write(address::WATCHDOG, &[1000]).expect("it answers");
    nic.host_write(address::CONTROL, &[control::RUN | bits]).expect("it answers");
    nic
}

#[test]
fn the_card_says_what_it_is_and_remembers_what_it_is_told() {
    let mut nic = Nic::new().expect("there is a card");
    let identity = nic.identity().expect("it answers");
    assert_eq!((identity.lanes, identity.rows, identity.map_bytes), (4, 1024, 16 << 20));
    let bytes: Vec<u8> = (0..100).collect();
    nic.write_memory(4096, &[0xff; 104]).expect("it answers");
    nic.write_memory(4096, &bytes).expect("it answers");
    assert_eq!(nic.read_memory(4096, 100).expect("it answers"), bytes);
    assert_eq!(nic.read_memory(4096 + 96, 8).expect("it answers")[4..], [0xff; 4]);
    nic.host_write(address::TIME, &[77]).expect("it answers");
    assert_eq!(nic.read(address::TIME).expect("it answers"), 77);
    nic.host_write(address::CONTROL, &[control::CLOCK]).expect("it answers");
    nic.step(1000);
    let now = nic.read(address::TIME).expect("it answers");
    // 6.4 ns per cycle.
    assert!((77 + 6400..77 + 6460).contains(&now), "{now}");
    nic.host_write(address::TABLE + 3 * 64, &[2, 9, 4096]).expect("it answers");
    let mut words = [0; 3];
    nic.host_read(address::TABLE + 3 * 64, &mut words).expect("it answers");
    assert_eq!(words, [2, 9, 4096]);
}

#[test]
fn a_verdict_comes_with_its_packet() {
    for verdict in 0..=5 {
        let mut nic = card(&exits(verdict), control::EMIT_ALL);
        let bytes: Vec<u8> = (0..77).collect();
        nic.send(&Arrival { bytes: &bytes, ingress_ifindex: 5, rx_queue_index: 1 });
        let mut left = vec![];
        let tags = nic.receive(1000, &mut left).expect("it leaves");
        assert_eq!((tags.verdict, tags.stop, tags.metadata, tags.ifindex), (verdict, 0, 0, 5));
        assert_eq!(left, bytes);
    }
}

#[test]
fn dropped_packets_only_count() {
    let mut nic = card(&exits(1), 0);
    let bytes = [7; 64];
    for _ in 0..50 {
        nic.send(&Arrival { bytes: &bytes, ingress_ifindex: 5, rx_queue_index: 1 });
    }
    assert_eq!(nic.run_until_done(50, 10_000), 50);
    nic.step(100);
    assert!(nic.receive(100, &mut vec![]).is_none());
    let counter = |nic: &mut Nic, name| nic.counter(name).expect("it answers");
    assert_eq!(counter(&mut nic, "packets"), 50);
    assert_eq!(counter(&mut nic, "dropped"), 50);
    assert_eq!(counter(&mut nic, "passed"), 0);
    assert_eq!(nic.read(address::IDLE).expect("it answers"), 1);
    let stamps = nic.stamps(50);
    assert_eq!(stamps.len(), 50);
    for pair in stamps.windows(2) {
        assert!(pair[0].done < pair[1].done && pair[0].arrived < pair[1].arrived, "{pair:?}");
    }
}

/// A packet passes while signals are written: all relevant signals are there, and the clock rises
/// once in each cycle.
#[test]
fn a_waveform_has_the_signals_and_every_clock() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("card.vcd");
    let mut nic = card(&exits(2), control::EMIT_ALL);
    nic.step(10);
    nic.open_waveform(&path).expect("the folder is there");
    let before = nic.cycles();
    nic.send(&Arrival { bytes: &[7; 64], ingress_ifindex: 1, rx_queue_index: 0 });
    assert!(nic.receive(200, &mut vec![]).is_some(), "the packet leaves");
    let cycles = nic.cycles() - before;
    let again = nic.open_waveform(&folder.path().join("other.vcd")).expect_err("there is one");
    assert!(again.contains("other.vcd"), "{again}");
    assert!(nic.open_waveform(&folder.path().join("none/card.vcd")).is_err());
    drop(nic);
    let text = std::fs::read_to_string(&path).expect("it is written");
    let mark = |signal: &str| {
        let lines = text.lines().filter(|line| line.trim_start().starts_with("$var"));
        let mut words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
        let found = words.find(|words| words.get(4) == Some(&signal));
        found.unwrap_or_else(|| panic!("no signal {signal}"))[3].to_owned()
    };
    for signal in ["packet_begin", "packet_verdict", "f_row", "d_row", "x_row", "rx_data"] {
        mark(signal);
    }
    let rises = |signal: &str| {
        let line = format!("1{}", mark(signal));
        text.lines().filter(|it| **it == line).count() as u64
    };
    assert_eq!(rises("clk"), cycles);
    assert_eq!((rises("packet_begin"), rises("packet_done")), (1, 1));
}
