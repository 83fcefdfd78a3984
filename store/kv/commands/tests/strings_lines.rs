// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Odd commands of strings, bits and HyperLogLogs beside redis-server: replies and events are the
//! same.

use freeport_kv_protocol::resp::Version;

use crate::harness::{Compared, Local, but_expiries};

/// Odd commands of strings, in an order in which they find the values that they are about.
const STRINGS: &str = "
SET
SET key
SET key value
SET key value NX
SET key value XX
SET key value nx xx
SET key value GET
SET key value GET NX
SET new value GET NX
SET new2 value XX GET
SET key value EX
SET key value EX 0
SET key value EX -1
SET key value EX x
SET key value EX 1.5
SET key value EX 9223372036854775807
SET key value EX 9223372036854775
SET key value PX 9223372036854775807
SET key value PXAT 9223372036854775807
SET key value EXAT 9223372036854775807
SET key value EXAT 9223372036854775
GET key
SET key value PX 100000 EX 100
SET key value EX 100 EX 200
SET key value EX 100 KEEPTTL
SET key value KEEPTTL EX 100
SET key value KEEPTTL KEEPTTL
SET key value PERSIST
SET key value GETT
SET list value EX 0
SET list value GET
SET list value EX x GET
SET list value GET EX x
SET list value NX
SET list value NX GET
SET key value EXAT 1
GET key
SET key value PXAT 1
STRLEN key
SET key 10
SETNX key 5
SETNX list 5
SETNX key2 5
SETEX key 0 value
SETEX key -5 value
SETEX key x value
SETEX key 9223372036854775807 value
SETEX key 100 value
SETEX list 0 value
PSETEX key 0 value
PSETEX key 9223372036854775807 value
PSETEX key 100000 value
GETSET key other
GETSET none other
GETSET list other
GETDEL key
GETDEL key
GETDEL list
GETEX none EX
GETEX none EX x
GETEX none FOO
GETEX new EX x
GETEX new EX 0
GETEX new PX -1
GETEX new KEEPTTL
GETEX new NX
GETEX new PERSIST PERSIST
GETEX new PERSIST EX 5
GETEX new EX 5 PERSIST
GETEX list EX x
GETEX new EXAT 1
GETEX new
SET new value
GETEX new PXAT 1 EXAT 5
GETEX new PXAT 99999999999999
GETEX new PERSIST
MGET key list new none
MSET a 1 b
MSET a
MSET a 1 b 2 a 3
MSET list2 1
MGET a b list2
MSETNX c 1 a 2
MSETNX c 1 d
MSETNX c 1 c 2
MGET c d
APPEND a xyz
APPEND none3 xyz
APPEND none4 
STRLEN none4
APPEND list xyz
STRLEN list
STRLEN a
GETRANGE a 0 -1
GETRANGE a -3 -1
GETRANGE a 5 1
GETRANGE a -1 -5
GETRANGE a -5 -100
GETRANGE a 0 99999999999
GETRANGE a x 1
GETRANGE a 1 x
GETRANGE list x 1
GETRANGE list 0 1
GETRANGE none 0 1
GETRANGE a 9223372036854775807 -9223372036854775808
SUBSTR a 1 2
SUBSTR a 1
SETRANGE a 1 ZZ
SETRANGE a 10 end
SETRANGE a -1 x
SETRANGE a x x
SETRANGE a 536870912 x
SETRANGE a 9223372036854775807 x
SETRANGE a 9223372036854775807 
SETRANGE none5 3 
SETRANGE none5 3 x
SETRANGE list 0 
SETRANGE list -1 x
SETRANGE list 536870912 x
GET none5
INCR n
INCR n
DECR n
INCRBY n 9223372036854775806
INCR n
INCRBY n 9223372036854775808
INCRBY n x
INCRBY list x
INCRBY list 1
INCR list
DECRBY n -9223372036854775808
DECRBY list -9223372036854775808
DECRBY n 9223372036854775807
DECRBY n 9223372036854775807
DECRBY n 9223372036854775807
INCRBY a 1
INCR none4
SET f  1
INCR f
SET f 3.0e3
INCRBYFLOAT f 2.5
INCRBYFLOAT f 1e400
INCRBYFLOAT f inf
INCRBYFLOAT f -inf
INCRBYFLOAT f nan
INCRBYFLOAT f x
INCRBYFLOAT f  1
INCRBYFLOAT list x
INCRBYFLOAT a 1
INCRBYFLOAT f 1e4931
INCRBYFLOAT f 0x10
INCRBYFLOAT f -3018.5
SET f1 9223372036854775807
INCRBYFLOAT f1 0.1
MSET s1 ohmytext s2 mynewtext
LCS s1 s2
LCS s1 s2 LEN
LCS s1 s2 IDX
LCS s1 s2 IDX MINMATCHLEN 4
LCS s1 s2 IDX MINMATCHLEN 4 WITHMATCHLEN
LCS s1 s2 IDX MINMATCHLEN -4 WITHMATCHLEN
LCS s1 s2 MINMATCHLEN x
LCS s1 s2 MINMATCHLEN
LCS s1 s2 IDX LEN
LCS s1 s2 IDX LEN FOO
LCS s1 s2 WITHMATCHLEN
LCS s1 none
LCS s1 none IDX
LCS none1 none2 LEN
LCS s1 list
LCS list s1 FOO
LCS s1 s1 idx withmatchlen";

