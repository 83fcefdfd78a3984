// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements that inspect only Ethernet and its tags, against simple models: whole frames, and
//! frames truncated at every length, with any tags. No element reads beyond a packet.

use fastrand::Rng;
use freeport_testbed::is_long;
use freeport_tests::both::{Both, Counts, argument};
use freeport_tests::oracle::seed;
use std::collections::BTreeMap;

const TAGS: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];

/// Returns one of few stations, of two groups, of the addresses reserved for bridges, or broadcast.
fn random_mac(random: &mut Rng) -> [u8; 6] {
    match random.u8(..12) {
        0 => [0xff; 6],
        1 => [0x01, 0x00, 0x5e, 0, 0, random.u8(..2)],
        2 => [0x01, 0x80, 0xc2, 0, 0, random.u8(14..18)],
        3 => [0; 6],
        _ => [2, 0, 0, 0, 0, random.u8(1..6)],
    }
}

fn random_frame(random: &mut Rng) -> Vec<u8> {
    let mut bytes = [random_mac(random), random_mac(random)].concat();
    for _ in 0..[0, 0, 1, 1, 2, 3][random.usize(..6)] {
        bytes.extend(TAGS[random.usize(..2)]);
        let id = [0, 1, 5, 6, 4094, 4095][random.usize(..6)];
        bytes.extend((random.u16(..8) << 13 | id).to_be_bytes());
    }
    let kinds: [u16; 5] = [0x0800, 0x86dd, 0x0806, 0x88cc, 0x002e];
    bytes.extend(kinds[random.usize(..5)].to_be_bytes());
    bytes.extend((0..random.usize(1..40)).map(|_| random.u8(..)));
    bytes
}

/// Returns frames, some truncated at every length.
fn frames(random: &mut Rng) -> Vec<Vec<u8>> {
    let mut all = vec![];
    for _ in 0..if is_long() { 500 } else { 25 } {
        let whole = random_frame(random);
        all.extend((1..whole.len()).map(|length| whole[..length].to_vec()));
        all.extend((0..30).map(|_| random_frame(random)));
    }
    all
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?))
}

fn is_tag(word: u16) -> bool {
    TAGS.contains(&word.to_be_bytes())
}

/// Returns the number of the outermost tag, or `None` for an untagged frame; an error if it is
/// truncated.
fn outer(frame: &[u8]) -> Result<Option<u16>, ()> {
    match word(frame, 12).ok_or(())? {
        tag if is_tag(tag) && frame.len() < 18 => Err(()),
        tag if is_tag(tag) => Ok(word(frame, 14).map(|tag| tag & 0xfff)),
        _ => Ok(None),
    }
}

/// Result of a model for a frame: the end at which it leaves, if any, its bytes, and the counter.
type Said = (Option<&'static str>, Vec<u8>, Option<&'static str>);

/// Runs frames through one element and a model of it.
fn compare(text: &str, calls: &[(&str, &[&str])], model: impl Fn(&[u8]) -> Said) {
    let frames = frames(&mut Rng::with_seed(seed(33)));
    let (mut out, mut counts) = (BTreeMap::<&str, Vec<Vec<u8>>>::new(), Counts::default());
    for frame in &frames {
        let (end, bytes, counter) = model(frame);
        if let Some(end) = end {
            out.entry(end).or_default().push(bytes);
        }
        counter.into_iter().for_each(|counter| counts.add(counter));
    }
    let arguments = |texts: &[&str]| texts.iter().map(|text| argument(text)).collect();
    let calls: Vec<_> = calls.iter().map(|(name, texts)| (*name, arguments(texts))).collect();
    let mut found = Both::new(text).run(&calls, &[("from_tor", &frames)]);
    for (end, items) in &found.out {
        let expected = out.remove(end.as_str()).expect("some frames leave there");
        for (item, expected) in items.iter().zip(&expected) {
            assert_eq!(item, expected, "{text}");
        }
        assert_eq!(items.len(), expected.len(), "{text}, {end}");
    }
    assert!(out.is_empty());
    found.counters.retain(|name, _| ["cut", "foreign", "untagged", "refused"].contains(&&name[..]));
    counts.check(&found.counters);
}

#[test]
fn types_are_found_behind_tags() {
    for tags in 0..=2 {
        let text = format!(
            "TypeDemux<{tags}> :: dut\nfrom_tor -> dut\ndut [ipv4] -> to_tor\ndut [ipv6] -> to_nic
            dut [arp] -> to_host\ndut [others] -> to_memory"
        );
        compare(&text, &[], |frame| {
            let mut kind = word(frame, 12);
            for tag in 0..tags {
                let is_last = !kind.is_some_and(is_tag);
                kind = if is_last { kind } else { word(frame, 16 + 4 * tag) };
                if is_last {
                    break;
                }
            }
            let end = match kind {
                Some(0x0800) => "to_tor",
                Some(0x86dd) => "to_nic",
                Some(0x0806) => "to_host",
                _ => "to_memory",
            };
            (Some(end), frame.to_vec(), kind.is_none().then_some("cut"))
        });
    }
}

