//! What an error of MySQL or MariaDB means.

/// The reason of a Galera node that is not with the majority, or is still joining it.
pub(crate) const NOT_IN_ITS_CLUSTER: &str = "this node is not part of its cluster now";

/// MariaDB's error number under `innodb_snapshot_isolation`: a row has changed since the transaction's snapshot, and it was
/// rolled back.
pub(crate) const RECORD_CHANGED: u16 = 1020;

/// The number of an error that the server answered; `None` for all others, as a lost connection.
pub(crate) fn error_number(error: &sqlx::Error) -> Option<u16> {
    let error = error.as_database_error()?;
    error.try_downcast_ref().map(sqlx::mysql::MySqlDatabaseError::number)
}

/// What an error means that is no fault of the statement, by its number; `None` for all others.
pub(super) fn why_refused(error: &sqlx::Error) -> Option<&'static str> {
    Some(match error_number(error)? {
        1020 | 1180 | 1205 | 1213 | 3101 => "another transaction is in the way (row lock, or the vote of a cluster)",
        1021 | 1030 | 1114 => "its table or its disk is full",
        1040 | 1203 | 1226 => "it has as many connections as it allows",
        1044 | 1142 | 1143 | 1227 | 1370 => "the user of mysql.url may not do this",
        1045 => "it knows no such user and password: correct mysql.url",
        1047 => NOT_IN_ITS_CLUSTER,
        1049 | 1146 => "the database or a table is missing; an instance makes its tables when it starts and reaches mysql",
        1053 | 1927 | 3032 => "it is shutting down or offline",
        1193 => "it knows no mysql.causal_reads, which a Galera cluster has",
        1036 | 1290 | 1792 | 1836 | 1874 => "it is read-only",
        1317 | 1969 | 3024 => "it has ended the statement",
        4031 => "it has closed a connection that nobody used",
        _ => return None,
    })
}
