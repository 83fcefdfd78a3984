// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Attribution of cycles: each cycle in which packets are processed is attributed to a cause.
//!
//! Rows leave the core in order, so a cycle belongs to the oldest row in it: the one in execute,
//! which either completes or waits. A cycle without a row in execute is attributed to the cause of
//! the bubble: a taken jump, a row that decode held back, or the beginning of a packet.

use crate::Moment;
use crate::watch::event;

/// Executions and cycles of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RowCycles {
    /// Number of executions.
    pub executed: u64,
    /// Number of taken jumps from the row in decode or execute; jumps that fetch follows cost
    /// nothing and are not counted.
    pub jumps: u64,
    /// Cycles by their use: see [`SPENT_ON`].
    pub cycles: [u64; SPENT_ON.len()],
}

/// Names of the uses of a row's cycles.
pub const SPENT_ON: [&str; 6] = ["own", "memory", "helper", "long", "order", "jump"];
const OWN: usize = 0;
const MEMORY: usize = 1;
const HELPER: usize = 2;
const LONG: usize = 3;
const ORDER: usize = 4;
const JUMP: usize = 5;

/// Attribution of all cycles from the first packet's beginning to the last one's end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cycles {
    /// By row of the instruction memory.
    pub rows: Vec<RowCycles>,
    /// Cycles until a packet's first row is in execute.
    pub begin: u64,
    /// Cycles between packets in which none had arrived.
    pub idle: u64,
    /// Completed packets.
    pub packets: u64,
    /// All cycles.
    pub total: u64,
    /// Cycles since the last packet was done; they are counted when another one begins.
    pending: u64,
    cause: Cause,
    has_begun: bool,
    /// Whether everything before the first verdict is still to be excluded.
    leaves_first_out: bool,
}

/// Reason for which there is no row in execute.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Cause {
    /// A packet begins.
    #[default]
    Begin,
    /// A row, and the use of the cycle.
    Row(u16, usize),
}

impl RowCycles {
    /// Returns the sum of its cycles.
    pub fn sum(&self) -> u64 {
        self.cycles.iter().sum()
    }
}

impl Cycles {
    /// Creates counts for a core that has executed nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`new`](Self::new), but counts from the first packet's verdict to the last one's: the
    /// cycles between those, and one packet less.
    pub fn between_verdicts() -> Self {
        Self { leaves_first_out: true, ..Self::default() }
    }

    /// Returns the cycles attributed to a row, to a beginning, or to no packet: their sum is
    /// [`total`].
    ///
    /// [`total`]: Self::total
    pub fn attributed(&self) -> u64 {
        self.rows.iter().map(RowCycles::sum).sum::<u64>() + self.begin + self.idle
    }

    /// Counts the next cycle. Cycles before the first packet begins and after the last one is done
    /// are excluded.
    pub fn count(&mut self, moment: &Moment) {
        if moment.has(event::ACTIVE) && self.has_begun {
            self.total += 1 + std::mem::take(&mut self.pending);
            self.attribute(moment);
            self.count_rows(moment);
        } else if self.has_begun {
            self.pending += 1;
        }
        if moment.has(event::PACKET_ENDS) && self.has_begun {
            self.packets += 1;
            if self.leaves_first_out {
                let (cause, has_begun) = (self.cause, self.has_begun);
                *self = Self { cause, has_begun, ..Self::default() };
            }
        }
        if moment.has(event::PACKET_BEGINS) {
            self.idle += self.pending;
            self.has_begun = true;
            self.cause = Cause::Begin;
        }
    }

    /// Attributes a cycle.
    fn attribute(&mut self, moment: &Moment) {
        if let Some(row) = moment.in_execute() {
            let spent = match moment {
                _ if moment.has(event::EXECUTE_FINISHES) => OWN,
                _ if moment.has(event::WAITS_HELPER) => HELPER,
                _ if moment.has(event::WAITS_LONG) => LONG,
                // It waits for bytes of the packet, or for stores.
                _ => MEMORY,
            };
            self.spend(row, spent);
            self.cause = self.cause_behind(moment, row);
            return;
        }
        // The row in decode may end the program there, or wait.
        match (moment.in_decode(), moment.in_fetch()) {
            (Some(row), _) if moment.has(event::DECODE_ENDS) => self.spend(row, OWN),
            (Some(row), _) if moment.has(event::FETCH_ENDS) => self.spend(row, OWN),
            (None, Some(row)) if moment.has(event::FETCH_ENDS) => self.spend(row, OWN),
            (Some(row), _) if moment.has(event::DECODE_WAITS) => {
                self.spend(row, MEMORY);
                self.cause = Cause::Row(row, MEMORY);
            }
            (decode, _) => {
                self.fill();
                if let (Some(row), true) = (decode, moment.has(event::DECODE_JUMPS)) {
                    self.cause = Cause::Row(row, JUMP);
                }
            }
        }
    }

