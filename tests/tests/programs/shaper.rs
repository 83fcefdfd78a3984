// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shaper and Policer in simulated time: the test determines when packets arrive, and compares the
//! departures with the rate and the burst.

use fastrand::Rng;
use freeport_clicknp::{Options, compile_text};
use freeport_ir::interp::{Interpreter, Options as Running};
use freeport_ir::{EndpointId, Program};
use freeport_tests::oracle::seed;
use freeport_tests::repository;

/// Configuration of an element.
#[derive(Clone, Copy, Debug)]
struct Limit {
    bits_per_second: u64,
    burst: u32,
}

const LIMITS: [Limit; 5] = [
    Limit { bits_per_second: 64_000, burst: 1_600 },
    Limit { bits_per_second: 3_000_000, burst: 4_000 },
    Limit { bits_per_second: 123_456_789, burst: 20_000 },
    // The longest packets exceed this burst.
    Limit { bits_per_second: 1_000_000_000, burst: 500 },
    Limit { bits_per_second: 100_000_000_000, burst: 64_000 },
];
const LONGEST: usize = 1_518;

/// A packet with its time of arrival or departure.
#[derive(Clone, Debug)]
struct Timed {
    time_ns: u64,
    bytes: Vec<u8>,
}

impl Limit {
    fn bytes_in(&self, nanoseconds: f64) -> f64 {
        self.bits_per_second as f64 * nanoseconds / 8e9
    }

    /// Returns the time that this many bytes take at the rate.
    fn time_of(&self, bytes: f64) -> f64 {
        bytes * 8e9 / self.bits_per_second as f64
    }

    fn program(&self, element: &str) -> Program {
        let text = format!(
            "{element}<{}, {}> :: dut\nfrom_tor -> dut -> to_tor\n",
            self.bits_per_second, self.burst
        );
        let library = Options { library: vec![repository().join("elements")] };
        let compiled = compile_text("shaper.cnp", &text, &library);
        compiled.unwrap_or_else(|failure| panic!("{text}\n{failure}")).program
    }

    /// Returns packets at `load` times the rate on average, in clumps, sometimes after a pause.
    fn arrivals(&self, random: &mut Rng, load: f64, has_pauses: bool) -> Vec<Timed> {
        let mut time = 1_000_000.0;
        let mut arrival = |number: u16| {
            let mut bytes = vec![0; random.usize(64..=LONGEST)];
            bytes[..2].copy_from_slice(&number.to_le_bytes());
            let arrival = Timed { time_ns: time as u64, bytes };
            let due = self.time_of(arrival.bytes.len() as f64) / load;
            time += due * 2.0 * random.f64();
            if has_pauses && random.u8(..100) == 0 {
                // Often longer than the backlog takes.
                time += self.time_of(f64::from(self.burst) + 80_000.0) * 2.0 * random.f64();
            }
            arrival
        };
        (0..1_000).map(&mut arrival).collect()
    }

    /// No interval may contain more than the burst (or one packet, if that is longer) plus 101 % of
    /// the rate: the excess over the rate accumulates no higher.
    fn check_bursts(&self, left: &[Timed]) {
        let most = f64::from(self.burst).max(LONGEST as f64);
        let (mut pile, mut last_ns) = (0.0, 0);
        for packet in left {
            let drained = self.bytes_in((packet.time_ns - last_ns) as f64) * 1.01;
            pile = f64::max(pile - drained, 0.0) + packet.bytes.len() as f64;
            last_ns = packet.time_ns;
            assert!(pile <= most + 1.0 + self.bytes_in(8.0), "{self:?}: {pile} at {last_ns}");
        }
    }
}

/// An interpreter whose time the test determines.
struct Simulated<'p> {
    interpreter: Interpreter<'p>,
    from: EndpointId,
    to: EndpointId,
    left: Vec<Timed>,
}

impl<'p> Simulated<'p> {
    fn new(program: &'p Program) -> Self {
        let interpreter = Interpreter::new(program, &Running::default()).unwrap();
        let end = |name| interpreter.endpoint(name).unwrap();
        let (from, to) = (end("from_tor"), end("to_tor"));
        Self { interpreter, from, to, left: vec![] }
    }

    /// Fires the element as long as packets leave; the time advances by a nanosecond per firing.
    fn fire(&mut self, time_ns: u64) {
        self.interpreter.advance_clock(time_ns);
        let mut quiet = 0;
        // The output of one firing leaves before the next one.
        while quiet < 2 {
            self.interpreter.run(1).unwrap_or_else(|error| panic!("{error}"));
            let time_ns = self.interpreter.clock_ns();
            let packets = self.interpreter.take_packets(self.to).unwrap();
            quiet = if packets.is_empty() { quiet + 1 } else { 0 };
            self.left.extend(packets.into_iter().map(|bytes| Timed { time_ns, bytes }));
        }
    }

