// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lists, and clients that wait for their elements.

use freeport_kv_commands::{Block, Waiter};
use freeport_kv_keyspace::Kind;

use crate::harness::{Beside, Compared, Local, fill};

#[test]
fn elements_are_pushed_and_popped_at_both_ends() {
    let mut local = Local::with_shards(3);
    assert_eq!(local.line("RPUSH l b c"), b":2\r\n");
    assert_eq!(local.line("LPUSH l a 1"), b":4\r\n");
    assert_eq!(local.line("LRANGE l 0 1"), b"*2\r\n$1\r\n1\r\n$1\r\na\r\n");
    assert_eq!(local.line("LPOP l"), b"$1\r\n1\r\n");
    assert_eq!(local.line("RPOP l 2"), b"*2\r\n$1\r\nc\r\n$1\r\nb\r\n");
    assert_eq!(local.line("LPOP l 0"), b"*0\r\n");
    assert_eq!(local.line("LPOP l 9"), b"*1\r\n$1\r\na\r\n");
    assert_eq!(local.line("LPOP l"), b"$-1\r\n");
    assert_eq!(local.line("LPOP l 9"), b"*-1\r\n");
    assert_eq!(local.line("RPUSHX l a"), b":0\r\n");
    assert_eq!(local.events(), ["rpush l", "lpush l", "lpop l", "rpop l", "lpop l", "del l"]);
}

#[test]
fn elements_inside_are_found_and_changed() {
    let mut local = Local::new();
    local.line("RPUSH l a b a c a");
    assert_eq!(local.line("LPOS l a RANK -1 COUNT 2"), b"*2\r\n:4\r\n:2\r\n");
    assert_eq!(local.line("LINSERT l BEFORE c x"), b":6\r\n");
    assert_eq!(local.line("LSET l -1 z"), b"+OK\r\n");
    assert_eq!(local.line("LREM l -1 a"), b":1\r\n");
    assert_eq!(local.line("LTRIM l 1 -2"), b"+OK\r\n");
    assert_eq!(local.line("LRANGE l 0 -1"), b"*3\r\n$1\r\nb\r\n$1\r\nx\r\n$1\r\nc\r\n");
    assert_eq!(local.line("LTRIM l 5 1"), b"+OK\r\n");
    let expected = ["rpush l", "linsert l", "lset l", "lrem l", "ltrim l", "ltrim l", "del l"];
    assert_eq!(local.events(), expected);
    // Redis 7.0 takes these, and 7.2 does not.
    let refused = b"-ERR value is out of range, value must between \
        -9223372036854775807 and 9223372036854775807\r\n";
    assert_eq!(local.line("LREM l -9223372036854775808 a"), refused);
    assert_eq!(local.line("LPOS l a RANK -9223372036854775808"), refused);
}

