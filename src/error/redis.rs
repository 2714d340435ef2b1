//! What an error of Redis means.

use std::borrow::Cow;

/// Whether Redis says that a key has another type; looks into the text, since the error of a script has the name there.
pub(super) fn is_wrong_type(error: &impl ToString) -> bool {
    error.to_string().contains("WRONGTYPE")
}

/// The meaning of a refused user or password.
const WRONG_REDIS_PASSWORD: &str = "it knows no such user and password: correct redis.url";

/// What an error means that an operator must fix, by the first word of the answer; for a transaction, of its first refused
/// command. `None` for all others.
pub(super) fn why_refused(error: &redis::RedisError) -> Option<Cow<'static, str>> {
    if error.kind() == redis::ErrorKind::AuthenticationFailed {
        return Some(WRONG_REDIS_PASSWORD.into());
    }
    let refused = error.clone().into_server_errors()?;
    let (_, first) = refused.first()?;
    let said = first.details().unwrap_or_default();
    let known = match first.code() {
        "ERR" if said.contains(SCRIPT) => {
            return Some(format!("a script fails in it: {}", said.split(" script: ").next().unwrap_or(said)).into());
        }
        "ASK" | "MOVED" => {
            "another node of its Redis Cluster has the key: set redis.prefix to a name in braces, as \"{oversell}:\", and redis.url to the \
             node that has its slot (CLUSTER KEYSLOT)"
        }
        "CROSSSLOT" => {
            "it is a Redis Cluster, and the keys of this are in several of its slots: set redis.prefix to a name in braces, as \
             \"{oversell}:\", so that all keys are in one"
        }
        "TRYAGAIN" => "a slot of its Redis Cluster is on its way to another node",
        "CLUSTERDOWN" | "MASTERDOWN" | "NOREPLICAS" => "its main node or its replicas are away",
        "LOADING" => "it is still reading its file",
        "MISCONF" => "it cannot write its file, and takes no writes",
        "NOAUTH" | "WRONGPASS" => WRONG_REDIS_PASSWORD,
        "NOPERM" => "the user of redis.url may not do this",
        "OOM" => "it is full (maxmemory)",
        "READONLY" => "it is a replica, and takes no writes",
        _ => return None,
    };
    Some(known.into())
}

/// The name of a script in errors of Redis, by which they are known.
const SCRIPT: &str = "user_script";
