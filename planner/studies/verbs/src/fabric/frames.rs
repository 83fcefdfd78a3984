// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages as frames of a ring: a message that is longer than one entry follows in pieces.
//!
//! | bytes | field |
//! |---|---|
//! | 0-7 | number of the call |
//! | 8-11 | length of the whole message in bytes |
//! | 12 | kind: 1 call, 2 answer, 3 no answer, 4 the answer is too long, 5 too many answers |
//! | 13-15 | zero |
//! | 16- | a piece of the message, at most [`PIECE_BYTES`] |
//!
//! All pieces of a message have the same first 16 bytes, and nothing comes between them.

use super::refusal::Refusal;

/// Length of the first part of a frame, in bytes.
const HEAD_BYTES: usize = 16;
/// Longest piece in bytes.
pub const PIECE_BYTES: usize = 32 << 10;
/// Longest frame in bytes.
pub const FRAME_BYTES: usize = HEAD_BYTES + PIECE_BYTES;
/// Longest message in bytes.
pub const MESSAGE_BYTES: usize = 64 << 20;

/// Kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A message that waits for its answer.
    Call = 1,
    /// The answer.
    Answer = 2,
    /// The call was dropped without an answer.
    NoAnswer = 3,
    /// The answer is longer than a message can be.
    TooLong = 4,
    /// The answer was dropped, since too many bytes of others have not left yet.
    TooMany = 5,
}

/// A message with the number of its call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Kind of the message.
    pub kind: Kind,
    /// Number of the call.
    pub number: u64,
    /// The contents.
    pub contents: Vec<u8>,
}

/// A message that is being sent.
#[derive(Debug)]
pub struct Sending {
    head: [u8; HEAD_BYTES],
    contents: Vec<u8>,
    sent: usize,
}

impl Sending {
    /// Prepares a message of at most [`MESSAGE_BYTES`].
    pub fn new(message: Message) -> Self {
        let Message { kind, number, contents } = message;
        assert!(contents.len() <= MESSAGE_BYTES, "the caller has checked the length");
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&number.to_le_bytes());
        head[8..12].copy_from_slice(&(contents.len() as u32).to_le_bytes());
        head[12] = kind as u8;
        Self { head, contents, sent: 0 }
    }

    /// Returns the next frame in two parts.
    pub fn frame(&self) -> [&[u8]; 2] {
        let left = &self.contents[self.sent..];
        [&self.head, &left[..left.len().min(PIECE_BYTES)]]
    }

    /// Returns the length of the whole message in bytes.
    pub fn bytes(&self) -> usize {
        self.contents.len()
    }

    /// Continues after that frame. Returns whether it was the last one.
    pub fn advance(&mut self) -> bool {
        self.sent += self.frame()[1].len();
        self.sent == self.contents.len()
    }
}

/// The message that is being received. Memory is taken for pieces that have arrived only.
#[derive(Default, Debug)]
pub struct Assembly {
    begun: Option<([u8; HEAD_BYTES], Vec<u8>)>,
}

impl Assembly {
    /// Adds a frame, which is not trusted. Returns the message if it is complete.
    ///
    /// # Errors
    /// The frame is invalid, or is no continuation of the frame before.
    pub fn add(&mut self, frame: &[u8]) -> Result<Option<Message>, Refusal> {
        let Some((head, piece)) = frame.split_first_chunk::<HEAD_BYTES>() else {
            return Err(Refusal::Message("a frame is shorter than its first part"));
        };
        let (kind, number, total) = parse(head)?;
        let mut contents = match self.begun.take() {
            None => vec![],
            Some((first, contents)) if first == *head => contents,
            Some(_) => return Err(Refusal::Message("a message ends before all its pieces")),
        };
        let left = total - contents.len();
        if piece.len() != left.min(PIECE_BYTES) {
            return Err(Refusal::Message("a piece has a wrong length"));
        }
        contents.extend_from_slice(piece);
        if contents.len() == total {
            return Ok(Some(Message { kind, number, contents }));
        }
        self.begun = Some((*head, contents));
        Ok(None)
    }
}

/// Returns kind, number and length.
fn parse(head: &[u8; HEAD_BYTES]) -> Result<(Kind, u64, usize), Refusal> {
    let [n0, n1, n2, n3, n4, n5, n6, n7, l0, l1, l2, l3, kind, rest @ ..] = *head;
    let number = u64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
    let total = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    let kind = match kind {
        1 => Kind::Call,
        2 => Kind::Answer,
        3 => Kind::NoAnswer,
        4 => Kind::TooLong,
        5 => Kind::TooMany,
        _ => return Err(Refusal::Message("a message has an unknown kind")),
    };
    if rest != [0; 3] {
        return Err(Refusal::Message("bytes that have to be zero are not"));
    }
    if total > MESSAGE_BYTES {
        return Err(Refusal::Message("a message is longer than the maximum of 64 MiB"));
    }
    Ok((kind, number, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(message: &Message) -> Vec<Vec<u8>> {
        let mut sending = Sending::new(message.clone());
        let mut frames = vec![];
        loop {
            frames.push(sending.frame().concat());
            if sending.advance() {
                return frames;
            }
        }
    }

    #[test]
    fn messages_of_all_lengths_are_read_as_they_were_sent() {
        let mut assembly = Assembly::default();
        for length in [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES] {
            let contents = (0..length).map(|at| at as u8).collect();
            let message = Message { kind: Kind::Answer, number: length as u64, contents };
            let frames = frames(&message);
            assert_eq!(frames.len(), length.div_ceil(PIECE_BYTES).max(1));
            let last = frames.len() - 1;
            for (number, frame) in frames.iter().enumerate() {
                let added = assembly.add(frame).expect("it is valid");
                assert_eq!(added, (number == last).then(|| message.clone()));
            }
        }
    }

    #[test]
    fn invalid_frames_are_refused() {
        let long = Message { kind: Kind::Call, number: 1, contents: vec![0; PIECE_BYTES + 1] };
        let frames = frames(&long);
        let refused = |frame: &[u8]| Assembly::default().add(frame).expect_err("it is invalid");
        let changed = |at: usize, byte| {
            let mut frame = frames[0].clone();
            frame[at] = byte;
            refused(&frame).to_string()
        };
        assert!(changed(12, 9).contains("unknown kind"));
        assert!(changed(13, 1).contains("zero"));
        assert!(changed(11, 0xff).contains("64 MiB"));
        assert_eq!(refused(&[1; 15]).to_string(), "a frame is shorter than its first part");
        assert_eq!(refused(&frames[1]).to_string(), "a piece has a wrong length");
        let mut assembly = Assembly::default();
        assembly.add(&frames[0]).expect("it is valid");
        let other = Message { kind: Kind::Call, number: 2, contents: vec![] };
        let refused = assembly.add(&Sending::new(other).frame().concat());
        assert_eq!(refused, Err(Refusal::Message("a message ends before all its pieces")));
    }
}
