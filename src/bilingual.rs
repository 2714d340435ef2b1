//! Text for people, in both languages of the project.

use serde::Serialize;
use utoipa::ToSchema;

/// The same text in Chinese and in English.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Bilingual {
    /// Chinese.
    pub zh: &'static str,
    /// English.
    pub en: &'static str,
}
