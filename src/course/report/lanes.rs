//! A race as lanes: who waits, who is inside, who stands still, and whose the lock is. The axis is the order of the events and
//! not their time, so that what happens within a millisecond can be seen beside a lease of seconds.

use super::word;
use crate::bilingual::Bilingual;
use crate::{
    course::{Play, Words},
    replay::ReplayEvent,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// What ends the time inside.
const OUT: [&str; 5] = ["released", "lost", "deleted", "sold", "failed"];
/// What ends it where nothing of these comes.
const DONE: [&str; 2] = ["written", "committed"];
/// Actors that are no persons.
const WATCHED: [&str; 4] = ["lock", "stock", "row", "step"];

/// A race, drawn.
pub(super) struct Lanes<'a> {
    pub(super) play: &'a Play,
    pub(super) actors: Vec<Lane<'a>>,
    /// One for each key that is a lock, or one node of several.
    pub(super) locks: Vec<Locked<'a>>,
    /// What is on the shelf, and what the row has seen, where they change.
    pub(super) values: Vec<Values>,
    /// Every event in words.
    pub(super) lines: Vec<Line<'a>>,
}

/// From one event to another, in percent of the width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    pub(super) x: f64,
    pub(super) width: f64,
}

/// An actor.
pub(super) struct Lane<'a> {
    pub(super) name: &'a str,
    pub(super) instance: &'a str,
    pub(super) waits: Vec<Span>,
    pub(super) inside: Vec<Span>,
    /// Where another is inside too.
    pub(super) over: Vec<Span>,
    pub(super) stopped: Vec<Span>,
    /// Where it did something.
    pub(super) ticks: Vec<f64>,
}

/// A lock, and whose it is.
pub(super) struct Locked<'a> {
    pub(super) name: String,
    pub(super) held: Vec<(Span, &'a str)>,
}

/// What changes in steps.
pub(super) struct Values {
    pub(super) name: Bilingual,
    pub(super) at: Vec<(f64, String)>,
}

/// One event in words.
pub(super) struct Line<'a> {
    pub(super) ms: String,
    pub(super) actor: &'a str,
    pub(super) words: Words,
}

impl<'a> Lanes<'a> {
    /// `None` where nothing happened that could be drawn.
    pub(super) fn of(play: &'a Play) -> Option<Self> {
        let drawn: Vec<_> = play
            .events
            .iter()
            .filter(|event| event.actor != "step")
            .collect();
        let names: BTreeSet<_> = drawn
            .iter()
            .map(|e| e.actor.as_str())
            .filter(|n| !WATCHED.contains(n))
            .collect();
        let axis = Axis(drawn.len());
        let inside: Vec<_> = names.iter().map(|name| inside(&drawn, name)).collect();
        let over = overlaps(&inside, drawn.len());
        let actors = names
            .iter()
            .zip(&inside)
            .map(|(name, inside)| Lane::of(name, &drawn, inside, &over, axis));
        let actors: Vec<_> = actors.collect();
        let values = [
            (
                "stock",
                Bilingual {
                    zh: "库存",
                    en: "stock",
                },
            ),
            (
                "row",
                Bilingual {
                    zh: "行的令牌",
                    en: "row's token",
                },
            ),
        ];
        let values = values.into_iter().map(|(actor, name)| Values {
            name,
            at: changes(&drawn, actor, axis),
        });
        let values = values.filter(|values| !values.at.is_empty()).collect();
        let lines = play.events.iter().map(Line::of).collect();
        (!actors.is_empty()).then(|| Self {
            play,
            actors,
            locks: locks(&drawn, axis),
            values,
            lines,
        })
    }
}

/// So many events, side by side.
#[derive(Clone, Copy)]
struct Axis(usize);

impl Axis {
    fn at(self, event: usize) -> f64 {
        100.0 * event as f64 / self.0.max(1) as f64
    }

    fn span(self, (from, to): (usize, usize)) -> Span {
        Span {
            x: self.at(from),
            width: self.at(to) - self.at(from),
        }
    }
}