    /// Returns the cause of cycles without a row in execute, after a cycle with `row` in execute.
    fn cause_behind(&self, moment: &Moment, row: u16) -> Cause {
        if moment.has(event::EXECUTE_JUMPS) {
            return Cause::Row(row, JUMP);
        }
        match moment.in_decode() {
            Some(next) if moment.has(event::DECODE_CONFLICTS) => Cause::Row(next, ORDER),
            Some(next) if moment.has(event::DECODE_WAITS) => Cause::Row(next, MEMORY),
            Some(next) if moment.has(event::DECODE_JUMPS) => Cause::Row(next, JUMP),
            _ => self.cause,
        }
    }

    fn fill(&mut self) {
        match self.cause {
            Cause::Begin => self.begin += 1,
            Cause::Row(row, spent) => self.spend(row, spent),
        }
    }

    fn spend(&mut self, row: u16, spent: usize) {
        self.row_mut(row).cycles[spent] += 1;
    }

    /// Counts completed rows as the card's counter does, including rows that end the program before
    /// execute.
    fn count_rows(&mut self, moment: &Moment) {
        let (execute, decode) = (moment.in_execute(), moment.in_decode());
        let mut done = |row: Option<u16>| {
            if let Some(row) = row {
                self.row_mut(row).executed += 1;
            }
        };
        if moment.has(event::EXECUTE_FINISHES) {
            done(execute);
        }
        let ends = moment.has(event::PACKET_ENDS) && !moment.has(event::EXECUTE_ENDS);
        if ends && moment.has(event::DECODE_ENDS) {
            done(decode);
        } else if ends && moment.has(event::FETCH_ENDS) {
            done(decode);
            done(moment.in_fetch().filter(|_| !moment.has(event::FETCH_BEYOND)));
        }
        if moment.has(event::EXECUTE_JUMPS)
            && let Some(row) = execute
        {
            self.row_mut(row).jumps += 1;
        } else if moment.has(event::DECODE_JUMPS)
            && let Some(row) = decode
        {
            self.row_mut(row).jumps += 1;
        }
    }

    fn row_mut(&mut self, row: u16) -> &mut RowCycles {
        let row = usize::from(row);
        if row >= self.rows.len() {
            self.rows.resize(row + 1, RowCycles::default());
        }
        &mut self.rows[row]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::*;

    fn moment(events: u32, [fetch, decode, execute]: [u16; 3]) -> Moment {
        Moment { events, fetch, decode, execute, ..Moment::default() }
    }

    /// Row 0 jumps in execute to row 5, which calls a helper and waits twice, and ends in fetch
    /// with row 6; then another packet arrives late.
    #[test]
    fn every_cycle_is_somebodys() {
        let mut cycles = Cycles::new();
        let all = [
            moment(0, [9; 3]),
            moment(PACKET_BEGINS, [9; 3]),
            moment(ACTIVE | FETCH | FETCH_GOES, [0, 9, 9]),
            moment(ACTIVE | FETCH | DECODE | DECODE_GOES, [1, 0, 9]),
            moment(ACTIVE | DECODE | EXECUTE | EXECUTE_FINISHES | EXECUTE_JUMPS, [2, 1, 0]),
            moment(ACTIVE | FETCH | FETCH_GOES, [5, 1, 0]),
            moment(ACTIVE | FETCH | DECODE | DECODE_GOES, [6, 5, 0]),
            moment(ACTIVE | FETCH | EXECUTE | WAITS_HELPER, [6, 5, 5]),
            moment(ACTIVE | FETCH | EXECUTE | WAITS_HELPER, [6, 5, 5]),
            moment(
                ACTIVE | FETCH | EXECUTE | EXECUTE_FINISHES | FETCH_ENDS | PACKET_ENDS,
                [6, 5, 5],
            ),
            moment(0, [9; 3]),
            moment(PACKET_BEGINS, [9; 3]),
            moment(ACTIVE | FETCH | FETCH_ENDS | PACKET_ENDS, [0, 9, 9]),
            moment(0, [9; 3]),
        ];
        all.iter().for_each(|moment| cycles.count(moment));
        assert_eq!((cycles.packets, cycles.begin, cycles.idle), (2, 2, 2));
        assert_eq!((cycles.total, cycles.attributed()), (11, 11), "{cycles:?}");
        assert_eq!(cycles.rows[0], RowCycles { executed: 2, jumps: 1, cycles: [2, 0, 0, 0, 0, 2] });
        assert_eq!(cycles.rows[5], RowCycles { executed: 1, jumps: 0, cycles: [1, 0, 2, 0, 0, 0] });
        assert_eq!(cycles.rows[6], RowCycles { executed: 1, ..RowCycles::default() });
        assert_eq!(cycles.rows[1], RowCycles::default(), "it was fetched in vain");
        let mut later = Cycles::between_verdicts();
        all.iter().for_each(|moment| later.count(moment));
        assert_eq!((later.packets, later.begin, later.idle), (1, 0, 2));
        assert_eq!((later.total, later.attributed()), (3, 3), "{later:?}");
    }
}
