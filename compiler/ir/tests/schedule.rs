// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pipelines: static rules, conflicts and hazards detected clock by clock, and the rate that FIFOs
//! and a late mask allow.

use freeport_ir::schedule::{
    Pipeline, Run, RunOptions, ScheduleError, check, parse_pipeline, print_pipeline, run,
};
use freeport_ir::text::parse;
use freeport_ir::{Bits, Program, flit};

const HISTOGRAM: &str = include_str!("freeze/histogram.ir");
const PIPELINE: &str = include_str!("freeze/histogram.pipeline");

fn program(text: &str) -> Program {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn pipeline(program: &Program, text: &str) -> Pipeline {
    parse_pipeline(program, text).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the histogram's pipeline with some changes of its text.
fn changed(changes: &[(&str, &str)]) -> String {
    let mut text = PIPELINE.to_owned();
    for (from, to) in changes {
        assert_eq!(text.matches(from).count(), 1, "`{from}` stands once");
        text = text.replace(from, to);
    }
    text
}

/// Returns one-flit packets with these values of byte 23.
fn flits(bytes: &[u8]) -> Vec<Bits> {
    let packet = |byte: &u8| flit::cut(&[[0; 23].as_slice(), &[*byte]].concat()).remove(0);
    bytes.iter().map(packet).collect()
}

fn go(text: &str, bytes: &[u8]) -> Result<Run, ScheduleError> {
    let program = program(HISTOGRAM);
    let pipeline = pipeline(&program, text);
    let mut always = |_, _| true;
    let options = RunOptions { clock_limit: 1_000, reads_output: &mut always };
    run(&program, &pipeline, vec![flits(bytes)], options)
}

/// Asserts the rule that a changed pipeline violates.
#[track_caller]
fn rejected(changes: &[(&str, &str)], want: &str) {
    let program = program(HISTOGRAM);
    let pipeline = pipeline(&program, &changed(changes));
    let error = check(&program, &pipeline).expect_err(want).to_string();
    assert!(error.contains(want), "{error}");
}

const NO_FORWARD: (&str, &str) =
    ("  forward counts stage 1 address buf_addr value buf_val valid buf_valid\n", "");
const NO_HIT: (&str, &str) = ("select %is_hit, %value, %read", "select %is_hit, %read, %read");

#[test]
fn rules_that_need_no_run() {
    rejected(&[("interval 1", "interval 0")], "the interval is 0 clocks");
    rejected(&[("fifo out 2", "fifo out 0")], "a FIFO with at least one slot");
    rejected(&[("latency 1", "latency 2")], "before the stage in which it is there");
    rejected(&[(" via counts_read", "")], "an access to memory uses a port");
    rejected(&[("via counts_read", "via counts_write")], "that port is for something else");
    rejected(&[("put out, %flit", "put out, %new")], "the port has items of another type");
    rejected(&[("set buf_addr, %byte", "set buf_addr, %new")], "the register has another width");
    rejected(&[("valid buf_valid", "valid buf_val")], "registers for address, value and valid");
    rejected(&[("%one = const", "%late = peek in %one = const")], "inputs are read in stage 0");
    rejected(&[("put out, %flit\n", "put out, %flit stage 2: put out, %flit\n")], "share a stage");
    rejected(&[("put out, %flit\n", "put out, %flit %r = random\n")], "cannot do this operation");
    rejected(&[("if %is_first\n  stage 1", "if %byte\n  stage 1")], "a predicate has one bit");
    rejected(&[("put out, %flit\n", "stage 0: put out, %flit\n")], "in the order of their stages");
    let (from, to) = ("%read = load counts[%byte]", "%read = load counts[%address]");
    rejected(&[(from, to)], "it uses a value that no step before it defines");
    let late = "put out, %flit stage 2: set buf_val, %new";
    rejected(&[("put out, %flit", late)], "all writes of a register share a stage");
    let set = "    set buf_valid, %is_first if %is_first\n";
    let later = "put out, %flit stage 2: set buf_valid, %is_first";
    rejected(&[(set, ""), ("put out, %flit", later)], "too late for the next firing");
    let again = "put out, %flit stage 2: %x = load counts[%byte] via counts_read";
    rejected(&[("put out, %flit", again)], "it reads after the forwarding stage");
}

#[test]
fn two_accesses_through_a_port_in_one_clock_conflict() {
    let twice = "%read = load counts[%byte] via counts_read \
        %other = load counts[%byte] via counts_read if";
    let text = changed(&[("%read = load counts[%byte] via counts_read if", twice)]);
    let want = ScheduleError::Conflict { clock: 0, port: "counts_read".into() };
    assert_eq!(go(&text, &[1]), Err(want));
    // One port for both suffices as long as no firing reads while another one writes.
    let one_port = [
        ("read counts latency", "read_write counts latency"),
        ("%new via counts_write", "%new via counts_read"),
    ];
    assert!(go(&changed(&one_port), &[1]).is_ok());
    let want = ScheduleError::Conflict { clock: 1, port: "counts_read".into() };
    assert_eq!(go(&changed(&one_port), &[1, 2]), Err(want));
}

#[test]
fn a_hazard_that_is_not_forwarded_is_an_error() {
    let text = changed(&[NO_FORWARD]);
    assert!(go(&text, &[1, 2, 1, 2]).is_ok(), "no read meets a write in flight");
    let error = go(&text, &[1, 2, 2]).expect_err("the third reads as the second writes");
    let want = "clock 2: counts[2]: a read came before the write of an earlier firing";
    assert_eq!(error.to_string(), want);
}

#[test]
fn at_half_the_rate_nothing_is_to_be_forwarded() {
    let text = changed(&[NO_FORWARD, NO_HIT, ("interval 1", "interval 2")]);
    let run = go(&text, &[5; 100]).expect("each write ends before the next read");
    assert_eq!(run.state[0][5].to_u64(), 100);
    assert!((199..=202).contains(&run.clocks), "{} clocks", run.clocks);
}

#[test]
fn forwarding_registers_that_hold_something_else_are_an_error() {
    let wrong = "the forwarding registers do not hold the value";
    for change in [
        ("set buf_val, %new", "set buf_val, %old"),
        ("set buf_addr, %byte", "set buf_addr, %address"),
        ("set buf_valid, %is_first", "set buf_valid, %is_hit"),
    ] {
        let error = go(&changed(&[change]), &[3, 3, 3]).expect_err("a wrong register");
        assert!(error.to_string().contains(wrong), "{error}");
    }
}

#[test]
fn a_write_that_overtakes_an_older_read_or_write_is_an_error() {
    let program = program(HISTOGRAM);
    let text = "pipeline Histogram interval 1 {
        port early: write counts latency 0 port late: read_write counts latency 1 fifo out 4
        stage 0: %flit = take in %byte = extract %flit[184 +: 8] %bits = extract %flit[0 +: 32]
            store counts[%byte], %bits via early
        stage 2: OLDER put out, %flit
        }";
    for (older, want) in [
        ("%r = load counts[%byte] via late", "a read sees the write of a later firing"),
        ("store counts[%byte], %bits via late", "writes end in the opposite order"),
    ] {
        let pipeline = pipeline(&program, &text.replace("OLDER", older));
        let mut always = |_, _| true;
        let options = RunOptions { clock_limit: 100, reads_output: &mut always };
        let input = vec![flits(&[4, 4, 4])];
        let error = run(&program, &pipeline, input, options).expect_err(want);
        assert!(error.to_string().contains(want), "{error}");
    }
}

#[test]
fn an_output_fifo_that_does_not_cover_the_latency_costs_rate_but_loses_nothing() {
    let full = go(PIPELINE, &[9; 100]).expect("it runs");
    assert_eq!(full.clocks, 102);
    let half = go(&changed(&[("fifo out 2", "fifo out 1")]), &[9; 100]).expect("it runs");
    assert_eq!(half.outputs, full.outputs);
    assert_eq!(half.clocks, 201, "one slot is held for two clocks by each firing");
}

#[test]
fn a_reader_that_stalls_holds_admission_and_nothing_else() {
    let program = program(HISTOGRAM);
    let pipeline = pipeline(&program, PIPELINE);
    let mut random = fastrand::Rng::with_seed(3);
    let bytes: Vec<u8> = (0..500).map(|_| random.u8(0..4)).collect();
    let mut sometimes = |_, _| random.u8(0..3) == 0;
    let options = RunOptions { clock_limit: 10_000, reads_output: &mut sometimes };
    let run_slow = run(&program, &pipeline, vec![flits(&bytes)], options).expect("it ends");
    let fast = {
        let mut always = |_, _| true;
        let options = RunOptions { clock_limit: 10_000, reads_output: &mut always };
        run(&program, &pipeline, vec![flits(&bytes)], options).expect("it ends")
    };
    assert_eq!((run_slow.outputs, run_slow.state), (fast.outputs, fast.state));
    assert!(run_slow.clocks > 2 * fast.clocks);
    let mut never = |_, _| false;
    let options = RunOptions { clock_limit: 50, reads_output: &mut never };
    let stuck = run(&program, &pipeline, vec![flits(&bytes)], options);
    assert_eq!(stuck, Err(ScheduleError::Unfinished(50)));
}

const MERGE: &str = "
element Merge {
  in a: bits<8>
  in b: bits<8>
  out out: bits<8>
  handler { entry: done }
}";

/// Takes from `a` and `b` alternately, by the mask.
const IN_TURN: &str = "pipeline Merge interval 1 {
  register is_b = 0x0:1
  fifo out 4
  stage 0:
    %is_b = get is_b
    %is_a = not %is_b
    set is_b, %is_a
    %a = take a if %is_a
    %b = take b if %is_b
    %item = or %a, %b
  stage 1:
    %mask = concat %is_b, %is_a
    put out, %item
  next %mask
}
";

