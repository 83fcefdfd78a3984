// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cells of the applications' table.

use super::Case;
use super::applications::{Application, Cell, Spread};

/// Bytes of a short value, and of a long one.
const SHORT: usize = 64;
const LONG: usize = 1 << 20;
/// Bytes per write of iperf3 by default.
const BLOCK: usize = 128 << 10;

/// One connection, short values, and a server of one thread on its own core.
const ONE: Cell = Cell {
    application: Application::RedisGet,
    value_bytes: SHORT,
    connections: 1,
    pipeline: 1,
    workers: 1,
    spread: Spread::Across,
};
const MANY: Cell = Cell { connections: 20, ..ONE };

/// Returns the cells of a case; if `is_quick`, only the first for which there are enough cores.
pub fn of(case: Case, is_quick: bool, cores: usize) -> Vec<Cell> {
    let cells = match case {
        Case::Redis => redis(),
        Case::Nginx => nginx(),
        Case::Memcached => memcached(),
        Case::Bulk => bulk(),
        _ => vec![],
    };
    if !is_quick {
        return cells;
    }
    cells.into_iter().find(|cell| cell.spread.is_possible(cores)).into_iter().collect()
}

fn redis() -> Vec<Cell> {
    let ways = [ONE, Cell { spread: Spread::Same, ..ONE }, MANY, Cell { pipeline: 16, ..MANY }];
    let of = |application| ways.map(|way| Cell { application, ..way });
    [of(Application::RedisGet), of(Application::RedisSet)].concat()
}

fn nginx() -> Vec<Cell> {
    let anywhere = Cell { workers: 2, spread: Spread::Anywhere, ..MANY };
    let long = Cell { value_bytes: LONG, connections: 4, ..ONE };
    let ways = [ONE, Cell { spread: Spread::Same, ..ONE }, MANY, anywhere, long];
    ways.map(|way| Cell { application: Application::Nginx, ..way }).into()
}

fn memcached() -> Vec<Cell> {
    let threads = |way| Cell { workers: 4, spread: Spread::Anywhere, ..way };
    let ways = [ONE, Cell { spread: Spread::Same, ..ONE }, MANY, threads(ONE), threads(MANY)];
    ways.map(|way| Cell { application: Application::Memcached, ..way }).into()
}

fn bulk() -> Vec<Cell> {
    let one = Cell { application: Application::Bulk, value_bytes: BLOCK, ..ONE };
    vec![one, Cell { spread: Spread::Same, ..one }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_look_has_one_cell_of_each_also_on_one_core() {
        for case in [Case::Redis, Case::Nginx, Case::Memcached, Case::Bulk] {
            let spread =
                |cores| of(case, true, cores).iter().map(|it| it.spread).collect::<Vec<_>>();
            assert_eq!((spread(2), spread(1)), (vec![Spread::Across], vec![Spread::Same]));
            assert!(of(case, false, 1).len() > 1);
        }
        assert_eq!(of(Case::Idle, false, 2), []);
    }
}
