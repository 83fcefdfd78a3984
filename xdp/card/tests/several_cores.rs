// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Several cores of a card: flows keep their order, state shared by cores loses no updates, and an
//! event on one core does not affect the others.

use freeport_card::{Nic, Sim, Stamp, Tags, address, control};
use freeport_ebpf::interpreter::Environment;
use freeport_ebpf::object::Object;
use freeport_vliw::Options;
use freeport_xdp::{Arrival, Contents, Target, compile};
use std::collections::{BTreeMap, BTreeSet};

const FRAME_BYTES: usize = 64;
/// Offset in a frame of the bytes that the programs here read.
const WORK_AT: usize = 48;
const NUMBER_AT: usize = 52;

/// Creates a UDP packet of a flow. Programs run longer the larger its `work` byte.
fn frame(flow: u16, work: u8, number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 50, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 7]);
    frame.extend((0x3039 + flow).to_be_bytes());
    frame.extend([0, 53, 0, 30, 0, 0]);
    frame.resize(FRAME_BYTES, 0);
    frame[WORK_AT] = work;
    frame[NUMBER_AT..][..4].copy_from_slice(&number.to_le_bytes());
    frame
}

fn flow_of(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[34], frame[35]]) - 0x3039
}

fn number_of(frame: &[u8]) -> u32 {
    u32::from_le_bytes(*frame[NUMBER_AT..].first_chunk().expect("four bytes"))
}

fn arrivals(frames: &[Vec<u8>]) -> Vec<Arrival<'_>> {
    frames.iter().map(|bytes| Arrival { bytes, ingress_ifindex: 5, rx_queue_index: 1 }).collect()
}

/// Loads a program on a card with this number of cores in use.
fn loaded(cores: u8, body: &str) -> Sim {
    let source = format!(
        "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n{body}\n\
         char program_license[] SEC(\"license\") = \"GPL\";\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program.bpf.c");
    std::fs::write(&path, source).expect("it is written");
    let object = compile(&path).expect("clang-19 is there");
    let object = Object::parse(&object).expect("clang makes such objects");
    let nic = Nic::with_cores(cores).expect("there is such a card");
    Sim::load_on(nic, &object, &Options::default(), &Environment::default()).expect("it fits")
}

/// Creates frames of many flows whose programs take from a few cycles to a few hundred.
fn mixed(count: u32, flows: u32, seed: u64) -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let frame = |number| frame(random.u32(..flows) as u16, random.u8(..16), number);
    (0..count).map(frame).collect()
}

const SPINS: &str = "SEC(\"xdp\") int spin(struct xdp_md *context) {
    unsigned char *data = (void *)(long)context->data;
    unsigned char *end = (void *)(long)context->data_end;
    if (data + 64 > end) return XDP_ABORTED;
    unsigned int turns = data[48] & 15;
    for (unsigned int turn = 0; turn < turns; turn++) data[56] = data[56] * 3 + data[57];
    data[58] = bpf_get_smp_processor_id();
    return XDP_TX; }";

#[test]
fn flows_keep_their_order_whatever_the_buses_do() {
    for (cores, pauses) in [(2, 0), (4, 0), (4, 100), (2, 200)] {
        let mut sim = loaded(cores, SPINS);
        sim.nic_mut().set_pauses(cores.into(), pauses, pauses);
        let frames = mixed(300, 24, u64::from(pauses));
        let departures = sim.run_together("spin", &arrivals(&frames)).expect("it runs");
        let mut next: BTreeMap<u16, (u32, u8)> = BTreeMap::new();
        for departure in &departures {
            let (flow, number) = (flow_of(&departure.bytes), number_of(&departure.bytes));
            let core = departure.bytes[58];
            if let Some((before, same)) = next.insert(flow, (number, core)) {
                assert!(number > before, "{cores} cores: {number} of flow {flow} is late");
                assert_eq!(core, same, "{cores} cores: flow {flow} changes its core");
            }
            assert_eq!((departure.verdict, core < cores), (3, true));
        }
        let mut numbers: Vec<u32> = departures.iter().map(|it| number_of(&it.bytes)).collect();
        let is_overtaken = !numbers.is_sorted();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..300).collect::<Vec<_>>(), "all of them leave");
        assert!(is_overtaken, "flows overtake each other, or there is nothing to be kept in order");
        let by_core = sim.nic_mut().packets_by_core().expect("it answers");
        assert!(by_core[..cores.into()].iter().all(|count| *count > 0), "{by_core:?}");
        assert_eq!(by_core.iter().sum::<u64>(), 300);
    }
}