#[test]
fn a_mask_that_is_computed_late_makes_the_interval_its_latency() {
    let program = program(MERGE);
    let in_turn = pipeline(&program, IN_TURN);
    assert_eq!(print_pipeline(&program, &in_turn), IN_TURN);
    let items = |from: u64| (0..50).map(|at| Bits::from_u64(8, from + at)).collect::<Vec<_>>();
    let want: Vec<u64> = (0..50).flat_map(|at| [at, 100 + at]).collect();
    let early = IN_TURN
        .replace("  stage 1:\n    %mask", "    %mask")
        .replace("    put out", "  stage 1:\n    put out");
    for (text, least) in [(IN_TURN, 200), (early.as_str(), 100)] {
        let pipeline = pipeline(&program, text);
        let mut always = |_, _| true;
        let options = RunOptions { clock_limit: 1_000, reads_output: &mut always };
        let run = run(&program, &pipeline, vec![items(0), items(100)], options);
        let run = run.unwrap_or_else(|error| panic!("{error}"));
        let got: Vec<u64> = run.outputs[0].iter().map(Bits::to_u64).collect();
        assert_eq!(got, want);
        assert!((least..least + 3).contains(&run.clocks), "{} clocks", run.clocks);
        assert_eq!(run.empty_reads, 0);
    }
}
