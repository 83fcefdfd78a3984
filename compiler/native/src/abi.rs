// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Structures shared between generated code and the host, matching `runtime/prelude.h`.

use std::ffi::c_void;

/// Version of the structures, which a library must declare.
pub(crate) const VERSION: u64 = 9;

/// A growable byte buffer; the code grows it by a call to the host.
#[repr(C)]
pub(crate) struct Stream {
    pub data: *mut u8,
    pub length: u64,
    pub capacity: u64,
}

/// Services of the host for the code, and state shared with it.
#[repr(C)]
pub(crate) struct Runtime {
    pub grow: unsafe extern "C" fn(*mut Stream, u64),
    pub probes: Stream,
    pub probe_bytes_limit: u64,
    pub lost_probes: u64,
    pub recorded_bytes: u64,
    pub recorded_bytes_limit: u64,
    pub clock: u64,
    pub clock_reads_left: u64,
    pub breakpoints_enabled: u64,
    pub has_stopped: u64,
    pub pause: *const u8,
    pub free_buffers: *mut c_void,
    pub buffers_in_use: u64,
    pub allocate: unsafe extern "C" fn(*mut Runtime, u64) -> *mut u8,
    pub release: unsafe extern "C" fn(*mut Runtime, *mut u8),
    pub calls: Stream,
    /// Buffers that `allocate` has created; not visible to the code.
    pub buffers: Vec<Box<[PoolWord]>>,
}

/// Allocation unit of buffers, for their alignment.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(crate) struct PoolWord(pub [u8; 64]);

/// Ring state and counters of a channel.
#[repr(C)]
pub(crate) struct Channel {
    pub head: u32,
    pub fill: u32,
    pub items: u64,
    pub packets: u64,
    pub bytes: u64,
    pub stalls: u64,
    pub drops: u64,
    pub stalled_at: u64,
    pub peak: u64,
    pub history: Stream,
    pub keep: Stream,
    pub is_dropping: u8,
    pub is_inside: u8,
}

/// Fields that every instance has, whatever its element.
#[repr(C)]
pub(crate) struct Instance {
    pub firings: u64,
    pub out_of_range: u64,
    pub empty_reads: u64,
    pub mask: u64,
    pub quiet_ready: u64,
    pub is_quiet: u64,
    pub is_held: u64,
    pub random: u64,
    pub traps: *mut u64,
    pub runtime: *mut Runtime,
    pub index: u64,
    pub resume: u32,
    pub ready: Stream,
    pub now: Stream,
    pub random_values: Stream,
}

/// Counters of an endpoint of frames out of the graph.
#[repr(C)]
pub(crate) struct OutputCounters {
    pub too_long: u64,
    pub malformed: u64,
}

/// Memory that the host provides at an endpoint.
#[repr(C)]
pub(crate) struct EndpointIo {
    pub data: *mut c_void,
    pub count: u64,
    pub done: u64,
}

impl EndpointIo {
    pub const EMPTY: Self = Self { data: std::ptr::null_mut(), count: 0, done: 0 };
}

/// Location of a variable.
#[repr(C)]
pub(crate) struct ObjectLayout {
    pub offset: u64,
    pub stride: u64,
}

/// Location of an instance.
#[repr(C)]
pub(crate) struct InstanceLayout {
    pub offset: u64,
    pub state_offset: u64,
    pub objects: *const ObjectLayout,
    pub tables: *const ObjectLayout,
}

/// Location of a channel and its ring.
#[repr(C)]
pub(crate) struct ChannelLayout {
    pub offset: u64,
    pub items: u64,
    pub item_bytes: u64,
    pub slots: u64,
}

/// Offsets of an endpoint's data that outlives a run; `u64::MAX` if there is none.
#[repr(C)]
pub(crate) struct EndpointLayout {
    pub counters: u64,
    pub begun: u64,
}

/// A packet in a channel between two runs, or one from the host.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub data: *mut u8,
    pub length: u64,
    pub head_room: u32,
    pub tail_room: u32,
    pub head_space: u32,
    pub tail_space: u32,
    pub owner: u64,
}

