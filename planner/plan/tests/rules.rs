// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules fire by the numbers of a profile.

use crate::{alternative, function, profile};
use freeport_plan::function::{Action, Memory, Repeated};
use freeport_plan::rules::{Effect, Finding, Rule, optimise};
use freeport_plan::{Alternative, Constraints, Cost};
use freeport_plan_model::{Operation, Path, Profile, Request, Side};

fn of(steps: &[Request]) -> Alternative {
    let step = |request: &Request| Repeated {
        action: Action::Request(*request),
        times: 1.0,
        is_compressed: false,
    };
    Alternative {
        name: "A".into(),
        about: String::new(),
        steps: steps.iter().map(step).collect(),
        covers: 1.0,
        miss: vec![],
        memory: vec![],
    }
}

fn found(profile: &Profile, ratio: f64, alternative: &Alternative, rule: Rule) -> Vec<Finding> {
    let (_, findings) = optimise(profile, ratio, &Constraints::default(), alternative);
    findings.into_iter().filter(|finding| finding.rule == rule).collect()
}

#[test]
fn small_reads_are_better_on_path_2_while_the_hosts_reads_are_the_limit() {
    let mut profile = profile("bluefield2");
    let read = of(&[Request::new(Path::Host, Operation::Read, 64)]);
    let fired = found(&profile, 1.0, &read, Rule::R1);
    assert_eq!(fired.len(), 1);
    assert!(fired[0].reason.contains("140.0 M/s on path 2 and 104.0 M/s on path 1"), "{fired:?}");
    // A processor with few reads in flight is no better.
    profile.soc.reads = 90.0;
    assert!(found(&profile, 1.0, &read, Rule::R1).is_empty());
    // Large reads are all the same.
    let large = of(&[Request::new(Path::Host, Operation::Read, 4096)]);
    assert!(found(&profile, 1.0, &large, Rule::R1).is_empty());
}

#[test]
fn hot_items_are_copied_until_banks_are_no_limit() {
    let mut profile = profile("bluefield2");
    let hot = Request { range: 2048, ..Request::new(Path::Soc, Operation::Read, 64) };
    let (changed, findings) = optimise(&profile, 1.0, &Constraints::default(), &of(&[hot]));
    assert_eq!((findings[0].rule, findings[0].effect), (Rule::R2, Effect::Changed));
    let before = Cost::of(&profile, &of(&[hot])).limit();
    let after = Cost::of(&profile, &changed).limit();
    assert_eq!(before.name, "banks of the SoC's memory");
    assert!(after.rate > 2.0 * before.rate, "{before:?} {after:?}");
    assert_eq!(changed.memory[0].bytes, 2048 * 3, "four copies");
    profile.soc.bank_busy = 1.0;
    assert!(found(&profile, 1.0, &of(&[hot]), Rule::R2).is_empty());
}

#[test]
fn long_reads_are_split_below_what_the_nic_tracks() {
    let mut profile = profile("bluefield2");
    let long = of(&[Request::new(Path::Soc, Operation::Read, 32 << 20)]);
    let (changed, findings) = optimise(&profile, 1.0, &Constraints::default(), &long);
    assert_eq!((findings[0].rule, findings[0].effect), (Rule::R3, Effect::Changed));
    let part = changed.requests().next().expect("a request");
    assert!(part.bytes < 9_000_000 && changed.steps[0].times == 4.0, "{changed:?}");
    let rate = |alternative: &Alternative| Cost::of(&profile, alternative).limit().rate;
    assert!(rate(&changed) > 1.3 * rate(&long));
    profile.nic.tracked = 64.0;
    assert!(found(&profile, 1.0, &long, Rule::R3).is_empty());
}

