// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hello, and the list of functions.

use freeport_kv_protocol::batch::{
    FunctionEntry, FunctionKind, Hello, HelloReply, Operation, read_functions, write_function,
};

#[test]
fn a_hello_is_read_as_it_was_written() {
    for worker in [None, Some(0), Some(7)] {
        for password in [&b""[..], b"secret"] {
            let hello = Hello { user: b"ann", password, database: 258, worker };
            let value = hello.value();
            assert_eq!(value[..2], [2, 1]);
            assert_eq!(value[2..4], worker.unwrap_or(u16::MAX).to_le_bytes());
            assert_eq!(value[4..], *password);
            let operation = Operation::hello(hello.user, &value);
            assert_eq!(Hello::decode(&operation), Some(hello));
            assert!(!format!("{hello:?}").contains("secret"));
            for end in 0..4 {
                assert_eq!(Hello::decode(&Operation::hello(b"", &value[..end])), None);
            }
        }
    }
}

#[test]
fn the_reply_to_a_hello_is_read_as_it_was_written() {
    let reply = HelloReply { worker: 1, workers: 3, payload_limit: 0x0706_0504, token: 1 << 63 };
    let value = reply.value();
    assert_eq!(value, [1, 0, 3, 0, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 128]);
    assert_eq!(HelloReply::decode(&value), Some(reply));
    assert_eq!(HelloReply::decode(&value[1..]), None);
    assert_eq!(HelloReply::decode(&[&value[..], b"x"].concat()), None);
    let nobody = HelloReply { worker: 3, ..reply };
    assert_eq!(HelloReply::decode(&nobody.value()), None, "there is no such worker");
}

#[test]
fn the_list_of_functions_is_read_as_it_was_written() {
    let add = FunctionEntry {
        id: 3,
        kind: FunctionKind::Update,
        elements: 0x03ff,
        name: "add",
        operands: 1,
    };
    let sum = FunctionEntry { id: 32, kind: FunctionKind::Reduce, name: "sum", ..add };
    let within = FunctionEntry { kind: FunctionKind::Filter, name: "", operands: 2, ..add };
    let mut value = Vec::new();
    for entry in [&add, &sum, &within] {
        write_function(&mut value, entry);
    }
    assert_eq!(value[..9], [3, 0, 0xff, 3, 3, b'a', b'd', b'd', 1]);
    assert_eq!(read_functions(&value), Some(vec![add, sum, within]));
    let ends = [0, 9, 18, 24];
    for end in 0..value.len() {
        assert_eq!(read_functions(&value[..end]).is_some(), ends.contains(&end), "{end}");
    }
    value[1] = 3;
    assert_eq!(read_functions(&value), None, "there is no such kind");
    (value[1], value[5]) = (0, 0xff);
    assert_eq!(read_functions(&value), None, "the name is no UTF-8");
}
