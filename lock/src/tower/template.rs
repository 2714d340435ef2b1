//! The name of a lock with fields in it: checked when it is made, filled from each request.
//!
//! Two requests with different fields cannot fill it to one name: a value ends at the first character that no value
//! has, and between two fields there is always one. So the name can be read back.

use super::Refusal;
use http::{HeaderName, Method, request::Parts};
use matchit::Router;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};
use std::{borrow::Cow, fmt};

/// The most bytes of a field's value, before it is escaped; a request with a longer one is refused.
pub const MAX_VALUE_LENGTH: usize = 128;

/// The bytes that are written `%XX` in a value: all but ASCII letters, digits and `-`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-');

/// A rule that a template or a route breaks, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{template}: at byte {position}: {rule}")]
pub struct TemplateError {
    /// The template, or the route.
    pub template: String,
    /// The byte offset of the error.
    pub position: usize,
    /// The rule.
    pub rule: String,
}

/// The fields that a template may name: the parts of the route's pattern, and the fields of the query.
#[derive(Debug, Default)]
pub(super) struct AllowedFields {
    pub(super) route: Option<String>,
    /// `None`: unknown, so any name is allowed.
    pub(super) query: Option<Vec<String>>,
}

/// A checked template for locks' names: its parts in order, and the route whose paths it reads.
pub(super) struct Template {
    text: String,
    parts: Vec<NamePart>,
    /// Matches the route's paths only; without a route it is empty and matches none.
    route: Router<()>,
}

/// One part of a lock's name: fixed text, the request's method, or a field of its path, query or headers.
#[derive(Debug, PartialEq, Eq)]
enum NamePart {
    Text(String),
    Method,
    Path(String),
    Query(String),
    Header(HeaderName),
}

impl AllowedFields {
    /// Refuses fields that no template reads.
    pub(super) fn none_named(&self) -> Result<(), TemplateError> {
        let named = self.route.clone().or_else(|| self.query.as_ref().map(|names| names.join(",")));
        let rule = "a key of extractors reads no route and no query";
        named.map_or(Ok(()), |named| Err(template_error(&named, 0, rule.into())))
    }
}

impl Template {
    /// The template of a layer by route: the request's method and the route's pattern. Refuses a missing route.
    pub(super) fn of_route(fields: &AllowedFields) -> Result<Self, TemplateError> {
        let text = fields.route.clone().unwrap_or_default();
        let (route, _) = parse_route(&text)?;
        Ok(Self { parts: vec![NamePart::Method, NamePart::Text(format!(" {text}"))], route, text })
    }

    /// Parses a template that names some of these `fields`, and checks its rules.
    pub(super) fn parse(text: &str, fields: &AllowedFields) -> Result<Self, TemplateError> {
        let (route, named) = fields.route.as_deref().map(parse_route).transpose()?.unwrap_or_default();
        let parts = parse_parts(text, |field| part_of_field(field, fields, &named))?;
        Ok(Self { text: text.to_owned(), parts, route })
    }

    /// Whether the name depends on the request's path, query or headers; its method does not count.
    pub(super) fn has_fields(&self) -> bool {
        let of_the_request = |part: &NamePart| !matches!(part, NamePart::Text(_) | NamePart::Method);
        self.parts.iter().any(of_the_request)
    }

    /// Returns the name of this request's lock; refuses a field that is missing, empty, too long or given twice.
    pub(super) fn fill(&self, head: &Parts) -> Result<String, Refusal> {
        let mut name = String::new();
        for part in &self.parts {
            match part {
                NamePart::Text(text) => name.push_str(text),
                // GET's handler also serves HEAD.
                NamePart::Method if head.method == Method::HEAD => name.push_str("GET"),
                NamePart::Method => name.push_str(head.method.as_str()),
                NamePart::Path(field) => {
                    let found = self.route.at(head.uri.path()).ok().and_then(|route| route.params.get(field));
                    let value = found.map(|raw| percent_decode(raw.as_bytes()).into());
                    name.extend(escape_value(field, value, false)?);
                }
                NamePart::Query(field) => {
                    let mut values = query(head).filter(|(key, _)| key.as_ref() == field.as_bytes());
                    let value = values.next().map(|(_, value)| value);
                    name.extend(escape_value(field, value, values.next().is_some())?);
                }
                NamePart::Header(field) => {
                    let mut values = head.headers.get_all(field).iter().map(|value| Cow::Borrowed(value.as_bytes()));
                    let value = values.next();
                    name.extend(escape_value(field.as_str(), value, values.next().is_some())?);
                }
            }
        }
        Ok(name)
    }
}

