//! A failed command: its exit status, and one line that says what to do.

use std::process::ExitCode;

/// A command's failure. Its text is one line for the terminal.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A promise was broken: exit status 1.
    #[error("{0}")]
    Promise(String),
    /// Bad usage, or something missing: exit status 2.
    #[error("{0}")]
    Unusable(String),
}

/// [`Failure::Unusable`] with this text, as `format!` writes it.
macro_rules! unusable {
    ($($text:tt)*) => {
        $crate::failure::Failure::Unusable(format!($($text)*))
    };
}
pub(crate) use unusable;

impl Failure {
    /// The exit status, as the readme lists them.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Promise(_) => ExitCode::from(1),
            Self::Unusable(_) => ExitCode::from(2),
        }
    }
}
