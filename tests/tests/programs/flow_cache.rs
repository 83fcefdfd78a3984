// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The flow cache at full size, 16,384 lines in sets of 4, on a trace, against a reference cache;
//! and the fill level at which the flow table starts to refuse flows.

use fastrand::Rng;
use freeport_clicknp::{Options, compile_text};
use freeport_ir::Bits;
use freeport_native::{EndpointIo, Graph, Options as NativeOptions, build};
use freeport_testbed::cache::Cache;
use freeport_tests::repository;
use freeport_tests::tables::Tuple;

const FLOW_BYTES: usize = 40;
const FILL_BYTES: usize = 8;
const SERVED: u8 = 2;
const TCP: u8 = 6;
const FIN: u8 = 1;

fn graph(text: &str) -> Graph {
    let library = Options { library: vec![repository().join("elements")] };
    let compiled = compile_text("flows.cnp", text, &library);
    let program = compiled.unwrap_or_else(|failure| panic!("{failure}")).program;
    let cache = Cache::of("native");
    let options =
        NativeOptions { cache: Some(cache.path().to_owned()), ..NativeOptions::default() };
    let image = build(&program, &options).unwrap_or_else(|error| panic!("{error}"));
    Graph::load(&image).expect("a library just built")
}

fn read(graph: &Graph, instance: &str, variable: &str) -> u64 {
    let id = graph.instance(instance).expect("it is in the program");
    graph.read_variable(id, variable, 0).expect("it is there").to_u64()
}

/// The hash of the flows, as `elements/balance/flows.cnp` describes it.
fn hash(tuple: &Tuple) -> u64 {
    let addresses = u64::from(tuple.target) << 32 | u64::from(tuple.source);
    let ports = u64::from(tuple.target_port) << 16 | u64::from(tuple.source_port);
    let mut hash = addresses.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 32 ^ (ports << 8 | u64::from(tuple.protocol));
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 29
}

/// Flows of each set, the most recently used last.
struct Reference(Vec<Vec<(Tuple, u16)>>);

impl Reference {
    /// Looks up the flow's backend; the flow becomes the most recently used, unless it ends.
    fn look_up(&mut self, tuple: &Tuple, ends: bool) -> Option<u16> {
        let set = &mut self.0[hash(tuple) as usize % 4096];
        let at = set.iter().position(|(it, _)| it == tuple)?;
        let found = set.remove(at);
        if !ends {
            set.push(found);
        }
        Some(found.1)
    }

    fn insert(&mut self, tuple: &Tuple, backend: u16) {
        let set = &mut self.0[hash(tuple) as usize % 4096];
        if set.len() == 4 {
            set.remove(0);
        }
        set.push((*tuple, backend));
    }
}

fn flow(number: u32) -> Tuple {
    let (source, source_port) = (0x0a00_0000 + number / 64, (1024 + number % 64) as u16);
    Tuple { source, target: 0x0a09_0909, source_port, target_port: 80, protocol: TCP }
}

#[test]
fn the_cache_holds_what_a_reference_cache_does() {
    let text = "FlowCache :: cache
        from_tor -> [in] cache
        from_nic -> [fill] cache
        cache -> to_tor";
    let mut graph = graph(text);
    // Prevents a refresh: an hour of ticks.
    let cache = graph.instance("cache").expect("it is in the program");
    let refresh = Bits::from_u64(32, 3_500_000);
    graph.write_variable(cache, "refresh", 0, refresh).expect("it is there");
    let mut reference = Reference(vec![vec![]; 4096]);
    let mut random = Rng::with_seed(52);
    let (mut hits, mut ends_of_hits) = (0, 0);
    let mut fill: Vec<u8> = vec![];
    for _ in 0..200_000 {
        // Few flows have most of the packets; there are more flows than the cache holds.
        let number = (random.f64().powi(3) * 40_000.0) as u32;
        let (tuple, ends) = (flow(number), random.u8(..50) == 0);
        let mut bytes = tuple.bytes();
        bytes[13] = if ends { FIN } else { 0 };
        let mut room = [0xee; FLOW_BYTES];
        let mut io = [
            EndpointIo::records_in(&bytes),
            EndpointIo::records_in(&fill),
            EndpointIo::records_out(&mut room),
        ];
        graph.run(&mut io).expect("an io for each endpoint");
        assert_eq!((io[0].done(), io[1].done(), io[2].done()), (1, fill.len() / FILL_BYTES, 1));
        fill.clear();
        let expected = reference.look_up(&tuple, ends);
        let backend = u16::from_le_bytes([room[30], room[31]]);
        assert_eq!((room[32] == SERVED).then_some(backend), expected, "flow {number}");
        hits += u64::from(expected.is_some());
        ends_of_hits += u64::from(expected.is_some() && ends);
        if expected.is_none() && !ends {
            let backend = random.u16(..1024);
            reference.insert(&tuple, backend);
            fill.extend(&room[24..30]);
            fill.extend(backend.to_le_bytes());
        }
    }
    assert_eq!(read(&graph, "cache", "hits"), hits);
    assert!((60_000..190_000).contains(&hits) && ends_of_hits > 1000, "{hits}, {ends_of_hits}");
}

#[test]
fn a_table_with_as_many_flows_as_buckets_refuses_one_in_ten_thousand() {
    let text = "FlowTable<16> :: flows
        FlowCache :: cache
        DipAlloc :: allocator
        from_tor -> [in] cache -> [in] flows [out] -> to_tor
        flows [fill] ->{depth = 64, lossy} [fill] cache
        flows [ask] -> allocator -> [reply] flows";
    let mut graph = graph(text);
    let allocator = graph.instance("allocator").expect("it is in the program");
    let arguments = [1, 2, 3].map(|number| Bits::from_u64(32, number));
    graph.call_method(allocator, "add", &arguments).expect("there is room");
    let mut send = |flows: std::ops::Range<u32>| {
        let records: Vec<u8> = flows.flat_map(|number| flow(number).bytes()).collect();
        let mut room = vec![0; records.len() / 16 * FLOW_BYTES];
        let (mut left, mut free) = (&records[..], &mut room[..]);
        while !free.is_empty() {
            let mut io = [EndpointIo::records_in(left), EndpointIo::records_out(free)];
            graph.run(&mut io).expect("an io for each endpoint");
            let (consumed, produced) = (io[0].done(), io[1].done());
            assert!(consumed > 0 || produced > 0, "it stands still");
            left = &left[consumed * 16..];
            free = &mut free[produced * FLOW_BYTES..];
        }
        assert!(room.chunks_exact(FLOW_BYTES).all(|it| it[32] == SERVED), "all have a backend");
        (read(&graph, "flows", "opened"), read(&graph, "flows", "unstored"))
    };
    assert_eq!(send(0..32_768), (32_768, 0), "half as many flows as buckets");
    let (opened, unstored) = send(32_768..65_536);
    assert!(unstored <= 20, "{unstored} of 65,536");
    assert_eq!(opened + unstored, 65_536);
    // The same packets again: nothing new to store, except flows that were refused.
    let (opened_then, unstored_then) = send(0..65_536);
    assert_eq!((opened_then, unstored_then), (opened, 2 * unstored));
}