/// Returns where a field's value comes from, or the rule that its name breaks. `in_path` has the names of the route's parts.
fn part_of_field(field: &str, fields: &AllowedFields, in_path: &[String]) -> Result<NamePart, String> {
    let has = |name: &str| in_path.iter().any(|known| known == name);
    let query = |name: &str| match &fields.query {
        Some(known) if !known.iter().any(|known| known == name) => {
            Err(format!("there is no {name}, neither in the path nor in the query"))
        }
        _ => Ok(NamePart::Query(name.to_owned())),
    };
    match field.split_once(':') {
        None if has(field) => Ok(NamePart::Path(field.to_owned())),
        None => query(field),
        Some((_, "")) => Err("a field must have a name".into()),
        Some(("path", name)) if has(name) => Ok(NamePart::Path(name.to_owned())),
        Some(("path", name)) => Err(match &fields.route {
            Some(route) => format!("the route {route} has no part {name}"),
            None => format!("which part of the path {name} is must be said by the route"),
        }),
        Some(("query", name)) => query(name),
        Some(("header", name)) => name.parse().map(NamePart::Header).map_err(|_| format!("{name:?} is no name of a header")),
        Some((from, _)) => Err(format!("a field comes from path, query or header, and not from {from}")),
    }
}

/// Splits a template into its parts, and checks its rules; `source` says where a field comes from.
fn parse_parts(template: &str, source: impl Fn(&str) -> Result<NamePart, String>) -> Result<Vec<NamePart>, TemplateError> {
    let refused = |position, rule: &str| Err(template_error(template, position, rule.to_owned()));
    let (mut parts, mut text, mut rest) = (Vec::new(), String::new(), template);
    // Separates a value's end from the next one's beginning.
    let mut apart = true;
    while let Some(next) = rest.chars().next() {
        let position = template.len() - rest.len();
        if rest.starts_with("{{") || rest.starts_with("}}") {
            text.push(next);
            (apart, rest) = (true, &rest[2..]);
        } else if next == '}' {
            return refused(position, "a } that closes nothing; a brace itself is written }}");
        } else if next == '{' {
            let Some((field, after)) = rest[1..].split_once('}') else {
                return refused(position, "a { that is not closed; a brace itself is written {{");
            };
            match field {
                "" => return refused(position, "a field must have a name"),
                field if field.contains('{') => return refused(position, "a field within a field"),
                _ if !apart => {
                    return refused(position, "two fields must have a character between them that no value has: _ or : say");
                }
                field => {
                    parts.push(NamePart::Text(std::mem::take(&mut text)));
                    parts.push(source(field).map_err(|rule| template_error(template, position, rule))?);
                    (apart, rest) = (false, after);
                }
            }
        } else {
            apart |= !(next.is_ascii_alphanumeric() || "-%".contains(next));
            text.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    parts.push(NamePart::Text(text));
    if template.is_empty() { refused(0, "a key must not be empty") } else { Ok(parts) }
}

/// Returns a matcher for the paths of a route, and the names of its parts.
fn parse_route(route: &str) -> Result<(Router<()>, Vec<String>), TemplateError> {
    if !route.starts_with('/') {
        return Err(template_error(route, 0, "a route begins with /".into()));
    }
    let mut matcher = Router::new();
    matcher.insert(route, ()).map_err(|e| template_error(route, 0, e.to_string()))?;
    // The pattern, as a path, matches itself.
    let Ok(itself) = matcher.at(route) else {
        return Err(template_error(route, 0, "a brace in a route is not known here".into()));
    };
    let named = itself.params.iter().map(|(name, _)| name.to_owned()).collect();
    Ok((matcher, named))
}

/// The fields of the query, byte for byte, so that values that are not UTF-8 stay different.
fn query(head: &Parts) -> impl Iterator<Item = (Cow<'_, [u8]>, Cow<'_, [u8]>)> {
    let pairs = head.uri.query().unwrap_or_default().split('&');
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(name, value)| (decode_form(name), decode_form(value)))
}

/// Decodes `+` as a space, and `%XX`.
fn decode_form(text: &str) -> Cow<'_, [u8]> {
    if !text.contains('+') {
        return percent_decode(text.as_bytes()).into();
    }
    let spaced = text.replace('+', " ");
    Cow::Owned(percent_decode(spaced.as_bytes()).collect())
}