/// Owner of a packet's memory: a buffer of the graph.
pub(crate) const OWNER_POOL: u64 = 1;
/// Owners from this value on: the frame of this run that (endpoint << 32 | index) names.
pub(crate) const OWNER_HOST: u64 = 2;
/// Minimum size of a buffer of the graph.
pub(crate) const POOL_BUFFER_BYTES: usize =
    freeport_ir::interp::HEAD_ROOM_BYTES + freeport_ir::interp::TAIL_LIMIT_BYTES;

/// Maximum size of a frame that begins in one run and ends in another.
pub(crate) const MAX_FRAME_BYTES: usize = 16_384;

/// State of an endpoint of flits out of the graph.
#[repr(C)]
pub(crate) struct FlitOutput {
    pub buffers: *mut c_void,
    pub count: u64,
    pub at: u64,
    pub data: *mut u8,
    pub capacity: u64,
    pub used: u64,
    pub is_inside: u8,
    pub is_too_long: u8,
    pub counters: OutputCounters,
    pub source: *const c_void,
    pub frame: u64,
    pub begun: [u8; MAX_FRAME_BYTES],
}

/// The only symbol that a library exports.
#[repr(C)]
pub(crate) struct Image {
    pub abi: u64,
    pub graph_bytes: u64,
    pub graph_align: u64,
    pub instance_count: u64,
    pub channel_count: u64,
    pub endpoint_count: u64,
    pub instances: *const InstanceLayout,
    pub channels: *const ChannelLayout,
    pub endpoints: *const EndpointLayout,
    pub start: unsafe extern "C" fn(*mut c_void, *mut Runtime, u64),
    pub run: unsafe extern "C" fn(*mut c_void, *mut EndpointIo) -> u32,
    pub call: unsafe extern "C" fn(*mut c_void, u32, u32, *const u8, *mut u8) -> u32,
    pub act_on_table:
        Option<unsafe extern "C" fn(*mut c_void, u32, u32, u32, *mut u8, *mut u8, *mut u64) -> u32>,
}

/// An instance is held by a breakpoint, and the host has not been notified.
pub(crate) const HELD_NEWLY: u64 = 1;
/// An instance is held by a breakpoint, and the host has been notified.
pub(crate) const HELD: u64 = 2;

pub(crate) const STATUS_IDLE: u32 = 0;
pub(crate) const STATUS_OUTPUT_FULL: u32 = 1;
pub(crate) const STATUS_RECORD_FULL: u32 = 2;
pub(crate) const STATUS_STALLED: u32 = 3;
pub(crate) const STATUS_WAITING: u32 = 4;

/// An action of the host on a table.
#[derive(Clone, Copy)]
pub(crate) struct TableRequest {
    pub instance: u32,
    pub table: u32,
    pub action: u32,
}

impl TableRequest {
    pub fn new(instance: freeport_ir::InstanceId, table: usize, action: u32) -> Self {
        Self { instance: instance.0, table: table as u32, action }
    }
}

pub(crate) const TABLE_LOOKUP: u32 = 0;
pub(crate) const TABLE_UPDATE: u32 = 1;
pub(crate) const TABLE_DELETE: u32 = 2;
pub(crate) const TABLE_NEXT: u32 = 3;

/// Method number that stands for the signal handler.
pub(crate) const SIGNAL: u32 = u32::MAX;

/// The kernels of a library.
#[repr(C)]
pub(crate) struct Kernels {
    pub abi: u64,
    pub count: u64,
    pub kernels: *const Kernel,
}

/// The loops of a kernel: those of its kind.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    pub same: Option<unsafe extern "C" fn(*mut u8, u64, *const u8)>,
    pub each: Option<unsafe extern "C" fn(*mut u8, u64, *const u8)>,
    pub fold: Option<unsafe extern "C" fn(*const u8, u64, u64) -> u64>,
    pub test: Option<unsafe extern "C" fn(*const u8, u64, *const u8, *mut u8)>,
}
