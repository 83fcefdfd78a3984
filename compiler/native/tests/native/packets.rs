// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Graphs of packet items in native code compared with the interpreter: every recording replays to
//! the same execution, and no buffer leaks.

use crate::replay::{self, Driver, Traffic, check, image, options};
use freeport_ir::Program;
use freeport_ir::text::parse;
use freeport_native::{Options, RunStatus};

const ROUNDS: u64 = 12;

/// Returns a graph of the given instances, endpoints and edges.
fn packets(graph: &str) -> Program {
    let text = format!("{}\ngraph {{\n{graph}\n}}\n", include_str!("programs/packets.ir"));
    parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns a packet of any length, short ones more often, with random contents.
fn packet(random: &mut fastrand::Rng) -> Vec<u8> {
    let length = match random.u32(0..8) {
        0 => random.usize(0..8),
        1 => random.usize(8..40),
        2 => random.usize(1_400..=1_518),
        3 => random.usize(8_900..=9_216),
        _ => random.usize(40..140),
    };
    (0..length).map(|_| random.u8(..)).collect()
}

fn traffic(random: &mut fastrand::Rng, count: usize) -> Traffic {
    Traffic { packets: (0..count).map(|_| packet(random)).collect(), records: vec![] }
}

fn cache() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("native")
}

/// Runs a program randomly several times and replays each run; returns how each run ended.
fn replay_rounds(
    program: &Program,
    suspended: u64,
    input: impl Fn(&mut fastrand::Rng) -> Vec<Traffic>,
) -> Vec<(Driver, RunStatus)> {
    let as_large = Options { many_instances: 0, ..options(&cache()) };
    let images = [image(program, &options(&cache())), image(program, &as_large)];
    (0..ROUNDS)
        .map(|seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            let image = &images[seed as usize % images.len()];
            let mut driver = Driver::new(image, input(&mut random));
            driver.suspended = suspended;
            let status = driver.run_in_pieces(&mut random, 20);
            if status == RunStatus::Idle {
                assert!(driver.graph.buffers_in_use() <= suspended, "all has left");
            }
            let (oracles, execution) = driver.graph.take_recording();
            let out = check(program, oracles, &execution);
            assert_eq!(driver.out, out, "what the host got is what entered the last channels");
            (driver, status)
        })
        .collect()
}

/// Returns traffic for one input and that many outputs.
fn from_one(outputs: usize, count: usize) -> impl Fn(&mut fastrand::Rng) -> Vec<Traffic> {
    move |random| {
        let mut all = vec![Traffic::default(); outputs + 1];
        all[0] = traffic(random, count);
        all
    }
}

#[test]
fn a_chain_is_fused_and_agrees() {
    let program = packets(
        "instance first: Touch\n instance second: Touch\n instance third: Look\n\
         endpoint from_tor: into packet<64>\n endpoint to_tor: out_of packet<64>\n\
         from_tor -> first.in\n first.out -> second.in\n second.out -> third.in depth 2\n\
         third.out -> to_tor",
    );
    for (driver, status) in replay_rounds(&program, 0, from_one(1, 60)) {
        assert_eq!(status, RunStatus::Idle);
        assert_eq!(driver.out[1].packets.len(), 60);
        let counters = driver.graph.counters();
        let bytes: usize = driver.out[1].packets.iter().map(Vec::len).sum();
        let last = &counters.channels[3];
        assert_eq!((last.items, last.packets, last.bytes), (60, 60, bytes as u64));
        assert!(counters.instances[0].out_of_range > 0, "offsets beyond short packets");
    }
}

#[test]
fn both_ends_move_within_their_room_and_no_further() {
    let program = packets(
        "instance grow: Resize\n instance more: Resize\n instance touch: Touch\n\
         endpoint from_tor: into packet<64>\n endpoint to_tor: out_of packet<64>\n\
         endpoint one: out_of bits<66>\n endpoint two: out_of bits<66>\n\
         from_tor -> grow.in\n grow.out -> touch.in\n touch.out -> more.in\n\
         more.out -> to_tor\n grow.told -> one\n more.told -> two",
    );
    let mut could = [0; 4];
    for (driver, status) in replay_rounds(&program, 0, from_one(3, 80)) {
        assert_eq!(status, RunStatus::Idle);
        for reported in &driver.out[2].records {
            could[reported.to_u128().wrapping_shr(64) as usize & 3] += 1;
        }
    }
    assert!(could.iter().all(|count| *count > 0), "{could:?}");
}