#[test]
fn elements_move_between_lists_of_all_shards() {
    let mut local = Local::with_shards(3);
    for number in 0..20 {
        local.line(&format!("RPUSH from{number} a b"));
        let reply = local.line(&format!("LMOVE from{number} to{} RIGHT LEFT", number + 1));
        assert_eq!(reply, b"$1\r\nb\r\n");
        let reply = local.line(&format!("RPOPLPUSH from{number} to{}", number + 1));
        assert_eq!(reply, b"$1\r\na\r\n");
        let reply = local.line(&format!("LRANGE to{} 0 -1", number + 1));
        assert_eq!(reply, b"*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    }
    local.events();
    local.line("LMOVE to1 to1 LEFT RIGHT");
    assert_eq!(local.line("LINDEX to1 0"), b"$1\r\nb\r\n");
    assert_eq!(local.line("RPUSH one x"), b":1\r\n");
    assert_eq!(local.line("RPOPLPUSH one one"), b"$1\r\nx\r\n");
    assert_eq!(local.line("LMOVE one new LEFT LEFT"), b"$1\r\nx\r\n");
    let expected = [
        "rpush to1",
        "lpop to1",
        "rpush one",
        "lpush one",
        "rpop one",
        "lpush new",
        "lpop one",
        "del one",
    ];
    assert_eq!(local.events(), expected);
}

/// The wait that a command began, which has not replied.
fn waits(local: &mut Local, line: &str) -> Block {
    assert_eq!(local.line(line), b"", "{line}");
    local.effects.block.take().expect("the command waits")
}

#[test]
fn a_command_that_finds_nothing_waits_and_succeeds_after_a_push() {
    let served: [(&str, &[u8]); 6] = [
        ("BLPOP none l 0", b"*2\r\n$1\r\nl\r\n$1\r\na\r\n"),
        ("BRPOP l none 0", b"*2\r\n$1\r\nl\r\n$1\r\nb\r\n"),
        ("BLMOVE l to LEFT LEFT 0", b"$1\r\na\r\n"),
        ("BRPOPLPUSH l to 0", b"$1\r\nb\r\n"),
        ("BLMPOP 0 2 l none LEFT COUNT 5", b"*2\r\n$1\r\nl\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
        ("BLMPOP 0 1 l RIGHT", b"*2\r\n$1\r\nl\r\n*1\r\n$1\r\nb\r\n"),
    ];
    for (line, reply) in served {
        let mut local = Local::with_shards(3);
        let block = waits(&mut local, line);
        assert_eq!(
            (block.kind, block.deadline_ms, block.is_null_string),
            (Kind::List, None, false)
        );
        local.line("RPUSH l a b");
        assert_eq!(local.line(line), reply, "{line}");
        assert_eq!(local.effects.block, None, "{line}");
    }
}

#[test]
fn a_wait_names_its_keys_and_its_end() {
    let mut local = Local::new();
    local.now_ms = Some(5_000);
    let block = waits(&mut local, "BLPOP a b 1.5");
    assert_eq!((block.keys, block.deadline_ms), (vec![1, 2], Some(6_500)));
    assert_eq!(waits(&mut local, "BLMPOP 1 2 a b LEFT").keys, [3, 4]);
    assert_eq!(waits(&mut local, "BLMOVE a b LEFT LEFT 0").keys, [1]);
    assert_eq!(waits(&mut local, "BRPOPLPUSH a b 0").keys, [1]);
    local.session.may_block = false;
    assert_eq!(local.line("BLPOP a 0"), b"*-1\r\n");
    assert_eq!(local.line("BLMPOP 0 1 a LEFT"), b"*-1\r\n");
    assert_eq!(local.line("BLMOVE a b LEFT LEFT 0"), b"$-1\r\n");
    assert!(local.effects.block.is_none() && local.store.shard(0).database(0).is_none());
}

#[test]
fn a_push_wakes_those_that_wait() {
    let mut local = Local::with_shards(3);
    let waiter =
        Waiter { worker: 0, client: 7, kind: Kind::List, wakes_on_removal: false, is_told: false };
    let shard = local.store.shard_of(b"to");
    local.store.shard_mut(shard).wait(0, b"to", waiter);
    local.line("RPUSH l a");
    assert!(!local.effects.has_ready_keys);
    local.line("RPOPLPUSH l to");
    assert!(local.effects.has_ready_keys);
    assert_eq!(local.store.shard_mut(shard).take_ready(), [(0, Box::from(&b"to"[..]))]);
}

#[test]
fn what_changes_nothing_has_no_event_and_makes_no_database() {
    let mut local = Local::new();
    let lines = [
        "LPOP l",
        "LPOP l 3",
        "RPOP l",
        "LMPOP 1 l LEFT",
        "LLEN l",
        "LRANGE l 0 -1",
        "LINDEX l 0",
        "LPOS l a",
        "LSET l 0 a",
        "LINSERT l BEFORE a b",
        "LREM l 0 a",
        "LTRIM l 0 0",
        "LMOVE l m LEFT LEFT",
        "RPOPLPUSH l m",
        "LPUSHX l a",
    ];
    lines.iter().for_each(|line| drop(local.line(line)));
    assert!(local.store.shard(0).database(0).is_none());
    local.line("RPUSH l a");
    local.events();
    let lines = ["LPOP l 0", "LREM l 0 b", "LINSERT l AFTER b c", "LSET l 1 b", "LSET l x b"];
    lines.iter().for_each(|line| drop(local.line(line)));
    assert!(local.events().is_empty());
}

#[test]
fn a_full_store_refuses_elements_and_takes_removals() {
    let mut local = Local::with_memory(1, 1 << 20);
    let long = "x".repeat(2_000);
    local.line(&format!("RPUSH l a b c {long}"));
    local.line("RPUSH m 1 2 3");
    fill(&mut local);
    local.events();
    let refused = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    assert_eq!(local.line(&format!("LPUSH m {long}")), refused);
    assert_eq!(local.line("RPOPLPUSH l m"), refused);
    assert_eq!(local.line("LMOVE l new RIGHT LEFT"), refused);
    assert!(local.events().is_empty());
    assert_eq!(local.line("LLEN l"), b":4\r\n");
    assert_eq!(local.line("LPOP l"), b"$1\r\na\r\n");
    assert_eq!(local.line("LREM l 0 b"), b":1\r\n");
    assert_eq!(local.line("LTRIM m 1 1"), b"+OK\r\n");
    assert_eq!(local.line("BRPOP m 0"), b"*2\r\n$1\r\nm\r\n$1\r\n2\r\n");
    assert_eq!(local.events(), ["lpop l", "lrem l", "ltrim m", "rpop m", "del m"]);
}

#[test]
#[ignore = "long: needs redis-server"]
fn replies_and_events_are_those_of_redis() {
    Compared::once(|compared| Beside::new(compared).table(LINES));
}

const LINES: &str = "
    SET string x
    LPUSH l
    LPUSH l a b 1
    RPUSH l 007 1.5 300
    LPUSH string a
    LPUSHX l z
    LPUSHX none z
    LPUSHX string z
    RPUSHX l y x
    RPUSHX none y
    LRANGE l 0 -1
    LRANGE l -3 100
    LRANGE l 5 2
    LRANGE l x 2
    LRANGE l 0 1.5
    LRANGE l -9223372036854775808 9223372036854775807
    LRANGE l 9223372036854775808 0
    LRANGE none 0 -1
    LRANGE none x -1
    LRANGE string 0 -1
    LRANGE string x -1
    LLEN l
    LLEN none
    LLEN string
    LINDEX l 0
    LINDEX l -1
    LINDEX l 100
    LINDEX l -100
    LINDEX l x
    LINDEX none x
    LINDEX none 0
    LINDEX string x
    LSET l 0 first
    LSET l -1 last
    LSET l 100 x
    LSET l -100 x
    LSET l x x
    LSET none x x
    LSET none 0 x
    LSET string 0 x
    LSET string x x
    LINSERT l BEFORE first 0
    LINSERT l after first 7
    LINSERT l BEFORE none x
    LINSERT l BETWEEN first x
    LINSERT none BEFORE a x
    LINSERT none BETWEEN a x
    LINSERT string BEFORE a x
    LINSERT string BETWEEN a x
    LREM l 0 none
    LREM l 1 7
    LREM l x a
    LREM none 1 a
    LREM none x a
    LREM string 1 a
    RPUSH r a b a b a b
    LREM r 2 a
    LREM r -1 b
    LREM r 0 b
    LREM r 0 a
    LLEN r
    RPUSH t 1 2 3 4 5
    LTRIM t 0 -1
    LTRIM t 1 -2
    LTRIM t x 0
    LTRIM t 0 x
    LTRIM none 0 1
    LTRIM none x 1
    LTRIM string 0 1
    LRANGE t 0 -1
    LTRIM t 2 1
    LLEN t
    RPUSH p a b c a b c a
    LPOS p a
    LPOS p a RANK 2
    LPOS p a RANK -1
    LPOS p a RANK -2 COUNT 0
    LPOS p a COUNT 0
    LPOS p a COUNT 2
    LPOS p a COUNT 2 RANK 2
    LPOS p a COUNT 0 MAXLEN 3
    LPOS p a MAXLEN 0
    LPOS p c MAXLEN 2
    LPOS p x
    LPOS p x COUNT 1
    LPOS p x COUNT 0 RANK -1
    LPOS p a RANK 0
    LPOS p a RANK x
    LPOS p a RANK 9223372036854775807
    LPOS p a RANK -9223372036854775807
    LPOS p a COUNT -1
    LPOS p a COUNT x
    LPOS p a MAXLEN -1
    LPOS p a MAXLEN x
    LPOS p a MAXLEN
    LPOS p a RANK
    LPOS p a NONE 1
    LPOS p a rank 1 count 1 maxlen 100 rank -1
    LPOS none a
    LPOS none a COUNT 1
    LPOS none a RANK 0
    LPOS string a
    LPOS string a RANK 0
    LPOP p 0
    LPOP p 2
    RPOP p 2
    LPOP p -1
    LPOP p x
    LPOP p 1.5
    LPOP p 9223372036854775807 x
    RPOP p x x
    LPOP none
    LPOP none 0
    LPOP none 3
    LPOP none x
    LPOP string
    LPOP string 2
    LPOP string 0
    RPOP p 9223372036854775807
    RPOP p
    RPUSH a 1 2 3
    LMOVE a b LEFT RIGHT
    LMOVE a b RIGHT LEFT
    LMOVE a a LEFT RIGHT
    LMOVE a b UP LEFT
    LMOVE a b LEFT DOWN
    LMOVE none b LEFT LEFT
    LMOVE none string LEFT LEFT
    LMOVE a string LEFT LEFT
    LMOVE string a LEFT LEFT
    LMOVE string a LEFT x
    RPOPLPUSH a b
    RPOPLPUSH a b
    RPOPLPUSH b b
    RPOPLPUSH string b
    RPOPLPUSH b string
    LRANGE b 0 -1
    LMPOP 1 b LEFT
    LMPOP 2 none b RIGHT COUNT 10
    LMPOP 2 none b RIGHT COUNT 10
    RPUSH b 1 2 3 4
    LMPOP 1 b LEFT COUNT 2
    LMPOP 1 b LEFT COUNT 0
    LMPOP 1 b LEFT COUNT -1
    LMPOP 1 b LEFT COUNT x
    LMPOP 1 b LEFT COUNT
    LMPOP 1 b LEFT COUNT 1 COUNT 1
    LMPOP 1 b LEFT COUNT 0 COUNT 1
    LMPOP 1 b LEFT x 1
    LMPOP 1 b UP
    LMPOP 0 b LEFT
    LMPOP -1 b LEFT
    LMPOP x b LEFT
    LMPOP 2 b LEFT
    LMPOP 3 b c LEFT
    LMPOP 9223372036854775807 b LEFT
    LMPOP 1 string LEFT
    LMPOP 2 b string LEFT
    LMPOP 2 string b LEFT
    LMPOP 2 none string LEFT
    LMPOP 1 LEFT
    RPUSH c 1 2 3 4 5 6 7 8
    BLPOP none c 0
    BRPOP c none 0
    BLPOP c x
    BLPOP c -1
    BLPOP c 1e-5
    BLPOP none 0
    BLPOP string 0
    BLPOP c string 0
    BLPOP string c 0
    BLPOP none string 0
    BLPOP c
    BRPOP none none 1
    BLMOVE c d LEFT LEFT 0
    BLMOVE c d UP LEFT 0
    BLMOVE c d LEFT UP x
    BLMOVE c d LEFT LEFT x
    BLMOVE c d LEFT LEFT -1
    BLMOVE none d LEFT LEFT 0
    BLMOVE none string LEFT LEFT 0
    BLMOVE string d LEFT LEFT 0
    BLMOVE c string LEFT LEFT 0
    BRPOPLPUSH c d 0
    BRPOPLPUSH c d x
    BRPOPLPUSH none d 0
    BRPOPLPUSH string d x
    BRPOPLPUSH string d 0
    BLMPOP 0 1 c LEFT
    BLMPOP 0 2 none c RIGHT COUNT 2
    BLMPOP 0 1 none LEFT
    BLMPOP x 1 c LEFT
    BLMPOP -1 1 c LEFT
    BLMPOP x 0 c LEFT
    BLMPOP x 1 c UP
    BLMPOP 0 1 c LEFT COUNT 0
    BLMPOP 0 1 c LEFT COUNT 9 x
    BLMPOP 0 9 c LEFT
    BLMPOP 0 1 string LEFT
    LRANGE c 0 -1
    LRANGE d 0 -1
";
