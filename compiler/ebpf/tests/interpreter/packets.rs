// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helpers that change or redirect the packet.

use crate::program;
use crate::program::{
    add, call, copy, definition, exit, load_word, machine, map, packet, reason, set, slot, store,
    store_constant, store_word,
};
use freeport_ebpf::interpreter::{Packet, Redirect};
use freeport_ebpf::maps::ErrorNumber;
use freeport_ebpf::object::MapKind;

/// Returns the result of a helper of the context and one number, and the packet after it.
fn adjusted(helper: i32, by: i32) -> (u64, Packet) {
    let mut packet = packet(60);
    let outcome = machine(program![set(2, by), call(helper), exit()], vec![]).run(0, &mut packet);
    assert_eq!(outcome.aborted, None);
    (outcome.value, packet)
}

const INVALID: u64 = -22_i64 as u64;

#[test]
fn the_head_moves_within_its_room() {
    let (result, packet) = adjusted(44, -8);
    assert_eq!((result, packet.len(), packet.bytes()[8]), (0, 68, 0));
    let (result, packet) = adjusted(44, 46);
    assert_eq!((result, packet.bytes()[0]), (0, 46));
    assert_eq!(adjusted(44, 47).0, INVALID, "an Ethernet header stays");
    assert_eq!(adjusted(44, -216).0, 0);
    assert_eq!(adjusted(44, -217).0, INVALID, "the kernel's own bytes");
    assert_eq!(adjusted(44, i32::MIN).0, INVALID);
}

#[test]
fn the_tail_moves_within_its_room() {
    let (result, packet) = adjusted(65, 10);
    assert_eq!((result, &packet.bytes()[60..]), (0, &[0; 10][..]));
    assert_eq!(adjusted(65, -46).1.len(), 14);
    assert_eq!(adjusted(65, -47).0, INVALID);
    assert_eq!(adjusted(65, 4_096 - 256 - 320 - 60).0, 0);
    assert_eq!(adjusted(65, 4_096 - 256 - 320 - 59).0, INVALID);
    assert_eq!(adjusted(65, i32::MAX).0, INVALID);
}

#[test]
fn metadata_is_whole_words() {
    let (result, packet) = adjusted(54, -8);
    assert_eq!((result, packet.metadata()), (0, &[0; 8][..]));
    assert_eq!(adjusted(54, -252 + 40).0, 0);
    assert_eq!(adjusted(54, -6).0, ErrorNumber::EACCES.returned());
    assert_eq!(adjusted(54, 4).0, INVALID);
    let written = program![
        copy(6, 1),
        set(2, -4),
        call(54),
        load_word(2, 6, 8),
        store_word(2, 0, 0x0403_0201),
        exit(),
    ];
    let mut packet = crate::program::packet(60);
    assert_eq!(machine(written, vec![]).run(0, &mut packet).aborted, None);
    assert_eq!(packet.metadata(), [1, 2, 3, 4]);
}

#[test]
fn bytes_are_copied_from_and_to_the_packet() {
    let copied = |helper: i32, offset: i32, size: i32| {
        let mut packet = packet(60);
        let program = program![
            store_constant(10, -8, 0x77),
            set(2, offset),
            copy(3, 10),
            add(3, -8),
            set(4, size),
            call(helper),
            copy(6, 0),
            slot(0x79, (0, 10), -8, 0),
            slot(0x4f, (0, 6), 0, 0),
            exit(),
        ];
        let outcome = machine(program, vec![]).run(0, &mut packet);
        (outcome, packet)
    };
    assert_eq!(copied(189, 57, 3).0.value, 0x003b_3a39);
    assert_eq!(copied(189, 58, 3).0.value, INVALID | 0x77);
    assert_eq!(copied(189, 0x1_0000, 3).0.value, ErrorNumber::EFAULT.returned() | 0x77);
    assert_eq!(copied(190, 10, 2).1.bytes()[8..14], [8, 9, 0x77, 0, 12, 13]);
    assert!(reason(&copied(190, 10, 9).0).contains("a read of 9 bytes"));
    assert!(reason(&copied(189, 10, 9).0).contains("a write of 9 bytes"));
}

#[test]
fn a_packet_is_sent_to_a_device() {
    let send = |flags| {
        let program = program![set(1, 7), set(2, flags), call(23), exit()];
        machine(program, vec![]).run(0, &mut packet(60))
    };
    let outcome = send(0);
    assert_eq!((outcome.verdict, outcome.redirect), (4, Some(Redirect::Device { ifindex: 7 })));
    let outcome = send(1);
    assert_eq!((outcome.verdict, outcome.redirect), (0, None));
}

#[test]
fn a_map_says_where_a_packet_is_sent() {
    let number = |number: u32| number.to_ne_bytes();
    for kind in [MapKind::Devmap, MapKind::DevmapHash, MapKind::Cpumap, MapKind::Xskmap] {
        let send = |key: i32, flags: i32| {
            let program = program![map(1, 0), set(2, key), set(3, flags), call(51), exit()];
            let mut machine = machine(program, vec![definition(kind, (4, 4), 8)]);
            let map = machine.map_mut("map").expect("it is there");
            map.update(&number(3), &number(9), 0).expect("there is room");
            let outcome = machine.run(0, &mut packet(60));
            assert_eq!(outcome.aborted, None);
            (outcome.verdict, outcome.redirect)
        };
        let target = Some(Redirect::Map { map: 0, key: 3, target: 9 });
        assert_eq!(send(3, 0), (4, target), "{kind}");
        assert_eq!(send(2, 0), (0, None), "{kind}");
        assert_eq!(send(2, 2), (2, None), "{kind}: the flags say what happens instead");
        assert_eq!(send(2_000, 1), (1, None), "{kind}");
        assert_eq!(send(3, 0x20), (0, None), "{kind}: unknown flags");
        let all = matches!(kind, MapKind::Devmap | MapKind::DevmapHash);
        let broadcast = Some(Redirect::Broadcast { map: 0, excludes_ingress: true });
        assert_eq!(send(2, 0x18), if all { (4, broadcast) } else { (0, None) }, "{kind}");
    }
    let program = program![map(1, 0), set(2, 0), set(3, 0), call(51), exit()];
    let mut machine = machine(program, vec![definition(MapKind::Hash, (4, 4), 8)]);
    let outcome = machine.run(0, &mut packet(60));
    assert!(reason(&outcome).contains("bpf_redirect_map does not take a map of kind"));
}

#[test]
fn helpers_of_the_context_want_the_context() {
    for helper in [44, 54, 65, 188] {
        let mut machine = machine(program![copy(1, 10), call(helper), exit()], vec![]);
        let outcome = machine.run(0, &mut packet(60));
        assert!(reason(&outcome).contains("which is not the context"), "{helper}");
    }
    let mut machine = machine(program![call(188), store(10, -8, 0), exit()], vec![]);
    assert_eq!(machine.run(0, &mut packet(61)).value, 61);
}
