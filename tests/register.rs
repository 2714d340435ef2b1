//! Tests register themselves: `#[apply(test!)]` on a function, which by what it takes says what it needs.
//!
//! | the function | needs |
//! |---|---|
//! | `fn name()` | no server |
//! | `async fn name(servers: &Servers)` | the servers that all tests share |
//! | `async fn name()` | a lab that it may break: it waits for its turn |
//!
//! `#[apply(soak_test!)]` is for a lab that takes too long for every change: only `make soak` runs it, and nothing beside it that
//! has a server, because it may promise times.
//!
//! With `#[over(rows)]` below it, the test runs once for each row of a table: a name, and what the function takes last.

use crate::harness::{Ends, outcome, soak};
use anyhow::Result;
use libtest_mimic::Trial;
use std::time::Duration;
use tokio::{runtime::Handle, sync::Semaphore};

/// A test that runs longer hangs. The lines of all lessons take minutes.
const TEST_TIMEOUT: Duration = Duration::from_secs(20 * 60);

/// How many tests run at once on the shared servers, where they mostly wait, and how many with their own lab, for which there must be
/// memory.
const AT_ONCE: u32 = 4;
pub(crate) static SHARED: Semaphore = Semaphore::const_new(AT_ONCE as usize);
pub(crate) static ALONE: Semaphore = Semaphore::const_new(AT_ONCE as usize);
/// Long tests with a large lab, which all others wait for.
pub(crate) static SOAK: Semaphore = Semaphore::const_new(1);
pub(crate) static PURE: Semaphore = Semaphore::const_new(1);

/// A row of a table, or a single test without a row name.
pub(crate) type Row = (String, Box<dyn FnOnce() -> Ends + Send>);

pub(crate) struct Test {
    pub(crate) module: &'static str,
    pub(crate) name: &'static str,
    pub(crate) turns: &'static Semaphore,
    pub(crate) rows: fn() -> Vec<Row>,
}
inventory::collect!(Test);

pub(crate) fn row<F: Future<Output = Result<()>> + 'static>(
    name: impl ToString,
    run: impl FnOnce() -> F + Send + 'static,
) -> Row {
    (name.to_string(), Box::new(|| Box::pin(run())))
}

macro_rules! test {
    (#[doc = $doc:literal] $($rest:tt)*) => {
        $crate::register::test! { $($rest)* }
    };
    (fn $name:ident() -> Result<()> $body:block) => {
        fn $name() -> Result<()> $body
        $crate::register::test! { [$name PURE] vec![row("", || async { $name() })] }
    };
    (async fn $name:ident() -> Result<()> $body:block) => {
        async fn $name() -> Result<()> $body
        $crate::register::test! { [$name ALONE] vec![row("", $name)] }
    };
    (async fn $name:ident($servers:ident: &Servers $(,)?) -> Result<()> $body:block) => {
        async fn $name($servers: &Servers) -> Result<()> $body
        $crate::register::test! {
            [$name SHARED] vec![row("", || async { $name(Servers::shared().await?).await })]
        }
    };
    (#[over($rows:expr)] async fn $name:ident($row:ident: $kind:ty $(,)?) -> Result<()> $body:block) => {
        async fn $name($row: $kind) -> Result<()> $body
        $crate::register::test! {
            [$name ALONE] $rows.into_iter().map(|(name, on)| row(name, move || $name(on))).collect()
        }
    };
    (#[over($rows:expr)] async fn $name:ident($servers:ident: &Servers, $row:ident: $kind:ty $(,)?) -> Result<()> $body:block) => {
        async fn $name($servers: &Servers, $row: $kind) -> Result<()> $body
        $crate::register::test! {
            [$name SHARED] $rows.into_iter().map(|(name, on)| {
                row(name, move || async move { $name(Servers::shared().await?, on).await })
            }).collect()
        }
    };
    ([$name:ident $turns:ident] $rows:expr) => {
        inventory::submit!($crate::register::Test {
            module: module_path!(),
            name: stringify!($name),
            turns: &$crate::register::$turns,
            rows: || {
                use $crate::register::row;
                $rows
            },
        });
    };
}
pub(crate) use test;

macro_rules! soak_test {
    ($(#[doc = $doc:literal])* async fn $name:ident() -> Result<()> $body:block) => {
        async fn $name() -> Result<()> $body
        $crate::register::test! { [$name SOAK] vec![row("", $name)] }
    };
}
pub(crate) use soak_test;

/// All tests, by module and name.
pub(crate) fn all(runtime: &Handle) -> Vec<Trial> {
    let mut all = Vec::new();
    for test in inventory::iter::<Test> {
        let module = test.module.split_once("::").map_or("", |(_, path)| path);
        for (row, run) in (test.rows)() {
            let end = if row.is_empty() { "" } else { "::" };
            let name = format!("{module}::{}{end}{row}", test.name);
            all.push((name, test.turns, run));
        }
    }
    all.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    let trial = |(name, turns, run): (String, &'static Semaphore, Box<dyn FnOnce() -> Ends + Send>)| {
        let runtime = runtime.clone();
        let takes_long = std::ptr::eq(turns, &SOAK);
        let trial = Trial::test(name, move || {
            runtime.block_on(async {
                let _turn = turns.acquire().await?;
                let others = if takes_long { AT_ONCE } else { 0 };
                let _turns_of_others = (SHARED.acquire_many(others).await?, ALONE.acquire_many(others).await?);
                outcome(run(), TEST_TIMEOUT).await
            })
        });
        trial.with_ignored_flag(takes_long && !soak())
    };
    all.into_iter().map(trial).collect()
}
