// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replaces the verilated card in builds without the feature `card`: no card can be created, so its
//! methods are never called. [`Nic`](crate::Nic) reports that to its callers.

use crate::{Moment, NicError, Stamp, Tags};
use std::path::Path;

/// A type without values.
pub enum Card {}

impl Card {
    pub fn new(_cores: u8) -> Result<Self, NicError> {
        Err(NicError::NotBuilt)
    }

    pub fn reset(&mut self) {
        match *self {}
    }

    pub fn cycles(&self) -> u64 {
        match *self {}
    }

    pub fn step(&mut self, _count: u64) {
        match *self {}
    }

    pub fn host_write(&mut self, _address: u32, _words: &[u64], _cycles_max: u64) -> usize {
        match *self {}
    }

    pub fn host_read(&mut self, _address: u32, _words: &mut [u64], _cycles_max: u64) -> usize {
        match *self {}
    }

    pub fn send(&mut self, _bytes: &[u8], _ifindex: u32, _queue: u32) {
        match *self {}
    }

    pub fn run_until_left(&mut self, _count: u64, _cycles_max: u64) -> u64 {
        match *self {}
    }

    pub fn run_until_done(&mut self, _count: u64, _cycles_max: u64) -> u64 {
        match *self {}
    }

    pub fn take(&mut self, _bytes: &mut Vec<u8>) -> Option<Tags> {
        match *self {}
    }

    pub fn stamps(&self, _count: usize) -> Vec<Stamp> {
        match *self {}
    }

    pub fn forget(&mut self) {
        match *self {}
    }

    pub fn set_pauses(&mut self, _seed: u64, _rx: u32, _tx: u32) {
        match *self {}
    }

    pub fn watch(&mut self, _is_watched: bool) {
        match *self {}
    }

    pub fn moments(&mut self, _moments: &mut [Moment]) -> usize {
        match *self {}
    }

    pub fn moments_lost(&self) -> u64 {
        match *self {}
    }

    pub fn open_waveform(&mut self, _path: &Path) -> bool {
        match *self {}
    }
}
