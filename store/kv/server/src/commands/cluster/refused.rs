// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands of clusters whose nodes gossip. Here the registry has the slot map, and operators
//! change it by `freeport kv cluster`.

use freeport_kv_commands::Error;

use super::super::{Context, Flow};

pub(super) fn slots(_: &mut Context<'_>) -> Result<Flow, Error> {
    refuse("the registry has the slot map: use `freeport kv cluster create`, `move` or `rebalance`")
}

pub(super) fn meet(_: &mut Context<'_>) -> Result<Flow, Error> {
    refuse("nodes meet in their registry: use `freeport kv cluster add`")
}

pub(super) fn forget(_: &mut Context<'_>) -> Result<Flow, Error> {
    refuse("the registry has the list of nodes: use `freeport kv cluster forget`")
}

pub(super) fn replicate(_: &mut Context<'_>) -> Result<Flow, Error> {
    refuse("the registry has the list of replicas: use `freeport kv cluster add`")
}

pub(super) fn reset(_: &mut Context<'_>) -> Result<Flow, Error> {
    refuse("the registry has the list of nodes: use `freeport kv cluster remove`")
}

pub(super) fn epoch(_: &mut Context<'_>) -> Result<Flow, Error> {
    refuse("every change of the slot map counts the epoch up; nobody sets it")
}

fn refuse(advice: &str) -> Result<Flow, Error> {
    Err(Error::new(format!("ERR {advice}")))
}
