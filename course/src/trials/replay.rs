//! Plays the race of a lesson on the real servers through `POST /replays/{lesson}`, and reads its events.

use super::{Cluster, NoVerdict, Observation, PlayedRace, cluster::REQUEST_TIMEOUT};
use eventsource_stream::Event;
use futures::TryStreamExt;
use http::{Method, StatusCode};
use oversell::{
    claims::{Words, words},
    replay::ReplayResult,
};
use oversell_lab::clients::http_client::{Ask, Events, HttpError};
use serde::Deserialize;

/// The answer of `GET /replays`.
#[derive(Deserialize)]
struct ReplayList {
    enabled: bool,
    replays: Vec<ReplayEntry>,
}

/// A race of that list; `cannot` is the reason why it cannot be played here.
#[derive(Deserialize)]
struct ReplayEntry {
    lesson: String,
    cannot: Option<Words>,
    ends: ExpectedEnd,
    cured_ends: ExpectedEnd,
}

/// The figures with which a race must end.
#[derive(Default, Deserialize)]
struct ExpectedEnd {
    sold: i64,
    gone: i64,
    inside: usize,
    notes: String,
    said: Words,
}

/// The answer to the start of a replay: the path of its events.
#[derive(Deserialize)]
struct StartedReplay {
    events: String,
}

/// Claim: a race ends as its flaw must, and then as its cure must. `cured`: whether the first and the second have the cure.
pub(super) async fn flaw_and_cure(on: &Cluster, lesson: &str, cured: [bool; 2]) -> Result<Observation, NoVerdict> {
    let flaw = on.replay(lesson, cured[0], false).await?;
    let cure = on.replay(lesson, cured[1], true).await?;
    let words = |PlayedRace { ends, said, .. }: &PlayedRace| {
        let ReplayResult { sold, gone, inside, .. } = ends;
        let (zh, en) =
            if ends.notes.is_empty() { Default::default() } else { (format!("，{}", said.zh), format!(", {}", said.en)) };
        let zh = format!("卖出 {sold} 件、库存减少 {gone} 件、临界区内最多 {inside} 个{zh}");
        let en = format!("{sold} sold, {gone} gone, at most {inside} inside at once{en}");
        (zh, en)
    };
    let ((flaw_zh, flaw_en), (cure_zh, cure_en)) = (words(&flaw), words(&cure));
    let (how_zh, how_en) = match flaw.ends.forced.max(cure.ends.forced) {
        Some(true) => ("（强制：租约、会话、持有者由命令结束）", ", forced (leases, sessions, holders ended by order)"),
        Some(false) => ("（没有强制：到时间自己结束）", ", by the clock"),
        None => ("", ""),
    };
    let words = words!("重演{how_zh}：{flaw_zh}；修正后：{cure_zh}。", "Replayed{how_en}: {flaw_en}; with its cure: {cure_en}.");
    Ok(Observation::holds(flaw.ends.as_meant && cure.ends.as_meant, words).plays([flaw, cure]))
}

impl Cluster {
    /// Plays a race, by the clock or in the quick form by force, and compares its end with that of the cure (`ends_cured`)
    /// or of the flaw. Unavailable if it cannot be played there. Dropping the future leaves the race to end by itself.
    pub(crate) async fn replay(&self, lesson: &str, cured: bool, ends_cured: bool) -> Result<PlayedRace, NoVerdict> {
        let at = self.one_instance();
        let none = || NoVerdict::unavailable("这个集群不能重演", "this cluster plays no replays");
        let known = self.get(&format!("{at}/replays")).await?;
        let known: ReplayList = match known.success() {
            Ok(answer) => answer.json()?,
            Err(HttpError::Refused { status: StatusCode::NOT_FOUND | StatusCode::FORBIDDEN, .. }) => return Err(none()),
            Err(error) => return Err(error.into()),
        };
        let listed = known.replays.into_iter().find(|listed| listed.lesson == lesson);
        let listed = listed.filter(|_| known.enabled).ok_or_else(none)?;
        if let Some(Words { zh, en }) = listed.cannot {
            return Err(NoVerdict::unavailable(zh, en));
        }
        let meant = if ends_cured { listed.cured_ends } else { listed.ends };
        let pace = if self.quick { "fast" } else { "clock" };
        let start = format!("{at}/replays/{lesson}?cured={cured}&pace={pace}");
        let started: StartedReplay = self.request(Method::POST, &start).answer().await?.success()?.json()?;
        // Every stream starts at the first event and ends after the last.
        read_to_end(
            lesson,
            cured,
            meant,
            self.request(Method::GET, &format!("{at}{}", started.events)).events(REQUEST_TIMEOUT).await?,
        )
        .await
    }
}

/// Reads the events of a race to their end; it ends as meant if the replay says so and has the figures that are meant.
async fn read_to_end(lesson: &str, cured: bool, meant: ExpectedEnd, mut stream: Events) -> Result<PlayedRace, NoVerdict> {
    let mut events = Vec::new();
    while let Some(Event { event, data, .. }) = stream.try_next().await? {
        match event.as_str() {
            "message" => events.push(serde_json::from_str(&data)?),
            "done" => {
                let mut ends: ReplayResult = serde_json::from_str(&data)?;
                ends.as_meant &=
                    (ends.sold, ends.gone, ends.inside, &ends.notes) == (meant.sold, meant.gone, meant.inside, &meant.notes);
                let said = if ends.as_meant { meant.said } else { Words::untranslated(&ends.notes) };
                return Ok(PlayedRace { lesson: lesson.to_owned(), cured, ends, said, events });
            }
            _ => {
                return Err(NoVerdict::failed(format!("the replay of {lesson} failed: {data}")));
            }
        }
    }
    Err(NoVerdict::failed(format!("the replay of {lesson} ended without its last event")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{StreamExt, stream};

    const READ: [&str; 2] = ["message", r#"{"t_us":12,"actor":"A","event":"read","value":"5000"}"#];

    fn stream(events: &[[&str; 2]]) -> Events {
        let event = |[event, data]: &[&str; 2]| Event { event: (*event).into(), data: (*data).into(), ..Event::default() };
        stream::iter(events.iter().map(event).map(Ok).collect::<Vec<_>>()).boxed()
    }

    #[tokio::test]
    async fn a_replay_is_judged_by_the_expected_end_not_its_own_word() {
        let ends = r#"{"sold":3,"gone":2,"inside":2,"notes":"","as_meant":true}"#;
        let meant = r#"{"sold":3,"gone":2,"inside":2,"notes":"","said":{"zh":"","en":""}}"#;
        for (gone, as_meant) in [("2", true), ("3", false)] {
            let meant = serde_json::from_str(&meant.replace('2', gone)).unwrap();
            let events = stream(&[READ, ["done", ends]]);
            let play = read_to_end("2.3", false, meant, events).await.unwrap();
            assert_eq!((play.events.len(), play.ends.as_meant), (1, as_meant));
        }
    }

    #[tokio::test]
    async fn a_failed_or_cut_off_stream_gives_no_verdict() {
        for events in [&[READ][..], &[["failed", r#"{"detail":"no Redis"}"#]]] {
            assert!(
                matches!(read_to_end("2.3", false, ExpectedEnd::default(), stream(events)).await, Err(NoVerdict::Failed(_))),
                "{events:?}"
            );
        }
    }
}
