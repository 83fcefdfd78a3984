// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random commands of several clients, and restarts with other numbers of workers.

use freeport_kv_server::Policy;

use super::{folder, options, restart};
use crate::client::{Client, server_with};

/// A random command on few keys, which may be a transaction or a script.
fn command(random: &mut fastrand::Rng) -> Vec<String> {
    let key = |random: &mut fastrand::Rng, kind: &str| format!("{kind}{}", random.u8(..6));
    let number = random.u16(..300);
    let text = |line: String| line.split(' ').map(str::to_owned).collect();
    match random.u8(..30) {
        0 => text(format!("SET {} {number}", key(random, "s"))),
        1 => text(format!("INCRBY {} {number}", key(random, "s"))),
        2 => text(format!("APPEND {} x{number}", key(random, "t"))),
        3 => text(format!("SETRANGE {} {number} y", key(random, "t"))),
        4 => text(format!("SET {} v PX {}", key(random, "e"), 1 + number % 20)),
        5 => text(format!("PEXPIRE {} {}", key(random, "h"), 5 + number)),
        6 => text(format!("LPUSH {} {number} x", key(random, "l"))),
        7 => text(format!("RPOP {}", key(random, "l"))),
        8 => text(format!("BLPOP {} 0.001", key(random, "l"))),
        9 => text(format!("LMOVE {} {} LEFT RIGHT", key(random, "l"), key(random, "l"))),
        10 => text(format!("SADD {} {number} m{number}", key(random, "m"))),
        11 => text(format!("SPOP {}", key(random, "m"))),
        12 => text(format!("SUNIONSTORE {} {} {}", key(random, "m"), key(random, "m"), "m0")),
        13 => text(format!("HSET {} f{number} {number}", key(random, "h"))),
        14 => text(format!("HINCRBYFLOAT {} f{} 1.5", key(random, "h"), number % 10)),
        15 => text(format!("HDEL {} f{number}", key(random, "h"))),
        16 => text(format!("ZADD {} {number} n{}", key(random, "z"), number % 50)),
        17 => text(format!("ZPOPMIN {}", key(random, "z"))),
        18 => text(format!("XADD {} MAXLEN ~ 50 * f {number}", key(random, "x"))),
        19 => text(format!("XGROUP CREATE {} g $ MKSTREAM", key(random, "x"))),
        20 => text(format!("XREADGROUP GROUP g c COUNT 2 STREAMS {} >", key(random, "x"))),
        21 => text(format!("DEL {} {}", key(random, "s"), key(random, "l"))),
        22 => text(format!("RENAME {} {}", key(random, "t"), key(random, "t"))),
        23 => text(format!("COPY {} {} REPLACE", key(random, "z"), key(random, "z"))),
        24 => text(format!("MSET {} {number} {} {number}", key(random, "s"), key(random, "t"))),
        25 => text(format!("MOVE {} {}", key(random, "s"), number % 3)),
        26 => text(format!("PFADD {} {number}", key(random, "p"))),
        27 => text(format!("SWAPDB {} {}", number % 3, random.u8(..3))),
        28 => text(format!("SELECT {}", number % 3)),
        _ => {
            let script = "redis.call('INCR', KEYS[1]) \
                          redis.call('RPUSH', KEYS[2], ARGV[1], ARGV[1]) \
                          if ARGV[1] == '7' then return redis.call('NOSUCH') end \
                          return redis.call('SPOP', KEYS[3])";
            let keys = [key(random, "s"), key(random, "l"), key(random, "m")];
            let mut words = vec!["EVAL".to_owned(), script.to_owned(), "3".to_owned()];
            words.extend(keys);
            words.push((number % 20).to_string());
            words
        }
    }
}

/// Sends random commands, some of them in transactions.
pub fn run(client: &mut Client, random: &mut fastrand::Rng, commands: usize) {
    for _ in 0..commands {
        let is_transaction = random.u8(..5) == 0;
        let count = if is_transaction { 1 + random.usize(..4) } else { 1 };
        let mut replies = count;
        if is_transaction {
            client.send("MULTI");
            replies += 2;
        }
        for _ in 0..count {
            let words = command(random);
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            client.send_arguments(&words);
        }
        if is_transaction {
            client.send("EXEC");
        }
        (0..replies).for_each(|_| drop(client.reply()));
    }
}

/// No key expires between a look at them and the restart.
pub fn keep_keys(client: &mut Client) {
    for database in 0..3 {
        client.call(&format!("SELECT {database}"));
        for number in 0..6 {
            ["e", "h"]
                .iter()
                .for_each(|kind| drop(client.call(&format!("PERSIST {kind}{number}"))));
        }
    }
}

#[test]
fn random_commands_are_replayed() {
    let first = freeport_testbed::seed();
    for seed in first..first + 4 {
        let mut random = fastrand::Rng::with_seed(seed);
        let folder = folder();
        let policy = [Policy::Always, Policy::EverySecond][seed as usize % 2];
        let mut server = server_with(options(folder.path(), 1 + seed as usize % 3, policy));
        for turn in 0..3 {
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    let mut random = random.fork();
                    let mut client = Client::new(&server);
                    scope.spawn(move || run(&mut client, &mut random, 300));
                }
                if turn > 0 {
                    let mut client = Client::new(&server);
                    let mut random = random.fork();
                    run(&mut client, &mut random, 50);
                    let reply = client.call("BGREWRITEAOF");
                    assert_eq!(reply, "Background append only file rewriting started");
                    run(&mut client, &mut random, 100);
                }
            });
            keep_keys(&mut Client::new(&server));
            server = restart(server, folder.path(), 1 + random.usize(..3));
        }
    }
}
