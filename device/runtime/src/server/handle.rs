// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The queue of requests to the worker, and of answers back. It is bounded: a thread that sends
//! requests faster than the worker answers blocks.

use super::wake::Wake;
use super::work::Work;
use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Maximum number of batches of requests that wait for the worker.
const MOST_JOBS: usize = 64;

/// Result of a request, or the reason why it failed.
pub type Answer = Result<Value, String>;

/// Progress of the worker with a request.
pub enum Progress<W = Work> {
    /// The request is completed, or has failed.
    Done(Answer),
    /// This part is left for later.
    Unfinished(W),
}

/// Requests of one client, in order, and the channel for their answers.
struct Job<W> {
    requests: VecDeque<W>,
    answers: Vec<Answer>,
    to: SyncSender<Vec<Answer>>,
}

/// The requesting side of the queue, usable from any thread.
pub struct Handle<W = Work> {
    jobs: SyncSender<Job<W>>,
    wake: Arc<Wake>,
}

/// The worker's side of the queue.
pub struct Jobs<W = Work> {
    waiting: Receiver<Job<W>>,
    current: Option<Job<W>>,
    wake: Arc<Wake>,
}

/// Creates both sides of a queue of requests.
///
/// # Errors
/// The kernel provides no event descriptor.
pub fn jobs<W>() -> io::Result<(Handle<W>, Jobs<W>)> {
    let wake = Arc::new(Wake::new()?);
    let (jobs, waiting) = sync_channel(MOST_JOBS);
    Ok((Handle { jobs, wake: wake.clone() }, Jobs { waiting, current: None, wake }))
}

impl<W> Clone for Handle<W> {
    fn clone(&self) -> Self {
        Self { jobs: self.jobs.clone(), wake: self.wake.clone() }
    }
}

impl<W> Handle<W> {
    /// Has requests executed, in order, and returns their answers; none if the worker has ended.
    pub fn ask_all(&self, requests: Vec<W>) -> Option<Vec<Answer>> {
        let (to, answers) = sync_channel(1);
        let job =
            Job { answers: Vec::with_capacity(requests.len()), requests: requests.into(), to };
        self.jobs.send(job).ok()?;
        self.wake.raise();
        answers.recv().ok()
    }

    /// Has one request executed.
    ///
    /// # Errors
    /// The request failed, or the worker has ended.
    pub fn ask(&self, request: impl Into<W>) -> Answer {
        let answers = self.ask_all(vec![request.into()]);
        let answer = answers.and_then(|mut answers| answers.pop());
        answer.unwrap_or_else(|| Err("the program has ended".to_owned()))
    }
}

impl<W> Jobs<W> {
    /// Returns the flag that wakes the worker.
    pub fn wake(&self) -> &Arc<Wake> {
        &self.wake
    }

    /// Executes requests for about the time `share`; requests left over keep the worker awake.
    /// `execute` gets the time at which it has to stop.
    pub fn serve(&mut self, share: Duration, mut execute: impl FnMut(W, Instant) -> Progress<W>) {
        self.wake.lower();
        let until = Instant::now() + share;
        loop {
            let job = match self.current.take() {
                Some(job) => Some(job),
                None => self.waiting.try_recv().ok(),
            };
            let Some(mut job) = job else { return };
            while let Some(request) = job.requests.pop_front() {
                match execute(request, until) {
                    Progress::Done(answer) => job.answers.push(answer),
                    Progress::Unfinished(work) => job.requests.push_front(work),
                }
                if Instant::now() > until {
                    break;
                }
            }
            match job.requests.is_empty() {
                // A client that has disconnected needs no answer.
                true => drop(job.to.send(job.answers)),
                false => self.current = Some(job),
            }
            if Instant::now() > until {
                self.wake.raise();
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Request;
    use serde_json::json;

    #[test]
    fn what_exceeds_a_share_waits_for_the_next_and_keeps_its_order() {
        let (handle, mut jobs) = jobs().unwrap();
        let asks = std::thread::spawn(move || {
            handle.ask_all((0..3).map(|_| Work::Request(Request::Status)).collect())
        });
        let mut executed = 0;
        let mut shares = 0;
        while executed < 3 {
            jobs.serve(Duration::ZERO, |_, _| {
                executed += 1;
                std::thread::sleep(Duration::from_millis(1));
                Progress::Done(Ok(json!(executed)))
            });
            shares += 1;
        }
        assert!(shares >= 3, "{shares}");
        let answers = asks.join().unwrap().unwrap();
        assert_eq!(answers, [Ok(json!(1)), Ok(json!(2)), Ok(json!(3))]);
    }

    #[test]
    fn what_is_done_in_pieces_keeps_its_place() {
        let (handle, mut jobs) = jobs().unwrap();
        let asks = std::thread::spawn(move || {
            handle.ask_all((0..3).map(|_| Work::Request(Request::Status)).collect())
        });
        // The second request takes three pieces.
        let mut pieces = 0;
        while pieces < 5 {
            jobs.serve(Duration::ZERO, |work, _| {
                pieces += 1;
                match pieces {
                    2 | 3 => Progress::Unfinished(work),
                    _ => Progress::Done(Ok(json!(pieces))),
                }
            });
        }
        let answers = asks.join().unwrap().unwrap();
        assert_eq!(answers, [Ok(json!(1)), Ok(json!(4)), Ok(json!(5))]);
    }

    #[test]
    fn nobody_waits_for_a_worker_that_has_ended() {
        let (handle, jobs) = jobs::<Work>().unwrap();
        drop(jobs);
        assert_eq!(handle.ask(Request::Status), Err("the program has ended".to_owned()));
    }
}
