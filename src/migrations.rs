//! The tables in MySQL, made by the files of `migrations/`, which are embedded in the program.
//!
//! sqlx has a macro for this. It needs the drivers and their TLS a second time, compiled for the compiler.

use rust_embed::Embed;
use sqlx::migrate::{Migration, MigrationType, Migrator};

#[derive(Embed)]
#[folder = "migrations/"]
struct Files;

/// Every migration, by version.
///
/// # Panics
///
/// If a file is not named `VERSION_DESCRIPTION.sql`, as sqlx has it, or is not UTF-8.
#[must_use]
pub fn migrator() -> Migrator {
    let mut migrations: Vec<_> = Files::iter().map(|name| migration(&name)).collect();
    migrations.sort_by_key(|migration| migration.version);
    Migrator {
        migrations: migrations.into(),
        ..Migrator::DEFAULT
    }
}

fn migration(name: &str) -> Migration {
    let (version, description) = name
        .strip_suffix(".sql")
        .and_then(|name| name.split_once('_'))
        .expect("VERSION_DESCRIPTION.sql");
    let sql = Files::get(name).expect("iter has named it").data;
    Migration::new(
        version.parse().expect("a number before the first `_`"),
        description.replace('_', " ").into(),
        MigrationType::Simple,
        String::from_utf8(sql.into_owned()).expect("UTF-8").into(),
        false,
    )
}
