// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A place of the store as a process.
//!
//!     freeport-study-kv-node FOLDER PLACE [OPTION=NUMBER]...
//!
//! All places of a store have the same folder and options. The place writes `ready` and runs until
//! its input ends. A client reads lines from it, `get A1 KEY`, `put KEY VALUE` or `delete KEY`. It
//! answers each with a line of the times of begin and end in nanoseconds, the number of retries so
//! far, and `value VALUE`, `none`, `done` or `error TEXT`.

use freeport_study_kv::{Alternative, Client, Options, Server};
use freeport_study_verbs::fabric::{self, FabricVerbs, Node};
use freeport_study_verbs::{Place, Verbs};
use std::cell::RefCell;
use std::error::Error;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without an error output, the exit code is left.
            let _ = writeln!(io::stderr(), "freeport-study-kv-node: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(place)) = (arguments.next(), arguments.next()) else {
        return Err("use: freeport-study-kv-node FOLDER PLACE [OPTION=NUMBER]...".into());
    };
    let place: Place = place.parse()?;
    let mut options = Options::default();
    for argument in arguments {
        let (name, value) = argument.split_once('=').ok_or("options have the form NAME=NUMBER")?;
        options.set(name, value.parse()?)?;
    }
    let layout = options.layout()?;
    let memory_bytes = match place {
        Place::Host => layout.host_bytes,
        Place::Soc => layout.soc_bytes,
        Place::Client(_) | Place::Peer(_) => 0,
    };
    let fabric = fabric::Options { patience: options.patience, ..fabric::Options::default() };
    let mut node = Node::begin_with(Path::new(&folder), place, memory_bytes as usize, fabric)?;
    writeln!(io::stdout(), "ready")?;
    match place {
        Place::Client(number) => {
            let client = Client::new(node.verbs(), options, number.into())?;
            return serve_lines(&mut node, &Rc::new(client));
        }
        Place::Soc => node.verbs().spawn(Server::new(node.verbs(), options)?.serve()),
        // Its memory is all that others need.
        Place::Host | Place::Peer(_) => {}
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let ending = Arc::clone(&is_over);
    thread::spawn(move || {
        // An error ends it as well.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        ending.store(true, Ordering::Relaxed);
    });
    Ok(node.run_until(|| is_over.load(Ordering::Relaxed))?)
}

/// Carries out the lines of the input, one after the other.
fn serve_lines(node: &mut Node, client: &Rc<Client<FabricVerbs>>) -> Result<(), Box<dyn Error>> {
    for line in io::stdin().lock().lines() {
        let (line, verbs) = (line?, node.verbs());
        let reply: Rc<RefCell<Option<String>>> = Rc::default();
        let (into, client) = (Rc::clone(&reply), Rc::clone(client));
        node.verbs().spawn(async move {
            let begin = verbs.now().as_nanos();
            let result = carry_out(&client, &line).await;
            let end = verbs.now().as_nanos();
            *into.borrow_mut() = Some(format!("{begin} {end} {} {result}", client.retries()));
        });
        node.run_until(|| reply.borrow().is_some())?;
        writeln!(io::stdout(), "{}", reply.take().unwrap_or_default())?;
    }
    Ok(())
}

async fn carry_out(client: &Client<FabricVerbs>, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let result = match words[..] {
        ["get", alternative, key] => match alternative.parse::<Alternative>() {
            Ok(alternative) => client.get(alternative, key.as_bytes()).await.map(|value| {
                let text = |value: Vec<u8>| format!("value {}", String::from_utf8_lossy(&value));
                value.map_or("none".into(), text)
            }),
            Err(error) => return format!("error {error}"),
        },
        ["put", key, value] => {
            client.put(key.as_bytes(), value.as_bytes()).await.map(|()| "done".into())
        }
        ["delete", key] => {
            let there = client.delete(key.as_bytes()).await;
            there.map(|there| if there { "done".into() } else { "none".into() })
        }
        _ => return "error use get ALTERNATIVE KEY, put KEY VALUE or delete KEY".into(),
    };
    result.unwrap_or_else(|error| format!("error {error}"))
}