/// Odd commands of bits.
const BITS: &str = "
SETBIT b 7 1
SETBIT b 7 1
SETBIT b 0 0
SETBIT b -1 1
SETBIT b x 1
SETBIT b 4294967296 1
SETBIT b 9223372036854775807 1
SETBIT b 1 2
SETBIT b 1 -1
SETBIT b 1 01
SETBIT b x 2
SETBIT list 1 1
SETBIT list x 1
SETBIT list 1 2
GETBIT b 7
GETBIT b 99999
GETBIT b 4294967296
GETBIT b -1
GETBIT list 0
GETBIT list x
GETBIT none 5
SET b foobar
BITCOUNT b
BITCOUNT b 0 0
BITCOUNT b 1 1
BITCOUNT b 5 30 BIT
BITCOUNT b 0 -5 bit
BITCOUNT b 0 -5 byte
BITCOUNT b -1 -5
BITCOUNT b 5 1
BITCOUNT b 0 0 FOO
BITCOUNT b 0
BITCOUNT b x 0
BITCOUNT b 0 x
BITCOUNT b 0 x FOO
BITCOUNT b 0 0 BIT x
BITCOUNT none
BITCOUNT none 0 -1
BITCOUNT list
BITCOUNT list 0 -1
BITCOUNT b -100 100
BITPOS b 1
BITPOS b 0
BITPOS b 2
BITPOS b x
BITPOS b 1 2
BITPOS b 1 2 3
BITPOS b 1 7 15 BIT
BITPOS b 1 7 15 FOO
BITPOS b 1 7 x FOO
BITPOS b 1 x 15 BIT
BITPOS b 1 7 15 BIT x
BITPOS b 1 -1
BITPOS b 0 -1 -2
BITPOS b 1 100
BITPOS none 0
BITPOS none 1
BITPOS none 1 5 2
BITPOS list 1
BITPOS list 2
SETBIT ones 7 1
SETBIT ones 6 1
SETBIT ones 5 1
SETBIT ones 4 1
SETBIT ones 3 1
SETBIT ones 2 1
SETBIT ones 1 1
SETBIT ones 0 1
BITPOS ones 0
BITPOS ones 0 0
BITPOS ones 0 0 -1
BITPOS ones 0 0 -1 BIT
BITPOS ones 0 1
SET ones 
BITPOS ones 0
BITPOS ones 1
BITCOUNT ones
MSET x abc y ab
BITOP AND z x y none
GET z
BITOP OR z x y
BITOP XOR z x y
GET z
BITOP NOT z x
GET z
BITOP NOT z x y
BITOP FOO z x
BITOP FOO z list
BITOP AND z x list
BITOP AND z none none2
GET z
BITOP OR list2 x y
BITOP OR list2 none
BITOP AND ones ones
GET ones
BITFIELD f
BITFIELD f GET u8 0
GET f
BITFIELD f SET u8 0 255 GET u8 0
BITFIELD f INCRBY u8 0 10
BITFIELD f OVERFLOW SAT INCRBY u8 0 1000
BITFIELD f OVERFLOW FAIL INCRBY u8 0 1000 SET i4 #3 -9 SET i4 #3 -8
BITFIELD f OVERFLOW WRAP SET i4 #2 100 OVERFLOW sat SET i4 #2 100
BITFIELD f OVERFLOW FOO SET i4 #2 100
BITFIELD f OVERFLOW
BITFIELD f GET u64 0
BITFIELD f GET i64 0 GET u63 1
BITFIELD f GET i65 0
BITFIELD f GET u0 0
BITFIELD f GET x8 0
BITFIELD f GET u8 -1
BITFIELD f GET u8 #-1
BITFIELD f GET u8 x
BITFIELD f GET u8 #
BITFIELD f GET u8
BITFIELD f SET u8 0
BITFIELD f SET u8 0 x
BITFIELD f SET u8 4294967296 1
BITFIELD f SET u8 #536870912 1
BITFIELD f FOO u8 0
BITFIELD list GET u8 0
BITFIELD list SET u8 0 1
BITFIELD list SET u8 0 x
BITFIELD_RO f GET u8 0 GET u8 8
BITFIELD_RO f SET u8 0 1
BITFIELD_RO list SET u8 0 1
BITFIELD_RO f OVERFLOW SAT GET u8 0
BITFIELD_RO list GET u8 0
BITFIELD_RO none GET u8 0
BITFIELD none GET u8 0 OVERFLOW FAIL
GET f";

