//! The parameters of every route of the course: which product, how long to stay, to wait and to keep the lock, and on
//! whose behalf.

use super::extract::BoundedInteger;
use crate::config::require;
use garde::Validate;
use serde::{Deserialize, Serialize};
use unicode_properties::{GeneralCategory as Category, UnicodeGeneralCategory};
use utoipa::{
    IntoParams, PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, Type},
};

pub(super) type StockId = BoundedInteger<1, { i64::MAX }>;
/// A stay inside the critical section, in milliseconds.
pub(super) type HoldMs = BoundedInteger<0, 60_000>;
/// A wait, in milliseconds: long enough for people to walk through a lesson.
pub(super) type WaitMs = BoundedInteger<0, 600_000>;
pub(super) type LeaseMs = BoundedInteger<100, 600_000>;

#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ProductQuery {
    /// Which product; 1 without it.
    #[garde(dive)]
    #[param(inline, default = 1)]
    stock_id: Option<StockId>,
}

impl ProductQuery {
    pub(super) fn id(&self) -> i64 {
        self.stock_id.map_or(1, BoundedInteger::get)
    }
}

const MAX_NAME_CHARS: usize = 32;

#[derive(Debug, Clone, Deserialize, Serialize, Validate)]
#[serde(transparent)]
#[garde(transparent)]
pub(super) struct Who(#[garde(custom(Self::check_name))] String);

impl Who {
    pub(super) fn into_inner(self) -> String {
        self.0
    }

    /// Refuses a name that is empty or too long, and control and format characters: they could write further lines on the
    /// console, or reverse the words after them.
    fn check_name(text: &str, (): &()) -> garde::Result {
        let length = text.chars().count();
        let is_unseen = |c: char| {
            use Category::{Control, Format, LineSeparator, ParagraphSeparator};
            matches!(c.general_category(), Control | Format | LineSeparator | ParagraphSeparator)
        };
        require(
            (1..=MAX_NAME_CHARS).contains(&length) && !text.chars().any(is_unseen),
            format_args!("must have 1 to {MAX_NAME_CHARS} characters, and no control or format characters (as U+202E)"),
        )
    }
}

impl PartialSchema for Who {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).examples([serde_json::json!("小明")]);
        // Of the characters that are refused those of ASCII: classes of Unicode are not understood by every reader.
        text.min_length(Some(1)).max_length(Some(MAX_NAME_CHARS)).pattern(Some(r"^[^\x00-\x1f\x7f]*$")).into()
    }
}

impl ToSchema for Who {}

/// A query that has the terms of the course and these fields of its own: serde cannot both refuse unknown fields and
/// flatten one struct into another.
macro_rules! terms {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, serde::Deserialize, garde::Validate, utoipa::IntoParams)]
        #[serde(deny_unknown_fields)]
        #[into_params(parameter_in = Query)]
        pub(in crate::http) struct $name {
            /// Which product; 1 without it.
            #[garde(dive)]
            #[param(inline, default = 1)]
            stock_id: Option<$crate::http::terms::StockId>,
            /// How long to stay inside the critical section, in milliseconds; without it the route's own time, or none.
            #[garde(dive)]
            #[param(inline)]
            hold_ms: Option<$crate::http::terms::HoldMs>,
            /// The longest wait, in milliseconds; without it the configured one, for latch and barriers ten minutes.
            #[garde(dive)]
            #[param(inline)]
            wait_ms: Option<$crate::http::terms::WaitMs>,
            /// The lease of a lock that has one, in milliseconds, instead of its own.
            #[garde(dive)]
            #[param(inline)]
            lease_ms: Option<$crate::http::terms::LeaseMs>,
            /// The name of the person, for consoles and answers. Requests of different people also differ for a browser,
            /// which holds back a second GET of the same address.
            #[garde(dive)]
            #[param(inline)]
            who: Option<$crate::http::terms::Who>,
            $($(#[$field_meta])* pub(in crate::http) $field: $type,)*
        }

        impl $name {
            /// Whether the request names a product.
            #[allow(dead_code, reason = "only a few routes have a product of the visitor's")]
            pub(in crate::http) fn names_product(&self) -> bool {
                self.stock_id.is_some()
            }

            /// The product that the request names, else 1.
            pub(in crate::http) fn stock_id(&self) -> i64 {
                self.stock_id.map_or(1, $crate::http::extract::BoundedInteger::get)
            }

            /// The requested job, with these defaults for wait and stay.
            pub(in crate::http) fn job(
                &self,
                wait: std::time::Duration,
                stay: std::time::Duration,
            ) -> $crate::section::Job {
                use $crate::http::extract::BoundedInteger;
                let stock_id = self.stock_id();
                let hold = self.hold_ms.map_or(stay, BoundedInteger::millis);
                let wait = self.wait_ms.map_or(wait, BoundedInteger::millis);
                let who = self.who.clone().map($crate::http::terms::Who::into_inner);
                $crate::section::Job::new(stock_id, hold, wait).with_options(self.lease_ms.map(BoundedInteger::millis), who)
            }
        }
    };
}

pub(in crate::http) use terms;

terms!(
    /// The parameters of every route of the course.
    Terms {}
);
