//! `/classroom/lines`: types a line of a lesson where the servers are, for a page that has no terminal.
//!
//! 1. The line is the lesson's own, with this cluster's addresses in it: nothing else can be typed. Only where replays are enabled, and
//!    with the admin token where there is one, for some lines stop a server.
//! 2. A shell runs it, with this program and the tools of the servers on its path, in a process group that ends with the request,
//!    with its minute and with this instance.
//! 3. The answer is what it has printed.
//! 4. A lesson that starts a lab of its own is typed in a terminal: nobody would stop that lab.
//!
//! **What breaks it**: a line that stops the very instance that runs it; in a container, a tool that is not there.

use crate::http::routes::prelude::*;
use crate::http::routes::{course::placeholders, replays::check_replays_and_own_locks_enabled};
use oversell_lab::programs::{LINE_TIMEOUT, ShellOutput, run_in_shell, shell_path};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Limit of the lines that run at once: each is a shell that may start a JVM (`zkCli.sh`).
const MAX_RUNNING_LINES: usize = 16;

/// Limit of stdout, and of stderr, in bytes: more does not fit the page. A line that reaches it is killed, which is no error.
const MAX_OUTPUT_BYTES: usize = 16 * 1024;

/// The permits of the lines that run at once; a line for which none is left is answered 503.
type LinePermits = Permits<LineOutput, MAX_RUNNING_LINES>;

/// The output of a line.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct LineOutput {
    /// Stdout and stderr, of each the first 16 kB.
    #[schema(example = "4999")]
    printed: String,
    /// Whether it is what the lesson says.
    expected: bool,
}

/// Types a line of a lesson, and answers what it prints.
#[utoipa::path(post, path = "/classroom/lines/{lesson}/{number}", tag = "classroom", security((), ("admin" = [])),
    params(
        ("lesson" = String, Path, description = "The lesson's number", example = "2.1"),
        ("number" = usize, Path, description = "The line's, from 1"),
    ),
    responses(
        (status = 200, description = "It has ended", body = LineOutput),
        (status = 403, description = "Replays are not enabled here, and so no lines are typed"),
        (status = 404, description = "There is no such line"),
        (status = 409, description = "The lesson starts a lab of its own, which takes a terminal"),
    ))]
pub(in crate::http) async fn type_line(
    _: Admin,
    State(app): State<AppState>,
    InstanceState(permits): InstanceState<LinePermits>,
    Path((lesson, number)): Path<(String, usize)>,
) -> Result<axum::Json<LineOutput>, Error> {
    check_replays_and_own_locks_enabled(&app)?;
    let lines = claims::find(&lesson).map(|lesson| &lesson.by_hand);
    let lines = lines.map(Vec::as_slice).unwrap_or_default();
    let line = number.checked_sub(1).and_then(|number| lines.get(number));
    let line = line.ok_or_else(|| Error::NoLesson(format!("{lesson}, line {number}")))?;
    if let Some(start) = lines.iter().find(|line| line.starts_lab()) {
        return Err(Error::OwnLab(start.run.clone()));
    }
    let place = permits.try_take().ok_or(Error::Overloaded("typed lines"))?;
    let line = placeholders(&app.ctx).fill_line(line);
    // The request waits for this line alone.
    let run = line.run.strip_suffix(" &").unwrap_or(&line.run).to_owned();
    let hung_up = CancellationToken::new();
    let _until_here = hung_up.clone().drop_guard();
    let closing = app.ctx.closing.clone();
    // In a task of its own, which has the permit until the shell is gone.
    let ran = app.ctx.tasks.spawn(async move {
        let _place = place;
        let until = async {
            tokio::select! {
                () = hung_up.cancelled() => {}
                () = closing.cancelled() => {}
                () = sleep(LINE_TIMEOUT) => {}
            }
        };
        run_in_shell(&run, &shell_path(), MAX_OUTPUT_BYTES, until).await
    });
    let ran = ran.await.map_err(|error| crate::error::Error::Internal(error.to_string()))?;
    let ShellOutput { stdout, stderr } =
        ran.map_err(|error| Error::Domain(crate::error::Error::Unavailable { server: "bash", reason: error.to_string() }))?;
    Ok(axum::Json(LineOutput { expected: line.is_printed(&stdout), printed: stdout + &stderr }))
}
