// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every reader of untrusted input, as a function of arbitrary bytes: it accepts them or reports an
//! error, and never panics. `tests/untrusted.rs` calls them with randomly mutated samples, `fuzz/`
//! with inputs that reach new code.

use freeport_clicknp::format::{Unformatted, format_text};
use freeport_clicknp::{Options, compile_text};
use freeport_ebpf::instruction::{Constant, Operation, assemble, decode, disassemble};
use freeport_ebpf::object::Object;
use freeport_fabric::shm::segment::Segment;
use freeport_fabric::shm::{self, Connection, Doorbell};
use freeport_fabric::socket;
use freeport_ir::interp::Options as RunOptions;
use freeport_ir::text::{parse, print};
use freeport_ir::verify;
use freeport_monitor::executable::Kind;
use freeport_port::{MAX_FRAME, PcapReceiver, Receive};
use freeport_runtime::interpreter::InterpreterDevice;
use freeport_runtime::layout::{Layout, Member};
use freeport_runtime::layouts::{Layouts, MethodLayout, TableLayout};
use freeport_runtime::server::Request;
use freeport_runtime::steering::{Call, Manager};
use std::cell::RefCell;
use std::io::{Cursor, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

mod bpf_lift;
mod bpf_program;
mod bpf_rows;
pub mod kv_batch;
mod kv_commands;
mod kv_detached;
pub mod kv_etcd;
pub mod kv_journal;
pub mod kv_replication;
pub mod kv_scripts;
pub mod kv_values;
mod memcached_request;
mod memcached_server;
mod monitor_messages;
pub mod plan_files;
pub mod plan_profile;
mod resp;
mod ring;
mod shared_queue;
pub mod study_messages;

pub use bpf_lift::bpf_lift;
pub use bpf_program::{bpf_analysis, bpf_program};
pub use bpf_rows::bpf_rows;
pub use kv_batch::{kv_batch_reply, kv_batch_request};
pub use kv_commands::kv_commands;
pub use kv_detached::kv_detached;
pub use kv_etcd::kv_etcd;
pub use kv_journal::kv_journal;
pub use kv_replication::kv_replication;
pub use kv_scripts::kv_scripts;
pub use kv_values::kv_values;
pub use memcached_request::memcached_request;
pub use memcached_server::memcached_server;
pub use monitor_messages::monitor_messages;
pub use plan_files::plan_files;
pub use plan_profile::plan_profile;
pub use resp::{resp_request, resp_value};
pub use ring::ring;
pub use shared_queue::shared_queue;
pub use study_messages::study_messages;

/// A reader with its name, which is also that of its fuzz target.
pub type Reader = (&'static str, fn(&[u8]));

/// All readers.
pub const READERS: [Reader; 34] = [
    ("language", language),
    ("format", format),
    ("representation", representation),
    ("capture", capture),
    ("request", request),
    ("call", call),
    ("initial_values", initial_values),
    ("ring", ring),
    ("shared_queue", shared_queue),
    ("hello", hello),
    ("monitor_messages", monitor_messages),
    ("object", object),
    ("assembly", assembly),
    ("bpf_program", bpf_program),
    ("bpf_analysis", bpf_analysis),
    ("bpf_rows", bpf_rows),
    ("bpf_lift", bpf_lift),
    ("executable", executable),
    ("kv_values", kv_values),
    ("resp_request", resp_request),
    ("resp_value", resp_value),
    ("memcached_request", memcached_request),
    ("memcached_server", memcached_server),
    ("kv_commands", kv_commands),
    ("kv_detached", kv_detached),
    ("kv_scripts", kv_scripts),
    ("kv_journal", kv_journal),
    ("kv_batch_request", kv_batch_request),
    ("kv_batch_reply", kv_batch_reply),
    ("kv_etcd", kv_etcd),
    ("kv_replication", kv_replication),
    ("plan_profile", plan_profile),
    ("plan_files", plan_files),
    ("study_messages", study_messages),
];

/// A program with everything that calls and initial values can name: numbers, structs, arrays,
/// tables.
pub const STEERED: &str = "
struct Key { uint source; ushort port; uchar flags : 3; uint48 mac; };
struct Rule { Key key; uchar bytes[4]; uint100 wide; int signed_number; };
.element Steered (uint in -> uint out) {
    .state { uint count; Rule rules[4]; bool is_on; table<Key, Rule> exact[8];
             lpm table<uint, uint> prefixes[8]; array table<uint, Key> places[4]; }
    .handler { set_output_port(out, read_input_port(in) + count); }
    .method bool insert(Key key, Rule rule, uint at) { rules[at] = rule; return key.port == 0; }
    .method Rule first() { return rules[0]; }
    .method void stop() { is_on = false; }
}
Steered :: it
from_host -> it -> to_host
";

/// Reads a `.cnp` text with the compiler.
pub fn language(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match compile_text("untrusted.cnp", text, &Options::default()) {
        Ok(compiled) => verify(&compiled.program).expect("what compiles is sound"),
        Err(failure) => assert!(failure.render().contains("error[E"), "it says what is wrong"),
    }
}

/// Reads a `.cnp` text with the formatter, which is idempotent and changes only white space.
pub fn format(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match format_text("untrusted.cnp", text) {
        Ok(formatted) => {
            let again = format_text("untrusted.cnp", &formatted);
            assert_eq!(again.expect("a formatted text can be parsed"), formatted);
        }
        Err(Unformatted::Wrong(messages)) => assert!(!messages.is_empty()),
        Err(Unformatted::TooLarge) => {}
        Err(changed) => panic!("{changed}"),
    }
}

/// Reads an `.ir` text with the parser and, if it is a program, the verifier.
pub fn representation(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let program = match parse(text) {
        Ok(program) => program,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let printed = print(&program);
    assert_eq!(parse(&printed).as_ref(), Ok(&program), "what is printed is the same program");
    if let Err(errors) = verify(&program) {
        assert!(!errors.is_empty(), "it says what is wrong");
    }
}

/// Reads an object with BPF programs: in loaded programs, instructions are complete and refer to
/// existing maps.
pub fn object(bytes: &[u8]) {
    let object = match Object::parse(bytes) {
        Ok(object) => object,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(object.to_string().starts_with("license"));
    for program in &object.programs {
        let (all, mut slot) = (&program.instructions, 0);
        while slot < all.len() {
            let operation = decode(all, slot).expect("what is loaded was decoded");
            if let Operation::LoadConstant { constant, .. } = operation
                && let Constant::Map(map) | Constant::MapValue { map, .. } = constant
            {
                assert!((map as usize) < object.maps.len(), "the map is there");
            }
            assert!(program.function(slot).is_some(), "each slot is of a function");
            slot += operation.slots();
        }
    }
    for map in &object.maps {
        for (layout, size) in [(&map.key_layout, map.key_size), (&map.value_layout, map.value_size)]
        {
            let Some(layout) = layout else { continue };
            assert_eq!(layout.bytes(), size, "of map {}", map.name);
            // Also if bytes are missing.
            let _ = layout.decode(&vec![0xa5; size.min(4_096) as usize]).to_string();
        }
    }
}

/// Reads BPF assembly: accepted text is printed as text with the same meaning.
pub fn assembly(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match assemble(text) {
        Ok(slots) => assert_eq!(assemble(&disassemble(&slots)).as_deref(), Ok(&slots[..])),
        Err(error) => assert!(error.line <= text.lines().count()),
    }
}

/// Reads an executable file.
pub fn executable(bytes: &[u8]) {
    // The result is arbitrary; reading must not panic.
    let _ = Kind::read(Cursor::new(bytes));
}

/// Reads a capture file of either format.
pub fn capture(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a file can be made");
    file.write_all(bytes).expect("there is room");
    let Ok(mut port) = PcapReceiver::open(file.path()) else { return };
    // Every record has at least one byte, and reading stops at the end of the file.
    for _ in 0..=bytes.len() {
        if port.is_ended() {
            return;
        }
        match port.receive(8) {
            Ok(batch) => {
                let frames = batch.frames().iter();
                assert!(frames.into_iter().all(|frame| frame.length <= MAX_FRAME));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(port.is_ended(), "the file has ended");
}

/// Reads a line from a client of a running program, which may be a graph or an XDP program.
pub fn request(bytes: &[u8]) {
    if let Err(error) = Request::parse(bytes) {
        assert!(error.to_string().len() < 1_000, "an answer does not repeat megabytes");
    }
    let Ok(value) = serde_json::from_slice(bytes) else { return };
    if let Err(error) = freeport_attach::Request::of_value(value) {
        assert!(error.len() < 3_000, "an answer does not repeat megabytes");
    }
}

/// Reads the value of `--call`.
pub fn call(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(call) = text.parse::<Call>() {
        with_manager(|manager| _ = manager.call(&call));
    }
}

/// Reads the file given to `--init`.
pub fn initial_values(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    with_manager(|manager| _ = manager.set_initial(text));
}

/// Uses one [`STEERED`] per thread repeatedly.
fn with_manager(use_it: impl FnOnce(&mut Manager<InterpreterDevice<'static>>)) {
    thread_local! {
        static STEERED_ONE: RefCell<Manager<InterpreterDevice<'static>>> = RefCell::new(steered());
    }
    STEERED_ONE.with_borrow_mut(use_it);
}

fn steered() -> Manager<InterpreterDevice<'static>> {
    let compiled = compile_text("steered.cnp", STEERED, &Options::default());
    let compiled = compiled.unwrap_or_else(|failure| panic!("{}", failure.render()));
    let program = Arc::new(compiled.program);
    let device = InterpreterDevice::load(program, &RunOptions::default());
    Manager::new(device.expect("it can be interpreted"), layouts())
}

/// Layouts as the front end would report them, as far as they are needed here.
fn layouts() -> Layouts {
    let number =
        |name: &str, lo, bits| Member { name: name.to_owned(), lo, layout: Layout::Unsigned(bits) };
    let key = Layout::Struct {
        bits: 128,
        members: vec![
            number("source", 0, 32),
            number("port", 32, 16),
            number("flags", 48, 3),
            number("mac", 64, 48),
        ],
    };
    let bytes = Layout::Array { element: Box::new(Layout::Unsigned(8)), stride_bits: 8, count: 4 };
    let rule = Layout::Struct {
        bits: 384,
        members: vec![
            Member { name: "key".into(), lo: 0, layout: key.clone() },
            Member { name: "bytes".into(), lo: 128, layout: bytes },
            number("wide", 192, 100),
            Member { name: "signed_number".into(), lo: 320, layout: Layout::Signed(32) },
        ],
    };
    let of = |name: &str| ("Steered".to_owned(), name.to_owned());
    let (keys, rules) = (key.clone(), rule.clone());
    let insert = MethodLayout {
        parameters: vec![
            ("key".into(), keys),
            ("rule".into(), rules.clone()),
            ("at".into(), Layout::Unsigned(32)),
        ],
        result: Some(Layout::Unsigned(1)),
    };
    let first = MethodLayout { parameters: vec![], result: Some(rules) };
    Layouts {
        variables: [(of("rules"), rule.clone())].into(),
        tables: [(of("exact"), TableLayout { key, value: rule })].into(),
        methods: [(of("insert"), insert), (of("first"), first)].into(),
    }
}

/// Reads the first message of a peer in shared memory, with the descriptors that an honest peer
/// sends: a segment for rings of 4 KiB, and a doorbell.
pub fn hello(bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let (here, there) = UnixStream::pair().expect("a pair of sockets");
    let (_, segment) = Segment::create(3 * 4096).expect("a segment");
    let doorbell = Doorbell::new().expect("a doorbell");
    let descriptors = [segment.as_raw_fd(), doorbell.as_fd().as_raw_fd()];
    socket::send(&there, bytes, &descriptors).expect("the socket has room");
    if let Ok(mut connection) = Connection::accept(here, &shm::Options::default()) {
        assert_eq!(bytes.len(), 48, "a hello has that many bytes");
        connection.try_write(&[7; 100]).expect("there is room in an empty ring");
        let nothing = connection.try_read(&mut [0; 100]).expect_err("an empty ring");
        assert!(nothing.is_would_block(), "{nothing}");
    }
}
