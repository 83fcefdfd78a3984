// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The transports that run the conformance suite.

use crate::conformance::{Case, Letters, Party, case, instantiate};
use crate::support::Player;
use freeport_fabric::shm::{Options, ShmEndpoint};
use freeport_fabric::socket;
use freeport_fabric::{Endpoint, Key};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread;

/// Exchange of keys over a socket.
struct Post(UnixStream);

impl Letters for Post {
    fn send(&self, key: Key) {
        key.send(&self.0).expect("the other party is here");
    }

    fn receive(&self) -> Key {
        Key::receive(&self.0).expect("the other party is here")
    }
}

fn options(membarrier: bool) -> Options {
    Options { membarrier, ..Options::default() }
}

fn party(endpoint: ShmEndpoint, letters: UnixStream, vanish: fn()) -> Party<ShmEndpoint> {
    Party { endpoint, letters: Box::new(Post(letters)), vanish }
}

fn between_threads(name: &str, membarrier: bool) {
    let Case { first, second, .. } = case::<ShmEndpoint>(name);
    let (here, there) = UnixStream::pair().expect("a pair");
    let (letters_here, letters_there) = UnixStream::pair().expect("a pair");
    let other = thread::spawn(move || {
        let endpoint = ShmEndpoint::accept(there, &options(membarrier)).expect("an offer");
        second(party(endpoint, letters_there, || ()));
    });
    let endpoint = ShmEndpoint::connect(here, &options(true)).expect("an answer");
    first(party(endpoint, letters_here, || ()));
    other.join().expect("the other party is content");
}

mod shm_between_threads {
    fn hold(name: &str) {
        super::between_threads(name, true);
    }
    super::instantiate!(hold);
}

mod shm_with_fences {
    fn hold(name: &str) {
        super::between_threads(name, false);
    }
    super::instantiate!(hold);
}

mod shm_between_processes {
    use super::{AsRawFd, Endpoint, options, party, socket};
    use super::{Case, Player, ShmEndpoint, UnixStream, case};

    fn hold(name: &str) {
        let Case { first, .. } = case::<ShmEndpoint>(name);
        let (player, stream) = Player::start(&format!("conformance {name}"));
        let (letters, theirs) = UnixStream::pair().expect("a pair");
        socket::send(&stream, b"l", &[theirs.as_raw_fd()]).expect("it is sent");
        drop(theirs);
        let endpoint = ShmEndpoint::connect(stream, &options(true)).expect("an answer");
        assert!(endpoint.peer_is_alive().expect("a look"));
        first(party(endpoint, letters, || ()));
        player.ends(name == "sudden_end");
    }

    super::instantiate!(hold);
}

/// Seeds for a case over the model: each is a different history.
const SEEDS: std::ops::Range<u64> = 0..2;

mod ordered_model {
    fn hold(name: &str) {
        crate::model::hold::<crate::model::Ordered>(name, super::SEEDS);
    }
    super::instantiate!(hold);
}

mod unordered_model {
    fn hold(name: &str) {
        crate::model::hold::<crate::model::Unordered>(name, super::SEEDS);
    }
    super::instantiate!(hold);
}

mod window_model {
    fn hold(name: &str) {
        crate::model::hold::<crate::model::Posted>(name, super::SEEDS);
    }
    super::instantiate!(hold);
}

/// The part of the second process.
pub fn play(name: &str, stream: UnixStream) {
    let message = socket::receive(&stream, &mut [0]).expect("the letters");
    let [letters] = <[_; 1]>::try_from(message.descriptors).expect("one socket");
    let endpoint = ShmEndpoint::accept(stream, &options(true)).expect("an offer");
    let kill = || {
        // SAFETY: no memory is passed; the signal goes to this process only.
        unsafe { libc::kill(std::process::id() as i32, libc::SIGKILL) };
    };
    (case::<ShmEndpoint>(name).second)(party(endpoint, UnixStream::from(letters), kill));
}