#[test]
fn path_3_is_split_and_dma_replaces_it_where_that_loses_nothing() {
    let mut profile = profile("bluefield2");
    profile.dma.rate = 60.0;
    let large = of(&[Request::new(Path::SocToHost, Operation::Read, 16 << 20)]);
    let (changed, _) = optimise(&profile, 1.0, &Constraints::default(), &large);
    let part = changed.requests().next().expect("a request");
    assert_eq!((part.path, part.bytes, changed.steps[0].times), (Path::SocToHost, 256 << 10, 64.0));
    let fired = found(&profile, 1.0, &large, Rule::R4);
    assert_eq!(fired[1].effect, Effect::Advice);
    assert!(fired[1].reason.contains("path 3 stays"), "{fired:?}");
    profile.dma.rate = 200.0;
    let (changed, _) = optimise(&profile, 1.0, &Constraints::default(), &large);
    assert!(changed.requests().all(|request| request.path == Path::DmaToHost));
}

#[test]
fn doorbells_are_batched_where_they_limit() {
    let mut profile = profile("bluefield2");
    let batch = |profile: &Profile, path| {
        let (changed, _) = optimise(
            profile,
            1.0,
            &Constraints::default(),
            &of(&[Request::new(path, Operation::Write, 64)]),
        );
        let request = changed.requests().next().expect("a request");
        (request.path, request.batch)
    };
    profile.dma.copy = 100_000.0;
    let (path, at_soc) = batch(&profile, Path::SocToHost);
    assert!(path == Path::SocToHost && at_soc > 1, "{at_soc}");
    // Large writes of the host do not depend on doorbells.
    let large = of(&[Request::new(Path::HostToPeer, Operation::Write, 256 << 10)]);
    assert!(found(&profile, 1.0, &large, Rule::R5).is_empty());
    profile.soc.doorbell = 0.0;
    assert_eq!(batch(&profile, Path::SocToHost).1, 1);
    // Fetches that take long cost more than the host's doorbells.
    profile.nic.fetches = 1.0;
    let small = of(&[Request::new(Path::HostToPeer, Operation::Write, 64)]);
    let fired = found(&profile, 1.0, &small, Rule::R5);
    assert_eq!(fired[0].effect, Effect::Advice);
    assert!(fired[0].reason.contains("the host rings a doorbell for each request"), "{fired:?}");
}

#[test]
fn path_3_has_a_budget_of_p_minus_n() {
    let mut profile = profile("bluefield2");
    let large = of(&[Request::new(Path::SocToHost, Operation::Read, 256 << 10)]);
    profile.dma.rate = 20.0;
    let fired = found(&profile, 1.0, &large, Rule::R6);
    assert!(fired[0].reason.contains("256 - 200 = 56 Gbit/s"), "{fired:?}");
    profile.pcie1.rate = 1000.0;
    assert!(found(&profile, 1.0, &large, Rule::R6).is_empty());
}

#[test]
fn messages_to_the_processor_have_its_capacity() {
    for (device, expected) in [("bluefield2", "8 cores"), ("bluefield3", "16 cores")] {
        let profile = profile(device);
        let cached = alternative(&function("key-value"), "A5");
        let fired = found(&profile, 1.0, &cached, Rule::R7);
        assert!(fired[0].reason.starts_with(expected), "{fired:?}");
        let one_sided = alternative(&function("key-value"), "A4");
        assert!(found(&profile, 1.0, &one_sided, Rule::R7).is_empty());
    }
}

#[test]
fn compression_over_path_3_needs_a_small_ratio() {
    let mut profile = profile("bluefield2");
    // No DMA, so that path 3 stays.
    profile.dma.rate = 10.0;
    let effect = |profile: &Profile, ratio| {
        let function = function("replication").with_ratio(ratio);
        let fired = found(profile, ratio, &alternative(&function, "A1"), Rule::R8);
        fired.into_iter().next().map(|finding| finding.effect)
    };
    assert_eq!(effect(&profile, 0.27), Some(Effect::Advice));
    assert_eq!(effect(&profile, 0.29), Some(Effect::Warning));
    // Without compression, there is nothing to advise.
    assert_eq!(effect(&profile, 1.0), None);
    profile.pcie1.rate = 400.0;
    assert_eq!(effect(&profile, 0.29), Some(Effect::Advice));
}

