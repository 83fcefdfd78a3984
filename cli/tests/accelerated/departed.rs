// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server whose clients have left long ago: what they shared with it is taken away, and it goes
//! on, also when it forks.

use crate::harness::{Mode, Node, find_or_say, free_port};

/// Waits for all clients in one set, gives back what they send, and forks when one asks for it.
const SERVER: &str = "import os, selectors, socket, sys
listener = socket.create_server(('127.0.0.1', int(sys.argv[1])))
chosen = selectors.EpollSelector()
chosen.register(listener, selectors.EVENT_READ)

def answer(stream):
    asked = stream.recv(64)
    if not asked:
        chosen.unregister(stream)
        stream.close()
        return
    if asked == b'fork':
        child = os.fork()
        if child == 0:
            os._exit(0)
        asked = b'forked %d' % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    stream.sendall(asked)

while True:
    for key, _ in chosen.select():
        if key.fileobj is listener:
            chosen.register(listener.accept()[0], selectors.EVENT_READ)
        else:
            answer(key.fileobj)
";

/// Talks long enough to leave the kernel, with pauses in which the server sleeps; asks at last for
/// what its second argument says, if it has one.
const CLIENT: &str = "import socket, sys, time
stream = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
for question in [b'hello'] * 40 + [word.encode() for word in sys.argv[2:]]:
    time.sleep(0.005)
    stream.sendall(question)
    answer = stream.recv(64)
print(answer.decode())
";

/// What nobody uses is taken away a second later, with the next connection that leaves the kernel.
const UNUSED: std::time::Duration = std::time::Duration::from_millis(1_500);

#[test]
fn a_server_forks_when_its_clients_have_left() {
    let Some(python) = find_or_say("python3") else { return };
    let (node, _monitor) = Node::new();
    let port = free_port();
    let script = |name: &str, text: &str, words: &[&str]| {
        let mut command = node.command(Mode::Accelerated, &python);
        command.arg(node.write(name, text)).arg(port.to_string()).args(words);
        command
    };
    let mut server = node.serve("server", script("server.py", SERVER, &[]), port);
    let visit = |words: &[&str]| node.start("client", script("client.py", CLIENT, words));
    // Several, so that those behind them do not take the places of all.
    let first = [(); 4].map(|()| visit(&[]));
    for client in first {
        assert_eq!(client.finish(), "hello\n");
    }
    // With the next one the server learns that those are gone.
    assert_eq!(visit(&[]).finish(), "hello\n");
    std::thread::sleep(UNUSED);
    assert_eq!(visit(&[]).finish(), "hello\n");
    node.assert_moved(6, 1);
    assert_eq!(visit(&["fork"]).finish(), "forked 0\n");
    assert!(server.ended().is_none(), "{}", server.printed());
}
