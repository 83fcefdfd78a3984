// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helpers that call the program's own functions or another program, and locks.

use super::{Called, returned};
use crate::maps::ErrorNumber;
use crate::maps::slots::number;
use crate::object::MapKind;
use crate::run::memory::{function_of_handle, key_address, value_address, value_place};
use crate::run::{Reason, Run};

/// Maximum number of repetitions of `bpf_loop`.
const REPETITIONS_MAX: u32 = 1 << 23;

/// `bpf_tail_call`: replaces this program by another one. If there is none, this one continues.
pub fn tail_call(run: &mut Run, helper: &'static str) -> Called {
    run.context_argument(1, helper)?;
    let map = run.map_argument(2, helper)?;
    let kind = run.maps[map].kind();
    if kind != MapKind::ProgramArray {
        return Err(Reason::WrongKind { helper, kind });
    }
    let key = (run.argument(3) as u32).to_ne_bytes();
    let Some(element) = run.maps[map].find(&key) else {
        return returned(Err(ErrorNumber::ENOENT));
    };
    let program = number(run.maps[map].value(element)).unwrap_or(u32::MAX);
    match run.tail_call(program as usize)? {
        true => Ok(None),
        false => returned(Err(ErrorNumber::ENOENT)),
    }
}

/// `bpf_loop`: calls a function with 0, 1, 2 and so on until it returns a value other than 0.
/// Returns the number of calls.
pub fn repeat(run: &mut Run, helper: &'static str) -> Called {
    let (count, flags) = (run.argument(1) as u32, run.argument(4));
    let function = function_argument(run, 2, helper)?;
    let context = run.argument(3);
    if flags != 0 {
        return returned(Err(ErrorNumber::EINVAL));
    }
    if count > REPETITIONS_MAX {
        return returned(Err(ErrorNumber::E2BIG));
    }
    for at in 0..u64::from(count) {
        if run.call_back(function, [at, context, 0, 0])? != 0 {
            return Ok(Some(at + 1));
        }
    }
    Ok(Some(count.into()))
}

/// `bpf_for_each_map_elem`: calls a function with the map, a key, its value and the program's
/// context for each element, until it returns a value other than 0. Returns the number of calls.
pub fn for_each_element(run: &mut Run, helper: &'static str) -> Called {
    let handle = run.argument(1);
    let map = run.map_argument(1, helper)?;
    let kind = run.maps[map].kind();
    use MapKind::*;
    if !matches!(kind, Array | PerCpuArray | Hash | PerCpuHash | LruHash | LruPerCpuHash) {
        return Err(Reason::WrongKind { helper, kind });
    }
    let function = function_argument(run, 2, helper)?;
    let (context, count) = (run.argument(3), run.maps[map].definition().max_entries);
    if run.argument(4) != 0 {
        return returned(Err(ErrorNumber::EINVAL));
    }
    let depth = run.keys.len();
    let (mut calls, mut from) = (0, 0);
    while let Some(element) = run.maps[map].content().next_used(from, count) {
        let key = run.maps[map].content().key(element);
        let value = value_address(map, run.maps[map].offset_of(element));
        run.keys.push(key);
        let gives = run.call_back(function, [handle, key_address(depth), value, context])?;
        run.keys.pop();
        calls += 1;
        if gives != 0 {
            break;
        }
        from = element + 1;
    }
    Ok(Some(calls))
}

fn function_argument(run: &Run, which: usize, helper: &'static str) -> Result<usize, Reason> {
    let value = run.argument(which);
    let places = run.places(run.program).unwrap_or(0);
    let place = function_of_handle(value).filter(|&place| place < places);
    place.ok_or(Reason::NotAFunction { helper, value })
}

/// `bpf_spin_lock`: always succeeds, since programs run one by one; a program may hold one lock.
pub fn lock(run: &mut Run, helper: &'static str) -> Called {
    let address = lock_argument(run)?;
    if run.lock.is_some() {
        return Err(Reason::Lock(helper, "held already"));
    }
    run.lock = Some(address);
    Ok(Some(0))
}

/// `bpf_spin_unlock`.
pub fn unlock(run: &mut Run, helper: &'static str) -> Called {
    let address = lock_argument(run)?;
    if run.lock != Some(address) {
        return Err(Reason::Lock(helper, "not held"));
    }
    run.lock = None;
    Ok(Some(0))
}

/// Returns the lock argument: four bytes in a map's value.
fn lock_argument(run: &mut Run) -> Result<u64, Reason> {
    let address = run.argument(1);
    if value_place(address).is_none() {
        return Err(Reason::Lock("a lock outside any map", "none"));
    }
    run.write(address, 4)?;
    Ok(address)
}