/// Writes a text as a template writes a value: every byte that is no ASCII letter, digit or `-` is `%XX`.
///
/// ```
/// assert_eq!(oversell_lock::tower::escape("a:b"), "a%3Ab");
/// ```
#[must_use]
pub fn escape(text: impl AsRef<[u8]>) -> String {
    percent_encode(text.as_ref(), ESCAPED).to_string()
}

/// Returns a field's value as it is written in a name, never `None`; refuses one that is missing, empty, too long or, if
/// `again`, given twice.
fn escape_value(field: &str, value: Option<Cow<'_, [u8]>>, again: bool) -> Result<Option<String>, Refusal> {
    let rule = match &value {
        None => "is missing",
        Some(_) if again => "is given twice",
        Some(value) if value.is_empty() => "must not be empty",
        Some(value) if value.len() > MAX_VALUE_LENGTH => "must have at most 128 bytes",
        Some(value) => return Ok(Some(escape(value))),
    };
    Err(Refusal::Field { field: field.to_owned(), rule })
}

fn template_error(template: &str, position: usize, rule: String) -> TemplateError {
    TemplateError { template: template.to_owned(), position, rule }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn fields(route: &str, query: Option<&[&str]>) -> AllowedFields {
        let route = (!route.is_empty()).then(|| route.to_owned());
        AllowedFields { route, query: query.map(|names| names.iter().map(ToString::to_string).collect()) }
    }

    fn head(uri: &str) -> Parts {
        let request = Request::post(uri).header("x-user-id", "张三").header("x-two", "1").header("x-two", "2");
        request.body(()).unwrap().into_parts().0
    }

    fn filled(template: &str, route: &str, uri: &str) -> Result<String, String> {
        let template = Template::parse(template, &fields(route, None)).unwrap();
        template.fill(&head(uri)).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_field_comes_from_path_query_or_header() {
        // Template | route | request | name.
        let cases = "
            demo4#{whId}_{sku} | /demo4 | /demo4?whId=1&sku=a | demo4#1_a
            demo4#{whId}_{sku} | /demo4/{whId} | /demo4/1?whId=2&sku=a | demo4#1_a
            demo4#{query:whId}_{sku} | /demo4/{whId} | /demo4/1?whId=2&sku=a | demo4#2_a
            {path:rest} | /files/{*rest} | /files/a/b | a%2Fb
            order:{header:X-User-Id} | | / | order:%E5%BC%A0%E4%B8%89
            {{{sku}}} | | /?sku=a | {a}
            a lock for all | | / | a lock for all";
        for case in cases.trim().lines() {
            let words: Vec<_> = case.split('|').map(str::trim).collect();
            let filled = filled(words[0], words[1], words[2]);
            assert_eq!(filled.as_deref(), Ok(words[3]), "{case}");
        }
        let by_route = Template::of_route(&fields("/demo3/{id}", None)).unwrap();
        assert_eq!(by_route.fill(&head("/demo3/7")).unwrap(), "POST /demo3/{id}");
        let names = ["GET", "HEAD"].map(|method| {
            let mut head = head("/demo3/7");
            head.method = method.parse().unwrap();
            by_route.fill(&head).unwrap()
        });
        assert_eq!(names, ["GET /demo3/{id}"; 2]);
    }

    #[test]
    fn a_value_is_the_same_however_it_is_written() {
        for uri in ["/x%20y?b=c_d", "/x%20y?b=c%5Fd&more=1", "/x%20y?%62=c%5fd"] {
            assert_eq!(filled("{a}/{b}", "/{a}", uri).as_deref(), Ok("x%20y/c%5Fd"), "{uri}");
        }
        assert_eq!(filled("{b}", "", "/?b=x+y"), filled("{b}", "", "/?b=x%20y"));
    }

    /// The text's own template: `1_2` and `3` against `1` and `2_3`; and whatever else could be confused.
    #[test]
    fn requests_that_differ_never_fill_to_one_name() {
        let bytes = ["1", "_", "%", "-", "#", ":", "1_2", "2_3", "%5F", "%255F", "a", "A", "é", " ", "\u{fffd}", "%FF", "%FE"];
        let raw = |value: &str| match value {
            "%FF" | "%FE" => value.to_owned(),
            value => percent_encode(value.as_bytes(), NON_ALPHANUMERIC).to_string(),
        };
        let mut names = std::collections::HashMap::new();
        for a in bytes {
            for b in bytes {
                let name = filled("demo4#{a}_{b}", "", &format!("/?a={}&b={}", raw(a), raw(b))).unwrap();
                assert_eq!(names.insert(name, (a, b)), None, "{a} {b}");
            }
        }
        // The twin: values that are filled in as they are.
        let plain = |a: &str, b: &str| format!("demo4#{a}_{b}");
        assert_eq!(plain("1_2", "3"), plain("1", "2_3"));
    }

    #[test]
    fn a_missing_field_of_a_request_is_named() {
        let long = "x".repeat(MAX_VALUE_LENGTH);
        for (uri, wrong) in [
            ("/?a=1", "b: is missing"),
            ("/?a=1&B=2", "b: is missing"),
            ("/?a=1&b=", "b: must not be empty"),
            ("/?a=1&b", "b: must not be empty"),
            ("/?a=1&b=2&b=2", "b: is given twice"),
            (&format!("/?b=1&a={long}x"), "a: must have at most 128 bytes"),
        ] {
            assert_eq!(filled("{a}_{b}", "", uri), Err(wrong.to_owned()), "{uri}");
        }
        assert_eq!(filled("{a}", "", &format!("/?a={long}")), Ok(long));
        assert_eq!(filled("{header:x-none}", "", "/"), Err("x-none: is missing".into()));
        assert_eq!(filled("{header:x-two}", "", "/"), Err("x-two: is given twice".into()));
        assert_eq!(filled("{id}", "/a/{id}", "/b/7"), Err("id: is missing".into()), "another route's path");
    }

    #[test]
    fn a_bad_template_is_refused_with_rule_and_position() {
        let known = fields("/demo4/{whId}", Some(&["sku"]));
        for (template, position, rule) in [
            ("", 0, "must not be empty"),
            ("demo4#{sku", 6, "not closed"),
            ("demo4#sku}", 9, "closes nothing"),
            ("demo4#{}", 6, "must have a name"),
            ("demo4#{path:}", 6, "must have a name"),
            ("demo4#{a{b}}", 6, "within a field"),
            ("{sku}{whId}", 5, "between them"),
            ("{sku}-x{whId}", 7, "between them"),
            ("{sku}_{whid}", 6, "there is no whid"),
            ("{query:whId}", 0, "there is no whId"),
            ("{path:sku}", 0, "has no part sku"),
            ("{cookie:sku}", 0, "not from cookie"),
            ("{header:x y}", 0, "no name of a header"),
        ] {
            let error = Template::parse(template, &known).expect_err(template);
            assert!(error.position == position && error.rule.contains(rule), "{template}: {error}");
        }
        for route in ["", "no-slash", "/a{b", "/{{a}}", "/{a}x"] {
            assert!(Template::of_route(&fields(route, None)).is_err(), "{route}");
        }
        let unknown = Template::parse("{path:a}", &AllowedFields::default()).expect_err("no route");
        assert!(unknown.to_string().contains("said by the route"), "{unknown}");
        assert!(Template::parse("{sku}_{whId}#{header:x-user-id}", &known).is_ok());
    }
}
