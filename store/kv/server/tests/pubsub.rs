// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Publish and subscribe, between clients of several workers.

use crate::client::{Client, server};

#[test]
fn messages_reach_all_listeners_in_their_order() {
    let server = server(3);
    let mut listeners: Vec<Client> = (0..6).map(|_| Client::new(&server)).collect();
    for (number, listener) in listeners.iter_mut().enumerate() {
        if number % 2 == 0 {
            assert_eq!(
                listener.call("SUBSCRIBE news"),
                "1) \"subscribe\" 2) \"news\" 3) (integer) 1"
            );
        } else {
            listener.call("PSUBSCRIBE n?ws");
        }
    }
    let mut publisher = Client::new(&server);
    assert_eq!(
        publisher.call("PUBSUB NUMSUB news none"),
        "1) \"news\" 2) (integer) 3 3) \"none\" 4) (integer) 0"
    );
    for number in 0..100 {
        assert_eq!(publisher.call(&format!("PUBLISH news {number}")), "(integer) 6");
    }
    assert_eq!(publisher.call("PUBLISH other x"), "(integer) 0");
    for (at, listener) in listeners.iter_mut().enumerate() {
        for number in 0..100 {
            let expected = match at % 2 {
                0 => format!("1) \"message\" 2) \"news\" 3) \"{number}\""),
                _ => format!("1) \"pmessage\" 2) \"n?ws\" 3) \"news\" 4) \"{number}\""),
            };
            assert_eq!(listener.text(), expected);
        }
    }
    listeners.truncate(1);
    assert_eq!(
        listeners[0].call("GET key"),
        "(error) ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
         RESET are allowed in this context"
    );
    assert_eq!(listeners[0].call("PING x"), "1) \"pong\" 2) \"x\"");
    assert_eq!(listeners[0].call("UNSUBSCRIBE"), "1) \"unsubscribe\" 2) \"news\" 3) (integer) 0");
    assert_eq!(listeners[0].call("GET key"), "(nil)");
}
