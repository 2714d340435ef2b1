//! Counts the answers of independent nodes.
//!
//! More than half of all nodes must say yes; a silent node has said nothing. The result stands as soon as no missing
//! answer can change it, so one slow node does not delay the others.

/// Whether one node says that it took, renewed or released the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeAnswer {
    Yes,
    No,
    /// No answer in time, or an error.
    Silence,
}

/// What the answers of all nodes come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuorumOutcome {
    /// A quorum said yes.
    Agreed,
    /// A quorum answered, but no quorum said yes.
    Refused,
    /// Only this many nodes answered, fewer than a quorum.
    Silent(usize),
}

/// The smallest majority of `nodes`.
pub(super) fn quorum(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// Returns the outcome of a round; `None` while a missing answer can change it.
pub(super) fn outcome_so_far(answers: &[NodeAnswer], nodes: usize) -> Option<QuorumOutcome> {
    let count = |what| answers.iter().filter(|answer| **answer == what).count();
    let (yes, answered) = (count(NodeAnswer::Yes), answers.len() - count(NodeAnswer::Silence));
    let (out, needed) = (nodes - answers.len(), quorum(nodes));
    if yes >= needed {
        Some(QuorumOutcome::Agreed)
    } else if yes + out >= needed {
        None
    } else if answered >= needed {
        Some(QuorumOutcome::Refused)
    } else {
        (out == 0).then_some(QuorumOutcome::Silent(answered))
    }
}

#[cfg(test)]
mod tests {
    use super::{NodeAnswer::*, *};

    #[test]
    fn more_than_half_is_a_quorum() {
        assert_eq!([1, 2, 3, 4, 5, 6, 7].map(quorum), [1, 2, 2, 3, 3, 4, 4]);
    }

    #[test]
    fn a_majority_decides_and_silence_is_neither_yes_nor_no() {
        use QuorumOutcome::*;
        let cases: [(&[NodeAnswer], usize, Option<QuorumOutcome>); 13] = [
            (&[Yes, Yes], 5, None),
            (&[Yes, Yes, Yes], 5, Some(Agreed)),
            (&[Silence, No, Yes, Yes, Yes], 5, Some(Agreed)),
            (&[Yes, Yes], 4, None),
            (&[Yes], 1, Some(Agreed)),
            (&[Yes, Yes, Silence, Silence, Silence], 5, Some(Silent(2))),
            (&[No, No, Silence, Silence, Silence], 5, Some(Silent(2))),
            // Two answers are still missing.
            (&[Silence, Silence, Silence], 5, None),
            (&[Silence, Silence, Silence, Yes, Yes], 5, Some(Silent(2))),
            (&[Silence, Silence, No, Yes, Yes], 5, Some(Refused)),
            (&[No, No], 5, None),
            // No majority is possible any more.
            (&[No, No, No], 5, Some(Refused)),
            (&[Yes, Yes, No, No, Silence], 5, Some(Refused)),
        ];
        for (answers, nodes, expected) in cases {
            assert_eq!(outcome_so_far(answers, nodes), expected, "{answers:?} of {nodes}");
        }
    }
}