#[test]
fn every_length_and_every_step_of_an_end_agrees() {
    let program = packets(
        "instance grow: Resize\n endpoint from_tor: into packet<64>\n\
         endpoint to_tor: out_of packet<64>\n endpoint told: out_of bits<66>\n\
         from_tor -> grow.in\n grow.out -> to_tor\n grow.told -> told",
    );
    let image = image(&program, &options(&cache()));
    let mut all = vec![];
    // The head moves by 10 bits of the first word, or by 9 of the second; the tail by all of the
    // second.
    for at in -258_i16..=258 {
        for length in [4, 5, 254, 255, 256, 257] {
            for words in [[(at as u16 & 0x3ff) << 2, 3], [1, at as u16]] {
                let mut bytes = vec![0x5a; length];
                bytes[..2].copy_from_slice(&words[0].to_le_bytes());
                bytes[2..4].copy_from_slice(&words[1].to_le_bytes());
                all.push(bytes);
            }
        }
    }
    for tail in [9_211_i16, 9_212, 9_213, -4, -5, i16::MAX, i16::MIN] {
        let mut bytes = vec![0x5a; 4];
        bytes[..2].fill(0);
        bytes[2..].copy_from_slice(&tail.to_le_bytes());
        all.push(bytes);
    }
    let input = Traffic { packets: all, records: vec![] };
    let mut driver = Driver::new(&image, vec![input, Traffic::default(), Traffic::default()]);
    let status = driver.run_in_pieces(&mut fastrand::Rng::with_seed(1), 5);
    assert_eq!(status, RunStatus::Idle);
    let (oracles, execution) = driver.graph.take_recording();
    assert_eq!(check(&program, oracles, &execution), driver.out);
    assert_eq!(driver.graph.buffers_in_use(), 0);
}

#[test]
fn truncated_packets_of_every_length_agree() {
    let program = packets(
        "instance touch: Touch\n instance look: Look\n instance twice: Twice\n\
         endpoint from_tor: into packet<64>\n endpoint a: out_of packet<64>\n\
         endpoint b: out_of packet<64>\n from_tor -> touch.in\n touch.out -> look.in\n\
         look.out -> twice.in\n twice.left -> a\n twice.right -> b",
    );
    let input = |random: &mut fastrand::Rng| {
        let mut all = vec![Traffic::default(); 3];
        all[0].packets = (0..160).map(|at| (0..at).map(|_| random.u8(..)).collect()).collect();
        all
    };
    for (driver, status) in replay_rounds(&program, 0, input) {
        assert_eq!(status, RunStatus::Idle);
        assert_eq!(driver.out[1].packets.len(), 160, "one without bytes is a packet too");
    }
}

#[test]
fn copies_peeks_and_choices_agree() {
    let program = packets(
        "instance twice: Twice\n instance echo: Echo\n instance patient: Patient\n\
         instance either: Either\n instance third: Either\n\
         endpoint from_tor: into packet<64>\n\
         endpoint from_nic: into packet<64>\n endpoint to_tor: out_of packet<64>\n\
         endpoint ticks: out_of bits<32>\n endpoint to_nic: out_of packet<64>\n\
         from_tor -> twice.in\n twice.left -> echo.in depth 2\n\
         twice.right -> patient.in depth 9\n\
         echo.copy -> either.a depth 3\n\
         echo.out -> either.b depth 3\n either.out -> third.a\n from_nic -> third.b\n\
         patient.out -> to_nic\n third.out -> to_tor\n patient.ticks -> ticks",
    );
    let input = |random: &mut fastrand::Rng| {
        let mut all = vec![Traffic::default(); 5];
        all[0] = traffic(random, 40);
        all[1] = traffic(random, 20);
        all
    };
    for (driver, status) in replay_rounds(&program, 0, input) {
        assert_eq!(status, RunStatus::Idle);
        assert_eq!(driver.out[2].packets.len(), 100);
    }
}

