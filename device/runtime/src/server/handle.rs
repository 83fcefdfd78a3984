// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The way of requests to the worker and of answers back. The queue is bounded: whoever asks faster
//! than the worker answers waits.

use super::wake::Wake;
use super::work::Work;
use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Batches of requests that wait for the worker.
const MOST_JOBS: usize = 64;

/// What a request came to: its result, or what is wrong with it.
pub type Answer = Result<Value, String>;

/// How far the worker has come with what it is to do.
pub enum Progress<W = Work> {
    /// It is done, or cannot be.
    Done(Answer),
    /// This is left for the next time.
    Unfinished(W),
}

/// Requests of one client, in order, and where their answers go.
struct Job<W> {
    requests: VecDeque<W>,
    answers: Vec<Answer>,
    to: SyncSender<Vec<Answer>>,
}

/// Asks the worker, from any thread.
pub struct Handle<W = Work> {
    jobs: SyncSender<Job<W>>,
    wake: Arc<Wake>,
}

/// The worker's side.
pub struct Jobs<W = Work> {
    waiting: Receiver<Job<W>>,
    current: Option<Job<W>>,
    wake: Arc<Wake>,
}

/// Both sides of a queue of requests.
///
/// # Errors
/// The kernel gives no event descriptor.
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
    /// Has requests carried out, in order; gives their answers, or none if the worker has ended.
    pub fn ask_all(&self, requests: Vec<W>) -> Option<Vec<Answer>> {
        let (to, answers) = sync_channel(1);
        let job =
            Job { answers: Vec::with_capacity(requests.len()), requests: requests.into(), to };
        self.jobs.send(job).ok()?;
        self.wake.raise();
        answers.recv().ok()
    }

    /// Has one request carried out.
    ///
    /// # Errors
    /// What is wrong with it, or that the worker has ended.
    pub fn ask(&self, request: impl Into<W>) -> Answer {
        let answers = self.ask_all(vec![request.into()]);
        let answer = answers.and_then(|mut answers| answers.pop());
        answer.unwrap_or_else(|| Err("the program has ended".to_owned()))
    }
}

impl<W> Jobs<W> {
    /// What wakes the worker.
    pub fn wake(&self) -> &Arc<Wake> {
        &self.wake
    }

    /// Carries out requests for about as long as `share`; the rest keeps the worker awake.
    /// `execute` is told when its time is up.
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
                // A client that is gone needs no answer.
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
        // The second takes three pieces.
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