/// Odd commands of HyperLogLogs.
const HYPERLOGLOGS: &str = "
PFADD h
GET h
PFADD h
PFADD h a b c
PFADD h a
PFCOUNT h
GET h
PFCOUNT h none
PFCOUNT none
PFCOUNT none none2
PFCOUNT h list
PFCOUNT list
PFADD list x
PFADD list
SET s foo
PFADD s x
PFADD s
PFCOUNT s
PFCOUNT h s
PFMERGE s h
PFMERGE h s
PFMERGE m
GET m
PFCOUNT m
PFMERGE m h none
GET m
PFMERGE m list
PFMERGE list m
PFDEBUG ENCODING h
PFDEBUG encoding none
PFDEBUG encoding list
PFDEBUG encoding s
PFDEBUG foo h
PFDEBUG foo none
PFDEBUG decode h
PFDEBUG getreg h
PFDEBUG decode h
PFDEBUG ENCODING h
PFDEBUG todense h
PFDEBUG todense m
GET m
PFADD m more
PFCOUNT m h
PFMERGE h2 m
PFDEBUG encoding h2
GET h2
PFCOUNT s list
PFCOUNT list s
PFMERGE s list
PFMERGE h s list
PFSELFTEST
PFSELFTEST x";

/// Replies to lines, in both versions of the protocol.
fn check_lines(lines: &str) {
    Compared::for_seeds(1, |compared, _| {
        for version in [Version::Two, Version::Three] {
            compared.use_version(version);
            compared.ours = Local::with_shards(3);
            compared.ours.session.version = version;
            compared.redis.call(&[b"FLUSHALL"]);
            let mut listener = compared.listener();
            for key in ["list", "list2"] {
                compared.same(&format!("RPUSH {key} element"));
            }
            listener.events();
            compared.ours.events();
            for line in lines.lines().filter(|line| !line.is_empty()) {
                compared.same(line);
                let ours = but_expiries(compared.ours.events());
                assert_eq!(ours, but_expiries(listener.events()), "{line}");
            }
        }
    });
}

#[test]
#[ignore = "long: needs redis-server"]
fn odd_commands_of_strings() {
    check_lines(STRINGS);
}

#[test]
#[ignore = "long: needs redis-server"]
fn odd_commands_of_bits() {
    check_lines(BITS);
}

#[test]
#[ignore = "long: needs redis-server"]
fn odd_commands_of_hyperloglogs() {
    check_lines(HYPERLOGLOGS);
}