const COUNTS: &str = "struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 2);
    __type(key, __u32); __type(value, __u64); } atomic SEC(\".maps\");
    struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 2);
    __type(key, __u32); __type(value, __u64); } apart SEC(\".maps\");
    struct locked { struct bpf_spin_lock lock; __u32 one; __u64 other; };
    struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1);
    __type(key, __u32); __type(value, struct locked); } locked SEC(\".maps\");
    struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 64);
    __type(key, __u32); __type(value, __u64); } flows SEC(\".maps\");
    struct { __uint(type, BPF_MAP_TYPE_PERCPU_HASH); __uint(max_entries, 64);
    __type(key, __u32); __type(value, __u64); } flows_apart SEC(\".maps\");
    SEC(\"xdp\") int count(struct xdp_md *context) {
    unsigned char *data = (void *)(long)context->data;
    unsigned char *end = (void *)(long)context->data_end;
    if (data + 64 > end) return XDP_ABORTED;
    __u32 zero = 0, one = 1, flow = data[35]; __u64 first = 0;
    __u64 *value = bpf_map_lookup_elem(&atomic, &one);
    if (value) { __sync_fetch_and_add(value, 3); __sync_fetch_and_add((__u32 *)value + 1, 1); }
    value = bpf_map_lookup_elem(&apart, &one);
    if (value) *value += 1;
    struct locked *both = bpf_map_lookup_elem(&locked, &zero);
    if (!both) return XDP_ABORTED;
    bpf_spin_lock(&both->lock); both->one += 1; both->other += both->one;
    bpf_spin_unlock(&both->lock);
    bpf_map_update_elem(&flows, &flow, &first, BPF_NOEXIST);
    value = bpf_map_lookup_elem(&flows, &flow);
    if (value) __sync_fetch_and_add(value, 1);
    value = bpf_map_lookup_elem(&flows_apart, &flow);
    if (value) *value += 1; else { first = 1;
    bpf_map_update_elem(&flows_apart, &flow, &first, BPF_ANY); }
    return XDP_DROP; }";

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes"))
}

#[test]
fn nothing_is_lost_of_what_cores_share() {
    const PACKETS: u64 = 400;
    for cores in [2, 4] {
        let mut sim = loaded(cores, COUNTS);
        // Entries set by the host are visible to all cores.
        sim.update("apart", &0_u32.to_ne_bytes(), &77_u64.to_ne_bytes()).expect("it is an array");
        sim.update("flows_apart", &999_u32.to_ne_bytes(), &78_u64.to_ne_bytes()).expect("room");
        let frames = mixed(PACKETS as u32, 24, cores.into());
        let departures = sim.run_together("count", &arrivals(&frames)).expect("it runs");
        assert!(departures.iter().all(|departure| departure.verdict == 1));
        let by_core = sim.nic_mut().packets_by_core().expect("it answers");
        let one = 1_u32.to_ne_bytes();
        let of = |sim: &mut Sim, map: &str, key: &[u8]| {
            let values = sim.values(map).expect("it is read")[key].clone();
            values.iter().map(|value| number(value)).collect::<Vec<_>>()
        };
        assert_eq!(of(&mut sim, "atomic", &one), [3 * PACKETS + (PACKETS << 32)]);
        assert_eq!(of(&mut sim, "apart", &one), by_core, "each counts its own");
        assert_eq!(of(&mut sim, "apart", &0_u32.to_ne_bytes()), [77; 4]);
        assert_eq!(of(&mut sim, "flows_apart", &999_u32.to_ne_bytes()), [78; 4]);
        let locked = sim.values("locked").expect("it is read")[&0_u32.to_ne_bytes()[..]].clone();
        assert_eq!(number(&locked[0][8..]), PACKETS * (PACKETS + 1) / 2, "one at a time");
        let mut expected: BTreeMap<u32, u64> = BTreeMap::new();
        for frame in &frames {
            *expected.entry(frame[35].into()).or_default() += 1;
        }
        let Contents::Entries(flows) = sim.contents("flows").expect("it is read") else {
            panic!("a hash has entries");
        };
        let flows: BTreeMap<u32, u64> =
            flows.iter().map(|(key, value)| (key[0].into(), number(value))).collect();
        assert_eq!(flows, expected);
        for (flow, count) in expected {
            let values = of(&mut sim, "flows_apart", &flow.to_ne_bytes());
            assert_eq!(values.iter().sum::<u64>(), count, "flow {flow}: {values:?}");
            assert_eq!(values.iter().filter(|value| **value > 0).count(), 1, "{values:?}");
        }
    }
}

/// Pops a number from each of two maps, stores both in the packet, and pushes them to the other
/// map.
const POPS: &str = "struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 512);
    __type(value, __u32); } queue SEC(\".maps\");
    struct { __uint(type, BPF_MAP_TYPE_STACK); __uint(max_entries, 512);
    __type(value, __u32); } stack SEC(\".maps\");
    struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 512);
    __type(value, __u32); } taken SEC(\".maps\");
    SEC(\"xdp\") int pop(struct xdp_md *context) {
    unsigned char *data = (void *)(long)context->data;
    unsigned char *end = (void *)(long)context->data_end;
    if (data + 64 > end) return XDP_ABORTED;
    __u32 first, other;
    if (bpf_map_pop_elem(&queue, &first) || bpf_map_pop_elem(&stack, &other)) return XDP_DROP;
    *(__u32 *)(data + 56) = first; *(__u32 *)(data + 60) = other;
    if (bpf_map_push_elem(&taken, &first, 0)) return XDP_DROP;
    return XDP_TX; }";

#[test]
fn what_is_in_queues_and_stacks_is_taken_once() {
    const PACKETS: u32 = 250;
    for cores in [2, 4] {
        let mut sim = loaded(cores, POPS);
        for number in 0..PACKETS {
            sim.push("queue", &number.to_ne_bytes()).expect("there is room");
            sim.push("stack", &(1_000 + number).to_ne_bytes()).expect("there is room");
        }
        let frames = mixed(PACKETS + 50, 24, cores.into());
        let departures = sim.run_together("pop", &arrivals(&frames)).expect("it runs");
        let sent: Vec<_> = departures.iter().filter(|departure| departure.verdict == 3).collect();
        let taken = |at: usize| {
            let number = |bytes: &[u8]| u32::from_ne_bytes(*bytes[at..].first_chunk().unwrap());
            let mut numbers: Vec<u32> = sent.iter().map(|sent| number(&sent.bytes)).collect();
            numbers.sort_unstable();
            numbers
        };
        assert_eq!(taken(56), (0..PACKETS).collect::<Vec<_>>(), "{cores} cores");
        assert_eq!(taken(60), (1_000..1_000 + PACKETS).collect::<Vec<_>>(), "{cores} cores");
        let Contents::Items(items) = sim.contents("taken").expect("it is read") else {
            panic!("a queue has items");
        };
        let word = |item: &Vec<u8>| u32::from_ne_bytes(*item.first_chunk().unwrap());
        let mut items: Vec<u32> = items.iter().map(word).collect();
        items.sort_unstable();
        assert_eq!(items, (0..PACKETS).collect::<Vec<_>>(), "nothing that was put in is lost");
        let by_core = sim.nic_mut().packets_by_core().expect("it answers");
        assert!(by_core[..cores.into()].iter().all(|count| *count > 0), "{by_core:?}");
    }
}

/// Encodes a slot of 64 bits.
fn slot(opcode: u8, registers: u8, offset: i16, immediate: i32) -> u64 {
    let (offset, immediate) = (offset as u16, immediate as u32);
    u64::from(opcode)
        | u64::from(registers) << 8
        | u64::from(offset) << 16
        | u64::from(immediate) << 32
}

fn card(cores: u8, rows: &[u64], watchdog: u64) -> Nic {
    let mut nic = Nic::with_cores(cores).expect("there is such a card");
    nic.host_write(address::ROWS, rows).expect("it answers");
    nic.host_write(address::ENTRY, &[(rows.len() as u64 / 4) << 16]).expect("it answers");
    nic.host_write(address::WATCHDOG, &[watchdog]).expect("it answers");
    nic.host_write(address::CONTROL, &[control::RUN | control::EMIT_ALL]).expect("it answers");
    nic
}

fn send(nic: &mut Nic, frames: &[Vec<u8>]) {
    arrivals(frames).iter().for_each(|arrival| nic.send(arrival));
}

/// Receives all packets that leave.
fn receive(nic: &mut Nic, count: usize) -> Vec<(Tags, Vec<u8>)> {
    let mut bytes = vec![];
    let next = |_| {
        let tags = nic.receive(100_000, &mut bytes).expect("it leaves");
        (tags, bytes.clone())
    };
    (0..count).map(next).collect()
}

#[test]
fn a_program_that_hangs_holds_up_its_own_core_alone() {
    // Register 6 is the byte that selects the action; 1 is to hang.
    let rows = [
        [slot(0x71, 0xb6, WORK_AT as i16, 0), 0, 0, 0],
        [slot(0x15, 0x06, -1, 1), 0, 0, 0],
        [slot(0x9d, 0, 0, 2), 0, 0, 0],
    ];
    const WATCHDOG: u64 = 3_000;
    let mut nic = card(4, &rows.concat(), WATCHDOG);
    let mut frames = vec![frame(0, 1, 0)];
    frames.extend((1..100).map(|number| frame(number as u16 % 20, 0, number)));
    send(&mut nic, &frames);
    let left = receive(&mut nic, frames.len());
    let stamps = nic.stamps(frames.len());
    let (hung, others) = stamps.split_first().expect("there are some");
    assert!(hung.done - hung.began >= WATCHDOG);
    let (behind, beside): (Vec<&Stamp>, Vec<&Stamp>) =
        others.iter().partition(|it| it.core == hung.core);
    assert!(!behind.is_empty() && beside.len() > 50);
    assert!(behind.iter().all(|it| it.done > hung.done));
    assert!(beside.iter().all(|it| it.done < hung.done), "they do not wait for it");
    for (tags, bytes) in left {
        let is_hung = number_of(&bytes) == 0;
        assert_eq!((tags.verdict, tags.stop), if is_hung { (0, 2) } else { (2, 0) });
    }
    assert_eq!(nic.counter("stopped_watchdog"), Ok(1));
}

/// Returns identical rows that set a register to a number, and an exit with it.
fn returns(number: u8) -> Vec<u64> {
    let set = 0xb7 | u64::from(number) << 32;
    [[set, 0, 0, 0], [set, 0, 0, 0], [0x95, 0, 0, 0]].concat()
}

#[test]
fn no_packet_meets_two_programs_on_any_core() {
    const PACKETS: usize = 150;
    for pause in (0..40).step_by(8) {
        let mut nic = card(4, &returns(2), 0);
        let frames: Vec<_> = (0..PACKETS as u32).map(|it| frame(it as u16 % 30, 0, it)).collect();
        send(&mut nic, &frames);
        nic.step(60 + pause);
        nic.host_write(address::ROWS + 3 * 32, &returns(3)).expect("it answers");
        nic.host_write(address::ENTRY, &[6 << 16 | 3]).expect("it answers");
        let mut last: BTreeMap<u16, u32> = BTreeMap::new();
        let mut counts = [0; 2];
        for (tags, bytes) in receive(&mut nic, PACKETS) {
            assert!(tags.stop == 0 && (2..=3).contains(&tags.verdict), "{tags:?}");
            counts[tags.verdict as usize - 2] += 1;
            let before = last.insert(flow_of(&bytes), tags.verdict).unwrap_or(2);
            assert!(before <= tags.verdict, "a flow goes back to the old program");
        }
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    }
}

#[test]
fn another_number_of_cores_takes_over_between_two_packets() {
    let mut sim = loaded(1, SPINS);
    assert!(sim.nic_mut().set_cores(2).is_err(), "the small card has one");
    let mut sim = loaded(4, SPINS);
    sim.run("spin", &arrivals(&mixed(1, 1, 1))[0]).expect("it runs");
    let frames = mixed(240, 24, 7);
    let nic = sim.nic_mut();
    assert!(nic.set_cores(0).is_err() && nic.set_cores(5).is_err());
    let mut left = vec![];
    for (part, cores) in frames.chunks(80).zip([4, 1, 2]) {
        send(nic, part);
        left.extend(receive(nic, 60));
        nic.set_cores(cores).expect("it has so many");
    }
    left.extend(receive(nic, frames.len() - left.len()));
    let mut next: BTreeMap<u16, u32> = BTreeMap::new();
    let mut core_of = vec![0; frames.len()];
    for (_, bytes) in left {
        let number = number_of(&bytes);
        let before = next.insert(flow_of(&bytes), number);
        assert!(before.is_none_or(|before| before < number), "{number} is late");
        core_of[number as usize] = bytes[58];
    }
    // The first packets meet four cores; those after the changes fewer, each from some packet on.
    let cores: Vec<BTreeSet<u8>> =
        core_of.chunks(80).map(|part| part.iter().copied().collect()).collect();
    assert_eq!(cores[0], BTreeSet::from([0, 1, 2, 3]));
    let last_of_four = core_of.iter().rposition(|core| *core > 1).expect("four were used");
    assert!((80..160).contains(&last_of_four), "{core_of:?}");
    let behind = &core_of[last_of_four + 1..];
    let alone = behind.iter().take_while(|core| **core == 0).count();
    assert!(alone > 20, "one core is used alone: {behind:?}");
    let both: BTreeSet<u8> = behind[alone..].iter().copied().collect();
    assert_eq!(both, BTreeSet::from([0, 1]), "and then two");
}

/// Returns rows that access maps as a packet says: 0, add 1 to the first word; 1, have a helper
/// write bytes of which the last are beyond all maps; 2, add to a word beyond them.
fn rows_that_reach_too_far(map_bytes: u32) -> Vec<u64> {
    const MAPS: u32 = 4 << 28;
    let number = |register: u8, value: u32| slot(0xb4, register, 0, value as i32);
    let add = |pointer: u8| slot(0xdb, 7 << 4 | pointer, 0, 0);
    let when = |work: i32, ahead: i16| slot(0x15, 0x06, ahead, work);
    [
        [slot(0x71, 0xb6, WORK_AT as i16, 0), number(5, MAPS), number(7, 1), 0],
        [when(1, 2), when(2, 5), number(8, MAPS + map_bytes), number(4, 24)],
        [add(5), 0, 0, 0],
        [slot(0x9d, 0, 0, 2), 0, 0, 0],
        // bpf_xdp_load_bytes(context, 0, address beyond the maps, 24)
        [number(2, 0), number(3, MAPS + map_bytes - 16), 0, 0],
        [slot(0x85, 0, 0, 189), 0, 0, 0],
        [slot(0x95, 0, 0, 0), 0, 0, 0],
        [add(8), 0, 0, 0],
        [slot(0x9d, 0, 0, 2), 0, 0, 0],
    ]
    .concat()
}

#[test]
fn what_is_written_behind_all_maps_holds_up_nobody() {
    for cores in [1, 2, 4] {
        let map_bytes =
            Nic::new().expect("there is a card").identity().expect("it answers").map_bytes;
        let mut nic = card(cores, &rows_that_reach_too_far(map_bytes as u32), 3_000);
        let marks: Vec<u8> = (1..=16).collect();
        let last = map_bytes - 16;
        nic.write_memory(0, &[0; 16]).expect("it answers");
        nic.write_memory(last, &marks).expect("it answers");
        let mut random = fastrand::Rng::with_seed(cores.into());
        let frames: Vec<_> =
            (0..300).map(|number| frame(random.u16(..24), random.u8(..3), number)).collect();
        send(&mut nic, &frames);
        let mut counts = [0; 3];
        for (tags, bytes) in receive(&mut nic, frames.len()) {
            let work = usize::from(bytes[WORK_AT]);
            // The helper returns -EFAULT.
            let expected = [(2, 0), (-14_i32 as u32, 0), (0, 1)][work];
            assert_eq!((tags.verdict, tags.stop), expected, "{cores} cores");
            counts[work] += 1;
        }
        assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
        assert_eq!(number(&nic.read_memory(0, 8).expect("it answers")), counts[0]);
        assert_eq!(nic.read_memory(8, 8).expect("it answers"), [0; 8]);
        assert_eq!(nic.read_memory(last, 16).expect("it answers"), marks, "nothing is written");
        assert_eq!(nic.counter("stopped_memory"), Ok(counts[2]));
    }
}
