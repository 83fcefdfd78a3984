// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Collects frames from a stream.

use super::decode::{Header, Malformed};
use super::frame::{Frame, HEADER_BYTES};
use std::io::{self, Read};
use thiserror::Error;

/// The usual size of the buffer, in bytes.
const BUFFER_BYTES: usize = 256 << 10;

/// Collects the bytes of frames. Its memory is at most twice what the other side has sent, whatever
/// length a frame announces.
pub struct FrameReader {
    /// Bytes of the longest frame that is taken.
    limit: usize,
    /// Bytes `start..end` were received.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the frame that was returned last.
    returned: usize,
}

/// No frame could be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The stream has ended.
    #[error("the other server has closed the link")]
    Closed,
    /// The system reported an error. After a time-out (`WouldBlock`, `TimedOut`), another call
    /// continues where this one has ended.
    #[error("reading from the link: {0}")]
    System(#[from] io::Error),
    /// The bytes are no frame.
    #[error("{0}")]
    Malformed(#[from] Malformed),
}

impl ReadError {
    /// It was only a time-out, so that the link still can be used.
    pub fn is_timeout(&self) -> bool {
        use io::ErrorKind::{TimedOut, WouldBlock};
        matches!(self, Self::System(error) if matches!(error.kind(), TimedOut | WouldBlock))
    }
}

impl Default for FrameReader {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl FrameReader {
    /// A reader that has these bytes already.
    pub fn new(received: &[u8]) -> Self {
        let (buffer, end) = (received.to_vec(), received.len());
        Self { limit: usize::MAX, buffer, start: 0, end, returned: 0 }
    }

    /// A reader that takes only frames whose bodies have at most that many bytes. Others are
    /// [`Malformed::Length`], as soon as they are announced.
    pub fn with_limit(body_bytes: usize) -> Self {
        Self { limit: HEADER_BYTES + body_bytes, ..Self::default() }
    }

    /// The next frame. Waits for its bytes as the stream does. It is valid until the next call.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(&mut self, from: &mut impl Read) -> Result<Frame<'_>, ReadError> {
        self.wait(from)?;
        let (frame, length) = Frame::decode(&self.buffer[self.start..self.end])?
            .expect("all bytes of the frame were received");
        self.returned = length;
        Ok(frame)
    }

    /// Waits for the bytes of the next frame, which [`FrameReader::read`] then returns at once. For
    /// callers that do something after a time-out.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn wait(&mut self, from: &mut impl Read) -> Result<(), ReadError> {
        self.release();
        while let Some(needed) = self.missing()? {
            self.fill(from, needed)?;
        }
        Ok(())
    }

    /// Gives up the frame that was returned, and the memory of a large one.
    fn release(&mut self) {
        self.start += std::mem::take(&mut self.returned);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > 16 * BUFFER_BYTES {
                self.buffer = vec![];
            }
        }
    }

    /// Bytes of the frame, if some of them are missing.
    fn missing(&self) -> Result<Option<usize>, Malformed> {
        let received = &self.buffer[self.start..self.end];
        let needed = match received.first_chunk() {
            Some(header) => {
                let header = Header::decode(header)?;
                if header.frame_bytes() > self.limit {
                    let Header { kind, body_bytes: bytes, .. } = header;
                    return Err(Malformed::Length { kind, bytes });
                }
                header.frame_bytes()
            }
            None => HEADER_BYTES,
        };
        Ok((received.len() < needed).then_some(needed))
    }

    fn fill(&mut self, from: &mut impl Read, needed: usize) -> Result<(), ReadError> {
        if self.end == self.buffer.len() {
            self.make_room(needed);
        }
        loop {
            match from.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(ReadError::Closed),
                Ok(bytes) => {
                    self.end += bytes;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Moves what was received to the front, and makes the buffer larger if that is not enough.
    fn make_room(&mut self, needed: usize) {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let room = needed.min(2 * self.end).max(BUFFER_BYTES);
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
    }
}
