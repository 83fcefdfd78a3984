// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values that are serialized and read again, as if they had been in a file. Tests see by it that
//! nothing is lost.

use freeport_kv_types::Corrupt;

use crate::keyspace::Keyspace;
use crate::transfer::Detached;

impl Keyspace {
    /// Replaces every value by what its serialized form is read as, with its time of expiry.
    ///
    /// # Errors
    /// Some value cannot be read as it was written. It stays, and so do those behind it.
    pub fn reload(&mut self, now_ms: u64) -> Result<(), Corrupt> {
        let (mut cursor, mut keys, mut bytes) = (0, vec![], vec![]);
        loop {
            cursor = self.scan(cursor, now_ms, |key, _| keys.push(key.to_vec()));
            for key in keys.drain(..) {
                let Some(value) = self.value(&key, now_ms) else { continue };
                bytes.clear();
                value.serialize(&mut bytes);
                let mut again = Detached::deserialize(value.kind(), &bytes, self.limits())?;
                again.expires_ms = self.expires_ms(&key, now_ms).flatten();
                // A value that does not fit in its own place is left as it was.
                let _ = self.insert(&key, again, now_ms);
            }
            if cursor == 0 {
                return Ok(());
            }
        }
    }
}
