//! The names of an object's keys and channels, which are Redisson's, and the slot of a cluster that each of them is in.
//!
//! A lock's keys and its channel have the lock's name in braces, so they are in one slot. Source: `prefixName` and `suffixName`
//! of Redisson; the Redis documentation, "Redis cluster specification".

use crate::{Owner, Process};

/// How many slots every Redis Cluster has.
pub(super) const SLOTS: usize = 16384;

/// `prefix:{name}`, as Redisson's `prefixName`. The braces keep a lock's keys on one cluster node, and are left out if
/// the name has some. A name with a single brace keeps nothing together, as in Redisson.
pub(super) fn prefixed(prefix: &str, name: &str) -> String {
    let [open, close] = missing_braces(name);
    [prefix, ":", open, name, close].concat()
}

/// `{name}:suffix`, as Redisson's `suffixName`; without braces if the name has some.
pub(super) fn suffixed(name: &str, suffix: &str) -> String {
    let [open, close] = missing_braces(name);
    [open, name, close, ":", suffix].concat()
}

/// `{name}`, the common part of all keys of the lock; without braces if the name has some.
pub(super) fn in_braces(name: &str) -> String {
    let [open, close] = missing_braces(name);
    [open, name, close].concat()
}

/// The braces to put around a name; empty if it has an opening one.
fn missing_braces(name: &str) -> [&'static str; 2] {
    if name.contains('{') { ["", ""] } else { ["{", "}"] }
}

/// The channel on which a release is published.
pub(super) fn lock_channel(name: &str) -> String {
    prefixed("redisson_lock__channel", name)
}

/// The channel of one waiter for a fair lock.
pub(super) fn fair_channel(name: &str, owner: Owner) -> String {
    format!("{}:{owner}", lock_channel(name))
}

/// The pattern of [`fair_channel`] for all waiters of a process. Neither a label nor a uuid has special characters.
pub(super) fn fair_channel_pattern(process: &Process) -> String {
    format!("redisson_lock__channel:*:{process}:*")
}

/// The slot of a key: that of the text in its first braces, or of the whole key if there is none.
pub(super) fn slot_of_key(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let length = rest.iter().position(|byte| *byte == b'}')?;
        (length > 0).then(|| &rest[..length])
    });
    crc16(tag.unwrap_or(key)) % SLOTS as u16
}

/// The checksum CRC-16/XMODEM, by which Redis Cluster numbers the slots.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| (crc << 1) ^ (if crc & 0x8000 == 0 { 0 } else { 0x1021 }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gets_braces_unless_it_has_some() {
        assert_eq!(lock_channel("lock"), "redisson_lock__channel:{lock}");
        assert_eq!(lock_channel("a{b}c"), "redisson_lock__channel:a{b}c");
        assert_eq!(suffixed("lock", "timeout"), "{lock}:timeout");
        assert_eq!(suffixed("a{b}c", "timeout"), "a{b}c:timeout");
    }

    #[test]
    fn a_slot_is_that_of_the_text_in_the_first_braces() {
        // As `CLUSTER KEYSLOT` says.
        assert_eq!(slot_of_key(b"123456789"), 12739);
        assert_eq!(slot_of_key(b"foo"), 12182);
        for (key, same) in [
            ("{user1000}.following", "user1000"),
            ("redisson_lock__channel:{lock}", "lock"),
            ("foo{bar}{zap}", "bar"),
            ("foo{{bar}}zap", "{bar"),
        ] {
            assert_eq!(slot_of_key(key.as_bytes()), slot_of_key(same.as_bytes()), "{key}");
        }
        assert_ne!(slot_of_key(b"foo{}{bar}"), slot_of_key(b"bar"), "empty braces do not count");
    }
}
