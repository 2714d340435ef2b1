//! The tables in MySQL, made by the files of `migrations/`, which are embedded in the program.
//!
//! sqlx has a macro for this. It needs the drivers and their TLS a second time, compiled for the compiler.

use rust_embed::Embed;
use sqlx::{
    MySqlConnection,
    migrate::{Migration, MigrationType, Migrator},
};

const LIST_TABLES: &str = "SELECT CAST(TABLE_NAME AS CHAR) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()";
/// Selects the versions of all migrations that were applied or only started: the tables of both are ours.
const APPLIED_VERSIONS: &str = "SELECT version FROM _sqlx_migrations";

/// The files of `migrations/`, embedded.
#[derive(Embed)]
#[folder = "../migrations/"]
struct Files;

/// Every migration, by version.
/// Panics: if a file is not named `VERSION_DESCRIPTION.sql`, as sqlx has it, or is not UTF-8.
pub fn migrator() -> Migrator {
    let mut migrations: Vec<_> = Files::iter().map(|name| migration(&name)).collect();
    migrations.sort_by_key(|migration| migration.version);
    Migrator { migrations: migrations.into(), ..Migrator::DEFAULT }
}

/// The existing tables that block the migrations to come, because these create tables of the same names. Tables that such a
/// migration renames do not block: migration 0 renames those of the course's own program.
pub async fn tables_in_the_way(conn: &mut MySqlConnection) -> Result<Vec<String>, sqlx::Error> {
    let there: Vec<String> = sqlx::query_scalar(LIST_TABLES).fetch_all(&mut *conn).await?;
    let mut done: Vec<i64> = Vec::new();
    if there.iter().any(|table| table == "_sqlx_migrations") {
        done = sqlx::query_scalar(APPLIED_VERSIONS).fetch_all(&mut *conn).await?;
    }
    let migrator = migrator();
    let to_come = || migrator.iter().filter(|one| !done.contains(&one.version));
    let steps_aside = |table: &str| to_come().any(|one| one.sql.contains(&format!("'RENAME TABLE {table} TO ")));
    let made = to_come().flat_map(|one| one.sql.lines()).filter_map(|line| {
        let table = line.strip_prefix("CREATE TABLE ")?.split(' ').next()?;
        (there.iter().any(|it| it == table) && !steps_aside(table)).then(|| table.to_owned())
    });
    Ok(made.collect())
}

/// The migration in the embedded file of this name, `VERSION_DESCRIPTION.sql`. Panics if it has another form.
fn migration(name: &str) -> Migration {
    let (version, description) =
        name.strip_suffix(".sql").and_then(|name| name.split_once('_')).expect("VERSION_DESCRIPTION.sql");
    let sql = Files::get(name).expect("iter has named it").data;
    Migration::new(
        version.parse().expect("a number before the first `_`"),
        description.replace('_', " ").into(),
        MigrationType::Simple,
        String::from_utf8(sql.into_owned()).expect("UTF-8").into(),
        false,
    )
}
