// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The committed capture files match their settings byte for byte, so that no binary file has to be
//! trusted. `BLESS=1` writes them.

use freeport_port::trace::{Sizes, Trace};
use freeport_port::{FileFormat, Generator, MAX_FRAME, PcapReceiver, PcapTransmitter};
use freeport_port::{Receive, Transmit};
use freeport_tests::repository;

fn sample() -> Trace {
    Trace {
        seed: 7,
        frames: 100,
        flows: 12,
        sizes: Sizes::InternetMix,
        tcp_percent: 75,
        bad_checksum_permille: 25,
        truncated_permille: 0,
        gap_ns: 12_000,
    }
}

fn capture_of(trace: &Trace) -> Vec<u8> {
    let frames = trace.generate();
    let mut receiver = Generator::once(&frames).unwrap();
    let mut capture =
        PcapTransmitter::new(vec![], "sample".into(), FileFormat::Pcap, MAX_FRAME).unwrap();
    while !receiver.is_ended() {
        let batch = receiver.receive(64).unwrap();
        assert_eq!(capture.transmit(batch.as_frames()).unwrap(), batch.len());
    }
    capture.finish().unwrap()
}

#[test]
fn the_sample_capture_is_what_its_settings_say() {
    let path = repository().join("examples/traces/sample.pcap");
    let wanted = capture_of(&sample());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    assert!(std::fs::read(&path).unwrap() == wanted, "{} differs", path.display());
    let mut receiver = PcapReceiver::open(&path).unwrap();
    assert_eq!(receiver.receive(1_000).unwrap().len(), 100);
}
