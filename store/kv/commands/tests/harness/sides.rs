// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Both sides with the events of both, which have to be the same too.

use freeport_kv_types::Set;

use super::{Compared, Listener, Local, are_equal, parsed, shown};

/// Both sides, and the events of both.
pub struct Sides<'a> {
    pub compared: &'a mut Compared,
    listener: Listener,
}

impl<'a> Sides<'a> {
    /// Empty stores; ours has three shards.
    pub fn new(compared: &'a mut Compared) -> Self {
        compared.ours = Local::with_shards(3);
        compared.ours.session.may_block = false;
        let listener = Listener::new(&mut compared.redis);
        Self { compared, listener }
    }

    /// Replies are the same but for the digits of doubles, and so are the events. Commands whose
    /// name begins with a B do not wait.
    #[track_caller]
    pub fn same(&mut self, arguments: &[&[u8]]) {
        let is_waiting = arguments[0].first().is_some_and(|first| b"bB".contains(first));
        if is_waiting {
            let ours = self.compared.ours.call(arguments);
            let theirs = self.in_transaction(arguments);
            let (ours, theirs) = (parsed(&ours), parsed(&theirs));
            // Redis 7.0 takes an infinite timeout for a negative one.
            let is_infinite = ours.to_string().ends_with("timeout is out of range");
            assert!(
                is_infinite || are_equal(&ours, &theirs),
                "{}\n {ours}\n {theirs}",
                shown(arguments)
            );
        } else {
            self.compared.same_numbers(arguments);
        }
        let (ours, theirs) =
            (self.compared.ours.events(), self.listener.events(&mut self.compared.redis));
        assert_eq!(ours, theirs, "events of {}", shown(arguments));
    }

    /// The reply of Redis to a command that does not wait.
    fn in_transaction(&mut self, arguments: &[&[u8]]) -> Vec<u8> {
        let redis = &mut self.compared.redis;
        redis.call(&[b"MULTI"]);
        let queued = redis.call(arguments);
        if queued.starts_with(b"-") {
            redis.call(&[b"DISCARD"]);
            return queued;
        }
        let replies = redis.call(&[b"EXEC"]);
        replies.strip_prefix(b"*1\r\n").expect("one command was queued").to_vec()
    }

    /// As [`Sides::same`], for lines of words that are separated by single spaces. Lines that begin
    /// with `#` are comments.
    #[track_caller]
    pub fn same_lines(&mut self, lines: &str) {
        for line in lines.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            self.same(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        }
    }

    /// Stores a set, which these commands read too.
    pub fn store_members(&mut self, key: &[u8], members: &[&[u8]]) {
        let mut request = vec![&b"SADD"[..], key];
        request.extend_from_slice(members);
        self.compared.redis.call(&[b"DEL", key]);
        self.compared.redis.call(&request);
        let mut set = Set::default();
        let store = &mut self.compared.ours.store;
        let keyspace = {
            let shard = store.shard_of(key);
            store.shard_mut(shard).database_or_new(0)
        };
        for member in members {
            set.add(keyspace.limits(), *member);
        }
        keyspace.store(key, set).expect("there is memory");
        self.listener.events(&mut self.compared.redis);
    }

    /// Removes a key without an event.
    pub fn delete(&mut self, key: &[u8]) {
        self.compared.redis.call(&[b"DEL", key]);
        let store = &mut self.compared.ours.store;
        let shard = store.shard_of(key);
        store.shard_mut(shard).database_or_new(0).remove(key, 0);
        self.listener.events(&mut self.compared.redis);
    }
}
