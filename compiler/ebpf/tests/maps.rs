// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations of a map's owner: random operations against simple models, and the kernel's errors.

use fastrand::Rng;
use freeport_ebpf::maps::flags::{ANY, EXIST, NO_PREALLOC, NOEXIST};
use freeport_ebpf::maps::{ErrorNumber, Map};
use freeport_ebpf::object::{MapDefinition, MapKind};
use std::collections::BTreeMap;

const ENTRIES: u32 = 12;

fn definition(kind: MapKind, key_size: u32, value_size: u32, max_entries: u32) -> MapDefinition {
    MapDefinition {
        name: "map".to_owned(),
        kind,
        key_size,
        value_size,
        max_entries,
        flags: if kind == MapKind::LpmTrie { NO_PREALLOC } else { 0 },
        ..MapDefinition::default()
    }
}

fn map(kind: MapKind, key_size: u32, value_size: u32, max_entries: u32) -> Map {
    let definition = definition(kind, key_size, value_size, max_entries);
    Map::new(&definition, 17, 1 << 20).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the model's result of an update.
fn updated(
    model: &mut BTreeMap<Vec<u8>, Vec<u8>>,
    key: &[u8],
    value: &[u8],
    flags: u64,
    is_full: bool,
) -> Result<(), ErrorNumber> {
    match (flags, model.contains_key(key)) {
        (3.., _) => return Err(ErrorNumber::EINVAL),
        (NOEXIST, true) => return Err(ErrorNumber::EEXIST),
        (EXIST, false) => return Err(ErrorNumber::ENOENT),
        (_, false) if is_full => return Err(ErrorNumber::E2BIG),
        _ => {}
    }
    model.insert(key.to_vec(), value.to_vec());
    Ok(())
}

/// Compares all operations of an owner with the model.
fn compare(map: &Map, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let mut entries = map.entries();
    entries.sort();
    let expected: Vec<_> = model.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    assert_eq!(entries, expected);
    let mut keys = vec![];
    let mut next = map.next_key(None);
    while let Some(key) = next {
        next = map.next_key(Some(&key));
        keys.push(key);
    }
    keys.sort();
    assert_eq!(keys, model.keys().cloned().collect::<Vec<_>>());
}

/// Makes random operations on a map with `keys` possible keys.
fn random_operations(kind: MapKind, keys: u8) {
    let mut random = Rng::with_seed(u64::from(keys));
    let mut map = map(kind, 5, 6, ENTRIES);
    let mut model = BTreeMap::new();
    for _ in 0..6_000 {
        let key = [random.u8(0..keys), 1, 2, 3, 4];
        match random.u8(0..8) {
            0..4 => {
                let value: [u8; 6] = std::array::from_fn(|_| random.u8(..));
                let flags = random.u64(0..4);
                let is_full = model.len() == ENTRIES as usize;
                let expected = updated(&mut model, &key, &value, flags, is_full);
                assert_eq!(map.update(&key, &value, flags), expected, "{kind} {key:?} {flags}");
            }
            4..6 => {
                let expected = model.remove(&key[..]).map(|_| ()).ok_or(ErrorNumber::ENOENT);
                assert_eq!(map.delete(&key), expected, "{kind} {key:?}");
            }
            6 => {
                let expected = model.get(&key[..]).map(Vec::as_slice).ok_or(ErrorNumber::ENOENT);
                assert_eq!(map.lookup(&key), expected, "{kind} {key:?}");
            }
            _ => compare(&map, &model),
        }
    }
    compare(&map, &model);
}

#[test]
fn hash_maps_are_maps_also_when_they_are_full() {
    for kind in [MapKind::Hash, MapKind::PerCpuHash] {
        random_operations(kind, 30);
        random_operations(kind, ENTRIES as u8);
    }
}

#[test]
fn lru_maps_below_their_capacity_are_hash_maps() {
    for kind in [MapKind::LruHash, MapKind::LruPerCpuHash] {
        random_operations(kind, ENTRIES as u8);
    }
}

#[test]
fn full_lru_maps_take_new_keys_and_lose_old_ones() {
    let mut map = map(MapKind::LruHash, 4, 4, ENTRIES);
    for key in 0..100_u32 {
        let bytes = key.to_ne_bytes();
        assert_eq!(map.update(&bytes, &bytes, ANY), Ok(()));
        assert_eq!(map.lookup(&bytes), Ok(&bytes[..]), "the newest is there");
        assert_eq!(map.entries().len(), (key as usize + 1).min(ENTRIES as usize));
    }
}

#[test]
fn arrays_have_all_keys_always() {
    let mut array = map(MapKind::Array, 4, 6, 3);
    let key = |key: u32| key.to_ne_bytes();
    assert_eq!(array.update(&key(2), &[1; 6], EXIST), Ok(()));
    assert_eq!(array.update(&key(2), &[1; 6], NOEXIST), Err(ErrorNumber::EEXIST));
    assert_eq!(array.update(&key(2), &[1; 6], 3), Err(ErrorNumber::EINVAL));
    assert_eq!(array.update(&key(3), &[1; 6], ANY), Err(ErrorNumber::E2BIG));
    assert_eq!(array.delete(&key(2)), Err(ErrorNumber::EINVAL));
    assert_eq!(array.lookup(&key(1)), Ok(&[0; 6][..]));
    assert_eq!(array.lookup(&key(3)), Err(ErrorNumber::ENOENT));
    assert_eq!(array.entries().len(), 3);
    for wrong in [&[0; 3][..], &[0; 5]] {
        assert_eq!(array.lookup(wrong), Err(ErrorNumber::EINVAL));
        assert_eq!(array.update(&key(0), wrong, ANY), Err(ErrorNumber::EINVAL));
        assert_eq!(array.delete(wrong), Err(ErrorNumber::EINVAL));
    }
    let per_cpu = map(MapKind::PerCpuArray, 4, 6, 1);
    assert_eq!(per_cpu.lookup_per_processor(&key(0), 2), Ok(vec![0; 16]));
}

#[test]
fn prefixes_have_the_kernels_errors() {
    let mut tree = map(MapKind::LpmTrie, 8, 4, 2);
    let key = |bits: u32, address: [u8; 4]| [bits.to_ne_bytes(), address].concat();
    let net = key(8, [10, 0, 0, 0]);
    assert_eq!(tree.update(&net, &[1; 4], EXIST), Err(ErrorNumber::ENOENT));
    assert_eq!(tree.update(&net, &[1; 4], NOEXIST), Ok(()));
    assert_eq!(tree.update(&net, &[1; 4], NOEXIST), Err(ErrorNumber::EEXIST));
    assert_eq!(tree.update(&key(33, [0; 4]), &[1; 4], ANY), Err(ErrorNumber::EINVAL));
    assert_eq!(tree.update(&net, &[1; 4], 3), Err(ErrorNumber::EINVAL));
    assert_eq!(tree.update(&key(16, [10, 1, 0, 0]), &[2; 4], ANY), Ok(()));
    assert_eq!(tree.update(&key(24, [10, 1, 1, 0]), &[3; 4], ANY), Err(ErrorNumber::ENOSPC));
    assert_eq!(tree.lookup(&key(32, [10, 1, 2, 3])), Ok(&[2; 4][..]));
    assert_eq!(tree.lookup(&key(32, [10, 2, 2, 3])), Ok(&[1; 4][..]));
    assert_eq!(tree.lookup(&key(32, [11, 2, 2, 3])), Err(ErrorNumber::ENOENT));
    assert_eq!(tree.delete(&key(9, [10, 0, 0, 0])), Err(ErrorNumber::ENOENT));
    assert_eq!(tree.next_key(None), Some(net.clone()));
    assert_eq!(tree.next_key(Some(&net)), Some(key(16, [10, 1, 0, 0])));
    assert_eq!(tree.delete(&net), Ok(()));
    assert_eq!(tree.entries().len(), 1);
}

#[test]
fn devices_by_keys_have_the_kernels_errors() {
    let mut devices = map(MapKind::DevmapHash, 4, 8, 1);
    let value = |ifindex: u8| [ifindex, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(devices.update(&[9; 4], &value(0), ANY), Err(ErrorNumber::EINVAL));
    assert_eq!(devices.update(&[9; 4], &value(1), EXIST), Ok(()), "nothing has to be there");
    assert_eq!(devices.update(&[9; 4], &value(1), NOEXIST), Err(ErrorNumber::EEXIST));
    assert_eq!(devices.update(&[8; 4], &value(1), ANY), Err(ErrorNumber::E2BIG));
    assert_eq!(devices.delete(&[8; 4]), Err(ErrorNumber::ENOENT));
    assert_eq!(devices.delete(&[9; 4]), Ok(()));
}

#[test]
fn maps_without_keys_say_so() {
    let mut queue = map(MapKind::Queue, 0, 4, 1);
    assert_eq!(queue.push(&[1; 4], ANY), Ok(()));
    assert_eq!(queue.push(&[1; 3], ANY), Err(ErrorNumber::EINVAL));
    assert_eq!((queue.peek(), queue.pop()), (Ok(vec![1; 4]), Ok(vec![1; 4])));
    assert_eq!(queue.pop(), Err(ErrorNumber::ENOENT));
    assert_eq!(queue.lookup(&[]), Err(ErrorNumber::EOPNOTSUPP));
    assert_eq!(queue.update(&[], &[1; 4], ANY), Err(ErrorNumber::EOPNOTSUPP));
    let mut bloom = map(MapKind::BloomFilter, 0, 4, 10);
    assert_eq!(bloom.push(&[1; 4], EXIST), Err(ErrorNumber::EINVAL));
    assert_eq!(bloom.push(&[1; 4], ANY), Ok(()));
    assert_eq!((bloom.may_hold(&[1; 4]), bloom.may_hold(&[2; 4])), (Ok(true), Ok(false)));
    assert_eq!(bloom.pop(), Err(ErrorNumber::EOPNOTSUPP));
}

#[test]
fn what_the_kernel_would_not_make_is_refused_with_the_reason() {
    use MapKind::*;
    let mut without_flag = definition(LpmTrie, 8, 4, 1);
    without_flag.flags = 0;
    let mut too_long = definition(Array, 4, 4, 1);
    too_long.initial = Some(vec![0; 5]);
    for (definition, expected) in [
        (definition(Array, 8, 4, 1), "its key must have 4 bytes"),
        (definition(Array, 4, 4, 0), "max_entries is 0"),
        (definition(Hash, 0, 4, 1), "its key has no bytes"),
        (definition(Hash, 4, 0, 1), "its value has no bytes"),
        (definition(Hash, 4, 1 << 20, 1 << 20), "bytes of memory"),
        (definition(Hash, u32::MAX, u32::MAX, u32::MAX - 1), "bytes of memory"),
        (definition(Array, 4, 4, u32::MAX), "max_entries is too large"),
        (
            definition(LpmTrie, 4, 4, 1),
            "its key must have 4 bytes for the length and 1 to 256 bytes of data",
        ),
        (without_flag, "it lacks the flag BPF_F_NO_PREALLOC"),
        (definition(Devmap, 4, 5, 1), "its value must have 4 or 8 bytes"),
        (definition(ProgramArray, 4, 8, 1), "its value must have 4 bytes"),
        (definition(Queue, 4, 4, 1), "it has a key"),
        (definition(RingBuffer, 0, 0, 4_095), "not a power of two"),
        (definition(RingBuffer, 0, 4, 4_096), "it has a key or a value"),
        (definition(Other(99), 4, 4, 1), "are not supported"),
        (too_long, "its initial bytes do not fit its value"),
    ] {
        let error = Map::new(&definition, 1, 1 << 24).err().expect("it cannot be made");
        let text = error.to_string();
        assert!(text.starts_with("map `map`: ") && text.contains(expected), "{text}");
    }
}
