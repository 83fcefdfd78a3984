// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Host accesses while packets flow: the program is replaced between two packets, and maps are read
//! and changed one entry at a time.

use freeport_card::{Nic, Sim, address, control};
use freeport_ebpf::interpreter::Environment;
use freeport_ebpf::object::Object;
use freeport_vliw::Options;
use freeport_xdp::{Arrival, Target, compile};
use std::path::Path;

const PACKETS: u64 = 200;
const FRAME: [u8; 64] = [9; 64];
const ARRIVAL: Arrival<'_> = Arrival { bytes: &FRAME, ingress_ifindex: 5, rx_queue_index: 1 };

/// Returns identical rows that set a register to a number, and an exit with it.
fn returns(number: u8) -> Vec<u64> {
    let set = 0xb7 | u64::from(number) << 32;
    [[set, 0, 0, 0], [set, 0, 0, 0], [0x95, 0, 0, 0]].concat()
}

#[test]
fn no_packet_meets_two_programs() {
    for pause in 0..40 {
        let mut nic = Nic::new().expect("there is a card");
        nic.host_write(address::ROWS, &returns(2)).expect("it answers");
        nic.host_write(address::ENTRY, &[3 << 16]).expect("it answers");
        nic.host_write(address::CONTROL, &[control::RUN | control::EMIT_ALL]).expect("it answers");
        (0..PACKETS).for_each(|_| nic.send(&ARRIVAL));
        nic.step(100 + pause);
        nic.host_write(address::ROWS + 3 * 32, &returns(3)).expect("it answers");
        nic.host_write(address::ENTRY, &[6 << 16 | 3]).expect("it answers");
        let verdicts: Vec<u32> = (0..PACKETS)
            .map(|_| {
                let tags = nic.receive(10_000, &mut vec![]).expect("it leaves");
                assert_eq!(tags.stop, 0);
                tags.verdict
            })
            .collect();
        assert!(verdicts.is_sorted() && verdicts[0] == 2, "{verdicts:?}");
        assert_eq!(verdicts.last(), Some(&3));
    }
}

/// A counter that the host reads grows by one for each completed packet, no read of its eight bytes
/// is torn, and writes of the host to other entries persist.
#[test]
fn maps_are_read_and_changed_while_packets_flow() {
    let source = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
        struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 2);\n\
        __type(key, __u32); __type(value, __u64); } counts SEC(\".maps\");\n\
        struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 64);\n\
        __type(key, __u32); __type(value, __u64); } table SEC(\".maps\");\n\
        SEC(\"xdp\") int count(struct xdp_md *context) { __u32 zero = 0;\n\
        __u64 *value = bpf_map_lookup_elem(&counts, &zero);\n\
        if (value) *value += 0x100000001;\n\
        return context ? XDP_DROP : XDP_PASS; }\n\
        char program_license[] SEC(\"license\") = \"GPL\";\n";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("count.bpf.c");
    std::fs::write(&path, source).expect("it is written");
    let object = compile(Path::new(&path)).expect("clang-19 is there");
    let object = Object::parse(&object).expect("clang makes such objects");
    let environment = Environment::default();
    let mut sim = Sim::load(&object, &Options::default(), &environment).expect("it fits");
    sim.run("count", &ARRIVAL).expect("it runs");
    let place = sim.layout().maps[0].as_ref().expect("it has a place").entries_at;
    (0..PACKETS).for_each(|_| sim.nic_mut().send(&ARRIVAL));
    let mut last = 1;
    for number in 0_u32..50 {
        let bytes = sim.nic_mut().read_memory(place, 8).expect("it answers");
        let value = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        assert_eq!(value >> 32, value & 0xffff_ffff, "both halves are of one time");
        assert!(value >> 32 >= last, "it never goes back");
        last = value >> 32;
        sim.update("table", &number.to_ne_bytes(), &[number as u8; 8]).expect("there is room");
    }
    assert!(last > 1, "packets are done meanwhile");
    let done = sim.nic_mut().run_until_done(PACKETS, 100_000);
    assert!(done >= PACKETS - last, "{done}");
    sim.nic_mut().step(1_000);
    let bytes = sim.nic_mut().read_memory(place, 8).expect("it answers");
    assert_eq!(bytes, (0x1_0000_0001 * (PACKETS + 1)).to_le_bytes());
    let freeport_xdp::Contents::Entries(entries) = sim.contents("table").expect("it is read")
    else {
        panic!("a hash has entries");
    };
    assert_eq!(entries.len(), 50);
    for (key, value) in entries {
        assert_eq!(value, [key[0]; 8]);
    }
}
