//! A failed command: its exit status, and one line that says what to do.

use std::process::ExitCode;

/// A command's failure. Its text is one line for the terminal.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A promise was broken: exit status 1.
    #[error("{0}")]
    Promise(String),
    /// The results cannot be written: exit status 1.
    #[error("{0}")]
    Output(String),
    /// Bad usage, or something missing: exit status 2.
    #[error("{0}")]
    Unusable(String),
    /// A signal has cut it short: exit status 130, as shells have it.
    #[error("{0}")]
    Interrupted(String),
}

/// [`Failure::Unusable`] with a text in Chinese and in English, in the language of the terminal.
#[macro_export]
macro_rules! unusable_localized {
    ($($text:tt)*) => {
        $crate::terminal::failure::Failure::Unusable($crate::terminal::chinese::localized!($($text)*))
    };
}
pub use unusable_localized;

/// [`Failure::Unusable`] with this text, as `format!` writes it.
#[macro_export]
macro_rules! unusable {
    ($($text:tt)*) => {
        $crate::terminal::failure::Failure::Unusable(format!($($text)*))
    };
}
pub use unusable;

impl Failure {
    /// The exit status, as the readme lists them.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Promise(_) | Self::Output(_) => ExitCode::from(1),
            Self::Unusable(_) => ExitCode::from(2),
            Self::Interrupted(_) => ExitCode::from(130),
        }
    }
}
