// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helper functions, by the kernel's numbers. Each checks its own arguments: memory is read and
//! written only where the program could do so itself, and what the kernel's verifier would have
//! refused ends the program. Errors are the kernel's, as negative numbers.

mod checksum;
mod events;
mod format;
mod functions;
mod map_access;
mod packet;
mod redirect;
mod ring;
mod route;
mod text;
mod time;

use crate::interpreter::abort::Reason;
use crate::interpreter::run::Run;
use crate::maps::ErrorNumber;

/// What a helper gives: register 0, or nothing if another program runs now.
type Called = Result<Option<u64>, Reason>;

/// Register 0 for what a helper found out.
fn returned(result: Result<u64, ErrorNumber>) -> Called {
    Ok(Some(result.unwrap_or_else(ErrorNumber::returned)))
}

/// Numbers, names and functions, once.
macro_rules! helpers {
    ($($number:literal $name:literal $function:path;)*) => {
        /// The name of a helper that runs here.
        pub fn name(number: u32) -> Option<&'static str> {
            match number {
                $($number => Some($name),)*
                _ => None,
            }
        }

        /// Calls a helper with the arguments in registers 1 to 5.
        pub(crate) fn call(run: &mut Run, number: u32) -> Called {
            match number {
                $($number => $function(run, $name),)*
                _ => Err(Reason::UnknownHelper(number)),
            }
        }
    };
}

helpers! {
    1 "bpf_map_lookup_elem" map_access::lookup;
    2 "bpf_map_update_elem" map_access::update;
    3 "bpf_map_delete_elem" map_access::delete;
    5 "bpf_ktime_get_ns" time::now;
    6 "bpf_trace_printk" format::trace;
    7 "bpf_get_prandom_u32" time::random;
    8 "bpf_get_smp_processor_id" time::processor;
    12 "bpf_tail_call" functions::tail_call;
    23 "bpf_redirect" redirect::to_device;
    25 "bpf_perf_event_output" events::output;
    28 "bpf_csum_diff" checksum::difference;
    42 "bpf_get_numa_node_id" time::memory_node;
    44 "bpf_xdp_adjust_head" packet::adjust_head;
    51 "bpf_redirect_map" redirect::by_map;
    54 "bpf_xdp_adjust_meta" packet::adjust_metadata;
    65 "bpf_xdp_adjust_tail" packet::adjust_tail;
    69 "bpf_fib_lookup" route::lookup;
    87 "bpf_map_push_elem" map_access::push;
    88 "bpf_map_pop_elem" map_access::pop;
    89 "bpf_map_peek_elem" map_access::peek;
    93 "bpf_spin_lock" functions::lock;
    94 "bpf_spin_unlock" functions::unlock;
    105 "bpf_strtol" text::signed_number;
    106 "bpf_strtoul" text::number;
    118 "bpf_jiffies64" time::ticks;
    125 "bpf_ktime_get_boot_ns" time::now;
    130 "bpf_ringbuf_output" ring::output;
    131 "bpf_ringbuf_reserve" ring::reserve;
    132 "bpf_ringbuf_submit" ring::submit;
    133 "bpf_ringbuf_discard" ring::discard;
    134 "bpf_ringbuf_query" ring::query;
    160 "bpf_ktime_get_coarse_ns" time::now;
    163 "bpf_check_mtu" route::check_mtu;
    164 "bpf_for_each_map_elem" functions::for_each_element;
    165 "bpf_snprintf" format::into_memory;
    177 "bpf_trace_vprintk" format::trace_many;
    181 "bpf_loop" functions::repeat;
    182 "bpf_strncmp" text::compare;
    188 "bpf_xdp_get_buff_len" packet::length;
    189 "bpf_xdp_load_bytes" packet::load_bytes;
    190 "bpf_xdp_store_bytes" packet::store_bytes;
    195 "bpf_map_lookup_percpu_elem" map_access::lookup_on_processor;
    208 "bpf_ktime_get_tai_ns" time::now;
}
