//! Interprets an answer of `/check/lock/{strategy}`: whether a piece was sold.

use super::{
    history::{AnswerDetails, Outcome},
    inside::Stay,
};
use serde::Deserialize;
use std::mem;

/// The answer of §1.3 to a buyer who gets a piece.
pub(super) const SOLD: &str = "验库存并锁库存成功！";
/// The answer to a buyer when all pieces are gone.
pub(super) const SOLD_OUT: &str = "库存不足";
/// The service says by one of these words, in its language, that it does not know the outcome.
const UNKNOWN_WORDS: [&str; 2] = ["unknown", "未知"];
/// A reason is cut to this many characters: one line of a wide terminal.
const MAX_REASON_CHARS: usize = 160;

/// The fields that are read of an answer in JSON, of a sale or of a problem.
#[derive(Deserialize)]
struct SaleAnswer<'a> {
    outcome: &'a str,
    title: Option<String>,
    detail: Option<String>,
    retries: Option<u64>,
    waited_ms: Option<u64>,
    lock: Option<&'a str>,
    entered_us: Option<u64>,
    left_us: Option<u64>,
    #[serde(default)]
    tries_us: Vec<Stay>,
}

/// Returns the outcome and the details of an answer, by its status and by its JSON or its words: a page of a proxy is no sale.
///
/// nginx answers 502 and 504 if it lost the instance in the middle, so the outcome is unknown.
pub fn classify_answer(status: u16, body: &[u8]) -> (Outcome, AnswerDetails) {
    if let Ok(mut json) = serde_json::from_slice::<SaleAnswer<'_>>(body) {
        let said = AnswerDetails {
            retries: json.retries,
            waited_ms: json.waited_ms,
            lost: json.lock.is_some_and(|lock| lock == "lost"),
            inside: json.entered_us.zip(json.left_us),
            tries: mem::take(&mut json.tries_us),
        };
        return (json.outcome(status), said);
    }
    let text = String::from_utf8_lossy(body);
    let outcome = match status {
        200 if text.contains(SOLD) => Outcome::Sold,
        409 if text.contains(SOLD_OUT) => Outcome::SoldOut,
        502 | 504 => Outcome::Unknown(reason(status, &text)),
        500.. if UNKNOWN_WORDS.iter().any(|word| text.contains(word)) => Outcome::Unknown(reason(status, &text)),
        _ => Outcome::Refused(reason(status, &text)),
    };
    (outcome, AnswerDetails::default())
}

impl SaleAnswer<'_> {
    /// 200 with `sold` is sold, 409 with `sold_out` is sold out, `unknown` is unknown at any status; all else is refused.
    fn outcome(&self, status: u16) -> Outcome {
        let why = || {
            let words = [&self.title, &self.detail].map(|words| words.as_deref().unwrap_or_default());
            reason(status, &words.join(" "))
        };
        match (status, self.outcome) {
            (200, "sold") => Outcome::Sold,
            (409, "sold_out") => Outcome::SoldOut,
            (_, "unknown") => Outcome::Unknown(why()),
            _ => Outcome::Refused(why()),
        }
    }
}

/// Status and words on one line. Numbers become `N`, because waits differ from answer to answer while the reason is the same.
fn reason(status: u16, text: &str) -> String {
    let without_number = |word| if str::bytes(word).all(|b| b.is_ascii_digit()) { "N" } else { word };
    let words: Vec<_> = text.split_whitespace().map(without_number).collect();
    let line: String = words.join(" ").chars().take(MAX_REASON_CHARS).collect();
    format!("{status} {line}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_answers() {
        let kind = |status, body: &str| match classify_answer(status, body.as_bytes()).0 {
            Outcome::Sold => "sold",
            Outcome::SoldOut => "sold out",
            Outcome::Refused(_) => "refused",
            Outcome::Unknown(_) => "unknown",
        };
        for (status, body, wanted) in [
            (200, "验库存并锁库存成功！", "sold"),
            (200, r#"{"outcome":"sold","remaining":null}"#, "sold"),
            (200, "<!doctype html><title>oversell</title>", "refused"),
            (200, r#"{"outcome":"done"}"#, "refused"),
            (503, r#"{"outcome":"sold"}"#, "refused"),
            (409, "库存不足！", "sold out"),
            (409, r#"{"title":"库存不足！","outcome":"sold_out"}"#, "sold out"),
            (409, "锁已失效", "refused"),
            (409, r#"{"title":"锁已失效","outcome":"refused"}"#, "refused"),
            (503, "lock redis-lock was not acquired within 30000 ms", "refused"),
            (503, r#"{"type":"urn:oversell:unknown-thing","outcome":"failed"}"#, "refused"),
            (503, "mysql did not answer a write; whether it was done is unknown", "unknown"),
            (503, "超时，结果未知", "unknown"),
            (500, r#"{"outcome":"unknown"}"#, "unknown"),
            (500, "", "refused"),
            (502, "<html>502 Bad Gateway</html>", "unknown"),
            (504, "", "unknown"),
            (404, "unknown strategy", "refused"),
            (429, "", "refused"),
        ] {
            assert_eq!(kind(status, body), wanted, "{status} {body}");
        }
    }

    #[test]
    fn an_answer_in_json_reports_retries_and_a_lost_lock() {
        let said = |body: &str| classify_answer(200, body.as_bytes()).1;
        let lost = said(r#"{"outcome":"sold","retries":3,"waited_ms":12,"fence":null,"lock":"lost","entered_us":7,"left_us":9}"#);
        let wanted = AnswerDetails { retries: Some(3), waited_ms: Some(12), lost: true, inside: Some((7, 9)), tries: Vec::new() };
        assert_eq!(lost, wanted);
        assert_eq!(said(r#"{"outcome":"sold","tries_us":[[1,4],[5,8]]}"#).tries, [(1, 4), (5, 8)]);
        assert_eq!(said(r#"{"outcome":"sold","lock":"kept"}"#), AnswerDetails::default());
        assert_eq!(said(SOLD), AnswerDetails::default());
    }

    #[test]
    fn a_reason_is_one_line_and_the_same_whatever_the_wait_was() {
        let reason = |body: &str| match classify_answer(503, body.as_bytes()).0 {
            Outcome::Refused(why) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(reason("没有等到\npool not had within 18 ms\n"), "503 没有等到 pool not had within N ms");
        assert_eq!(reason("pool not had within 107 ms"), reason("pool not had within 3 ms"));
        let json = r#"{"title":"没有等到","detail":"pool not had within 9 ms","outcome":"failed"}"#;
        assert_eq!(reason(json), "503 没有等到 pool not had within N ms");
        assert_eq!(reason(""), "503");
    }
}