    /// Feeds packets as they arrive, and fires the element at least every `pause_ns` until all
    /// packets have left.
    fn run(&mut self, arrivals: &[Timed], pause_ns: u64, random: &mut Rng) {
        let mut arrivals = arrivals.iter().peekable();
        loop {
            let time_ns = self.interpreter.clock_ns() + random.u64(1..=pause_ns.max(1));
            while let Some(arrival) = arrivals.next_if(|it| it.time_ns <= time_ns) {
                self.fire(arrival.time_ns);
                self.interpreter.feed_packet(self.from, &arrival.bytes).unwrap();
            }
            self.fire(time_ns);
            if arrivals.peek().is_none() && !self.waits() {
                return;
            }
        }
    }

    fn waits(&self) -> bool {
        let dut = self.interpreter.instance("dut").unwrap();
        self.interpreter.read_variable(dut, "waiting", 0).is_ok_and(|bytes| bytes.to_u64() != 0)
    }
}

#[test]
fn a_shaper_keeps_the_rate_within_one_percent_and_loses_nothing() {
    let mut random = Rng::with_seed(seed(41));
    for limit in LIMITS {
        let program = limit.program("Shaper");
        let arrivals = limit.arrivals(&mut random, 3.0, false);
        let mut simulated = Simulated::new(&program);
        // A hundredth of the time of an average packet.
        let pause_ns = (limit.time_of(8.0) as u64).max(1);
        simulated.run(&arrivals, pause_ns, &mut random);
        let left = &simulated.left;
        assert!(left.iter().map(|it| &it.bytes).eq(arrivals.iter().map(|it| &it.bytes)));
        limit.check_bursts(left);
        let (first, last) = (&left[200], &left[left.len() - 1]);
        let bytes: usize = left[201..].iter().map(|packet| packet.bytes.len()).sum();
        let rate = bytes as f64 / limit.bytes_in((last.time_ns - first.time_ns) as f64);
        println!("{limit:?}: {rate:.4} of the rate");
        assert!((rate - 1.0).abs() < 0.01, "{limit:?}: {rate}");
    }
}

#[test]
fn a_shaper_holds_a_packet_no_longer_than_it_has_to() {
    let mut random = Rng::with_seed(seed(42));
    for limit in LIMITS {
        let program = limit.program("Shaper");
        let arrivals = limit.arrivals(&mut random, 3.0, true);
        let mut simulated = Simulated::new(&program);
        let pause_ns = (limit.time_of(8.0) as u64).max(1);
        simulated.run(&arrivals, pause_ns, &mut random);
        limit.check_bursts(&simulated.left);
        assert_eq!(simulated.left.len(), arrivals.len());
        // By an exact bucket: the earliest time at which each packet could have left.
        let (mut full, mut last, mut held) = (0.0, 0.0, 0);
        for (arrival, left) in arrivals.iter().zip(&simulated.left) {
            let (depth, price) =
                (limit.time_of(f64::from(limit.burst)), limit.time_of(left.bytes.len() as f64));
            let arrived = f64::max(arrival.time_ns as f64, last);
            let earliest = f64::max(arrived, full + f64::min(price, depth) - depth);
            let time = left.time_ns as f64;
            // The element is fired at intervals, and by a clock of whole nanoseconds.
            let late = time - earliest;
            assert!(late >= -6.0, "{limit:?}: {late} too early");
            assert!(late <= pause_ns as f64 + 16.0 + price * 0.01, "{limit:?}: {late} too late");
            held += usize::from(earliest > arrived);
            full = f64::max(full, time) + price;
            last = time;
        }
        assert!(held > 20, "{limit:?}: {held} held");
    }
}

#[test]
fn a_policer_drops_what_an_exact_bucket_has_no_tokens_for() {
    let mut random = Rng::with_seed(seed(43));
    for limit in LIMITS {
        let program = limit.program("Policer");
        let arrivals = limit.arrivals(&mut random, 3.0, true);
        let mut simulated = Simulated::new(&program);
        let (mut full, mut dropped) = (0.0, 0);
        for arrival in &arrivals {
            let before = simulated.left.len();
            simulated.interpreter.feed_packet(simulated.from, &arrival.bytes).unwrap();
            simulated.fire(arrival.time_ns);
            let time = simulated.interpreter.clock_ns() as f64;
            let passes = simulated.left.len() > before;
            let (depth, price) =
                (limit.time_of(f64::from(limit.burst)), limit.time_of(arrival.bytes.len() as f64));
            let short = f64::max(full, time) + f64::min(price, depth) - depth - time;
            let is_near = short.abs() <= 6.0 + price * 0.01;
            assert!(is_near || passes == (short < 0.0), "{limit:?}: {short} short, {passes}");
            if passes {
                full = f64::max(full, time) + price;
            } else {
                dropped += 1;
            }
        }
        limit.check_bursts(&simulated.left);
        assert!(dropped > 50 && dropped < arrivals.len() - 50, "{limit:?}: {dropped} dropped");
        let dut = simulated.interpreter.instance("dut").unwrap();
        let counted = simulated.interpreter.read_variable(dut, "dropped", 0).unwrap();
        assert_eq!(counted.to_u64(), dropped as u64);
    }
}
