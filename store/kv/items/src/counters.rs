// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of requests and of what became of them. Each worker has its own counters, and a server
//! adds them up.

macro_rules! counters {
    ($($(#[$text:meta])* $name:ident,)*) => {
        /// Counts since the start, or since `stats reset`. Names are those of `stats`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$text])* pub $name: u64,)*
        }

        impl std::ops::AddAssign for Counters {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Keys of `get`, `gets` and `mg` (without a new expiry of a found item).
    cmd_get,
    /// Requests that store a value, whatever came of it.
    cmd_set,
    /// `flush_all`.
    cmd_flush,
    /// Keys of `touch`, `gat` and `gats`, and items that `mg` gave an expiry.
    cmd_touch,
    /// Meta requests. The original counts only `me`.
    cmd_meta,
    /// Keys of `cmd_get` that were found, or made by `mg`.
    get_hits,
    /// Keys of `cmd_get` that were not found.
    get_misses,
    /// Items that had expired when they were asked for.
    get_expired,
    /// Keys that were to be deleted, and were not found or had another CAS number.
    delete_misses,
    /// Keys that were deleted.
    delete_hits,
    /// Numbers that were to be increased, and were not found.
    incr_misses,
    /// Numbers that were increased.
    incr_hits,
    /// Numbers that were to be decreased, and were not found.
    decr_misses,
    /// Numbers that were decreased.
    decr_hits,
    /// Values to be swapped whose key was not found.
    cas_misses,
    /// Values that were swapped.
    cas_hits,
    /// Values to be swapped whose item had another CAS number.
    cas_badval,
    /// Keys of `cmd_touch` that were found.
    touch_hits,
    /// Keys of `cmd_touch` that were not found.
    touch_misses,
    /// Values that were too large.
    store_too_large,
    /// Values for which there was no memory.
    store_no_memory,
    /// Items stored so far.
    total_items,
    /// Items that made room for others before they expired.
    evictions,
    /// Evicted items that were never fetched.
    evicted_unfetched,
    /// Items that were removed because they had expired.
    reclaimed,
    /// Removed items that had expired and were never fetched.
    expired_unfetched,
    /// Removed items that had expired and that a search of the whole store found.
    crawler_reclaimed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_workers_are_added() {
        let mut sum = Counters { cmd_get: 1, crawler_reclaimed: 2, ..Counters::default() };
        sum += Counters { cmd_get: 10, evictions: 3, ..Counters::default() };
        let expected =
            Counters { cmd_get: 11, crawler_reclaimed: 2, evictions: 3, ..Counters::default() };
        assert_eq!(sum, expected);
    }
}
