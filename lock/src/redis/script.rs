//! The scripts by name, and the names of Redisson's keys and channels.
//!
//! Each `.lua` file says what its keys, arguments and return codes are. Redis runs a script as one command: nobody
//! comes between its lines.

use redis::Script;
use std::sync::LazyLock;

macro_rules! script {
    ($(#[$doc:meta])* $name:ident, $file:literal) => {
        $(#[$doc])*
        pub(super) static $name: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!(concat!("lua/", $file))));
    };
}

script!(
    /// Takes the lock, or says how long it is still leased.
    ACQUIRE,
    "acquire.lua"
);
script!(
    /// Gives one hold back, or all.
    RELEASE,
    "release.lua"
);
script!(
    /// Renews the lease.
    RENEW,
    "renew.lua"
);
script!(
    /// Renames the owner.
    HAND_OVER,
    "hand_over.lua"
);
script!(
    /// Lifts the counter of tokens.
    LIFT_TOKEN,
    "lift_token.lua"
);

/// `prefix:{name}`, as Redisson's `prefixName`; the braces keep a lock's keys on one cluster node, and are left out
/// where the name has some of its own.
pub(super) fn prefixed(prefix: &str, name: &str) -> String {
    if name.contains('{') { format!("{prefix}:{name}") } else { format!("{prefix}:{{{name}}}") }
}

/// The channel on which a release is told.
pub(super) fn lock_channel(name: &str) -> String {
    prefixed("redisson_lock__channel", name)
}

/// The counter of the fencing tokens. It never ends.
pub(super) fn lock_token(name: &str) -> String {
    prefixed("redisson_lock_token", name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gets_braces_unless_it_has_some() {
        assert_eq!(lock_channel("lock"), "redisson_lock__channel:{lock}");
        assert_eq!(lock_channel("a{b}c"), "redisson_lock__channel:a{b}c");
    }
}
