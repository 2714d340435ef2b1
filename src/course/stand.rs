//! The Java processes that can be started here: built where they are not yet, and where they cannot be, why.

use super::{Lesson, Library, Script};
use crate::peer::Java;
use std::path::Path;
use tokio::process::Command;

/// Where the projects are, in the tree.
pub(super) const INTEROP: &str = "interop";

/// What can be started.
#[derive(Debug, Default)]
pub(super) struct Stand {
    ready: Vec<Java>,
    /// Why others are not.
    pub(super) why: Option<String>,
}

impl Stand {
    /// What these lessons need, built where it is not.
    pub(super) async fn of(lessons: impl Iterator<Item = &Lesson>) -> Self {
        let mut stand = Self::default();
        let needed: Vec<_> = lessons
            .filter_map(|lesson| lesson.theirs.as_ref())
            .collect();
        let all = [Library::Redisson, Library::Curator, Library::Spring];
        let is_needed =
            |library: &Library| needed.iter().any(|script: &&Script| script.on == *library);
        let needed: Vec<_> = all.into_iter().filter(is_needed).collect();
        if !needed.is_empty() && Command::new("java").arg("-version").output().await.is_err() {
            stand.why = Some("java is not installed".to_owned());
            return stand;
        }
        for java in needed.into_iter().flat_map(Library::versions) {
            let interop = Path::new(INTEROP);
            if !java.is_built(interop) {
                eprintln!(
                    "oversell: building {INTEROP}/{} {}",
                    java.library, java.version
                );
                if let Err(why) = java.build(interop).await {
                    stand.why = Some(why.to_string());
                    continue;
                }
            }
            stand.ready.push(java);
        }
        stand
    }

    /// The versions of this library, the text's own first.
    pub(super) fn versions(&self, library: Library) -> Vec<Java> {
        let mut versions = library.versions();
        versions.retain(|java| self.ready.contains(java));
        versions
    }

    /// Whether the lesson's twin can be tried: of one that is tried on theirs only it takes them.
    pub(super) fn has_a_twin(&self, lesson: &Lesson) -> bool {
        let on_theirs = |script: &Script| !self.versions(script.on).is_empty();
        lesson.why_not().is_none() || lesson.theirs.as_ref().is_some_and(on_theirs)
    }
}
