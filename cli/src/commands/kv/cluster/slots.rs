// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv cluster move` and `rebalance`: slots change their shard while they are used.

use super::names::{self, counted, short};
use super::progress::MoveProgress;
use super::session::{Session, Waiting, stored};
use crate::commands::kv::login::Login;
use anyhow::{Context, bail};
use clap::{ArgGroup, Args};
use freeport_kv_cluster::{Move, Shard, SlotSet, State, Topology, planning};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv cluster move --slots 0-99,200 --to 3fa2\n  \
                  freeport kv cluster move --count 500 --from 3fa2 --to 9b1c --wait\n  \
                  freeport kv cluster move --cancel 0-16383\n\n\
                  Clients read and write the keys meanwhile. All slots of a move change their \
                  shard at one moment, when the new one has all of their keys.")]
#[command(group = ArgGroup::new("which").required(true).args(["slots", "count", "cancel"]))]
pub struct MoveArguments {
    /// Slots to move, such as 0-99,200
    #[arg(long, value_name = "SLOTS", requires = "to")]
    slots: Option<SlotSet>,
    /// Number of slots to move, the highest ones of the shard
    #[arg(long, value_name = "COUNT", requires_all = ["from", "to"])]
    count: Option<usize>,
    /// Slots that stay where they are, though they are being moved
    #[arg(long, value_name = "SLOTS", conflicts_with_all = ["from", "to", "wait"])]
    cancel: Option<SlotSet>,
    /// Shard that has them [default: the one that serves each]
    #[arg(long, value_name = "SHARD")]
    from: Option<String>,
    /// Shard that gets them
    #[arg(long, value_name = "SHARD")]
    to: Option<String>,
    #[command(flatten)]
    login: Login,
    #[command(flatten)]
    waiting: Waiting,
}

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv cluster rebalance --dry-run\n  \
                  freeport kv cluster rebalance --wait\n\n\
                  As few slots as possible are moved. Moves under way count as done.")]
pub struct RebalanceArguments {
    /// Print the moves, and begin none
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    login: Login,
    #[command(flatten)]
    waiting: Waiting,
}

/// Begins or cancels moves.
///
/// # Errors
/// A shard does not exist or lacks the slots, or they are being moved.
pub fn run_move(session: &Session, arguments: &MoveArguments) -> anyhow::Result<ExitCode> {
    if let Some(slots) = &arguments.cancel {
        session.change(|state| Ok(planning::cancel_moves(&stored(state)?.topology, slots)?))?;
        println!("slots {slots} stay where they are");
        return Ok(ExitCode::SUCCESS);
    }
    let mut moves = vec![];
    session.change(|state| {
        let topology = &stored(state)?.topology;
        moves = plan(state, topology, arguments)?;
        Ok(planning::begin_moves(topology, &moves)?)
    })?;
    print_moves(&moves);
    finish(session, &moves, &arguments.waiting, &arguments.login)
}

/// Begins the moves after which all shards have equally many slots.
///
/// # Errors
/// The registry does not answer.
pub fn run_rebalance(
    session: &Session,
    arguments: &RebalanceArguments,
) -> anyhow::Result<ExitCode> {
    let state = session.state()?;
    let topology = &stored(&state)?.topology;
    let mut moves = planning::rebalance(topology, &[]);
    if moves.is_empty() && topology.moves.is_empty() {
        eprintln!("all shards have equally many slots");
        return Ok(ExitCode::SUCCESS);
    }
    if moves.is_empty() {
        eprintln!("the moves under way are enough");
        return match arguments.waiting.wait && !arguments.dry_run {
            true => finish(session, &topology.moves, &arguments.waiting, &arguments.login),
            false => Ok(ExitCode::SUCCESS),
        };
    }
    if !arguments.dry_run {
        session.change(|state| {
            let topology = &stored(state)?.topology;
            moves = planning::rebalance(topology, &[]);
            Ok(planning::begin_moves(topology, &moves)?)
        })?;
    }
    print_moves(&moves);
    if arguments.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    finish(session, &moves, &arguments.waiting, &arguments.login)
}

