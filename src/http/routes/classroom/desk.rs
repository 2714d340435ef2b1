//! `/classroom/desk` and `/classroom/presence`: the teacher's desk over a class.
//!
//! 1. Each page says now and then who is there and which lesson it shows; the answer has the teacher's last call.
//! 2. The desk lists who is there, the races of each, and what waits for its turn.
//! 3. The teacher calls everybody to a lesson, or to a student's race; and ends what waits.
//!
//! nginx sends all requests about a class to one instance, so this is in its memory. A page that was opened after a call does not
//! follow it: the page compares the call's id.

use crate::http::routes::prelude::*;
use crate::http::{
    queue::{Queue, QueueEntry, millis},
    replays::{Replays, VisitorRace, WatchedReplay},
    runs::Runs,
};
use parking_lot::Mutex;
use std::{collections::HashMap, time::Instant};

/// A page that has been silent for this long is closed or hidden: an open one tells every 5 s where it is.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(15);
/// The most visitors who are counted as present; one more is refused.
const MAX_PRESENT: usize = 400;
/// The most replays of one call: the flaw and its cure.
const MAX_WATCHED: usize = 2;

/// The visitors who are present, and the last call of the teacher.
#[derive(Default)]
pub(in crate::http) struct Class {
    here: Mutex<PresentVisitors>,
    call: Mutex<Option<Call>>,
}

/// The visitors who are present, and the number of the latest newcomer.
#[derive(Default)]
struct PresentVisitors {
    latest_number: u64,
    by_visitor: HashMap<Visitor, Student>,
}

/// A visitor who is present, and what their page has last said.
#[derive(Debug, Clone)]
struct Student {
    number: u64,
    who: Option<String>,
    lesson: &'static str,
    last_sign: Instant,
}

/// Where a page is.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Presence {
    /// The lesson that it shows.
    #[garde(skip)]
    #[schema(schema_with = claims::verdicts::lesson_id_schema)]
    lesson: String,
    /// The name that was typed on it.
    #[garde(dive)]
    #[schema(inline)]
    who: Option<Who>,
}

/// The answer to a page.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct PresenceAnswer {
    /// The teacher's last call; null before the first one.
    call: Option<Call>,
}

/// Where everybody is to go.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct Call {
    /// Another one for each call.
    id: Uuid,
    #[schema(example = "2.3")]
    lesson: &'static str,
    /// The race that everybody is to watch; empty for the lesson alone.
    replays: Vec<WatchedReplay>,
}

/// A call of the teacher.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CallRequest)]
pub(in crate::http) struct NewCall {
    /// Where everybody is to go.
    #[garde(skip)]
    #[schema(schema_with = claims::verdicts::lesson_id_schema)]
    lesson: String,
    /// The replays of this lesson that everybody is to watch, by their ids.
    #[garde(length(max = MAX_WATCHED))]
    #[serde(default)]
    replays: Vec<Uuid>,
}

/// The class as the teacher sees it.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct DeskView {
    /// In the order in which they came.
    visitors: Vec<VisitorView>,
    /// Loads and races that wait for their turn.
    waiting: Vec<WaitingView>,
}

/// A visitor who is there.
#[derive(Debug, Serialize, ToSchema)]
struct VisitorView {
    #[schema(example = 3)]
    number: u64,
    /// Null without a name.
    #[schema(example = "小明")]
    who: Option<String>,
    #[schema(example = "2.3")]
    lesson: &'static str,
    /// Whether it is the browser that asks.
    own: bool,
    /// The newest first.
    races: Vec<VisitorRace>,
}

/// What waits for its turn.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct WaitingView {
    /// A load's strategy, or a race's lesson.
    #[schema(example = "2.8")]
    what: String,
    /// Null if its visitor shows no page.
    #[schema(example = 3)]
    number: Option<u64>,
    who: Option<String>,
    /// About how long it waits, in milliseconds.
    #[schema(example = 12_000)]
    starts_in_ms: u64,
}

/// What was ended.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct QueueCleared {
    /// How many loads and races.
    #[schema(example = 2)]
    ended: usize,
}

impl Class {
    /// Notes that a visitor's page is open, with its name and lesson; a newcomer gets the next number, or is refused beyond
    /// [`MAX_PRESENT`]. Forgets whoever was silent for [`LEAVE_TIMEOUT`]: on return they are newcomers.
    fn note_presence(&self, visitor: Visitor, who: Option<String>, lesson: &'static str) -> Result<(), Error> {
        let mut here = self.here.lock();
        let PresentVisitors { latest_number, by_visitor } = &mut *here;
        by_visitor.retain(|_, student| student.last_sign.elapsed() < LEAVE_TIMEOUT);
        if !by_visitor.contains_key(&visitor) {
            if by_visitor.len() >= MAX_PRESENT {
                return Err(Error::too_many("visitors on the teacher's desk", MAX_PRESENT));
            }
            *latest_number += 1;
        }
        let number = *latest_number;
        let student =
            by_visitor.entry(visitor).or_insert_with(|| Student { number, who: None, lesson, last_sign: Instant::now() });
        (student.who, student.lesson, student.last_sign) = (who, lesson, Instant::now());
        Ok(())
    }

    /// The visitors who are present, in the order in which they came.
    fn students(&self) -> Vec<(Visitor, Student)> {
        let here = self.here.lock();
        let here = here.by_visitor.iter();
        let mut students: Vec<_> = here
            .filter(|(_, student)| student.last_sign.elapsed() < LEAVE_TIMEOUT)
            .map(|(visitor, student)| (visitor.clone(), student.clone()))
            .collect();
        students.sort_by_key(|(_, student)| student.number);
        students
    }
}