#[test]
fn packets_wait_for_their_records() {
    let program = packets(
        "instance grow: Resize\n instance touch: Touch\n instance marry: Marry\n\
         endpoint from_tor: into packet<64>\n endpoint to_tor: out_of packet<64>\n\
         from_tor -> grow.in\n grow.out -> touch.in depth 4\n touch.out -> marry.packet\n\
         grow.told -> marry.record depth 7\n marry.out -> to_tor",
    );
    for (driver, status) in replay_rounds(&program, 0, from_one(1, 60)) {
        assert_eq!(status, RunStatus::Idle);
        assert_eq!(driver.out[1].packets.len(), 60);
    }
}

#[test]
fn a_suspended_handler_keeps_its_packets_from_run_to_run() {
    let program = packets(
        "instance hold: Hold\n instance touch: Touch\n endpoint from_tor: into packet<64>\n\
         endpoint to_tor: out_of packet<64>\n from_tor -> hold.in\n hold.out -> touch.in\n\
         touch.out -> to_tor",
    );
    let mut kept = 0;
    for (driver, _) in replay_rounds(&program, 2, from_one(1, 41)) {
        assert_eq!(driver.out[1].packets.len(), 40, "the last one waits for another");
        kept += driver.graph.buffers_in_use();
    }
    assert_eq!(kept, ROUNDS);
}

#[test]
fn drops_traps_and_packets_made_of_nothing_agree() {
    let program = packets(
        "instance odd: Odd\n instance twice: Twice\n instance touch: Touch\n\
         endpoint from_tor: into packet<64>\n endpoint to_tor: out_of packet<64>\n\
         endpoint made: out_of packet<64>\n endpoint lost: out_of packet<64>\n\
         from_tor -> twice.in\n twice.left -> odd.in depth 3 drop\n odd.out -> to_tor depth 2\n\
         odd.made -> touch.in depth 1 drop\n touch.out -> made\n\
         twice.right -> lost depth 2 drop",
    );
    let (mut drops, mut traps) = (0, 0);
    for (driver, status) in replay_rounds(&program, 0, from_one(3, 80)) {
        assert_eq!(status, RunStatus::Idle);
        let counters = driver.graph.counters();
        drops += counters.channels.iter().map(|channel| channel.dropped).sum::<u64>();
        traps += counters.instances[0].traps.values().sum::<u64>();
    }
    assert!(drops > 0 && traps > 0, "{drops} drops, {traps} traps");
}

#[test]
fn a_packet_that_only_passes_is_the_same() {
    let program = packets(
        "endpoint from_tor: into packet<64>\n endpoint to_tor: out_of packet<64>\n\
         from_tor -> to_tor",
    );
    for (driver, status) in replay_rounds(&program, 0, from_one(1, 30)) {
        assert_eq!(status, RunStatus::Idle);
        assert_eq!(driver.out[1].packets.len(), 30);
    }
}

#[test]
fn packets_longer_than_any_buffer_are_dropped_and_their_memory_is_given_back() {
    let program = packets(
        "instance twice: Twice\n endpoint from_tor: into packet<64>\n\
         endpoint a: out_of packet<64>\n endpoint b: out_of packet<64>\n from_tor -> twice.in\n\
         twice.left -> a\n twice.right -> b depth 3",
    );
    let image = image(&program, &options(&cache()));
    let long = vec![vec![1; replay::FRAME_BYTES_MAX + 5], vec![2; 30_000], vec![3; 60]];
    let input = Traffic { packets: long, records: vec![] };
    let mut driver = Driver::new(&image, vec![input, Traffic::default(), Traffic::default()]);
    driver.suspended = 0;
    driver.run(&[9, 0, 0], &[0, 9, 0]);
    assert!(driver.graph.buffers_in_use() > 0, "what waits for the other output");
    assert_eq!(driver.run(&[9, 0, 0], &[0, 9, 9]), RunStatus::Idle);
    assert_eq!(driver.out[1].packets, [vec![3; 60]]);
    let counters = driver.graph.counters();
    assert_eq!((counters.outputs[1].too_long, counters.outputs[2].too_long), (2, 2));
    assert_eq!(driver.graph.buffers_in_use(), 0);
}