impl<'a> Lane<'a> {
    fn of(
        name: &'a str,
        drawn: &[&'a ReplayEvent],
        inside: &[(usize, usize)],
        over: &[bool],
        axis: Axis,
    ) -> Self {
        let of_it = || {
            drawn
                .iter()
                .enumerate()
                .filter(|(_, event)| event.actor == name)
        };
        let until = |from: usize, ends: &[&str]| {
            of_it()
                .find(|(n, event)| *n > from && ends.contains(&event.event.as_str()))
                .map_or(drawn.len(), |(n, _)| n)
        };
        let begins = |what: &'static [&'static str]| {
            of_it().filter(move |(_, e)| what.contains(&e.event.as_str()))
        };
        let waits = begins(&["start"]).map(|(n, _)| (n, until(n, &["locked", "sold", "failed"])));
        let stopped = begins(&["stopped"]).map(|(n, _)| (n, until(n, &["continued"])));
        let twice: Vec<_> = inside
            .iter()
            .flat_map(|(from, to)| (*from..*to).filter(|n| over[*n]))
            .collect();
        let twice = twice
            .chunk_by(|one, next| next - one == 1)
            .filter_map(|run| Some((*run.first()?, run.last()? + 1)));
        Self {
            name,
            instance: of_it()
                .find_map(|(_, event)| event.instance.as_deref())
                .unwrap_or_default(),
            waits: waits.map(|span| axis.span(span)).collect(),
            inside: inside.iter().map(|span| axis.span(*span)).collect(),
            over: twice.map(|span| axis.span(span)).collect(),
            stopped: stopped.map(|span| axis.span(span)).collect(),
            ticks: of_it().map(|(n, _)| axis.at(n)).collect(),
        }
    }
}

/// From which event to which an actor is inside.
fn inside(drawn: &[&ReplayEvent], name: &str) -> Vec<(usize, usize)> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for (from, event) in drawn.iter().enumerate() {
        let is_in = event.actor == name && event.event == "locked";
        if !is_in || spans.last().is_some_and(|(_, to)| from < *to) {
            continue;
        }
        let of_it = || {
            drawn
                .iter()
                .enumerate()
                .skip(from + 1)
                .filter(|(_, event)| event.actor == name)
        };
        let out = of_it().find(|(_, event)| OUT.contains(&event.event.as_str()));
        let out = out.or_else(|| of_it().rfind(|(_, event)| DONE.contains(&event.event.as_str())));
        spans.push((from, out.map_or(drawn.len(), |(n, _)| n)));
    }
    spans
}

/// After which events two or more are inside.
fn overlaps(inside: &[Vec<(usize, usize)>], events: usize) -> Vec<bool> {
    let is_in = |n: usize, spans: &[(usize, usize)]| {
        spans.iter().any(|(from, to)| (*from..*to).contains(&n))
    };
    (0..events)
        .map(|n| inside.iter().filter(|spans| is_in(n, spans)).count() > 1)
        .collect()
}

fn locks<'a>(drawn: &[&'a ReplayEvent], axis: Axis) -> Vec<Locked<'a>> {
    let of_locks = || {
        drawn
            .iter()
            .enumerate()
            .filter(|(_, event)| event.actor == "lock" && event.event != "queue")
    };
    let keys: BTreeSet<_> = of_locks()
        .map(|(_, event)| event.key.as_deref().unwrap_or_default())
        .collect();
    let lane = |key: &str| {
        let of_it: Vec<_> = of_locks()
            .filter(|(_, e)| e.key.as_deref().unwrap_or_default() == key)
            .collect();
        let mut held: Vec<(usize, usize, &str)> = Vec::new();
        for (n, event) in of_it {
            if let Some(last) = held.last_mut().filter(|(_, to, _)| *to == drawn.len()) {
                last.1 = n;
            }
            let owner = event
                .owner
                .as_deref()
                .or_else(|| held.last().map(|(_, _, owner)| *owner));
            if let ("held" | "renewed", Some(owner)) = (event.event.as_str(), owner) {
                held.push((n, drawn.len(), owner));
            }
        }
        let held = held
            .into_iter()
            .map(|(from, to, owner)| (axis.span((from, to)), short(owner)))
            .collect();
        Locked {
            name: key.to_owned(),
            held,
        }
    };
    keys.into_iter().map(lane).collect()
}