/// Says that a page is open, and which lesson it shows. The answer says where the teacher has called everybody.
#[utoipa::path(put, path = "/classroom/presence", tag = "classroom", request_body = Presence,
    params(Visitor),
    responses(
        (status = 200, description = "It is on the teacher's desk for 15 seconds", body = PresenceAnswer),
        (status = 404, description = "There is no such lesson"),
        (status = 429, description = "As many visitors as may be are there"),
    ))]
pub(in crate::http) async fn mark_present(
    visitor: Visitor,
    InstanceState(class): InstanceState<Class>,
    Json(Presence { lesson, who }): Json<Presence>,
) -> Result<axum::Json<PresenceAnswer>, Error> {
    let lesson = claims::find(&lesson).ok_or(Error::NoLesson(lesson))?;
    class.note_presence(visitor, who.map(Who::into_inner), lesson.id)?;
    let call = class.call.lock().clone();
    Ok(axum::Json(PresenceAnswer { call }))
}

/// Who is there, which lesson each shows, their races, and what waits.
#[utoipa::path(get, path = "/classroom/desk", tag = "classroom", security((), ("admin" = [])),
    params(Visitor),
    responses((status = 200, description = "The class", body = DeskView)))]
pub(in crate::http) async fn desk(
    _: Admin,
    visitor: Visitor,
    InstanceState(class): InstanceState<Class>,
    InstanceState(replays): InstanceState<Replays>,
    InstanceState(runs): InstanceState<Runs>,
) -> axum::Json<DeskView> {
    let students = class.students();
    let waiting = [
        waiting_in(&runs, &students, |run| run.about.plan.strategy.clone()),
        waiting_in(&replays.queue, &students, |replay| replay.lesson.into()),
    ];
    let visitors = students.into_iter().map(|(of, student)| VisitorView {
        number: student.number,
        who: student.who,
        lesson: student.lesson,
        own: of == visitor,
        races: replays.races_of(&of),
    });
    axum::Json(DeskView { visitors: visitors.collect(), waiting: waiting.concat() })
}

/// What waits in a queue, and which of the students have asked for it.
fn waiting_in<T: QueueEntry>(
    queue: &Queue<T>,
    students: &[(Visitor, Student)],
    label: impl Fn(&T) -> String,
) -> Vec<WaitingView> {
    let waiting = queue.waiting().into_iter().map(|entry| {
        let asker = &entry.ticket().visitor;
        let student = students.iter().find(|(visitor, _)| visitor == asker);
        let student = student.map(|(_, student)| student);
        WaitingView {
            what: label(&entry),
            number: student.map(|it| it.number),
            who: student.and_then(|it| it.who.clone()),
            starts_in_ms: millis(queue.place_of(&entry).starts_in),
        }
    });
    waiting.collect()
}

/// Calls everybody to a lesson, or to watch a race of it: their pages go there within seconds.
#[utoipa::path(put, path = "/classroom/desk", tag = "classroom", request_body = NewCall, security((), ("admin" = [])),
    responses(
        (status = 204, description = "The pages that are open will follow"),
        (status = 404, description = "There is no such lesson, or no such replay of it"),
    ))]
pub(in crate::http) async fn call(
    _: Admin,
    InstanceState(class): InstanceState<Class>,
    InstanceState(replays): InstanceState<Replays>,
    Json(NewCall { lesson, replays: ids }): Json<NewCall>,
) -> Result<StatusCode, Error> {
    let lesson = claims::find(&lesson).ok_or(Error::NoLesson(lesson))?;
    let replays = replays.share(lesson.id, &ids)?;
    *class.call.lock() = Some(Call { id: Uuid::new_v4(), lesson: lesson.id, replays });
    Ok(StatusCode::NO_CONTENT)
}

/// Ends every load and every race that waits for its turn, whosever it is; what is under way goes on.
#[utoipa::path(delete, path = "/classroom/desk/queue", tag = "classroom", security((), ("admin" = [])),
    responses((status = 200, description = "How many", body = QueueCleared)))]
pub(in crate::http) async fn clear_queue(
    _: Admin,
    InstanceState(replays): InstanceState<Replays>,
    InstanceState(runs): InstanceState<Runs>,
) -> axum::Json<QueueCleared> {
    let ended = runs.cancel_waiting() + replays.queue.cancel_waiting();
    axum::Json(QueueCleared { ended })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error as Domain;

    #[test]
    fn a_full_class_takes_no_new_visitor_until_one_leaves() {
        let class = Class::default();
        let note = |n: usize| class.note_presence(Visitor::named(&format!("visitor {n}")), None, "1.3");
        for n in 0..MAX_PRESENT {
            assert!(note(n).is_ok(), "{n}");
        }
        let more = note(MAX_PRESENT).expect_err("one more");
        assert!(matches!(more, Error::Domain(Domain::TooMany { most: MAX_PRESENT, .. })), "{more}");
        assert!(note(7).is_ok(), "one who is there stays");
        assert_eq!(class.students().len(), MAX_PRESENT);
        let long_ago = Instant::now().checked_sub(LEAVE_TIMEOUT).expect("this machine is up for longer");
        let silent = Visitor::named("visitor 8");
        let mut here = class.here.lock();
        here.by_visitor.get_mut(&silent).expect("it is there").last_sign = long_ago;
        drop(here);
        assert_eq!(class.students().len(), MAX_PRESENT - 1);
        assert!(note(MAX_PRESENT).is_ok());
    }
}
