// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts words with atomic updates, a thousand in a batch.
//!
//!     freeport kv serve --batch-port 7000
//!     cargo run -p freeport-kv-client --example counters -- tcp://127.0.0.1:7000 README.md

use freeport_kv_client::{Batch, Client, FunctionKind, Options};
use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Write};

/// Words in a batch.
const WORDS: usize = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, path] = &arguments[..] else {
        return Err("usage: counters ADDRESS FILE".into());
    };
    let text = std::fs::read_to_string(path)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut client = Client::connect(address, Options::default())?;
    let add = client.function(FunctionKind::Update, "add")?;

    // A counter is a value of 8 bytes, which has to be there before it is added to.
    let mut batch = Batch::new();
    let distinct: BTreeSet<&str> = words.iter().copied().collect();
    for word in &distinct {
        batch.put(word.as_bytes(), &0_u64.to_le_bytes());
    }
    client.run(&batch)?;

    // Nobody needs the originals, so the replies have one byte each.
    for words in words.chunks(WORDS) {
        batch.clear();
        for word in words {
            batch.update(word.as_bytes(), &add, &[1_u64]).without_return();
        }
        let replies = client.run(&batch)?;
        if let Some((number, error)) = replies.first_error() {
            return Err(format!("`{}`: {error}", words[number]).into());
        }
    }

    batch.clear();
    for word in &distinct {
        batch.get(word.as_bytes());
    }
    let replies = client.run(&batch)?;
    let count = |value: &[u8]| value.try_into().map(u64::from_le_bytes).ok();
    let mut counts = Vec::new();
    for (word, reply) in distinct.iter().zip(replies.iter()) {
        counts.push((reply?.and_then(count).unwrap_or(0), *word));
    }
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let mut output = io::stdout().lock();
    for (count, word) in counts.iter().take(10) {
        writeln!(output, "{count:>6} {word}")?;
    }
    Ok(())
}
