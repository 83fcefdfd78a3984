// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shards on loan. A command that needs keys of several workers is executed by its client's worker,
//! which borrows the shards that it lacks, executes the command, and returns them.
//!
//! Life of a loan:
//! 1. The client is suspended, and its request stays in its input.
//! 2. The worker takes hold of the shards in ascending order: it asks their owners, and reserves
//!    its own. One loan of a worker is in progress at a time. No two loans can wait for each other,
//!    because the one that holds the highest shard waits for none that the other holds.
//! 3. All shards are here: the request is read again and executed, as a whole.
//! 4. The shards return. Owners then look at requests that waited for their shard.
//!
//! An owner serves borrowers and itself in the order in which they ask. A shard that is reserved is
//! still here: commands of one key use it until it is lent.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

use super::batch::Parcel as BatchParcel;
use super::parcels::Parcel;
use super::{Core, Import, Worker};
use crate::client::Client;
use crate::mail::Message;

/// The server itself instead of a client, whose numbers begin at 1: it borrows for a snapshot or an
/// errand.
pub(super) const SERVER: u64 = 0;

/// Loans of a worker, and of its shard.
#[derive(Debug, Default)]
pub(super) struct Lending {
    /// Loans that are wanted; the first one is in progress.
    loans: VecDeque<Loan>,
    /// The first loan waits for a shard.
    is_waiting: bool,
    /// All shards of the first loan are here.
    is_granted: bool,
    /// The own shard may not be lent: the first loan needs it.
    is_reserved: bool,
    /// Workers that want the own shard, in their order; the worker itself is among them.
    borrowers: VecDeque<usize>,
    /// Clients that wait for the own shard, which is on loan.
    stalled: Vec<u64>,
    /// Commands of other clients that wait for it.
    #[expect(clippy::vec_box, reason = "messages carry parcels in boxes")]
    parcels: Vec<Box<Parcel>>,
    /// Operations of packets of other workers that wait for it.
    #[expect(clippy::vec_box, reason = "messages carry parcels in boxes")]
    batches: Vec<Box<BatchParcel>>,
    /// Units of other shards that wait for it.
    #[expect(clippy::vec_box, reason = "messages carry imports in boxes")]
    imports: Vec<Box<Import>>,
    /// Those that wait until nothing of the above does. Dropping one is the answer.
    pub(super) settling: Vec<Sender<()>>,
    /// Things that the own shard has to forget when it is back.
    forgotten: Vec<((u16, Vec<u8>), Forgotten)>,
}

/// Something that a shard knows of a client.
#[derive(Debug)]
pub enum Forgotten {
    /// The client waits for a key.
    Waiter(u64),
    /// A transaction watches a key.
    Watch(Arc<AtomicBool>),
}

/// Shards for a command.
#[derive(Debug)]
struct Loan {
    client: u64,
    /// Shards as bits.
    needed: u64,
    /// Those that are held already.
    held: u64,
}

impl Lending {
    /// Number of loans, own and others', and of parcels that wait.
    pub(super) fn waiting(&self) -> usize {
        self.loans.len() + self.borrowers.len() + self.parcels.len() + self.batches.len()
    }
}

impl Lending {
    /// Operations wait until the own shard is back.
    pub(super) fn wait_with_batch(&mut self, parcel: Box<BatchParcel>) {
        self.batches.push(parcel);
    }

    /// Units of another shard wait until the own shard is back.
    pub(super) fn wait_with_import(&mut self, import: Box<Import>) {
        self.imports.push(import);
    }
}

impl Worker {
    /// All these shards are here, and stay until the end of the command.
    pub(super) fn has_shards(&self, needed: u64) -> bool {
        let own = 1 << self.core.number;
        match needed & !own {
            0 => needed == 0 || self.core.store.has(self.core.number),
            _ => {
                self.lending.is_granted
                    && self.lending.loans.front().is_some_and(|loan| needed & !loan.held == 0)
            }
        }
    }

    /// A client waits for shards.
    pub(super) fn suspend_for(&mut self, client: &mut Client, needed: u64) {
        client.is_suspended = true;
        if needed == 1 << self.core.number {
            self.lending.stalled.push(client.id());
            return;
        }
        self.borrow_for(client.id(), needed);
    }

    /// Borrows shards for a client, or for the server.
    pub(super) fn borrow_for(&mut self, client: u64, needed: u64) {
        self.lending.loans.push_back(Loan { client, needed, held: 0 });
        self.advance_loan();
    }

    /// Takes hold of as many shards of the first loan as there are without waiting, and executes
    /// its command if they are all.
    ///
    /// A loan that begins needs a shard of another worker, which only a message brings. So commands
    /// are executed from here only while no connection is being served.
    fn advance_loan(&mut self) {
        while !self.lending.is_waiting && !self.lending.is_granted {
            let Some(loan) = self.lending.loans.front() else { return };
            let missing = loan.needed & !loan.held;
            if missing == 0 {
                self.use_loan();
                continue;
            }
            let number = missing.trailing_zeros() as usize;
            self.lending.is_waiting = true;
            if number == self.core.number {
                self.lending.borrowers.push_back(number);
                self.lend();
            } else {
                let message = Message::Borrow { worker: self.core.number };
                self.core.shared.mailboxes[number].send(message);
            }
        }
    }

