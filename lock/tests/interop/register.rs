//! Clauses register themselves: `#[apply(clause!)]`, and below it `#[over(…)]` with the [kinds](over) of each library
//! that the clause runs over, and whether in [both directions](Directions).

use super::{
    Stage, cluster,
    harness::{Ends, outcome},
    object::Kind,
    pair::Pair,
    peer::Library,
    support::TEST_TIMEOUT,
};
use libtest_mimic::Trial;
use tokio::runtime::Handle;

/// A clause, over the kinds of each library.
pub(crate) struct Clause {
    pub(crate) module: &'static str,
    pub(crate) name: &'static str,
    pub(crate) over: fn(Library) -> &'static [Kind],
    pub(crate) directions: Directions,
    pub(crate) run: fn(Pair) -> Ends,
}
inventory::collect!(Clause);

/// Which side comes first in a clause.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Directions {
    /// Ours, and in a second test the peer's.
    Both,
    /// The clause decides.
    Once,
}

macro_rules! clause {
    ($(#[doc = $doc:literal])* #[over($over:ident, $directions:ident)]
    async fn $name:ident($pair:ident: Pair $(,)?) -> Result<()> $body:block) => {
        $(#[doc = $doc])*
        async fn $name($pair: Pair) -> Result<()> $body

        inventory::submit!($crate::register::Clause {
            module: module_path!(),
            name: stringify!($name),
            over: $crate::register::over::$over,
            directions: $crate::register::Directions::$directions,
            run: |pair| Box::pin($name(pair)),
        });
    };
}
pub(crate) use clause;

/// The kinds of each library that a clause runs over.
pub(crate) mod over {
    use super::{
        Kind::{self, *},
        Library::{self, *},
    };
    use std::time::Duration;

    const PERMITS: Kind = Permits { all: 3, take: 2, lease: None };
    /// Longer than a test: none comes back by itself.
    const LEASE: Option<Duration> = Some(Duration::from_secs(3600));
    const LEASED: Kind = Permits { all: 1, take: 1, lease: LEASE };

    /// Three of which each contender takes one.
    const fn singles(lease: Option<Duration>) -> Kind {
        Permits { all: 3, take: 1, lease }
    }

    macro_rules! over {
        ($($name:ident: $($library:pat => [$($kind:expr),*]),+;)*) => {$(
            pub(crate) fn $name(library: Library) -> &'static [Kind] {
                match library {
                    $($library => const { &[$($kind),*] },)*
                    #[allow(unreachable_patterns)]
                    _ => &[],
                }
            }
        )*};
    }
    over! {
        exclusive: Redisson(_) => [Lock, Fair, Write], Curator => [Lock, Write], Kazoo => [Lock], Go => [Lock, Rpc];
        limited:
            Redisson(_) => [Lock, Fair, Write, PERMITS, LEASED, Latch(1)],
            Curator => [Lock, Write, PERMITS, Barrier],
            Kazoo => [Lock],
            Go => [Lock, Rpc];
        queued: Redisson(_) => [Fair], Curator => [Lock], Kazoo => [Lock], Go => [Lock, Rpc];
        readers: Redisson(_) | Curator => [Write];
        permits: Redisson(_) | Curator => [PERMITS];
        gates: Redisson(_) => [Latch(2)], Curator => [Barrier];
        sections:
            Redisson(_) => [Lock, Fair, Write, singles(None), singles(LEASE)],
            Curator => [Lock, Write, Permits { all: 2, take: 1, lease: None }],
            Go => [Lock, Rpc];
        redisson: Redisson(_) => [Lock];
        redissons_exclusive: Redisson(_) => [Lock, Fair, Write];
        redissons_told: Redisson(_) => [Lock, Fair, Write, PERMITS, LEASED, Latch(1)];
        redissons_leased: Redisson(_) => [LEASED];
        redissons_fair: Redisson(_) => [Fair];
        redissons_readers: Redisson(_) => [Write];
        curator: Curator => [Lock];
        curators_readers: Curator => [Write];
        curators_permits: Curator => [PERMITS];
        curators_double: Curator => [Double(4)];
        kazoo: Kazoo => [Lock];
    }
}

/// Every test; without servers and peers, only to list the tests.
pub(crate) fn all(runtime: &Handle, stage: Option<&'static Stage>) -> Vec<Trial> {
    let mut all = Vec::new();
    for library in Library::ALL {
        if let Library::Redisson(_) = library {
            let name = format!("{library}::cluster::each_side_excludes_and_wakes_the_other");
            let runtime = runtime.clone();
            all.push(Trial::test(name, move || {
                let test = cluster::each_side_excludes_and_wakes_the_other(library);
                runtime.block_on(outcome(Box::pin(test), TEST_TIMEOUT))
            }));
        }
    }
    for clause in inventory::iter::<Clause> {
        let module = clause.module.rsplit("::").next().unwrap_or_default();
        for library in Library::ALL {
            for &kind in (clause.over)(library) {
                let directions: &[_] = match clause.directions {
                    Directions::Both => &[("::ours_first", true), ("::theirs_first", false)],
                    Directions::Once => &[("", true)],
                };
                for &(way, ours_first) in directions {
                    let name = format!("{library}::{kind}::{module}::{}{way}", clause.name);
                    let (runtime, run) = (runtime.clone(), clause.run);
                    all.push(Trial::test(name, move || {
                        let stage = stage.ok_or("nobody to play against")?;
                        let test = async move {
                            let pair = Pair::new(stage, library, kind, ours_first).await?;
                            let object = pair.object.clone();
                            run(pair).await?;
                            object.until_nothing_is_left().await
                        };
                        runtime.block_on(outcome(Box::pin(test), TEST_TIMEOUT))
                    }));
                }
            }
        }
    }
    all
}