/// A second device gets other advice without other code.
#[test]
fn another_device_changes_the_advice() {
    let function = function("key-value");
    let reasons = |device: &str| {
        let profile = profile(device);
        let findings = function.resolved().into_iter().flat_map(|alternative| {
            let (_, findings) = optimise(&profile, 1.0, &Constraints::default(), &alternative);
            findings
        });
        findings.map(|finding| finding.reason).collect::<Vec<_>>()
    };
    let (old, new) = (reasons("bluefield2"), reasons("bluefield3"));
    assert!(old.iter().all(|reason| !new.contains(reason)), "{old:?} {new:?}");
}

/// A change that would break a constraint which the alternative keeps is advice only.
#[test]
fn constraints_are_kept_by_changes() {
    let profile = profile("bluefield2");
    let hot = Request { range: 2048, ..Request::new(Path::Soc, Operation::Read, 64) };
    let mut declared = of(&[hot]);
    declared.memory = vec![Memory { side: Side::Soc, name: "items".into(), bytes: 2048 }];
    for (room, effect) in [(4 * 2048, Effect::Changed), (4 * 2048 - 1, Effect::Advice)] {
        let constraints = Constraints { soc_memory: Some(room), ..Constraints::default() };
        let (changed, findings) = optimise(&profile, 1.0, &constraints, &declared);
        let finding = findings.iter().find(|finding| finding.rule == Rule::R2).expect("it fires");
        assert_eq!(finding.effect, effect, "{finding:?}");
        assert_eq!(changed == declared, effect == Effect::Advice);
    }
    // Batches and chunks take longer on an idle machine.
    let long = of(&[Request::new(Path::SocToHost, Operation::Read, 16 << 20)]);
    let latency = Cost::of(&profile, &long).latency / 1000.0;
    let constraints = Constraints { latency_us: Some(latency), ..Constraints::default() };
    let (changed, _) = optimise(&profile, 1.0, &constraints, &long);
    assert!(Cost::of(&profile, &changed).latency / 1000.0 <= latency);
}

/// Only what remains in the plan is reported: nothing about path 3, if DMA takes its place.
#[test]
fn dma_is_compared_with_path_3_in_chunks_and_batches() {
    let mut profile = profile("bluefield2");
    let large = of(&[Request::new(Path::SocToHost, Operation::Read, 16 << 20)]);
    profile.dma.rate = 200.0;
    let (changed, findings) = optimise(&profile, 1.0, &Constraints::default(), &large);
    let request = changed.requests().next().expect("a request");
    assert_eq!((request.path, request.bytes), (Path::DmaToHost, 16 << 20));
    let of_rule_4 = findings.iter().filter(|finding| finding.rule == Rule::R4).count();
    assert_eq!(of_rule_4, 1, "{findings:?}");
    // Small reads are faster by DMA than one by one on path 3, and slower than in batches there.
    (profile.dma.copy, profile.dma.post) = (20.0 * profile.dma.engines, 100.0);
    let (changed, findings) = {
        let small = of(&[Request::new(Path::SocToHost, Operation::Read, 64)]);
        optimise(&profile, 1.0, &Constraints::default(), &small)
    };
    let limit = |path, batch| {
        let request = Request { batch, ..Request::new(path, Operation::Read, 64) };
        Cost::of(&profile, &of(&[request])).limit().rate
    };
    let by_dma = limit(Path::DmaToHost, 32);
    let on_path_3 = [1, 32].map(|batch| limit(Path::SocToHost, batch));
    assert!(on_path_3[0] < by_dma && by_dma < on_path_3[1], "{on_path_3:?} {by_dma}");
    let request = changed.requests().next().expect("a request");
    assert!(request.path == Path::SocToHost && request.batch > 1, "{request:?} {findings:?}");
    assert!(findings.iter().any(|it| it.reason.contains("path 3 stays")), "{findings:?}");
}
