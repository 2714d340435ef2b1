//! `/classroom/lines`: types a line of a lesson where the servers are, for a page that has no terminal.
//!
//! 1. The line is the lesson's own, with this cluster's addresses in it: nothing else can be typed. Only where replays are enabled, and
//!    with the admin token where there is one, for some lines stop a server.
//! 2. A shell runs it, with this program and the tools of the servers on its path.
//! 3. The answer is what it has printed.
//!
//! **What breaks it**: a line that stops the very instance that runs it; in a container, a tool that is not there.

use crate::http::routes::prelude::*;
use crate::{
    claims,
    http::{
        extract::Admin,
        routes::{course::placeholders, replays::check_enabled},
    },
};
use std::{env, ffi::OsString, path::PathBuf, process::Stdio};
use tokio::{process::Command, sync::Semaphore};

/// Each is a shell that may start a JVM (`zkCli.sh`): more would burden the machine.
const MAX_RUNNING_LINES: usize = 16;

/// Longer than any lesson's line takes, so that only one that hangs is ended.
const TIMEOUT_SECONDS: &str = "60";

/// Where the package of ZooKeeper has `zkCli.sh`, which is not on everybody's path.
const ZKCLI_FOLDER: &str = "/usr/share/zookeeper/bin";

/// Longer output does not fit the page.
const MAX_OUTPUT_BYTES: usize = 16 * 1024;

/// The slots of the lines that may run at once.
#[derive(Debug)]
pub(in crate::http) struct LineSlots(Semaphore);

impl Default for LineSlots {
    fn default() -> Self {
        Self(Semaphore::new(MAX_RUNNING_LINES))
    }
}

/// The output of a line.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Printed)]
pub(in crate::http) struct LineOutput {
    /// Stdout and stderr; the end of long output.
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
    ))]
pub(in crate::http) async fn type_line(
    _: Admin,
    State(app): State<AppState>,
    Own(slots): Own<LineSlots>,
    Path((lesson, number)): Path<(String, usize)>,
) -> Result<axum::Json<LineOutput>, Error> {
    check_enabled(&app)?;
    let lines = claims::find(&lesson).map(|lesson| &lesson.by_hand);
    let line = lines.and_then(|lines| lines.get(number.checked_sub(1)?));
    let line = line.ok_or_else(|| Error::NoLesson(format!("{lesson}, line {number}")))?;
    let _slot = slots.0.try_acquire().map_err(|_| Error::Overloaded)?;
    let line = placeholders(&app.ctx).typed(line);
    // The request waits for this line alone.
    let run = line.run.strip_suffix(" &").unwrap_or(&line.run);
    let output = Command::new("timeout")
        .args([TIMEOUT_SECONDS, "bash", "-c", run])
        .env("PATH", path())
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(|error| {
            Error::Domain(crate::error::Error::Unavailable {
                server: "bash",
                reason: error.to_string(),
            })
        })?;
    let [said, complained] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let printed = format!("{said}{complained}");
    let from = printed.ceil_char_boundary(printed.len().saturating_sub(MAX_OUTPUT_BYTES));
    Ok(axum::Json(LineOutput {
        printed: printed[from..].to_owned(),
        expected: line.is_printed(&said),
    }))
}

/// This program's own folder first: what is typed as `oversell` is what answers here.
fn path() -> OsString {
    let own = env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.to_owned()));
    let path = env::var_os("PATH").unwrap_or_default();
    let all = own
        .into_iter()
        .chain(env::split_paths(&path))
        .chain([PathBuf::from(ZKCLI_FOLDER)]);
    env::join_paths(all).unwrap_or(path)
}
