//! Breaking lines at their words, for a terminal of a given width. A Chinese character takes two.

use textwrap::{Options, WordSeparator, WordSplitter, core::Word};

/// The text with long lines broken at words; the next lines are indented like the first. A word longer than `width` stays whole.
pub fn wrap_lines(text: &str, width: usize) -> String {
    let lines = text.lines().map(|line| {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let how = Options::new(width)
            .word_separator(WordSeparator::Custom(words))
            .word_splitter(WordSplitter::NoHyphenation)
            .break_words(false)
            .subsequent_indent(&line[..indent]);
        match textwrap::core::display_width(line) > width {
            true => textwrap::fill(line, how),
            false => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The words of a line, each with the spaces behind it. Chinese has none: each of its characters is a word, with the
/// punctuation behind it.
fn words(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let is_chinese = |c: char| ('\u{2e80}'..='\u{9fff}').contains(&c);
    let ends = move |(at, c): (usize, char)| {
        let end = at + c.len_utf8();
        let next = line[end..].chars().next()?;
        let is_end = match c {
            ' ' => next != ' ',
            _ => "，。；：、！？）］》”".contains(c) || (is_chinese(c) && (is_chinese(next) || next.is_ascii())),
        };
        let closes = "，。；：、！？）］》”　 ".contains(next);
        (is_end && !closes).then_some(end)
    };
    let ends = line.char_indices().filter_map(ends).chain([line.len()]);
    Box::new(ends.scan(0, move |start, end| {
        let word = Word::from(&line[*start..end]);
        *start = end;
        Some(word)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_their_words_and_keep_their_indent() {
        let text = "  ceiling of one: GET /health/live, 330 bytes\n  闭环压测：收到应答才发下一个请求，`redis-lock` 也是";
        for line in wrap_lines(text, 20).lines() {
            assert!(textwrap::core::display_width(line) <= 20, "{line}");
            assert!(line.starts_with("  "), "{line:?}");
        }
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let english = text.lines().next().expect("a line");
        assert_eq!(words(&wrap_lines(english, 20)), words(english));
        assert!(wrap_lines(text, 20).contains("`redis-lock`"));
    }
}