    /// A shard of the first loan is held.
    fn hold(&mut self, number: usize) {
        self.lending.is_waiting = false;
        if let Some(loan) = self.lending.loans.front_mut() {
            loan.held |= 1 << number;
        }
    }

    /// Another worker wants the own shard.
    pub(super) fn asked_for_shard(&mut self, worker: usize) {
        self.lending.borrowers.push_back(worker);
        self.lend();
        self.advance_loan();
    }

    /// Gives the own shard to the first that wants it, if it is free.
    fn lend(&mut self) {
        if self.lending.is_reserved {
            return;
        }
        let Some(&borrower) = self.lending.borrowers.front() else { return };
        if borrower == self.core.number {
            if self.core.store.has(borrower) {
                self.lending.borrowers.pop_front();
                self.lending.is_reserved = true;
                self.hold(borrower);
            }
        } else if let Some(shard) = self.core.store.take(self.core.number) {
            self.core.flush_log();
            self.lending.borrowers.pop_front();
            let message = Message::Lent { number: self.core.number, shard };
            self.core.shared.mailboxes[borrower].send(message);
        }
    }

    /// A shard for the first loan has come.
    pub(super) fn borrowed(&mut self, number: usize, shard: Box<freeport_kv_commands::Shard>) {
        self.core.store.insert(number, shard);
        self.hold(number);
        self.advance_loan();
    }

    /// The own shard is back.
    pub(super) fn returned(&mut self, shard: Box<freeport_kv_commands::Shard>) {
        self.core.store.insert(self.core.number, shard);
        for (place, what) in std::mem::take(&mut self.lending.forgotten) {
            self.forget(place, what);
        }
        for parcel in std::mem::take(&mut self.lending.parcels) {
            self.execute_for(parcel);
        }
        for parcel in std::mem::take(&mut self.lending.batches) {
            self.execute_batch_for(parcel);
        }
        for import in std::mem::take(&mut self.lending.imports) {
            self.import(import);
        }
        self.end_settling();
        // Those that waited come first, so that a busy borrower cannot keep the shard.
        for client in std::mem::take(&mut self.lending.stalled) {
            self.resume(client);
        }
        self.lend();
        self.advance_loan();
    }

    /// Commands wait until the own shard is back.
    pub(super) fn lending_wait(&mut self, parcel: Box<Parcel>) {
        self.lending.parcels.push(parcel);
    }

    /// A client need not wait for shards any more: it continues with its request, or looks again at
    /// the keys that it waits for.
    pub(super) fn resume(&mut self, id: u64) {
        // The client may have gone.
        let Some(connection) = self.core.network.connections.get_mut(&id) else { return };
        let Some((client, _)) = connection.client_mut() else { return };
        client.is_suspended = false;
        client.is_paused = false;
        if client.blocked.is_some() {
            self.retry_by_message(id);
        } else {
            self.serve(id);
        }
    }

    /// All shards of the first loan are here: its command is executed now.
    fn use_loan(&mut self) {
        let Some(client) = self.lending.loans.front().map(|loan| loan.client) else { return };
        self.lending.is_granted = true;
        match client {
            SERVER => self.do_task(),
            client => self.resume(client),
        }
        // Unless the command has ended it: the client may have gone.
        self.return_shards();
    }

    /// Ends the first loan, if it was granted: its command has been executed.
    pub(super) fn return_shards(&mut self) {
        if !self.lending.is_granted {
            return;
        }
        self.lending.is_granted = false;
        self.core.flush_log();
        if let Some(loan) = self.lending.loans.pop_front() {
            let own = self.core.number;
            for number in (0..self.core.store.count()).filter(|at| loan.held & 1 << at != 0) {
                if number == own {
                    self.lending.is_reserved = false;
                } else if let Some(shard) = self.core.store.take(number) {
                    self.core.shared.mailboxes[number].send(Message::Returned { shard });
                }
            }
        }
        self.lend();
        self.advance_loan();
    }

    /// The own shard forgets something of a client, as soon as it is here.
    pub(super) fn forget(&mut self, place: (u16, Vec<u8>), what: Forgotten) {
        let number = self.core.number;
        if !self.core.store.has(number) {
            self.lending.forgotten.push((place, what));
            return;
        }
        let (database, key) = place;
        let shard = self.core.store.shard_mut(number);
        match what {
            Forgotten::Waiter(client) => shard.stop_waiting(database, &key, client),
            Forgotten::Watch(flag) => shard.unwatch(database, &key, &flag),
        }
    }
}

impl Core {
    /// The shard of a key forgets something of a client, wherever it is.
    pub fn forget_everywhere(&mut self, (database, key): (u16, &[u8]), what: Forgotten) {
        let number = self.store.shard_of(key);
        if self.store.has(number) {
            let shard = self.store.shard_mut(number);
            match what {
                Forgotten::Waiter(client) => shard.stop_waiting(database, key, client),
                Forgotten::Watch(flag) => shard.unwatch(database, key, &flag),
            }
            return;
        }
        let place = (database, key.to_vec());
        self.shared.mailboxes[number].send(Message::Forget { place, what });
    }
}
