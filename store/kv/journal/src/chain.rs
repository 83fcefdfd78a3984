// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The segments from which the log can be read while it is appended to.
//!
//! A segment that the manifest names is opened by its name. When a snapshot frees it, its name is
//! removed, but its file stays open as long as somebody may want it: a follower that is still
//! reading it, or one that comes back soon (the *backlog*). The filesystem keeps the bytes until
//! the last descriptor is closed. So no name of the folder depends on followers, and a crash leaves
//! nothing behind.
//!
//! All written bytes can be read, also those that are not durable. A segment that is
//! [replaced](crate::replacement) after a failed sync does not change that: the new one has the
//! same bytes at the same positions, and the old one is not written to again. A crash may take
//! bytes from the end of the log that followers have; the [lineage](crate::lineage) shows that.

use crate::disk::File;
use crate::folder::Folder;
use crate::manifest::{Manifest, Segment};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Segments in the order of their positions. The last one is appended to.
#[derive(Clone)]
pub(crate) struct Chain {
    links: Vec<Link>,
    followers: Vec<Weak<Place>>,
}

/// A segment that ends where the next one begins.
#[derive(Clone)]
pub(crate) struct Link {
    pub segment: Segment,
    /// The open file. Without it, the file has its name.
    file: Option<Arc<dyn File>>,
}

impl Link {
    pub fn open(&self, folder: &Folder) -> io::Result<Arc<dyn File>> {
        match &self.file {
            Some(file) => Ok(file.clone()),
            None => folder.disk.open(&folder.log(self.segment.number), false),
        }
    }
}

/// The place of a follower.
pub(crate) struct Place {
    /// Position of its next batch.
    pub position: AtomicU64,
    /// Bytes of freed segments that are kept for it.
    pub limit: u64,
}

impl Place {
    /// Bytes between the follower and a position.
    pub fn before(&self, position: u64) -> u64 {
        position.saturating_sub(self.position.load(Ordering::Relaxed))
    }
}

impl Chain {
    /// The segments of a manifest, which all have their names.
    pub fn new(segments: &[Segment]) -> Chain {
        let links = segments.iter().map(|&segment| Link { segment, file: None }).collect();
        Chain { links, followers: vec![] }
    }

    /// Only this segment.
    pub fn with_file(segment: Segment, file: Arc<dyn File>) -> Chain {
        Chain { links: vec![Link { segment, file: Some(file) }], followers: vec![] }
    }

    /// Adds the segment that is appended to from now on. Bytes of others at its positions are the
    /// same, or do not exist. `is_last_named` says whether the one before it has its name.
    pub fn push(&mut self, segment: Segment, file: Arc<dyn File>, is_last_named: bool) {
        if let Some(last) = self.links.last_mut()
            && is_last_named
        {
            last.file = None;
        }
        while self.links.pop_if(|last| last.segment.position >= segment.position).is_some() {}
        self.links.push(Link { segment, file: Some(file) });
    }

    /// The first position that can be read.
    pub fn first(&self) -> u64 {
        self.links[0].segment.position
    }

    /// The link with a position, and the position at which the next one begins.
    pub fn find(&self, position: u64) -> Option<(&Link, u64)> {
        let after = self.links.partition_point(|link| link.segment.position <= position);
        let at = after.checked_sub(1)?;
        let end = self.links.get(after).map_or(u64::MAX, |next| next.segment.position);
        Some((&self.links[at], end))
    }

    /// Notes a follower.
    pub fn add_follower(&mut self, place: &Arc<Place>) {
        self.followers.retain(|other| other.strong_count() > 0);
        self.followers.push(Arc::downgrade(place));
    }

    /// Drops segments that nobody wants: the manifest does not name them, no follower reads them,
    /// and later ones of that kind have `backlog_bytes`. Opens the others that are about to lose
    /// their names.
    pub fn trim(&mut self, folder: &Folder, manifest: &Manifest, backlog_bytes: u64) {
        self.followers.retain(|other| other.strong_count() > 0);
        let named = manifest.segments[0].position;
        let places = self.followers.iter().filter_map(Weak::upgrade);
        let places = places.filter(|place| place.before(named) <= place.limit);
        let floor = places.map(|place| place.position.load(Ordering::Relaxed)).min();
        let mut sum = 0;
        let mut first = 0;
        for (at, pair) in self.links.windows(2).enumerate().rev() {
            let (start, end) = (pair[0].segment.position, pair[1].segment.position);
            if end > named {
                continue;
            }
            sum += end - start;
            if sum > backlog_bytes && floor.is_none_or(|floor| floor >= end) {
                first = at + 1;
                break;
            }
        }
        self.links.drain(..first);
        self.keep_files(folder, manifest);
    }

    fn keep_files(&mut self, folder: &Folder, manifest: &Manifest) {
        let mut unreadable = 0;
        for (at, link) in self.links.iter_mut().enumerate() {
            if link.file.is_some() || manifest.segments.contains(&link.segment) {
                continue;
            }
            match link.open(folder) {
                Ok(file) => link.file = Some(file),
                // Followers that want it need the whole state instead.
                Err(_) => unreadable = at + 1,
            }
        }
        self.links.drain(..unreadable);
    }
}
