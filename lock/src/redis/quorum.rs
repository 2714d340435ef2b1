//! Counting the answers of independent nodes, as they come in: no more than that, so that it can be tested alone.
//!
//! More than half of all nodes must say yes; a node that does not answer has said nothing. The result stands as soon as
//! no answer that is still out can change it, so that one slow node holds up nobody.
//!
//! Next to read: `redlock.rs`.

/// What one node said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// Nothing, within its time.
    Silence,
}

/// What the answers come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A quorum said yes.
    Agreed,
    /// A quorum answered, and too many said no.
    Refused,
    /// Fewer than a quorum answered: so many.
    Silent(usize),
}

/// The answers to one question, so far.
#[derive(Debug)]
pub(super) struct Count {
    nodes: usize,
    yes: usize,
    no: usize,
    silent: usize,
}

/// How many of `nodes` are more than half.
pub(super) fn quorum(nodes: usize) -> usize {
    nodes / 2 + 1
}

impl Count {
    /// Nobody has answered yet.
    pub(super) fn of(nodes: usize) -> Self {
        Self { nodes, yes: 0, no: 0, silent: 0 }
    }

    /// One more answer; the result, once it stands.
    pub(super) fn add(&mut self, answer: Answer) -> Option<Outcome> {
        match answer {
            Answer::Yes => self.yes += 1,
            Answer::No => self.no += 1,
            Answer::Silence => self.silent += 1,
        }
        let answered = self.yes + self.no;
        let out = self.nodes - answered - self.silent;
        let needed = quorum(self.nodes);
        if self.yes >= needed {
            Some(Outcome::Agreed)
        } else if self.yes + out >= needed {
            None
        } else if answered >= needed {
            Some(Outcome::Refused)
        } else if out == 0 {
            Some(Outcome::Silent(answered))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer::*, *};

    fn count(answers: &[Answer], nodes: usize) -> Option<Outcome> {
        let mut count = Count::of(nodes);
        answers.iter().map(|answer| count.add(*answer)).last().flatten()
    }

    #[test]
    fn more_than_half_is_a_quorum() {
        assert_eq!([1, 2, 3, 4, 5, 6, 7].map(quorum), [1, 2, 2, 3, 3, 4, 4]);
    }

    #[test]
    fn a_quorum_agrees_without_the_others() {
        assert_eq!(count(&[Yes, Yes], 5), None);
        assert_eq!(count(&[Yes, Yes, Yes], 5), Some(Outcome::Agreed));
        assert_eq!(count(&[Silence, No, Yes, Yes, Yes], 5), Some(Outcome::Agreed));
        assert_eq!(count(&[Yes, Yes], 4), None);
        assert_eq!(count(&[Yes], 1), Some(Outcome::Agreed));
    }

    #[test]
    fn silence_is_no_yes_and_no_no() {
        assert_eq!(count(&[Yes, Yes, Silence, Silence, Silence], 5), Some(Outcome::Silent(2)));
        assert_eq!(count(&[No, No, Silence, Silence, Silence], 5), Some(Outcome::Silent(2)));
        assert_eq!(count(&[Silence, Silence, Silence], 5), None, "the number of answers does not stand yet");
        assert_eq!(count(&[Silence, Silence, Silence, Yes, Yes], 5), Some(Outcome::Silent(2)));
        assert_eq!(count(&[Silence, Silence, No, Yes, Yes], 5), Some(Outcome::Refused));
    }

    #[test]
    fn who_cannot_win_any_more_is_refused_at_once() {
        assert_eq!(count(&[No, No], 5), None);
        assert_eq!(count(&[No, No, No], 5), Some(Outcome::Refused));
        assert_eq!(count(&[Yes, Yes, No, No, Silence], 5), Some(Outcome::Refused));
    }
}
