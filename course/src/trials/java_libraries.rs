//! Builds the Java libraries that claims are tried on, and says why one cannot be built.

use oversell::claims::{Lesson, Library, Script};
use oversell_lab::{
    clients::peer::Java,
    terminal::failure::{Failure, unusable},
};
use std::path::Path;
use tokio::process::Command;

/// The folder with the Java projects.
pub(super) const INTEROP: &str = "interop";

/// The versions of the libraries that can be started, and the reasons why others cannot.
#[derive(Debug, Default)]
pub(super) struct JavaLibraries {
    ready: Vec<Java>,
    missing: Vec<(Java, String)>,
}

impl JavaLibraries {
    /// Builds each version of the libraries that these lessons need; what cannot be built is noted with its reason.
    pub(super) async fn build_for(lessons: impl Iterator<Item = &Lesson>) -> Self {
        let mut libraries = Self::default();
        let needed: Vec<_> = lessons.filter_map(|lesson| lesson.theirs.as_ref()).collect();
        let is_needed = |library: &Library| needed.iter().any(|script: &&Script| script.on == *library);
        for java in (Library::ALL.into_iter().filter(is_needed)).flat_map(Library::versions) {
            match build_if_needed(java).await {
                Ok(()) => libraries.ready.push(java),
                Err(why) => libraries.missing.push((java, why.to_string())),
            }
        }
        libraries
    }

    /// Why a version of this library cannot be started; `None` if each can, or no lesson asked for it.
    pub(super) fn why_not(&self, library: Library) -> Option<&str> {
        let mut missing = self.missing.iter();
        let (_, why) = missing.find(|(java, _)| library.versions().contains(java))?;
        Some(why)
    }

    /// The versions of this library that can be started, the one of the text first.
    pub(super) fn versions(&self, library: Library) -> Vec<Java> {
        let mut versions = library.versions();
        versions.retain(|java| self.ready.contains(java));
        versions
    }

    /// Whether the twin of this lesson can be tried: without an experiment on our service it needs the text's library.
    pub(super) fn can_try_twin(&self, lesson: &Lesson) -> bool {
        let on_theirs = |script: &Script| !self.versions(script.on).is_empty();
        lesson.why_not().is_none() || lesson.theirs.as_ref().is_some_and(on_theirs)
    }
}

/// Checks that Java is installed, and builds this version unless that is done already.
async fn build_if_needed(java: Java) -> Result<(), Failure> {
    let interop = Path::new(INTEROP);
    let runs = Command::new("java").arg("-version").output().await;
    runs.map_err(|_| unusable!("java is not installed"))?;
    if java.is_built(interop) {
        return Ok(());
    }
    java.check_build_tools(interop).await?;
    eprintln!("oversell: building {}/{} {}", INTEROP, java.library, java.version);
    java.build(interop).await
}
