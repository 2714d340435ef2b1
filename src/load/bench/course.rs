//! The order that the course gives its ZooKeeper locks: who looks at the whole queue (§3.4.1) is slower than who tries
//! again and again (§3.3), and who watches the one before (§3.4.2) comes near Redis.
//!
//! Nothing is wanted of these figures; they say whether that is so. A lock that polls is the faster the more poll it, so
//! few and many are both looked at.

use super::figure::Figure;

/// The lock that the others are held against.
const LAST: &str = "zk-lock";
/// Those that poll.
const POLLERS: [&str; 2] = ["zk-ephemeral", "zk-sequential"];
/// All of them.
pub(super) const STAGES: [&str; 3] = [POLLERS[0], POLLERS[1], LAST];

/// Who polls, against who watches: `rates` are the sections per second of a strategy with so many connections.
pub(super) fn figures(connections: usize, rates: impl Fn(&str) -> Vec<f64>) -> Vec<Figure> {
    let figure =
        |slug: &str| Figure::compared(&format!("{slug}, {connections} connections"), &rates(slug), LAST, &rates(LAST));
    POLLERS.map(figure).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pollers_are_held_against_the_lock_that_watches_and_nothing_is_wanted() {
        let rates =
            |slug: &str| vec![STAGES.iter().position(|stage| *stage == slug).map_or(0.0, |i| [1.0, 2.0, 4.0][i])];
        let figures: Vec<_> = figures(10, rates).into_iter().map(|f| (f.figure, f.ratio, f.reached)).collect();
        assert_eq!(
            figures,
            [
                ("zk-ephemeral, 10 connections".to_owned(), Some(0.25), None),
                ("zk-sequential, 10 connections".to_owned(), Some(0.5), None),
            ]
        );
    }
}