/// An actor's letter, or that it is somebody else's text.
fn short(owner: &str) -> &str {
    if owner.chars().count() <= 2 {
        owner
    } else {
        "?"
    }
}

fn changes(drawn: &[&ReplayEvent], actor: &str, axis: Axis) -> Vec<(f64, String)> {
    let mut at: Vec<(f64, String)> = Vec::new();
    for (n, event) in drawn
        .iter()
        .enumerate()
        .filter(|(_, event)| event.actor == actor)
    {
        let value = event
            .value
            .as_ref()
            .map(text)
            .or_else(|| event.token.map(|token| token.to_string()));
        if let Some(value) = value.filter(|value| at.last().is_none_or(|(_, last)| last != value)) {
            at.push((axis.at(n), value));
        }
    }
    at
}

impl<'a> Line<'a> {
    fn of(event: &'a ReplayEvent) -> Self {
        let mut zh = word(&event.event)
            .map_or(event.event.as_str(), |word| word.zh)
            .to_owned();
        let mut en = word(&event.event)
            .map_or(event.event.as_str(), |word| word.en)
            .to_owned();
        if let Some(Value::Object(caption)) = event.value.as_ref().filter(|_| event.actor == "step")
        {
            let said = |lang: &str| caption.get(lang).map(text).unwrap_or_default();
            (zh, en) = (said("zh"), said("en"));
        } else if let ("sold", Some(left)) = (event.event.as_str(), &event.value) {
            zh = format!("卖出，还剩 {}", text(left));
            en = format!("sells a piece, {} left", text(left));
        } else {
            let value = event.value.as_ref().map(text);
            let pttl = event
                .pttl
                .filter(|ms| *ms >= 0)
                .map(|ms| format!("{ms} ms"));
            let token = event.token.map(|token| format!("#{token}"));
            for more in [event.key.clone(), value, event.owner.clone(), token, pttl]
                .into_iter()
                .flatten()
            {
                zh += &format!(" {more}");
                en += &format!(" {more}");
            }
        }
        Self {
            ms: format!("{:.1}", event.t_us as f64 / 1000.0),
            actor: &event.actor,
            words: Words { zh, en },
        }
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::Ends;
    use serde_json::json;

    fn play(events: &[(&str, &str)]) -> Play {
        let event = |(n, (actor, event)): (usize, &(&str, &str))| {
            let owner = if *actor == "lock" { "A" } else { "" };
            serde_json::from_value(
                json!({"t_us": n, "actor": actor, "event": event, "owner": owner}),
            )
            .unwrap()
        };
        let events = events.iter().enumerate().map(event).collect();
        let ends = Ends {
            sold: 2,
            gone: 1,
            inside: 2,
            ..Ends::default()
        };
        Play {
            lesson: "1.3".into(),
            cured: false,
            ends,
            as_meant: true,
            said: Default::default(),
            events,
        }
    }

    #[test]
    fn who_is_inside_with_another_is_over() {
        let play = play(&[
            ("A", "locked"),
            ("B", "locked"),
            ("A", "read"),
            ("A", "released"),
            ("B", "sold"),
        ]);
        let lanes = Lanes::of(&play).unwrap();
        let spans = |spans: &[Span]| {
            spans
                .iter()
                .map(|span| (span.x, span.width))
                .collect::<Vec<_>>()
        };
        assert_eq!(spans(&lanes.actors[0].inside), [(0.0, 60.0)]);
        assert_eq!(spans(&lanes.actors[1].inside), [(20.0, 60.0)]);
        assert_eq!(spans(&lanes.actors[0].over), [(20.0, 40.0)]);
        assert_eq!(lanes.actors[0].over, lanes.actors[1].over);
    }

    #[test]
    fn a_lock_is_held_until_it_is_free() {
        let play = play(&[
            ("lock", "held"),
            ("A", "locked"),
            ("lock", "free"),
            ("A", "sold"),
        ]);
        let lanes = Lanes::of(&play).unwrap();
        assert_eq!(
            lanes.locks[0].held,
            [(
                Span {
                    x: 0.0,
                    width: 50.0
                },
                "A"
            )]
        );
    }

    #[test]
    fn a_race_without_actors_is_not_drawn() {
        assert!(Lanes::of(&play(&[("stock", "stock")])).is_none());
    }
}