fn plan(
    state: &State,
    topology: &Topology,
    arguments: &MoveArguments,
) -> anyhow::Result<Vec<Move>> {
    let to = arguments.to.as_deref().context("name the shard that gets the slots: --to SHARD")?;
    let to = names::shard(state, topology, to)?.id;
    let from = arguments.from.as_deref();
    let from = from.map(|text| names::shard(state, topology, text)).transpose()?;
    let one = |from: &Shard, slots| Move { from: from.id, to, slots };
    Ok(match (&arguments.slots, arguments.count, from) {
        (Some(slots), _, Some(from)) => vec![one(from, slots.clone())],
        (Some(slots), _, None) => {
            let lost = slots.intersection(&topology.uncovered());
            if !lost.is_empty() {
                bail!("no shard serves slots {lost}");
            }
            let parts = topology.shards.iter().filter(|shard| shard.id != to);
            let parts = parts.map(|shard| one(shard, shard.slots.intersection(slots)));
            let parts: Vec<Move> = parts.filter(|part| !part.slots.is_empty()).collect();
            if parts.is_empty() {
                bail!("shard {} has all of slots {slots} already", short(to));
            }
            parts
        }
        (None, Some(count), Some(from)) => {
            let leaving = topology.moves.iter().filter(|other| other.from == from.id);
            let free = leaving.fold(from.slots.clone(), |left, it| left.without(&it.slots));
            if free.len() < count {
                let free = counted(free.len(), "slot");
                bail!("shard {} has only {free} to move", short(from.id));
            }
            vec![one(from, planning::highest(&free, count))]
        }
        _ => bail!("name the slots: --slots SLOTS, or --count COUNT with --from SHARD"),
    })
}

fn print_moves(moves: &[Move]) {
    for Move { from, to, slots } in moves {
        let count = counted(slots.len(), "slot");
        println!("{count} from shard {} to {}: {slots}", short(from), short(to));
    }
}

/// Waits for the moves, if that is asked for.
fn finish(
    session: &Session,
    moves: &[Move],
    waiting: &Waiting,
    login: &Login,
) -> anyhow::Result<ExitCode> {
    if !waiting.wait {
        eprintln!("begun; see `freeport kv cluster status`");
        return Ok(ExitCode::SUCCESS);
    }
    session.wait(waiting, |state, line, left| {
        let topology = &stored(state)?.topology;
        if are_done(topology, moves)? {
            return Ok(Some(()));
        }
        MoveProgress::show(topology, login, left, line);
        Ok(None)
    })?;
    println!("done");
    Ok(ExitCode::SUCCESS)
}

/// All slots have reached their shard.
///
/// # Errors
/// Some neither have, nor are on their way.
fn are_done(topology: &Topology, moves: &[Move]) -> anyhow::Result<bool> {
    let mut are_done = true;
    for Move { to, slots, .. } in moves {
        let there = topology.shard(*to).map(|shard| shard.slots.clone()).unwrap_or_default();
        let missing = slots.without(&there);
        let under_way = topology.moves.iter().filter(|one| one.to == *to);
        let stuck = under_way.fold(missing.clone(), |left, one| left.without(&one.slots));
        if !stuck.is_empty() {
            bail!("the move of slots {stuck} was cancelled");
        }
        are_done &= missing.is_empty();
    }
    Ok(are_done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_kv_cluster::{Address, Member, NodeId};

    fn node() -> Member {
        Member { id: NodeId::random(), address: Address::default() }
    }

    #[test]
    fn moves_are_done_under_way_or_cancelled() {
        let before = planning::create(&[node(), node()], 0).expect("there are enough");
        let [from, to] = [before.shards[0].id, before.shards[1].id];
        let slots: SlotSet = "0-9".parse().expect("slots");
        let moves = [Move { from, to, slots: slots.clone() }];
        let under_way = planning::begin_moves(&before, &moves).expect("it has them");
        assert!(!are_done(&under_way, &moves).expect("it is under way"));
        let error = are_done(&before, &moves).expect_err("nobody moves them").to_string();
        assert!(error.contains("slots 0-9 was cancelled"), "{error}");
        let mut after = before;
        for (at, shard) in after.shards.iter_mut().enumerate() {
            let slots =
                if at == 0 { shard.slots.without(&slots) } else { shard.slots.union(&slots) };
            shard.slots = slots;
        }
        assert!(are_done(&after, &moves).expect("it is done"));
    }
}