#[test]
fn packets_are_made_without_input_and_leave_no_buffer_behind() {
    let program = packets(
        "instance make: Make\n instance touch: Touch\n instance twice: Twice\n\
         endpoint a: out_of packet<64>\n endpoint b: out_of packet<64>\n\
         make.out -> touch.in\n touch.out -> twice.in\n twice.left -> a\n\
         twice.right -> b depth 3",
    );
    let nothing = |_: &mut fastrand::Rng| vec![Traffic::default(); 2];
    for (driver, status) in replay_rounds(&program, 0, nothing) {
        assert_eq!(status, RunStatus::Idle);
        let lengths: Vec<usize> = driver.out[0].packets.iter().map(Vec::len).collect();
        assert_eq!(lengths.len(), 60);
        assert!(lengths.iter().any(|length| *length > 4_000), "{lengths:?}");
        assert!(driver.graph.counters().instances[0].out_of_range > 10, "some are too long");
    }
}

#[test]
fn packets_made_in_a_loop_end_with_their_turn() {
    let program = packets(
        "instance many: Many\n endpoint from_tor: into packet<64>\n\
         endpoint a: out_of packet<64>\n endpoint b: out_of packet<64>\n\
         from_tor -> many.in\n many.out -> a\n many.same -> b",
    );
    for (driver, status) in replay_rounds(&program, 0, from_one(2, 40)) {
        assert_eq!(status, RunStatus::Idle);
        // A packet beyond the limit is empty, and so is what its put sends.
        assert!(driver.out[1].packets.iter().any(Vec::is_empty));
        assert!(driver.out[1].packets.iter().any(|packet| packet.len() > 32));
    }
}

/// The passes and the emitted code must have the same result as the emitted code alone.
#[test]
fn the_build_for_speed_gives_what_the_recording_one_gives() {
    let program = packets(
        "instance grow: Resize\n instance look: Look\n instance twice: Twice\n\
         instance touch: Touch\n endpoint from_tor: into packet<64>\n\
         endpoint a: out_of packet<64>\n endpoint b: out_of packet<64>\n\
         endpoint told: out_of bits<66>\n from_tor -> grow.in\n grow.out -> look.in\n\
         look.out -> twice.in\n twice.left -> touch.in\n touch.out -> a\n twice.right -> b\n\
         grow.told -> told",
    );
    let fast = image(&program, &Options { cache: Some(cache()), ..Options::default() });
    let input = from_one(3, 80);
    for (seed, (slow, _)) in (0..).zip(replay_rounds(&program, 0, &input)) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut driver = Driver::new(&fast, input(&mut random));
        assert_eq!(driver.run_in_pieces(&mut random, 20), RunStatus::Idle);
        assert_eq!(driver.out, slow.out);
    }
}

#[test]
fn a_packet_that_a_loop_carries_is_refused_with_its_place() {
    let text = "program carried\nelement Carry {\n in in: packet<64>\n out out: packet<64>\n\
                handler {\n entry:\n %first = take in\n jump head(%first)\n\
                head(%packet: packet) loop(bound 3):\n %next = take in\n\
                %length = length %packet\n %none = const 0:32\n %is_over = eq %length, %none\n\
                br %is_over, end, head(%next)\n end:\n put out, %packet\n done\n }\n}\n\
                graph {\n instance carry: Carry\n endpoint from_tor: into packet<64>\n\
                endpoint to_tor: out_of packet<64>\n from_tor -> carry.in\n\
                carry.out -> to_tor\n}\n";
    let program = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let error = freeport_native::emit(&program, &options(&cache())).expect_err("it is refused");
    assert!(error.to_string().contains("carries from turn to turn"), "{error}");
}