#[test]
fn tags_go_on_and_off() {
    for (parameters, tag) in
        [("5, 3", [0x81, 0, 0x60, 5]), ("4094, 7, 1", [0x88, 0xa8, 0xef, 0xfe])]
    {
        let text = format!("VlanPush<{parameters}> :: dut\nfrom_tor -> dut -> to_tor");
        compare(&text, &[], |frame| match frame.len() {
            ..14 => (None, vec![], Some("refused")),
            _ => (Some("to_tor"), [&frame[..12], &tag, &frame[12..]].concat(), None),
        });
    }
    let text = "VlanPop :: dut\nfrom_tor -> dut\ndut [out] -> to_tor\ndut [untagged] -> to_nic";
    compare(text, &[], |frame| match outer(frame) {
        Ok(Some(_)) => (Some("to_tor"), [&frame[..12], &frame[16..]].concat(), None),
        outer => (Some("to_nic"), frame.to_vec(), outer.is_err().then_some("cut")),
    });
}

#[test]
fn filters_pass_what_they_are_told_to() {
    for passes_untagged in [false, true] {
        let text = format!(
            "VlanFilter<{}> :: dut\nfrom_tor -> dut\ndut [out] -> to_tor\ndut [refused] -> to_nic",
            u8::from(passes_untagged)
        );
        let calls: [(&str, &[&str]); 3] =
            [("allow", &["1", "5"]), ("allow", &["4094", "4094"]), ("forbid", &["2", "4"])];
        compare(&text, &calls, |frame| {
            let (passes, counter) = match outer(frame) {
                Err(()) => (false, "cut"),
                Ok(None | Some(0)) => (passes_untagged, "untagged"),
                Ok(Some(id)) => ([1, 5, 4094].contains(&id), "foreign"),
            };
            let end = if passes { "to_tor" } else { "to_nic" };
            (Some(end), frame.to_vec(), (!passes).then_some(counter))
        });
    }
    let text = "HostFilter<0x020000000003> :: dut\nfrom_tor -> dut\ndut [out] -> to_tor
        dut [others] -> to_nic";
    compare(text, &[("join", &["01:00:5e:00:00:01"])], |frame| {
        let ours = [[0xff; 6], [2, 0, 0, 0, 0, 3], [0x01, 0x00, 0x5e, 0, 0, 1]];
        let is_ours = frame.len() >= 14 && ours.iter().any(|it| frame.starts_with(it));
        let end = if is_ours { "to_tor" } else { "to_nic" };
        (Some(end), frame.to_vec(), (frame.len() < 14).then_some("cut"))
    });
}

#[test]
fn addresses_are_written() {
    let text = "SetMacs<0x020000000009> :: dut\nfrom_tor -> dut -> to_tor";
    compare(text, &[("set_target", &["0a:0b:0c:0d:0e:0f"])], |frame| match frame.len() {
        ..14 => (Some("to_tor"), frame.to_vec(), Some("cut")),
        _ => {
            let addresses = [10, 11, 12, 13, 14, 15, 2, 0, 0, 0, 0, 9];
            (Some("to_tor"), [&addresses, &frame[12..]].concat(), None)
        }
    });
}

const PORTS: usize = 3;

/// Returns the ports at which a frame leaves a bridge; learns its source.
fn bridged(heard: &mut BTreeMap<([u8; 6], u16), usize>, port: usize, frame: &[u8]) -> Vec<usize> {
    if frame.len() < 14 {
        return vec![];
    }
    let [target, source] = [0, 6].map(|at| <[u8; 6]>::try_from(&frame[at..at + 6]).unwrap());
    if source == [0; 6] || source[0] & 1 == 1 {
        return vec![];
    }
    let vlan = outer(frame).ok().flatten().unwrap_or(0);
    heard.insert((source, vlan), port);
    if target[..5] == [0x01, 0x80, 0xc2, 0, 0] && target[5] < 16 {
        return vec![];
    }
    let known = heard.get(&(target, vlan)).filter(|_| target[0] & 1 == 0);
    let others = (0..PORTS).filter(|other| *other != port);
    others.filter(|other| known.is_none_or(|known| known == other)).collect()
}

#[test]
fn a_bridge_sends_where_a_station_was_heard_last() {
    let text = "Bridge<3, 64> :: dut
        from_tor -> [in[0]] dut [out[0]] -> to_tor
        from_nic -> [in[1]] dut [out[1]] -> to_nic
        from_host -> [in[2]] dut [out[2]] -> to_host";
    let mut random = Rng::with_seed(seed(34));
    let frames = frames(&mut random);
    let ports: Vec<usize> = frames.iter().map(|_| random.usize(..PORTS)).collect();
    let both = Both::new(text);
    for mut dut in both.machines() {
        let (mut heard, mut fans) = (BTreeMap::new(), [0; PORTS]);
        for (frame, port) in frames.iter().zip(&ports) {
            dut.feed(["from_tor", "from_nic", "from_host"][*port], frame).unwrap();
            dut.settle().unwrap();
            let expected = bridged(&mut heard, *port, frame);
            fans[expected.len()] += 1;
            for (at, end) in ["to_tor", "to_nic", "to_host"].into_iter().enumerate() {
                let wanted: Vec<Vec<u8>> =
                    expected.iter().filter(|to| **to == at).map(|_| frame.clone()).collect();
                assert_eq!(dut.take(end).unwrap(), wanted, "at {end}, from {port}: {frame:02x?}");
            }
        }
        assert!(fans.iter().all(|count| *count > 20), "some go nowhere, some everywhere");
    }
}
