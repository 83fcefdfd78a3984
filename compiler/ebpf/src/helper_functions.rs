// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helper functions, by the kernel's numbers. Each checks its arguments: it accesses memory only
//! where the program itself could, and aborts the program where the kernel's verifier would have
//! rejected it. Errors are the kernel's, as negative numbers.

mod checksum;
mod events;
mod format;
mod functions;
mod map_access;
mod packet;
mod redirect;
mod ring;
mod route;
mod signature;
mod text;
mod time;

pub use signature::{Argument, Effect, Gives, Signature};

use crate::maps::ErrorNumber;
use crate::run::{Reason, Run};

/// Result of a helper: register 0, or `None` after a tail call to another program.
type Called = Result<Option<u64>, Reason>;

/// Converts a helper's result to register 0.
fn returned(result: Result<u64, ErrorNumber>) -> Called {
    Ok(Some(result.unwrap_or_else(ErrorNumber::returned)))
}

/// The table of helpers: number, name, function, arguments, result, and effect.
macro_rules! helpers {
    ($($number:literal $name:literal $module:ident::$function:ident($($argument:ident),*)
        -> $gives:ident $(: $effect:ident)?;)*) => {
        /// Returns the signature of a supported helper.
        pub fn signature(number: u32) -> Option<Signature> {
            match number {
                $($number => Some(Signature {
                    name: $name,
                    arguments: &[$(Argument::$argument),*],
                    gives: Gives::$gives,
                    effect: None$(.or(Some(Effect::$effect)))?,
                }),)*
                _ => None,
            }
        }

        /// Returns the name of a supported helper.
        pub fn name(number: u32) -> Option<&'static str> {
            Some(signature(number)?.name)
        }

        /// Calls a helper with the arguments in registers 1 to 5.
        pub(crate) fn call(run: &mut Run, number: u32) -> Called {
            match number {
                $($number => $module::$function(run, $name),)*
                _ => Err(Reason::UnknownHelper(number)),
            }
        }
    };
}

helpers! {
    1 "bpf_map_lookup_elem" map_access::lookup(Map, Key) -> Value;
    2 "bpf_map_update_elem" map_access::update(Map, Key, Value, Number) -> Number: ChangesMap;
    3 "bpf_map_delete_elem" map_access::delete(Map, Key) -> Number: ChangesMap;
    5 "bpf_ktime_get_ns" time::now() -> Number;
    6 "bpf_trace_printk" format::trace(Read, Size, Printed, Printed, Printed) -> Number: ReadsTexts;
    7 "bpf_get_prandom_u32" time::random() -> Number;
    8 "bpf_get_smp_processor_id" time::processor() -> Number;
    12 "bpf_tail_call" functions::tail_call(Context, Map, Number) -> Number;
    23 "bpf_redirect" redirect::to_device(Number, Number) -> Number;
    25 "bpf_perf_event_output" events::output(Context, Map, Number, Read, Size)
        -> Number: ReadsPacket;
    28 "bpf_csum_diff" checksum::difference(Read, Size, Read, Size, Number) -> Number;
    42 "bpf_get_numa_node_id" time::memory_node() -> Number;
    44 "bpf_xdp_adjust_head" packet::adjust_head(Context, Number) -> Number: MovesPacket;
    51 "bpf_redirect_map" redirect::by_map(Map, Number, Number) -> Number;
    54 "bpf_xdp_adjust_meta" packet::adjust_metadata(Context, Number) -> Number: MovesPacket;
    65 "bpf_xdp_adjust_tail" packet::adjust_tail(Context, Number) -> Number: MovesPacket;
    69 "bpf_fib_lookup" route::lookup(Context, Change, Size, Number) -> Number;
    87 "bpf_map_push_elem" map_access::push(Map, Value, Number) -> Number: ChangesMap;
    88 "bpf_map_pop_elem" map_access::pop(Map, Room) -> Number: ChangesMap;
    89 "bpf_map_peek_elem" map_access::peek(Map, Room) -> Number;
    93 "bpf_spin_lock" functions::lock(Lock) -> Number: ChangesMap;
    94 "bpf_spin_unlock" functions::unlock(Lock) -> Number: ChangesMap;
    105 "bpf_strtol" text::signed_number(Read, Size, Number, Long) -> Number;
    106 "bpf_strtoul" text::number(Read, Size, Number, Long) -> Number;
    118 "bpf_jiffies64" time::ticks() -> Number;
    125 "bpf_ktime_get_boot_ns" time::now() -> Number;
    130 "bpf_ringbuf_output" ring::output(Map, Read, Size, Number) -> Number: ChangesMap;
    131 "bpf_ringbuf_reserve" ring::reserve(Map, Number, Number) -> Record: ChangesMap;
    132 "bpf_ringbuf_submit" ring::submit(Record, Number) -> Number;
    133 "bpf_ringbuf_discard" ring::discard(Record, Number) -> Number;
    134 "bpf_ringbuf_query" ring::query(Map, Number) -> Number;
    160 "bpf_ktime_get_coarse_ns" time::now() -> Number;
    163 "bpf_check_mtu" route::check_mtu(Context, Number, Word, Number, Number) -> Number;
    164 "bpf_for_each_map_elem" functions::for_each_element(Map, Function, Passed, Number)
        -> Number: RepeatsForElements;
    165 "bpf_snprintf" format::into_memory(Write, Size, Text, Read, Size) -> Number: ReadsTexts;
    177 "bpf_trace_vprintk" format::trace_many(Read, Size, Read, Size) -> Number: ReadsTexts;
    181 "bpf_loop" functions::repeat(Number, Function, Passed, Number) -> Number: Repeats;
    182 "bpf_strncmp" text::compare(Read, Size, Text) -> Number;
    188 "bpf_xdp_get_buff_len" packet::length(Context) -> Number;
    189 "bpf_xdp_load_bytes" packet::load_bytes(Context, Number, Write, Size)
        -> Number: ReadsPacket;
    190 "bpf_xdp_store_bytes" packet::store_bytes(Context, Number, Read, Size)
        -> Number: WritesPacket;
    195 "bpf_map_lookup_percpu_elem" map_access::lookup_on_processor(Map, Key, Number) -> Value;
    208 "bpf_ktime_get_tai_ns" time::now() -> Number;
}
